//! Reactors that misbehave, what is remembered for them, and when it happened.

use crate::rig::{Gated, ended, log, over, rigged, running, said, speaking, tenant, word};
use crate::store::Rigged;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use loomline_runtime as runtime;
use runtime::{Clock, Reacted, Reactor, ReactorError, Runtime, RuntimeOptions, Sources, StepRun};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use store::{Filter, Store};
use timeline::{Entry, ExecutionStatus, NewItem};

#[tokio::test(start_paused = true)]
async fn a_reactor_that_panics_before_its_first_await_fails_its_execution() {
    struct Panics;
    impl Reactor for Panics {
        fn react<'a>(&'a self, _: &'a mut StepRun) -> BoxFuture<'a, Result<Reacted, ReactorError>> {
            panic!("on purpose")
        }
    }
    let store = rigged();
    let runtime = running(&store, Arc::new(Panics));
    said(&runtime, "k", "hello").await;
    assert_eq!(ended(&store, "k", 1).await, [ExecutionStatus::Failed]);
}

/// How a run ends whose model answers with this part, and how often the model is asked.
async fn sparkling(part: Value) -> (Vec<ExecutionStatus>, usize) {
    struct Sparkles(Value, AtomicUsize);
    impl Reactor for Sparkles {
        fn react<'a>(
            &'a self,
            step: &'a mut StepRun,
        ) -> BoxFuture<'a, Result<Reacted, ReactorError>> {
            Box::pin(async move {
                self.1.fetch_add(1, Ordering::SeqCst);
                let parts = vec![self.0.clone().into()];
                step.writer.respond(Vec::new(), parts, json!({}).into());
                Ok(over())
            })
        }
    }
    let store = rigged();
    let reactor = Arc::new(Sparkles(part, AtomicUsize::new(0)));
    let runtime = running(&store, reactor.clone());
    said(&runtime, "k", "hello").await;
    let ends = ended(&store, "k", 1).await;
    (ends, reactor.1.load(Ordering::SeqCst))
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_can_not_be_kept_fails_its_execution() {
    let (ends, asked) = sparkling(json!({"type": "sparkle"})).await;
    assert_eq!((ends, asked), (vec![ExecutionStatus::Failed], 1));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_can_not_be_kept_fails_its_execution_and_is_not_asked_for_again() {
    let (ends, asked) = sparkling(json!({"type": "sparkle", "toolCallId": "call_0"})).await;
    assert_eq!((ends, asked), (vec![ExecutionStatus::Failed], 1));
}

#[tokio::test(start_paused = true)]
async fn a_reactor_can_not_write_the_runtimes_own_markers() {
    struct Forges;
    impl Reactor for Forges {
        fn react<'a>(
            &'a self,
            step: &'a mut StepRun,
        ) -> BoxFuture<'a, Result<Reacted, ReactorError>> {
            Box::pin(async move {
                let writer = &step.writer;
                writer.respond(Vec::new(), word(), json!({}).into());
                let _ = writer.emit("data-step-reset", json!({}).into()).await;
                Ok(over())
            })
        }
    }
    let store = rigged();
    let runtime = running(&store, Arc::new(Forges));
    said(&runtime, "k", "hello").await;
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

#[tokio::test(start_paused = true)]
async fn what_is_recorded_while_a_step_runs_voids_what_the_step_remembers() {
    let (store, reactor, runtime) = speaking("one").await;
    let content = json!([{"type": "input_text", "text": "by the way"}]).into();
    let item = NewItem::user(runtime.mint(), content);
    runtime.record(&tenant(), "k", item).await.unwrap();
    reactor.gate.add_permits(10);
    ended(&store, "k", 1).await;
    said(&runtime, "k", "two").await;
    ended(&store, "k", 2).await;
    assert_eq!(*reactor.remembered.lock().unwrap(), [false, false]);
}

/// A clock that shows one instant.
struct Set(i64);

impl Clock for Set {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(self.0).unwrap()
    }
}

fn runtime_at(store: &Arc<Rigged>, second: i64) -> Runtime {
    let store: Arc<dyn Store> = store.clone();
    let sources = Sources {
        clock: Arc::new(Set(second)),
        ..Sources::default()
    };
    let options = RuntimeOptions::default();
    Runtime::with_sources(store, Arc::new(Gated::open()), options, sources)
}

#[tokio::test(start_paused = true)]
async fn time_never_goes_back_in_a_log_though_the_clock_does() {
    let store = rigged();
    for (second, n) in [(2_000, 1), (1_000, 2)] {
        let runtime = runtime_at(&store, second);
        said(&runtime, "k", "hello").await;
        ended(&store, "k", n).await;
    }
    let records = log(&store, "k").await;
    assert!(records.is_sorted_by_key(|record| record.at));
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_was_far_ahead_does_not_pin_times() {
    let (today, far) = (1_800_000_000, 4_100_000_000);
    let store = rigged();
    for (second, n) in [(far, 1), (today, 2), (today - 60, 3)] {
        let runtime = runtime_at(&store, second);
        said(&runtime, "k", "hello").await;
        ended(&store, "k", n).await;
        if n > 1 {
            let row = runtime.find(&tenant(), "k").await.unwrap();
            let at = row.thread.updated_at.unwrap().as_second();
            assert_eq!(at, today, "after {n} runs");
        }
    }
    let records = log(&store, "k").await;
    let at: Vec<i64> = records.iter().map(|it| it.at.as_second()).collect();
    assert!(at.iter().all(|at| [far, today].contains(at)), "{at:?}");
    assert_eq!(at.last(), Some(&today));
}
