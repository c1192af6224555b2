//! Runs that the process does not survive.

use crate::mortal::Mortal;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use loomline_runtime as runtime;
use runtime::{
    Clock, ReactRequest, Reacted, Reactor, ReactorError, Runtime, RuntimeOptions, Sources, StepRun,
};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use store::{MemoryStore, Store, TenantId};
use timeline::{Event, ExecutionStatus, NewItem, Record, Seq, StepOutcome, verify};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;

fn tenant() -> TenantId {
    "acme".into()
}

/// Tells the key of each step that starts, and completes the step when it may.
struct Steps {
    started: mpsc::UnboundedSender<String>,
    may_end: Semaphore,
}

impl Reactor for Steps {
    fn react<'a>(&'a self, step: &'a mut StepRun) -> BoxFuture<'a, Result<Reacted, ReactorError>> {
        Box::pin(async move {
            let _ = self.started.send(step.key.clone());
            if step.key == "harmless" {
                tokio::time::sleep(Duration::from_millis(10)).await;
            } else {
                let permit = self.may_end.acquire().await;
                permit.map_err(|_| ReactorError::Stopped)?.forget();
            }
            let part = json!({"type": "output_text", "text": "done"}).into();
            let writer = &step.writer;
            writer.respond(Vec::new(), vec![part], json!({}).into());
            Ok(Reacted {
                outcome: StepOutcome::default(),
                wants_more: false,
                messages_for_model: None,
                memory: None,
                handoff: None,
            })
        })
    }
}

/// The time does not pass for it, so that every pause is waited for whole.
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

/// A process over a store that outlives it.
struct Process {
    store: Arc<Mortal>,
    runtime: Runtime,
    reactor: Arc<Steps>,
    started: mpsc::UnboundedReceiver<String>,
}

impl Process {
    fn start(store: &Arc<MemoryStore>) -> Self {
        let store = Mortal::new(store, usize::MAX, true, false);
        let (sender, started) = mpsc::unbounded_channel();
        let reactor = Arc::new(Steps {
            started: sender,
            may_end: Semaphore::new(0),
        });
        let sources = Sources {
            clock: Arc::new(Still),
            ..Sources::default()
        };
        let runtime = Runtime::with_sources(
            Arc::clone(&store) as Arc<dyn Store>,
            Arc::new(Arc::clone(&reactor)),
            RuntimeOptions::default(),
            sources,
        );
        Self {
            store,
            runtime,
            reactor,
            started,
        }
    }

    async fn say(&self, key: &str) {
        let content = json!([{"type": "input_text", "text": "hello"}]).into();
        let item = NewItem::user(self.runtime.mint(), content);
        let request = ReactRequest::new(tenant(), key, item);
        self.runtime.react(request).await.unwrap();
    }

    /// As `kill -9` would: nothing more is written.
    async fn die(self) {
        self.store.die();
        let _ = self.runtime.shutdown().await;
    }

    async fn log(&self, key: &str) -> Vec<Record> {
        let read = self.runtime.read(&tenant(), key, Seq::ZERO, 10_000).await;
        let records: Vec<Record> = read.unwrap().into_iter().map(|it| it.record).collect();
        assert_eq!(verify(&records), Ok(()));
        records
    }

    async fn at_rest(&self, key: &str) {
        loop {
            let (state, _) = self.runtime.state(&tenant(), key).await.unwrap();
            if state.active().is_none() && state.waiting().len() == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// How the executions of a log ended, and why.
fn ends(records: &[Record]) -> Vec<(ExecutionStatus, Option<String>)> {
    let end = |record: &Record| match &record.event {
        Event::ExecutionStatusChanged {
            to, interruption, ..
        } => Some((*to, interruption.as_ref().map(|it| it.reason.clone()))),
        _ => None,
    };
    records.iter().filter_map(end).collect()
}

/// The markers of starts in a log.
fn markers(records: &[Record]) -> Vec<String> {
    let marker = |record: &Record| match &record.event {
        Event::ChunkEmitted { chunk_type, .. } => {
            let name = chunk_type.strip_prefix("data-execution-");
            name.map(str::to_owned)
        }
        _ => None,
    };
    records.iter().filter_map(marker).collect()
}

#[tokio::test(start_paused = true)]
async fn a_run_that_five_processes_die_with_fails_and_its_thread_stays_usable() {
    let store = Arc::new(MemoryStore::new());
    let mut n_starts = 0;
    for life in 0..5 {
        let mut process = Process::start(&store);
        if life == 0 {
            process.say("poison").await;
        } else {
            assert_eq!(process.runtime.recover().await.unwrap(), 1);
        }
        process.started.recv().await.unwrap();
        n_starts += 1;
        process.die().await;
    }
    let mut process = Process::start(&store);
    assert_eq!(process.runtime.recover().await.unwrap(), 1);
    process.at_rest("poison").await;
    assert!(process.started.try_recv().is_err());
    let log = process.log("poison").await;
    assert_eq!(n_starts, 5);
    assert_eq!(markers(&log), ["resumed"; 4]);
    let poisoned = (ExecutionStatus::Failed, Some("poisoned".to_owned()));
    assert_eq!(ends(&log), std::slice::from_ref(&poisoned));
    process.reactor.may_end.add_permits(1);
    process.say("poison").await;
    process.at_rest("poison").await;
    let completed = (ExecutionStatus::Completed, None);
    assert_eq!(ends(&process.log("poison").await), [poisoned, completed]);
}

#[tokio::test(start_paused = true)]
async fn a_clean_shutdown_is_no_start_that_counts() {
    let store = Arc::new(MemoryStore::new());
    for life in 0..12 {
        let mut process = Process::start(&store);
        if life == 0 {
            process.say("long").await;
        } else {
            process.runtime.recover().await.unwrap();
        }
        process.started.recv().await.unwrap();
        process.runtime.shutdown().await.unwrap();
    }
    let process = Process::start(&store);
    process.reactor.may_end.add_permits(1);
    process.runtime.recover().await.unwrap();
    process.at_rest("long").await;
    let log = process.log("long").await;
    assert_eq!(markers(&log), [["parked", "resumed"]; 12].concat());
    assert_eq!(ends(&log), [(ExecutionStatus::Completed, None)]);
}

#[tokio::test(start_paused = true)]
async fn the_pause_before_a_start_grows_from_a_second_to_a_minute() {
    let store = Arc::new(MemoryStore::new());
    let mut pauses = Vec::new();
    for life in 0..5 {
        let mut process = Process::start(&store);
        let begun = Instant::now();
        if life == 0 {
            process.say("poison").await;
        } else {
            process.runtime.recover().await.unwrap();
        }
        process.started.recv().await.unwrap();
        pauses.push(begun.elapsed().as_secs());
        process.die().await;
    }
    assert_eq!(pauses, [0, 1, 4, 16, 60]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_beside_a_poisoned_one_completes() {
    let store = Arc::new(MemoryStore::new());
    let process = Process::start(&store);
    process.say("harmless").await;
    process.say("poison").await;
    let mut process = Some(process);
    for _ in 0..5 {
        let mut life = process.take().unwrap();
        // The poison kills the process as soon as it starts.
        while life.started.recv().await.unwrap() != "poison" {}
        life.die().await;
        let next = Process::start(&store);
        next.runtime.recover().await.unwrap();
        process = Some(next);
    }
    let last = process.unwrap();
    for key in ["harmless", "poison"] {
        last.at_rest(key).await;
    }
    let poisoned = (ExecutionStatus::Failed, Some("poisoned".to_owned()));
    assert_eq!(ends(&last.log("poison").await), [poisoned]);
    let completed = (ExecutionStatus::Completed, None);
    assert_eq!(ends(&last.log("harmless").await), [completed]);
}

#[tokio::test(start_paused = true)]
async fn a_request_for_a_thread_in_its_pause_is_queued_and_answered() {
    let store = Arc::new(MemoryStore::new());
    let mut first = Process::start(&store);
    first.say("k").await;
    first.started.recv().await.unwrap();
    first.die().await;
    let second = Process::start(&store);
    second.reactor.may_end.add_permits(2);
    second.runtime.recover().await.unwrap();
    second.say("k").await;
    second.at_rest("k").await;
    let log = second.log("k").await;
    let completed = (ExecutionStatus::Completed, None);
    assert_eq!(ends(&log), [completed.clone(), completed]);
    assert_eq!(markers(&log), ["resumed"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_in_its_pause_can_be_cancelled_at_once() {
    let store = Arc::new(MemoryStore::new());
    let mut first = Process::start(&store);
    first.say("k").await;
    first.started.recv().await.unwrap();
    first.die().await;
    let mut second = Process::start(&store);
    second.runtime.recover().await.unwrap();
    let tenant = tenant();
    let cancel = second.runtime.cancel(&tenant, "k", None, "user_cancelled");
    assert!(cancel.await.unwrap().execution_id.is_some());
    second.at_rest("k").await;
    assert!(second.started.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn the_log_of_a_run_in_one_process_has_no_markers_of_starts() {
    let process = Process::start(&Arc::new(MemoryStore::new()));
    process.reactor.may_end.add_permits(1);
    process.say("k").await;
    process.at_rest("k").await;
    assert_eq!(markers(&process.log("k").await), [""; 0]);
}
