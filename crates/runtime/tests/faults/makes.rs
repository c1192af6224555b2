//! Threads that are made by the run that begins on them, on a store that stalls, fails or loses an answer.

use crate::rig::{Gated, HANG_UP, PATIENCE, ended, log, rigged, running, said, say, tenant};
use crate::store::Rigged;
use futures_util::StreamExt;
use loomline_runtime as runtime;
use runtime::{Policy, ReactRequest, Runtime, RuntimeError, Until};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use store::{StoreError, ThreadRows, ThreadTable as _};
use timeline::{Event, ExecutionStatus, Record, Seq};

/// Between two looks at what becomes of something.
const MOMENT: Duration = Duration::from_millis(1);

/// Something that is said on the thread `k` under a token.
fn once(runtime: &Runtime, text: &str) -> ReactRequest {
    ReactRequest {
        token: Some("t".into()),
        ..say(runtime, "k", text, Policy::Queue)
    }
}

/// Says it on a store that makes threads so, which is an error.
async fn refused(runtime: &Runtime, request: ReactRequest, goes_wrong: &AtomicUsize) {
    goes_wrong.store(1, Ordering::SeqCst);
    let refused = runtime.react(request).await;
    assert!(
        matches!(refused, Err(RuntimeError::Store(StoreError::Failed(_)))),
        "{refused:?}"
    );
    assert_eq!(goes_wrong.load(Ordering::SeqCst), 0, "no thread was made");
}

/// Where making a thread takes longer than its client waits: before it is written, or after.
const TAKES_LONG: [fn(&Rigged) -> &AtomicUsize; 2] =
    [|store| &store.stall_makes, |store| &store.lose_makes];

/// Says it on a store that makes threads so, and hangs up before there is an answer.
async fn hung_up(runtime: &Runtime, request: ReactRequest, takes_long: &AtomicUsize) {
    takes_long.store(1, Ordering::SeqCst);
    let post = tokio::time::timeout(HANG_UP, runtime.react(request)).await;
    assert!(post.is_err(), "{post:?}");
}

/// There is one thread, made whole and with so many runs, each of which has ended.
async fn is_whole(store: &Rigged, n_runs: usize) {
    let ends = ended(store, "k", n_runs).await;
    assert_eq!(ends, vec![ExecutionStatus::Completed; n_runs]);
    let all = ThreadRows {
        limit: 9,
        ..ThreadRows::default()
    };
    assert_eq!(store.inner.list(&tenant(), all).await.unwrap().len(), 1);
    let records = log(store, "k").await;
    let count = |is: fn(&Event) -> bool| {
        let of = |record: &&Record| is(&record.event);
        records.iter().filter(of).count()
    };
    assert_eq!(count(|it| matches!(it, Event::ThreadCreated { .. })), 1);
    let begun = count(|it| matches!(it, Event::ExecutionCreated { .. }));
    assert_eq!(begun, n_runs);
    assert!(records.iter().zip(1..).all(|(it, n)| it.seq.0 == n));
}

#[tokio::test(start_paused = true)]
async fn a_thread_that_could_not_be_made_is_made_by_the_next_request() {
    let store = rigged();
    let runtime = running(&store, Gated::open());
    let request = once(&runtime, "hello");
    refused(&runtime, request.clone(), &store.fail_makes).await;
    let none = runtime.find(&tenant(), "k").await;
    assert!(matches!(
        none,
        Err(RuntimeError::Store(StoreError::NotFound))
    ));
    assert!(!runtime.react(request).await.unwrap().repeated);
    is_whole(&store, 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_thread_that_was_made_though_an_error_said_no_is_found_by_its_token() {
    let store = rigged();
    let runtime = running(&store, Gated::open());
    let request = once(&runtime, "hello");
    refused(&runtime, request.clone(), &store.break_makes).await;
    let again = runtime.react(request).await.unwrap();
    assert!(again.repeated);
    is_whole(&store, 1).await;
    let row = runtime.find(&tenant(), "k").await.unwrap();
    assert_eq!(again.thread_id, row.thread.id);
}

#[tokio::test(start_paused = true)]
async fn a_thread_that_was_made_though_an_error_said_no_is_shown_whole_and_worked_on() {
    let store = rigged();
    let runtime = running(&store, Gated::open());
    refused(&runtime, once(&runtime, "hello"), &store.break_makes).await;
    // Nobody says anything more.
    let tenant = tenant();
    let follow = runtime.follow(&tenant, "k", Seq::ZERO, Until::Forever);
    let mut follow = follow.await.unwrap();
    let to_its_end = async {
        while let Some(logged) = follow.next().await {
            if matches!(logged.unwrap().record.event, Event::ThreadFinished { .. }) {
                return;
            }
        }
        panic!("the log ended before the run");
    };
    tokio::time::timeout(PATIENCE, to_its_end).await.unwrap();
    is_whole(&store, 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_thread_that_was_made_though_its_making_panicked_is_worked_on() {
    let store = rigged();
    let runtime = running(&store, Gated::open());
    store.panic_makes.store(1, Ordering::SeqCst);
    let broken = runtime.react(once(&runtime, "hello")).await;
    assert!(matches!(broken, Err(RuntimeError::BrokenOff)), "{broken:?}");
    // Nobody says anything more.
    is_whole(&store, 1).await;
    said(&runtime, "k", "more").await;
    is_whole(&store, 2).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_said_on_a_thread_that_was_made_though_an_error_said_no_waits_behind_its_run() {
    let store = rigged();
    let runtime = running(&store, Gated::open());
    let request = say(&runtime, "k", "one", Policy::Queue);
    refused(&runtime, request, &store.break_makes).await;
    said(&runtime, "k", "two").await;
    is_whole(&store, 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_thread_is_made_whole_though_its_client_hung_up() {
    for takes_long in TAKES_LONG {
        let store = rigged();
        let runtime = running(&store, Gated::open());
        let request = once(&runtime, "hello");
        hung_up(&runtime, request.clone(), takes_long(&store)).await;
        while store.inner.find(&tenant(), "k").await.is_err() {
            tokio::time::sleep(MOMENT).await;
        }
        assert!(runtime.react(request).await.unwrap().repeated);
        is_whole(&store, 1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_requests_with_one_token_that_make_a_thread_one_begins_a_run() {
    for takes_long in TAKES_LONG {
        let store = rigged();
        let runtime = running(&store, Gated::open());
        let request = once(&runtime, "hello");
        takes_long(&store).store(1, Ordering::SeqCst);
        let second = async {
            while takes_long(&store).load(Ordering::SeqCst) > 0 {
                tokio::time::sleep(MOMENT).await;
            }
            runtime.react(request.clone()).await.unwrap()
        };
        let (first, second) = tokio::join!(runtime.react(request.clone()), second);
        let first = first.unwrap();
        assert_ne!(first.repeated, second.repeated);
        assert_eq!(first.item_id, second.item_id);
        assert_eq!(first.thread_id, second.thread_id);
        is_whole(&store, 1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_who_speak_while_a_thread_is_being_made_both_speak_on_one() {
    for takes_long in TAKES_LONG {
        let store = rigged();
        let runtime = running(&store, Gated::open());
        let one = say(&runtime, "k", "one", Policy::Queue);
        hung_up(&runtime, one, takes_long(&store)).await;
        said(&runtime, "k", "two").await;
        is_whole(&store, 2).await;
    }
}
