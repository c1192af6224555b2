//! Several handles of one store.

use crate::subject::Opened;
use crate::suite::Operated as _;
use futures_util::StreamExt as _;
use std::time::Duration;
use store::suite::Subject as _;
use store::suite::script::{Author, enqueue, item, keep, start, tenant};
use store::{Append, DueSearch, Hint, Ownership, StoreError};
use timeline::{NewThread, Trigger};
use tokio::time::timeout;

/// More than any hint takes.
const SOON: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hints_reach_another_handle() {
    let opened = Opened::new().await;
    let (store, other) = (opened.store(), opened.again().await);
    let (mut hints, mut own) = (other.hints(), store.hints());
    // Each listener begins with what it may have missed.
    assert_eq!(timeout(SOON, hints.next()).await.unwrap(), Some(Hint::Lost));
    assert_eq!(timeout(SOON, own.next()).await.unwrap(), Some(Hint::Lost));
    let mut author = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    author.commit(keep("i")).await;
    store.leave(store.join("a").await.unwrap()).await.unwrap();
    let (mut has_grown, mut is_due) = (false, false);
    while !has_grown || !is_due {
        match timeout(SOON, hints.next()).await.unwrap().unwrap() {
            Hint::Grown(thread, tail) => {
                assert_eq!(thread, author.thread);
                has_grown |= tail == author.tail;
            }
            Hint::Due => is_due = true,
            hint @ (Hint::Gone(_) | Hint::Erased(_) | Hint::Watched(_) | Hint::Lost) => {
                panic!("{hint:?}")
            }
        }
    }
    let erasure = opened.durable();
    erasure.erase_removed(&author.thread).await.unwrap();
    let erased = Hint::Erased(author.thread.clone());
    while timeout(SOON, hints.next()).await.unwrap() != Some(erased.clone()) {}
    store.delete(&tenant(), &author.thread, None).await.unwrap();
    let gone = Hint::Gone(author.thread.clone());
    while timeout(SOON, hints.next()).await.unwrap() != Some(gone.clone()) {}
    // The handle that made the changes has no hints of them.
    assert!(
        timeout(Duration::from_millis(50), own.next())
            .await
            .is_err()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_many_hints_are_lost_together() {
    let opened = Opened::new().await;
    let (store, other) = (opened.store(), opened.again().await);
    let mut hints = other.hints();
    assert_eq!(timeout(SOON, hints.next()).await.unwrap(), Some(Hint::Lost));
    let id = "t".repeat(9000);
    Author::new(&store, "acme", NewThread::new(id.as_str(), None)).await;
    assert_eq!(timeout(SOON, hints.next()).await.unwrap(), Some(Hint::Lost));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_that_a_keeping_append_leaves_to_nobody_is_due_until_it_is_gone() {
    let opened = Opened::new().await;
    let store = opened.store();
    let mut author = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    assert_eq!(store.due(DueSearch::new(9)).await.unwrap(), []);
    author.commit(enqueue("i")).await;
    assert_eq!(
        store.due(DueSearch::new(9)).await.unwrap(),
        [author.thread.clone()]
    );
    let node = store.join("a").await.unwrap();
    author.take(node, start("x", Trigger::Waiting)).await;
    assert_eq!(store.due(DueSearch::new(9)).await.unwrap(), []);
}

/// What is offered and has no work is looked at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_offered_thread_without_work_comes_to_rest() {
    let opened = Opened::new().await;
    let store = opened.store();
    let mut author = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    let append = Append {
        ownership: Ownership::Offer,
        ..author.append_of(keep("i"))
    };
    author.append(append).await.unwrap();
    assert_eq!(store.due(DueSearch::new(9)).await.unwrap(), []);
    let client = crate::subject::client(&opened.url()).await;
    let sql = "SELECT count(*) FROM thread_threads WHERE owner IS NOT NULL";
    let n_owned: i64 = client.query_one(sql, &[]).await.unwrap().get(0);
    assert_eq!(n_owned, 0);
    author.commit(enqueue("j")).await;
    assert_eq!(
        store.due(DueSearch::new(9)).await.unwrap(),
        [author.thread.clone()]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_takeover_by_another_handle_fences_the_owner() {
    let opened = Opened::new().await;
    let (store, other) = (opened.store(), opened.again().await);
    let node = store.join("a").await.unwrap();
    let mut owner = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    owner
        .take(node, start("x", Trigger::New(item("ask"))))
        .await;
    let mut taker = Author::of(&other, owner.thread.clone(), jiff::Timestamp::UNIX_EPOCH).await;
    let next = other.join("b").await.unwrap();
    let append = Append {
        ownership: Ownership::Take(next),
        ..taker.append_of(keep("i"))
    };
    taker.append(append).await.unwrap();
    let refused = owner.append_of(keep("j"));
    let refused = owner.append(refused).await;
    assert!(
        matches!(refused, Err(StoreError::Fenced { .. })),
        "{refused:?}"
    );
}

/// All leases end in an outage of the database. A node that renews its own before the others are declared dead lives.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ended_lease_is_renewed_until_another_node_declares_it_dead() {
    let opened = Opened::new().await;
    let store = opened.store();
    let (one, other) = (
        store.join("one").await.unwrap(),
        store.join("other").await.unwrap(),
    );
    let client = crate::subject::client(&opened.url()).await;
    let all_end = "UPDATE nodes SET lease_until = now() - interval '1 s'";
    client.execute(all_end, &[]).await.unwrap();
    let mut owner = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    owner
        .take(other, start("x", Trigger::New(item("ask"))))
        .await;
    assert_eq!(store.due(DueSearch::new(9)).await.unwrap(), []);
    store.renew(one).await.unwrap();
    assert_eq!(store.declare_dead().await.unwrap(), 1);
    assert_eq!(
        store.due(DueSearch::new(9)).await.unwrap(),
        [owner.thread.clone()]
    );
    assert!(matches!(
        store.renew(other).await,
        Err(StoreError::DeadNode)
    ));
    store.renew(one).await.unwrap();
}

/// A node that runs a thread hears that somebody follows it at another node.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_is_announced_to_other_handles() {
    let opened = Opened::new().await;
    let (store, other) = (opened.store(), opened.again().await);
    let mut hints = other.hints();
    assert_eq!(timeout(SOON, hints.next()).await.unwrap(), Some(Hint::Lost));
    let watched = Hint::Watched("t".into());
    store.announce(watched.clone());
    assert_eq!(timeout(SOON, hints.next()).await.unwrap(), Some(watched));
}

/// The ends of several logs are read at once. Deleted threads are left out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tails_are_those_of_the_threads_that_are_there() {
    let opened = Opened::new().await;
    let store = opened.store();
    let author = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    let tails = store.tails(vec!["gone".into(), author.thread.clone()]);
    assert_eq!(tails.await.unwrap(), [(author.thread, author.tail)]);
}

/// Other handles take the runs of a node that leaves, though its process ends at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_hint_of_a_node_that_leaves_is_sent_before_its_store_closes() {
    let opened = Opened::new().await;
    let mut hints = opened.store().hints();
    assert_eq!(timeout(SOON, hints.next()).await.unwrap(), Some(Hint::Lost));
    let leaving = opened.again().await;
    let node = leaving.join("a").await.unwrap();
    assert_eq!(timeout(SOON, hints.next()).await.unwrap(), Some(Hint::Due));
    leaving.leave(node).await.unwrap();
    leaving.close().await.unwrap();
    assert_eq!(timeout(SOON, hints.next()).await.unwrap(), Some(Hint::Due));
}
