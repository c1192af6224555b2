//! Runs that never end of themselves, and what is done to them.

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, pending};
use loomline_runtime as runtime;
use runtime::{
    Gate, GateRequest, Preconditions, ReactRequest, Reacted, Reactor, ReactorError, Rewind,
    Runtime, RuntimeError, RuntimeOptions, StepRun,
};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use store::suite::Author;
use store::{MemoryStore, ParentRun, Run, Store, StoreError, TenantId};
use timeline::{
    Command, Ending, Event, ExecutionId, ExecutionStatus, NewItem, NewThread, OpenCall, OpenChild,
    OpenKind, Payload, Seq, State, StepOutcome, Trigger,
};
use tokio::sync::Notify;

/// Notes that it has begun something elsewhere, and hangs; so does whatever would stop that.
struct Hangs;

impl Reactor for Hangs {
    fn react<'a>(&'a self, step: &'a mut StepRun) -> BoxFuture<'a, Result<Reacted, ReactorError>> {
        async move {
            step.writer.note(json!("elsewhere").into()).await?;
            pending().await
        }
        .boxed()
    }

    fn abandon(&self, _: Value) -> BoxFuture<'_, ()> {
        pending().boxed()
    }
}

fn tenant() -> TenantId {
    "acme".into()
}

fn hanging(store: &Arc<dyn Store>) -> Runtime {
    let options = RuntimeOptions::default();
    Runtime::new(Arc::clone(store), Arc::new(Arc::new(Hangs)), options)
}

fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new())
}

fn item(id: &str) -> NewItem {
    NewItem::user(id, json!([{"type": "input_text", "text": "hi"}]).into())
}

fn react(key: &str, id: &str) -> ReactRequest {
    ReactRequest::new(tenant(), key, item(id))
}

fn instead_of(old: &str, key: &str, id: &str) -> ReactRequest {
    ReactRequest {
        rewind: Some(Rewind::From(old.into())),
        ..react(key, id)
    }
}

/// Waits until a thread stands so, and fails where it never does.
async fn until(runtime: &Runtime, key: &str, is_so: impl Fn(&State) -> bool) {
    let waits = async {
        while !is_so(&runtime.state(&tenant(), key).await.unwrap().0) {
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(30), waits).await;
    waited.expect("the thread stands so");
}

fn has_noted(state: &State) -> bool {
    let step = state.active().and_then(|active| active.step.as_ref());
    step.is_some_and(|step| step.note.is_some())
}

#[tokio::test]
async fn a_run_that_waited_is_stopped_under_the_id_that_it_was_promised() {
    let runtime = hanging(&memory());
    runtime.react(react("k", "one")).await.unwrap();
    let promised: ExecutionId = "promised".into();
    let mut request = react("k", "two");
    request.run.execution_id = Some(promised.clone());
    let waits = runtime.react(request).await.unwrap();
    assert_eq!((waits.queued, waits.execution_id), (true, Some(promised)));
    let request = instead_of("one", "k", "other");
    runtime.react(request).await.unwrap();
    let read = runtime.read(&tenant(), "k", Seq::ZERO, 1_000).await;
    let ended = read.unwrap().into_iter().filter_map(|it| {
        let Event::ExecutionStatusChanged {
            execution_id, to, ..
        } = it.record.event
        else {
            return None;
        };
        Some((execution_id.to_string(), to))
    });
    let last = ended.last();
    assert_eq!(last, Some(("promised".to_owned(), ExecutionStatus::Failed)));
}

#[tokio::test]
async fn an_agent_that_does_not_hear_that_its_step_is_stopped_keeps_no_process_from_ending() {
    let runtime = hanging(&memory());
    runtime.react(react("k", "one")).await.unwrap();
    until(&runtime, "k", has_noted).await;
    let stopped = runtime
        .cancel(&tenant(), "k", None, "user_cancelled")
        .await
        .unwrap();
    assert!(stopped.execution_id.is_some());
    let ended = tokio::time::timeout(Duration::from_secs(30), runtime.shutdown()).await;
    ended.expect("it ends").unwrap();
}

/// Notes that it has begun something elsewhere, hangs, and stops that once it may.
#[derive(Default)]
struct Tells {
    may: Notify,
    has_told: AtomicBool,
}

impl Reactor for Tells {
    fn react<'a>(&'a self, step: &'a mut StepRun) -> BoxFuture<'a, Result<Reacted, ReactorError>> {
        Hangs.react(step)
    }

    fn abandon(&self, _: Value) -> BoxFuture<'_, ()> {
        async {
            self.may.notified().await;
            self.has_told.store(true, Ordering::Relaxed);
        }
        .boxed()
    }
}

#[tokio::test]
async fn an_agent_is_still_told_that_its_step_is_stopped_when_the_process_is_to_end() {
    let tells = Arc::new(Tells::default());
    let reactors = Arc::new(Arc::clone(&tells));
    let runtime = Runtime::new(memory(), reactors, RuntimeOptions::default());
    runtime.react(react("k", "one")).await.unwrap();
    until(&runtime, "k", has_noted).await;
    let stopped = runtime.cancel(&tenant(), "k", None, "user_cancelled").await;
    stopped.unwrap();
    let told = async {
        // What hears of the end first has done so.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        tells.may.notify_one();
    };
    let (ended, ()) = tokio::join!(runtime.shutdown(), told);
    ended.unwrap();
    assert!(tells.has_told.load(Ordering::Relaxed));
}

#[tokio::test]
async fn a_process_that_ends_takes_nothing_that_is_said_after_an_event() {
    let runtime = hanging(&memory());
    runtime.react(react("k", "one")).await.unwrap();
    let (_, tail) = runtime.state(&tenant(), "k").await.unwrap();
    runtime.shutdown().await.unwrap();
    let refused = runtime
        .react_on(react("k", "two"), Preconditions::after(tail))
        .await;
    assert!(
        matches!(refused, Err(RuntimeError::ShuttingDown)),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_thread_that_is_not_there_is_not_made_to_be_taken_back() {
    let runtime = hanging(&memory());
    let refused = runtime.react(instead_of("one", "k", "two")).await;
    assert!(
        matches!(refused, Err(RuntimeError::Store(StoreError::NotFound))),
        "{refused:?}"
    );
    assert!(runtime.find(&tenant(), "k").await.is_err());
}

/// Lets nothing through.
struct Shut;

impl Gate for Shut {
    fn check<'a>(&'a self, _: GateRequest<'a>) -> BoxFuture<'a, Result<(), RuntimeError>> {
        async { Err(RuntimeError::TurnedAway("shut".into())) }.boxed()
    }
}

fn start(name: &str, run: &Run) -> Command {
    Command::Start {
        trigger: Trigger::New(item(&format!("{name}-ask"))),
        run: Some(Payload::write(run).unwrap()),
        execution_id: format!("{name}-execution").into(),
        reaction_item_id: format!("{name}-reaction").into(),
        step_id: format!("{name}-step").into(),
        workflow_run_id: None,
    }
}

#[tokio::test]
async fn a_rewind_that_is_refused_wakes_nobody() {
    let store = memory();
    // A thread that waits for another one, in which a run that the first waits for has yet to begin.
    let mut child = Author::new(&store, "acme", NewThread::new("child", Some("child"))).await;
    let mut parent = Author::new(&store, "acme", NewThread::new("parent", Some("parent"))).await;
    let run = Run {
        parent: Some(ParentRun {
            thread_id: parent.thread.clone(),
            execution_id: "parent-execution".into(),
        }),
        ..Run::default()
    };
    child.commit(Command::Record { item: item("said") }).await;
    let waits = Command::Enqueue {
        item: item("waits"),
        run: Payload::write(&run).unwrap(),
    };
    child.commit(waits).await;
    let open = OpenCall {
        tool_call_id: "call".to_owned(),
        kind: OpenKind::Child,
        part: json!({"type": "tool-helper", "toolCallId": "call", "state": "input-available"})
            .into(),
        origin: None,
        children: vec![OpenChild {
            thread_id: child.thread.clone(),
            key: "child".to_owned(),
            subagent_id: "helper-1".to_owned(),
            subagent_type: "helper".to_owned(),
            seq: child.tail,
            is_over: false,
            is_hidden: false,
        }],
    };
    let outcome = StepOutcome {
        open_calls: Some(Payload::write(&[open]).unwrap()),
        ..StepOutcome::default()
    };
    parent
        .commit_all([
            start("parent", &Run::default()),
            Command::ImportStep {
                outcome,
                next: None,
            },
            Command::End {
                ending: Ending::Completed,
            },
        ])
        .await;
    let runtime = hanging(&store);
    let refused = runtime
        .react_on(
            instead_of("said", "child", "other"),
            Preconditions::through(Arc::new(Shut)),
        )
        .await;
    assert!(
        matches!(refused, Err(RuntimeError::TurnedAway(_))),
        "{refused:?}"
    );
    let tail = store.head(&parent.thread).await.unwrap().tail;
    assert_eq!(tail, parent.tail);
    // One that is taken does.
    let request = instead_of("said", "child", "other");
    runtime.react(request).await.unwrap();
    let tail = store.head(&parent.thread).await.unwrap().tail;
    assert!(tail > parent.tail);
}
