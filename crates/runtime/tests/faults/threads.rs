//! Deleting and forking.

use crate::rig::{Gated, HANG_UP, PATIENCE, ended, log, made, rigged, running, said, say, tenant};
use futures_util::StreamExt;
use loomline_runtime as runtime;
use runtime::{Policy, RuntimeError, Until};
use std::sync::atomic::Ordering;
use store::{Filter, StoreError};
use timeline::{Entry, Event, Record, Seq};

#[tokio::test(start_paused = true)]
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

#[tokio::test(start_paused = true)]
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

#[tokio::test(start_paused = true)]
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

#[tokio::test(start_paused = true)]
async fn no_fork_comes_between_the_end_of_a_run_and_the_deletion_it_ends_for() {
    let store = rigged();
    let reactor = Gated::closed();
    let runtime = running(&store, reactor.clone());
    said(&runtime, "k", "one").await;
    reactor.gate.add_permits(1);
    ended(&store, "k", 1).await;
    let at = log(&store, "k").await.last().unwrap().seq;
    said(&runtime, "k", "two").await;
    reactor.begun(2).await;
    store.stall_forks.store(1, Ordering::SeqCst);
    let tenant = tenant();
    let fork = async {
        // Once there were none.
        while store.stall_forks.load(Ordering::SeqCst) > 0 {
            tokio::task::yield_now().await;
        }
        let key = Some("fork".to_owned());
        runtime.fork(&tenant, "k", key, Some(at)).await
    };
    let (deleted, forked) = tokio::join!(runtime.delete_stopping(&tenant, "k"), fork);
    assert!(deleted.is_ok(), "{deleted:?}");
    assert!(
        matches!(forked, Err(RuntimeError::Store(StoreError::NotFound))),
        "{forked:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_waits_for_ever_in_a_fork() {
    let store = rigged();
    let reactor = Gated::closed();
    let runtime = running(&store, reactor.clone());
    for text in ["one", "two"] {
        said(&runtime, "k", text).await;
    }
    reactor.gate.add_permits(10);
    ended(&store, "k", 2).await;
    let records = log(&store, "k").await;
    let finished = |record: &&Record| matches!(record.event, Event::ThreadFinished { .. });
    let at = records.iter().find(finished).unwrap().seq;
    runtime
        .fork(&tenant(), "k", Some("fork".into()), Some(at))
        .await
        .unwrap();
    let transcript = runtime
        .transcript(&tenant(), "fork", Filter::Facts)
        .await
        .unwrap();
    let waits = |entry: &Entry| matches!(entry, Entry::Item(item) if item.run.is_some());
    assert!(!transcript.entries.iter().any(waits));
}
