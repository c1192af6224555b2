//! Executions without a runner, or with two.

use crate::rig::{
    Gated, HANG_UP, ended, log, made, over, rigged, running, said, say, speaking, tenant, word,
};
use crate::store::Rigged;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use loomline_runtime as runtime;
use runtime::{Policy, Reacted, Reactor, ReactorError, Runtime, StepRun, Until};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use store::ThreadTable as _;
use timeline::{Event, ExecutionStatus, Record, Seq};

/// Says something that the store fails to keep.
async fn refused(store: &Rigged, runtime: &Runtime, text: &str) {
    store.fail_appends.store(1, Ordering::SeqCst);
    let refused = runtime.react(say(runtime, "k", text, Policy::Queue)).await;
    assert!(refused.is_err());
}

#[tokio::test(start_paused = true)]
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

#[tokio::test(start_paused = true)]
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

#[tokio::test(start_paused = true)]
async fn what_waits_begins_though_the_cancel_before_it_was_not_waited_for() {
    let (store, reactor, runtime) = speaking("one").await;
    said(&runtime, "k", "two").await;
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

#[tokio::test(start_paused = true)]
async fn a_run_goes_on_after_the_store_failed_under_it_once() {
    let (store, reactor, _runtime) = speaking("hello").await;
    store.fail_appends.store(1, Ordering::SeqCst);
    reactor.gate.add_permits(10);
    assert_eq!(ended(&store, "k", 1).await, [ExecutionStatus::Completed]);
}

#[tokio::test(start_paused = true)]
async fn a_run_ends_though_the_store_failed_once_at_its_end() {
    struct Ends(Arc<Rigged>, AtomicUsize);
    impl Reactor for Ends {
        fn react<'a>(
            &'a self,
            step: &'a mut StepRun,
        ) -> BoxFuture<'a, Result<Reacted, ReactorError>> {
            Box::pin(async move {
                if step.resumed.is_none() {
                    step.writer.respond(Vec::new(), word(), json!({}).into());
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
    said(&runtime, "k", "hello").await;
    assert_eq!(ended(&store, "k", 1).await, [ExecutionStatus::Completed]);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_could_not_be_kept_does_not_stop_the_run_it_would_have_waited_for() {
    let (store, reactor, runtime) = speaking("one").await;
    refused(&store, &runtime, "two").await;
    reactor.gate.add_permits(10);
    assert_eq!(ended(&store, "k", 1).await, [ExecutionStatus::Completed]);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_begins_again_voids_what_the_one_before_had_shown() {
    let (store, reactor, runtime) = speaking("one").await;
    refused(&store, &runtime, "two").await;
    said(&runtime, "k", "three").await;
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

#[tokio::test(start_paused = true)]
async fn an_execution_never_has_two_runners_whatever_its_clients_drop() {
    let (store, reactor, runtime) = speaking("one").await;
    store.lose_appends.store(1, Ordering::SeqCst);
    let second = runtime.react(say(&runtime, "k", "two", Policy::Queue));
    assert!(tokio::time::timeout(HANG_UP, second).await.is_err());
    store.stall_heads.store(1, Ordering::SeqCst);
    let third = runtime.react(say(&runtime, "k", "three", Policy::Queue));
    assert!(tokio::time::timeout(HANG_UP, third).await.is_err());
    said(&runtime, "k", "four").await;
    tokio::time::sleep(HANG_UP).await;
    assert_eq!(reactor.most_inside.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn what_waits_begins_though_the_run_before_it_ran_out_of_time_while_its_end_was_written() {
    struct Late(Arc<Rigged>);
    impl Reactor for Late {
        fn react<'a>(
            &'a self,
            step: &'a mut StepRun,
        ) -> BoxFuture<'a, Result<Reacted, ReactorError>> {
            Box::pin(async move {
                step.writer.respond(Vec::new(), word(), json!({}).into());
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
    said(&runtime, "k", "two").await;
    assert_eq!(ended(&store, "k", 2).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_reader_in_another_process_does_not_stop_a_run() {
    let (store, reactor, _runtime) = speaking("hello").await;
    let reader = running(&store, Gated::open());
    let _follow = reader
        .follow(&tenant(), "k", Seq::ZERO, Until::Rest)
        .await
        .unwrap();
    reader.state(&tenant(), "k").await.unwrap();
    reactor.gate.add_permits(10);
    assert_eq!(ended(&store, "k", 1).await, [ExecutionStatus::Completed]);
}

#[tokio::test(start_paused = true)]
async fn one_damaged_thread_does_not_keep_the_others_from_going_on() {
    let store = rigged();
    let first = running(&store, Gated::closed());
    for key in ["a", "b", "c"] {
        said(&first, key, "hello").await;
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
