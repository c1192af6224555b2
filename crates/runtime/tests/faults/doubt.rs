//! Writers that do not know what is in the log, or that are not the log's any more.

use crate::rig::{Gated, ended, log, over, rigged, running, said, say, word};
use crate::store::Rigged;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use loomline_runtime as runtime;
use runtime::{
    Clock, Policy, Reacted, Reactor, ReactorError, Runtime, RuntimeOptions, Sources, StepRun,
};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use store::Store;
use timeline::{Event, ExecutionStatus, verify};
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn a_process_decides_again_after_another_one_wrote() {
    let store = rigged();
    let first = running(&store, Gated::open());
    said(&first, "k", "one").await;
    ended(&store, "k", 1).await;
    let second = running(&store, Gated::open());
    said(&second, "k", "two").await;
    ended(&store, "k", 2).await;
    said(&first, "k", "three").await;
    let completed = [ExecutionStatus::Completed; 3];
    assert_eq!(ended(&store, "k", 3).await, completed);
    assert_eq!(verify(&log(&store, "k").await), Ok(()));
}

/// The time as this test's timers have it.
struct Timers(Instant);

impl Clock for Timers {
    fn now(&self) -> Timestamp {
        let passed = jiff::SignedDuration::try_from(self.0.elapsed()).unwrap();
        Timestamp::UNIX_EPOCH + passed
    }
}

fn timed(store: &Arc<Rigged>, reactor: Arc<impl Reactor + 'static>) -> Runtime {
    let store: Arc<dyn Store> = store.clone();
    let sources = Sources {
        clock: Arc::new(Timers(Instant::now())),
        ..Sources::default()
    };
    Runtime::with_sources(store, Arc::new(reactor), RuntimeOptions::default(), sources)
}

/// How executions ended early, in order.
async fn reasons(store: &Rigged) -> Vec<String> {
    let records = log(store, "k").await;
    let ends = records.iter().filter_map(|record| match &record.event {
        Event::ExecutionStatusChanged { interruption, .. } => interruption.clone(),
        _ => None,
    });
    ends.map(|why| why.reason).collect()
}

#[tokio::test(start_paused = true)]
async fn a_write_that_was_dropped_half_way_is_looked_for_before_the_next() {
    /// A part of its answer is written, and nobody hears of that before the run's time is up.
    struct Loses(Arc<Rigged>);
    impl Reactor for Loses {
        fn react<'a>(
            &'a self,
            step: &'a mut StepRun,
        ) -> BoxFuture<'a, Result<Reacted, ReactorError>> {
            Box::pin(async move {
                if step.resumed.is_none() {
                    let about = json!({}).into();
                    step.writer.respond(Vec::new(), Vec::new(), about);
                    self.0.lose_appends.store(1, Ordering::SeqCst);
                    step.writer.add_part(word().remove(0));
                    step.writer.flush().await?;
                }
                Ok(over())
            })
        }
    }
    let store = rigged();
    // The system's clock hardly moves here: a second attempt would have all the time again.
    let runtime = running(&store, Arc::new(Loses(store.clone())));
    let mut request = say(&runtime, "k", "hello", Policy::Queue);
    request.run.timeout_ms = Some(100);
    runtime.react(request).await.unwrap();
    assert_eq!(ended(&store, "k", 1).await, [ExecutionStatus::Failed]);
    assert_eq!(reasons(&store).await, ["timeout"]);
    let records = log(&store, "k").await;
    assert_eq!(verify(&records), Ok(()));
    let answers = records
        .iter()
        .filter(|record| matches!(record.event, Event::PartCreated { .. }));
    assert_eq!(answers.count(), 1, "what was written before is in the log");
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_run_goes_on_over_its_steps() {
    /// Steps without end, none of which takes as long as the run may.
    struct Steps;
    impl Reactor for Steps {
        fn react<'a>(
            &'a self,
            step: &'a mut StepRun,
        ) -> BoxFuture<'a, Result<Reacted, ReactorError>> {
            Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(40)).await;
                let about = json!({}).into();
                step.writer.respond(Vec::new(), word(), about);
                Ok(Reacted {
                    wants_more: step.step.iteration < 5,
                    ..over()
                })
            })
        }
    }
    let store = rigged();
    let runtime = timed(&store, Arc::new(Steps));
    let mut request = say(&runtime, "k", "hello", Policy::Queue);
    request.run.timeout_ms = Some(100);
    let begun = Instant::now();
    runtime.react(request).await.unwrap();
    assert_eq!(ended(&store, "k", 1).await, [ExecutionStatus::Failed]);
    assert!(begun.elapsed() < Duration::from_millis(120));
    assert_eq!(reasons(&store).await, ["timeout"]);
    let records = log(&store, "k").await;
    let steps = records
        .iter()
        .filter(|record| matches!(record.event, Event::StepCreated { .. }));
    assert_eq!(steps.count(), 3);
}
