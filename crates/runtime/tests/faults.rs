//! What happens when the store stalls, fails or loses an answer, and when requests are dropped.

#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a failed expectation is the test's failure"
)]

use agents::{Agent, AgentOptions};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use jiff::Timestamp;
use loomline_runtime as runtime;
use runtime::{
    AgentReactor, Append, Claim, Clock, Created, Delta, Filter, Head, Logged, MemoryStore,
    NewRecord, NewThreadRequest, Page, Policy, React, Reacted, Reactor, ReactorError, Run, Runtime,
    RuntimeError, RuntimeOptions, StepRun, Store, StoreError, SystemIds, TenantId, ThreadRow,
    Until,
};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use timeline::{
    Entry, Event, ExecutionStatus, NewItem, Payload, Record, Seq, StepOutcome, ThreadId,
};
use tokio::sync::Semaphore;
use upp::{
    Arguments, AssistantMessage, Capabilities, CycleUsage, Effect, MessageOptions, Model,
    ModelEvent, ModelStream, Request, Response, Scripted, StopReason, Tool, ToolCall, ToolContext,
    ToolFailure,
};

/// Long enough for everything here that ends at all.
const PATIENCE: Duration = Duration::from_secs(3);
/// How late an answer is that is late.
const LATE: Duration = Duration::from_millis(300);
/// How long a client waits before it hangs up.
const HANG_UP: Duration = Duration::from_millis(50);

fn tenant() -> TenantId {
    "acme".into()
}

// ---------------------------------------------------------------------------------------------
// A store that does what stores do on bad days.

#[derive(Default)]
struct Rigged {
    inner: Arc<MemoryStore>,
    /// So many appends fail and have written nothing.
    fail_appends: AtomicUsize,
    /// So many appends are written, and their answer comes when nobody waits for it any more.
    lose_appends: AtomicUsize,
    /// Appends take so many milliseconds.
    slow_appends: AtomicU64,
    /// So many claims answer late.
    stall_claims: AtomicUsize,
    /// So many deletes are done, and their answer comes late.
    lose_deletes: AtomicUsize,
    /// So many look-ups come a moment before someone else makes the thread.
    early_finds: AtomicUsize,
    /// The thread whose log can't be read.
    damaged: Mutex<Option<ThreadId>>,
}

fn spend(count: &AtomicUsize) -> bool {
    count
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1))
        .is_ok()
}

impl Store for Rigged {
    fn get_or_create<'a>(
        &'a self,
        tenant: &'a TenantId,
        first: Vec<NewRecord>,
    ) -> BoxFuture<'a, Result<Created, StoreError>> {
        self.inner.get_or_create(tenant, first)
    }

    fn find<'a>(
        &'a self,
        tenant: &'a TenantId,
        key: &'a str,
    ) -> BoxFuture<'a, Result<ThreadRow, StoreError>> {
        if key == "fork" && spend(&self.early_finds) {
            return Box::pin(std::future::ready(Err(StoreError::NotFound)));
        }
        self.inner.find(tenant, key)
    }

    fn row<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<ThreadRow, StoreError>> {
        self.inner.row(thread)
    }

    fn list<'a>(
        &'a self,
        tenant: &'a TenantId,
        page: Page,
    ) -> BoxFuture<'a, Result<Vec<ThreadRow>, StoreError>> {
        self.inner.list(tenant, page)
    }

    fn delete<'a>(
        &'a self,
        tenant: &'a TenantId,
        thread: &'a ThreadId,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.inner.delete(tenant, thread).await?;
            if spend(&self.lose_deletes) {
                tokio::time::sleep(LATE).await;
            }
            Ok(())
        })
    }

    fn head<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<Head, StoreError>> {
        self.inner.head(thread)
    }

    fn claim<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<Claim, StoreError>> {
        Box::pin(async move {
            if self.damaged.lock().unwrap().as_ref() == Some(thread) {
                return Err(StoreError::Damaged("on purpose".into()));
            }
            if spend(&self.stall_claims) {
                tokio::time::sleep(LATE).await;
            }
            self.inner.claim(thread).await
        })
    }

    fn append(&self, append: Append) -> BoxFuture<'_, Result<Seq, StoreError>> {
        Box::pin(async move {
            if spend(&self.fail_appends) {
                return Err(StoreError::Failed("the disk is full".into()));
            }
            let slow = self.slow_appends.load(Ordering::SeqCst);
            if slow > 0 {
                tokio::time::sleep(Duration::from_millis(slow)).await;
            }
            let tail = self.inner.append(append).await?;
            if spend(&self.lose_appends) {
                tokio::time::sleep(LATE).await;
            }
            Ok(tail)
        })
    }

    fn answer<'a>(
        &'a self,
        thread: &'a ThreadId,
        token: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        self.inner.answer(thread, token)
    }

    fn read<'a>(
        &'a self,
        thread: &'a ThreadId,
        after: Seq,
        limit: usize,
        filter: Filter,
    ) -> BoxFuture<'a, Result<Vec<Logged>, StoreError>> {
        self.inner.read(thread, after, limit, filter)
    }

    fn unfinished(&self) -> BoxFuture<'_, Result<Vec<ThreadId>, StoreError>> {
        self.inner.unfinished()
    }

    fn close(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.close()
    }
}

// ---------------------------------------------------------------------------------------------
// A reactor that says one word, when it is let.

struct Gated {
    gate: Semaphore,
    began: AtomicUsize,
    inside: AtomicUsize,
    most_inside: AtomicUsize,
    /// Whether each step was given what the one before remembered.
    remembered: Mutex<Vec<bool>>,
}

struct Inside<'a>(&'a Gated);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Gated {
    fn closed() -> Arc<Self> {
        Arc::new(Self {
            gate: Semaphore::new(0),
            began: AtomicUsize::new(0),
            inside: AtomicUsize::new(0),
            most_inside: AtomicUsize::new(0),
            remembered: Mutex::default(),
        })
    }

    fn open() -> Arc<Self> {
        let gated = Self::closed();
        gated.gate.add_permits(1_000);
        gated
    }

    async fn begun(&self, n: usize) {
        while self.began.load(Ordering::SeqCst) < n {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

fn word() -> Vec<Payload> {
    vec![json!({"type": "output_text", "text": "word"}).into()]
}

fn over() -> Reacted {
    Reacted {
        outcome: StepOutcome::default(),
        wants_more: false,
        messages_for_model: None,
        memory: Some(Box::new(())),
    }
}

impl Reactor for Gated {
    fn react<'a>(&'a self, step: StepRun<'a>) -> BoxFuture<'a, Result<Reacted, ReactorError>> {
        Box::pin(async move {
            let n = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
            let _inside = Inside(self);
            self.most_inside.fetch_max(n, Ordering::SeqCst);
            self.remembered.lock().unwrap().push(step.memory.is_some());
            if step.resumed.is_some() {
                return Ok(over());
            }
            step.writer.delta(Delta::Text, "t", "half").await?;
            self.began.fetch_add(1, Ordering::SeqCst);
            self.gate.acquire().await.unwrap().forget();
            step.writer
                .respond(Vec::new(), word(), json!({}).into())
                .await?;
            Ok(over())
        })
    }
}

fn rigged() -> Arc<Rigged> {
    Arc::default()
}

fn running(store: &Arc<Rigged>, reactor: Arc<impl Reactor + 'static>) -> Runtime {
    let store: Arc<dyn Store> = store.clone();
    Runtime::new(store, Arc::new(reactor), RuntimeOptions::default())
}

fn say(runtime: &Runtime, key: &str, text: &str, policy: Policy) -> React {
    let content = json!([{"type": "input_text", "text": text}]).into();
    React {
        tenant: tenant(),
        key: key.into(),
        item: NewItem::user(runtime.mint(), content),
        run: Run::default(),
        policy,
        token: None,
    }
}

async fn made(runtime: &Runtime, key: &str) -> ThreadRow {
    let new = NewThreadRequest {
        key: Some(key.into()),
        ..NewThreadRequest::default()
    };
    let (row, _) = runtime.get_or_create(&tenant(), new).await.unwrap();
    // In memory from here on: what is rigged next does not meet this claim.
    runtime.state(&tenant(), key).await.unwrap();
    row
}

async fn log(store: &Rigged, key: &str) -> Vec<Record> {
    let row = store.inner.find(&tenant(), key).await.unwrap();
    let logged = store
        .inner
        .read(&row.thread.id, Seq::ZERO, usize::MAX, Filter::All)
        .await
        .unwrap();
    logged.into_iter().map(|logged| logged.record).collect()
}

fn ends(records: &[Record]) -> Vec<ExecutionStatus> {
    records
        .iter()
        .filter_map(|record| match &record.event {
            Event::ExecutionStatusChanged { to, .. } => Some(*to),
            _ => None,
        })
        .collect()
}

/// Waits until so many executions have ended; looks at the log alone, so that it disturbs nothing.
async fn ended(store: &Rigged, key: &str, n: usize) -> Vec<ExecutionStatus> {
    let begun = Instant::now();
    loop {
        let ends = ends(&log(store, key).await);
        if ends.len() >= n || begun.elapsed() > PATIENCE {
            return ends;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

// ---------------------------------------------------------------------------------------------
// Executions without a runner, or with two.

#[tokio::test]
async fn a_run_goes_on_though_its_client_hung_up_while_it_was_written() {
    let store = rigged();
    let runtime = running(&store, Gated::open());
    made(&runtime, "k").await;
    store.lose_appends.store(1, Ordering::SeqCst);
    let post = runtime.react(say(&runtime, "k", "hello", Policy::Queue));
    assert!(tokio::time::timeout(HANG_UP, post).await.is_err());
    // Someone looks, as the client's next page load would.
    runtime.state(&tenant(), "k").await.unwrap();
    assert_eq!(ended(&store, "k", 1).await, [ExecutionStatus::Completed]);
}

#[tokio::test]
async fn a_repeated_token_finds_its_run_running_though_the_first_answer_was_lost() {
    let store = rigged();
    let runtime = running(&store, Gated::open());
    made(&runtime, "k").await;
    let mut request = say(&runtime, "k", "hello", Policy::Queue);
    request.token = Some("t".into());
    store.lose_appends.store(1, Ordering::SeqCst);
    let post = runtime.react(request.clone());
    assert!(tokio::time::timeout(HANG_UP, post).await.is_err());
    assert!(runtime.react(request).await.unwrap().repeated);
    assert_eq!(ended(&store, "k", 1).await, [ExecutionStatus::Completed]);
}

#[tokio::test]
async fn what_waits_begins_though_the_cancel_before_it_was_not_waited_for() {
    let store = rigged();
    let reactor = Gated::closed();
    let runtime = running(&store, reactor.clone());
    runtime
        .react(say(&runtime, "k", "one", Policy::Queue))
        .await
        .unwrap();
    reactor.begun(1).await;
    runtime
        .react(say(&runtime, "k", "two", Policy::Queue))
        .await
        .unwrap();
    store.lose_appends.store(1, Ordering::SeqCst);
    let tenant = tenant();
    let cancel = runtime.cancel(&tenant, "k", None, "user_cancelled");
    assert!(tokio::time::timeout(HANG_UP, cancel).await.is_err());
    reactor.gate.add_permits(10);
    assert_eq!(
        ended(&store, "k", 2).await,
        [ExecutionStatus::Failed, ExecutionStatus::Completed]
    );
}

#[tokio::test]
async fn a_run_goes_on_after_the_store_failed_under_it_once() {
    let store = rigged();
    let reactor = Gated::closed();
    let runtime = running(&store, reactor.clone());
    runtime
        .react(say(&runtime, "k", "hello", Policy::Queue))
        .await
        .unwrap();
    reactor.begun(1).await;
    store.fail_appends.store(1, Ordering::SeqCst);
    reactor.gate.add_permits(10);
    assert_eq!(ended(&store, "k", 1).await, [ExecutionStatus::Completed]);
}

#[tokio::test]
async fn a_run_ends_though_the_store_failed_once_at_its_end() {
    struct Ends(Arc<Rigged>, AtomicUsize);
    impl Reactor for Ends {
        fn react<'a>(&'a self, step: StepRun<'a>) -> BoxFuture<'a, Result<Reacted, ReactorError>> {
            Box::pin(async move {
                if step.resumed.is_none() {
                    step.writer
                        .respond(Vec::new(), word(), json!({}).into())
                        .await?;
                    self.0
                        .fail_appends
                        .store(self.1.swap(0, Ordering::SeqCst), Ordering::SeqCst);
                }
                Ok(over())
            })
        }
    }
    let store = rigged();
    let runtime = running(&store, Arc::new(Ends(store.clone(), AtomicUsize::new(1))));
    runtime
        .react(say(&runtime, "k", "hello", Policy::Queue))
        .await
        .unwrap();
    assert_eq!(ended(&store, "k", 1).await, [ExecutionStatus::Completed]);
}

#[tokio::test]
async fn a_message_that_could_not_be_kept_does_not_stop_the_run_it_would_have_waited_for() {
    let store = rigged();
    let reactor = Gated::closed();
    let runtime = running(&store, reactor.clone());
    runtime
        .react(say(&runtime, "k", "one", Policy::Queue))
        .await
        .unwrap();
    reactor.begun(1).await;
    store.fail_appends.store(1, Ordering::SeqCst);
    let refused = runtime
        .react(say(&runtime, "k", "two", Policy::Queue))
        .await;
    assert!(refused.is_err());
    reactor.gate.add_permits(10);
    assert_eq!(ended(&store, "k", 1).await, [ExecutionStatus::Completed]);
}

#[tokio::test]
async fn an_attempt_that_begins_again_voids_what_the_one_before_had_shown() {
    let store = rigged();
    let reactor = Gated::closed();
    let runtime = running(&store, reactor.clone());
    runtime
        .react(say(&runtime, "k", "one", Policy::Queue))
        .await
        .unwrap();
    reactor.begun(1).await;
    store.fail_appends.store(1, Ordering::SeqCst);
    let refused = runtime
        .react(say(&runtime, "k", "two", Policy::Queue))
        .await;
    assert!(refused.is_err());
    runtime
        .react(say(&runtime, "k", "three", Policy::Queue))
        .await
        .unwrap();
    reactor.gate.add_permits(10);
    ended(&store, "k", 2).await;
    let of = |name: &str| {
        let first = log(&store, "k").now_or_never().unwrap();
        let first: Vec<Record> = first
            .into_iter()
            .take_while(|record| !matches!(record.event, Event::ThreadFinished { .. }))
            .collect();
        let named = |record: &&Record| matches!(&record.event, Event::ChunkEmitted { chunk_type, .. } if chunk_type == name);
        first.iter().filter(named).count()
    };
    assert_eq!(of("text-delta"), of("data-step-reset") + 1);
}

#[tokio::test]
async fn an_execution_never_has_two_runners_whatever_its_clients_drop() {
    let store = rigged();
    let reactor = Gated::closed();
    let runtime = running(&store, reactor.clone());
    runtime
        .react(say(&runtime, "k", "one", Policy::Queue))
        .await
        .unwrap();
    reactor.begun(1).await;
    store.lose_appends.store(1, Ordering::SeqCst);
    let second = runtime.react(say(&runtime, "k", "two", Policy::Queue));
    assert!(tokio::time::timeout(HANG_UP, second).await.is_err());
    store.stall_claims.store(1, Ordering::SeqCst);
    let third = runtime.react(say(&runtime, "k", "three", Policy::Queue));
    assert!(tokio::time::timeout(HANG_UP, third).await.is_err());
    runtime
        .react(say(&runtime, "k", "four", Policy::Queue))
        .await
        .unwrap();
    tokio::time::sleep(HANG_UP).await;
    assert_eq!(reactor.most_inside.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn what_waits_begins_though_the_run_before_it_ran_out_of_time_while_its_end_was_written() {
    struct Late(Arc<Rigged>);
    impl Reactor for Late {
        fn react<'a>(&'a self, step: StepRun<'a>) -> BoxFuture<'a, Result<Reacted, ReactorError>> {
            Box::pin(async move {
                step.writer
                    .respond(Vec::new(), word(), json!({}).into())
                    .await?;
                if step.run.timeout_ms.is_some() {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    self.0.lose_appends.store(1, Ordering::SeqCst);
                }
                Ok(over())
            })
        }
    }
    let store = rigged();
    let runtime = running(&store, Arc::new(Late(store.clone())));
    let mut first = say(&runtime, "k", "one", Policy::Queue);
    first.run.timeout_ms = Some(200);
    runtime.react(first).await.unwrap();
    runtime
        .react(say(&runtime, "k", "two", Policy::Queue))
        .await
        .unwrap();
    assert_eq!(ended(&store, "k", 2).await.len(), 2);
}

#[tokio::test]
async fn a_reader_in_another_process_does_not_stop_a_run() {
    let store = rigged();
    let reactor = Gated::closed();
    let runtime = running(&store, reactor.clone());
    runtime
        .react(say(&runtime, "k", "hello", Policy::Queue))
        .await
        .unwrap();
    reactor.begun(1).await;
    let reader = running(&store, Gated::open());
    let _follow = reader
        .follow(&tenant(), "k", Seq::ZERO, Until::Rest)
        .await
        .unwrap();
    reader.state(&tenant(), "k").await.unwrap();
    reactor.gate.add_permits(10);
    assert_eq!(ended(&store, "k", 1).await, [ExecutionStatus::Completed]);
}

#[tokio::test]
async fn one_damaged_thread_does_not_keep_the_others_from_going_on() {
    let store = rigged();
    let first = running(&store, Gated::closed());
    for key in ["a", "b", "c"] {
        first
            .react(say(&first, key, "hello", Policy::Queue))
            .await
            .unwrap();
    }
    let damaged = store.unfinished().await.unwrap().first().cloned().unwrap();
    *store.damaged.lock().unwrap() = Some(damaged.clone());
    let second = running(&store, Gated::open());
    let _ = second.recover().await;
    for key in ["a", "b", "c"] {
        let row = store.inner.find(&tenant(), key).await.unwrap();
        if row.thread.id != damaged {
            assert_eq!(ended(&store, key, 1).await, [ExecutionStatus::Completed]);
        }
    }
}

// ---------------------------------------------------------------------------------------------
// Reactors that misbehave.

#[tokio::test]
async fn a_reactor_that_panics_before_its_first_await_fails_its_execution() {
    struct Panics;
    impl Reactor for Panics {
        fn react<'a>(&'a self, _: StepRun<'a>) -> BoxFuture<'a, Result<Reacted, ReactorError>> {
            panic!("on purpose")
        }
    }
    let store = rigged();
    let runtime = running(&store, Arc::new(Panics));
    runtime
        .react(say(&runtime, "k", "hello", Policy::Queue))
        .await
        .unwrap();
    assert_eq!(ended(&store, "k", 1).await, [ExecutionStatus::Failed]);
}

/// How a run ends whose model answers with this part, and how often the model is asked.
async fn sparkling(part: Value) -> (Vec<ExecutionStatus>, usize) {
    struct Sparkles(Value, AtomicUsize);
    impl Reactor for Sparkles {
        fn react<'a>(&'a self, step: StepRun<'a>) -> BoxFuture<'a, Result<Reacted, ReactorError>> {
            Box::pin(async move {
                self.1.fetch_add(1, Ordering::SeqCst);
                let parts = vec![self.0.clone().into()];
                step.writer
                    .respond(Vec::new(), parts, json!({}).into())
                    .await?;
                Ok(over())
            })
        }
    }
    let store = rigged();
    let reactor = Arc::new(Sparkles(part, AtomicUsize::new(0)));
    let runtime = running(&store, reactor.clone());
    runtime
        .react(say(&runtime, "k", "hello", Policy::Queue))
        .await
        .unwrap();
    let ends = ended(&store, "k", 1).await;
    (ends, reactor.1.load(Ordering::SeqCst))
}

#[tokio::test]
async fn an_answer_that_can_not_be_kept_fails_its_execution() {
    let (ends, asked) = sparkling(json!({"type": "sparkle"})).await;
    assert_eq!((ends, asked), (vec![ExecutionStatus::Failed], 1));
}

#[tokio::test]
async fn a_call_that_can_not_be_kept_fails_its_execution_and_is_not_asked_for_again() {
    let (ends, asked) = sparkling(json!({"type": "sparkle", "toolCallId": "call_0"})).await;
    assert_eq!((ends, asked), (vec![ExecutionStatus::Failed], 1));
}

#[tokio::test]
async fn a_reactor_can_not_write_the_runtimes_own_markers() {
    struct Forges;
    impl Reactor for Forges {
        fn react<'a>(&'a self, step: StepRun<'a>) -> BoxFuture<'a, Result<Reacted, ReactorError>> {
            Box::pin(async move {
                let writer = step.writer;
                writer.respond(Vec::new(), word(), json!({}).into()).await?;
                let _ = writer.emit("data-step-reset", json!({}).into()).await;
                Ok(over())
            })
        }
    }
    let store = rigged();
    let runtime = running(&store, Arc::new(Forges));
    runtime
        .react(say(&runtime, "k", "hello", Policy::Queue))
        .await
        .unwrap();
    ended(&store, "k", 1).await;
    let transcript = runtime
        .transcript(&tenant(), "k", Filter::Facts)
        .await
        .unwrap();
    let n_parts: usize = transcript
        .entries
        .iter()
        .map(|entry| match entry {
            Entry::Reaction(reaction) => reaction.steps[0].parts.len(),
            Entry::Item(_) => 0,
        })
        .sum();
    assert_eq!(n_parts, 1);
}

// ---------------------------------------------------------------------------------------------
// What is remembered, and when it happened.

#[tokio::test]
async fn what_is_recorded_while_a_step_runs_voids_what_the_step_remembers() {
    let store = rigged();
    let reactor = Gated::closed();
    let runtime = running(&store, reactor.clone());
    runtime
        .react(say(&runtime, "k", "one", Policy::Queue))
        .await
        .unwrap();
    reactor.begun(1).await;
    let content = json!([{"type": "input_text", "text": "by the way"}]).into();
    let item = NewItem::user(runtime.mint(), content);
    runtime.record(&tenant(), "k", item).await.unwrap();
    reactor.gate.add_permits(10);
    ended(&store, "k", 1).await;
    runtime
        .react(say(&runtime, "k", "two", Policy::Queue))
        .await
        .unwrap();
    ended(&store, "k", 2).await;
    assert_eq!(*reactor.remembered.lock().unwrap(), [false, false]);
}

#[tokio::test]
async fn time_never_goes_back_in_a_log_though_the_clock_does() {
    struct Set(AtomicU64);
    impl Clock for Set {
        fn now(&self) -> Timestamp {
            let second = i64::try_from(self.0.load(Ordering::SeqCst)).unwrap();
            Timestamp::from_second(second).unwrap()
        }
    }
    let store = rigged();
    let at = |second| {
        let store: Arc<dyn Store> = store.clone();
        Runtime::with_sources(
            store,
            Arc::new(Gated::open()),
            RuntimeOptions::default(),
            Arc::new(Set(AtomicU64::new(second))),
            Arc::new(SystemIds),
        )
    };
    for (second, n) in [(2_000, 1), (1_000, 2)] {
        let runtime = at(second);
        runtime
            .react(say(&runtime, "k", "hello", Policy::Queue))
            .await
            .unwrap();
        ended(&store, "k", n).await;
    }
    let records = log(&store, "k").await;
    assert!(records.is_sorted_by_key(|record| record.at));
}

// ---------------------------------------------------------------------------------------------
// Deleting and forking.

#[tokio::test]
async fn a_follower_of_a_thread_that_is_deleted_is_told() {
    let store = rigged();
    let runtime = running(&store, Gated::open());
    made(&runtime, "k").await;
    let mut follow = runtime
        .follow(&tenant(), "k", Seq::ZERO, Until::Forever)
        .await
        .unwrap();
    // It has seen all there is.
    for _ in 0..2 {
        follow.next().await.unwrap().unwrap();
    }
    runtime.delete(&tenant(), "k").await.unwrap();
    let seen = tokio::time::timeout(PATIENCE, follow.for_each(|_| async {})).await;
    assert!(seen.is_ok());
}

#[tokio::test]
async fn a_key_is_free_again_though_its_delete_was_not_waited_for() {
    let store = rigged();
    let runtime = running(&store, Gated::open());
    made(&runtime, "k").await;
    store.lose_deletes.store(1, Ordering::SeqCst);
    let tenant = tenant();
    let delete = runtime.delete(&tenant, "k");
    assert!(tokio::time::timeout(HANG_UP, delete).await.is_err());
    let answer = runtime
        .react(say(&runtime, "k", "hello", Policy::Queue))
        .await;
    assert!(answer.is_ok(), "{answer:?}");
}

#[tokio::test]
async fn of_two_forks_to_one_key_the_second_is_refused() {
    let store = rigged();
    let runtime = running(&store, Gated::open());
    made(&runtime, "one").await;
    made(&runtime, "two").await;
    let fork = |key: &'static str| {
        let runtime = runtime.clone();
        async move {
            runtime
                .fork(&tenant(), key, Some("fork".into()), None)
                .await
        }
    };
    fork("one").await.unwrap();
    // The second looked before the first had made it.
    store.early_finds.store(1, Ordering::SeqCst);
    let second = fork("two").await;
    assert!(
        matches!(second, Err(RuntimeError::Store(StoreError::KeyTaken(_)))),
        "{second:?}"
    );
}

#[tokio::test]
async fn nothing_waits_for_ever_in_a_fork() {
    let store = rigged();
    let reactor = Gated::closed();
    let runtime = running(&store, reactor.clone());
    for text in ["one", "two"] {
        runtime
            .react(say(&runtime, "k", text, Policy::Queue))
            .await
            .unwrap();
    }
    reactor.gate.add_permits(10);
    ended(&store, "k", 2).await;
    let records = log(&store, "k").await;
    let finished = |record: &&Record| matches!(record.event, Event::ThreadFinished { .. });
    let at = records.iter().find(finished).unwrap().seq;
    let fork = runtime
        .fork(&tenant(), "k", Some("fork".into()), Some(at))
        .await;
    if fork.is_ok() {
        let transcript = runtime
            .transcript(&tenant(), "fork", Filter::Facts)
            .await
            .unwrap();
        let waits = |entry: &Entry| matches!(entry, Entry::Item(item) if item.run.is_some());
        assert!(!transcript.entries.iter().any(waits));
    }
}

// ---------------------------------------------------------------------------------------------
// Tools.

fn touch(effect: Effect, ran: &Arc<AtomicUsize>, stall: bool) -> Tool {
    let ran = Arc::clone(ran);
    let run = move |_: Value, _: ToolContext| -> BoxFuture<'static, Result<Value, ToolFailure>> {
        let ran = Arc::clone(&ran);
        async move {
            ran.fetch_add(1, Ordering::SeqCst);
            if stall {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
            Ok(json!("done"))
        }
        .boxed()
    };
    let parameters = json!({"type": "object", "properties": {}});
    Tool::new("touch", "Touches.", parameters, run).with_effect(effect)
}

fn agent(model: Arc<dyn Model>, tools: Vec<Tool>) -> Arc<AgentReactor> {
    let mut options = AgentOptions::new("demo", model);
    options.tools = tools;
    Arc::new(AgentReactor::new(Agent::new(options).unwrap()))
}

fn last_tool_parts(records: &[Record]) -> Vec<Value> {
    let mut parts: Vec<Value> = Vec::new();
    for record in records {
        match &record.event {
            Event::PartCreated { idx, part, .. } | Event::PartUpdated { idx, part, .. }
                if part.text().contains("\"toolCallId\"") =>
            {
                let idx = *idx as usize;
                if idx < parts.len() {
                    parts[idx] = part.value();
                } else {
                    parts.push(part.value());
                }
            }
            _ => {}
        }
    }
    parts
}

#[tokio::test]
async fn an_effect_that_had_started_is_unknown_also_when_its_tool_is_gone() {
    let store = rigged();
    let ran = Arc::new(AtomicUsize::new(0));
    let with = agent(
        Arc::new(Scripted::new()),
        vec![touch(Effect::Effect, &ran, true)],
    );
    let first = running(&store, with);
    first
        .react(say(&first, "k", "touch", Policy::Queue))
        .await
        .unwrap();
    while ran.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let second = running(&store, agent(Arc::new(Scripted::new()), Vec::new()));
    second.recover().await.unwrap();
    ended(&store, "k", 1).await;
    let parts = last_tool_parts(&log(&store, "k").await);
    assert_eq!(parts[0]["outcome"], "interrupted", "{parts:?}");
}

/// Calls `touch` under these ids at once, then has nothing more to say.
struct Stutters(&'static [&'static str], AtomicUsize);

impl Model for Stutters {
    fn model_id(&self) -> &'static str {
        "stutters"
    }

    fn provider(&self) -> &'static str {
        "test"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn stream(&self, _: Request) -> ModelStream {
        let call = |id: &&str| ToolCall {
            tool_call_id: (*id).into(),
            tool_name: "touch".into(),
            arguments: Arguments::from_text("{}"),
            after: Vec::new(),
        };
        let calls = match self.1.fetch_add(1, Ordering::SeqCst) {
            0 => self.0.iter().map(call).collect(),
            _ => Vec::new(),
        };
        let response = Response {
            message: AssistantMessage::new(Vec::new(), calls, MessageOptions::default()),
            usage: CycleUsage::default(),
            stop_reason: StopReason::EndTurn,
            data: None,
            model_id: "stutters".into(),
            provider: "test".into(),
            response_id: None,
            request: None,
        };
        futures_util::stream::iter([Ok(ModelEvent::Done(Box::new(response)))]).boxed()
    }
}

#[tokio::test]
async fn two_calls_under_one_id_keep_each_its_own_result() {
    let store = rigged();
    let ran = Arc::new(AtomicUsize::new(0));
    let model = Arc::new(Stutters(&["call_0", "call_0"], AtomicUsize::new(0)));
    let runtime = running(
        &store,
        agent(model, vec![touch(Effect::Effect, &ran, false)]),
    );
    runtime
        .react(say(&runtime, "k", "hello", Policy::Queue))
        .await
        .unwrap();
    ended(&store, "k", 1).await;
    let parts = last_tool_parts(&log(&store, "k").await);
    let states: Vec<&Value> = parts.iter().map(|part| &part["state"]).collect();
    // The first ran; the second was refused because its id was taken.
    assert_eq!(states, ["output-available", "output-error"]);
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn two_tools_may_end_at_the_same_moment() {
    let store = rigged();
    let ran = Arc::new(AtomicUsize::new(0));
    let model = Arc::new(Stutters(&["call_0", "call_1"], AtomicUsize::new(0)));
    let runtime = running(&store, agent(model, vec![touch(Effect::Pure, &ran, false)]));
    // As long as a disk takes.
    store.slow_appends.store(3, Ordering::SeqCst);
    runtime
        .react(say(&runtime, "k", "hello", Policy::Queue))
        .await
        .unwrap();
    assert_eq!(ended(&store, "k", 1).await, [ExecutionStatus::Completed]);
}
