//! Nodes: which of them owns a run, and which threads are due.

use super::Subject;
use super::script::{Author, complete_step, end, enqueue, item, keep, start, tenant};
use crate::{Append, DueSearch, NodeId, Ownership, Store, StoreError};
use std::sync::Arc;
use timeline::{Command, NewThread, ThreadId, Trigger};

async fn thread(store: &Arc<dyn Store>, name: &str) -> Author {
    Author::new(store, "acme", NewThread::new(name, Some(name))).await
}

fn run() -> Command {
    start("one", Trigger::New(item("ask")))
}

async fn due(store: &Arc<dyn Store>) -> Vec<ThreadId> {
    let mut due = store.due(DueSearch::new(100)).await.unwrap();
    due.sort();
    due
}

/// A node's threads are not due while it lives, whoever appends to them. It owns them alone.
pub async fn a_living_nodes_threads_are_not_due(subject: impl Subject) {
    let store = subject.store();
    let node = store.join("a").await.unwrap();
    let mut owner = thread(&store, "t").await;
    owner.take(node, run()).await;
    assert_eq!(store.head(&owner.thread).await.unwrap().owner, Some(node));
    owner.commit(enqueue("next")).await;
    assert_eq!(due(&store).await, []);
    assert_eq!(store.owned(node).await.unwrap(), [ThreadId::from("t")]);
    let other = store.join("b").await.unwrap();
    assert_eq!(store.owned(other).await.unwrap(), []);
    store.leave(other).await.unwrap();
    assert_eq!(store.head(&owner.thread).await.unwrap().owner, Some(node));
    let lease = store.renew(node).await.unwrap();
    assert!(!lease.left.is_zero() && lease.n_nodes == 1, "{lease:?}");
}

/// The threads of a node that never joined are due.
pub async fn a_dead_nodes_threads_are_due(subject: impl Subject) {
    let store = subject.store();
    let mut owner = thread(&store, "t").await;
    owner.take(NodeId(4_000), run()).await;
    assert_eq!(due(&store).await, [ThreadId::from("t")]);
    assert_eq!(store.head(&owner.thread).await.unwrap().owner, None);
    assert!(matches!(
        store.renew(NodeId(4_000)).await,
        Err(StoreError::DeadNode)
    ));
}

/// The threads of a node are due as soon as it leaves.
pub async fn a_node_that_leaves_makes_its_threads_due_at_once(subject: impl Subject) {
    let store = subject.store();
    let (one, other) = (
        store.join("one").await.unwrap(),
        store.join("other").await.unwrap(),
    );
    assert_ne!(one, other);
    thread(&store, "a").await.take(one, run()).await;
    thread(&store, "b").await.take(other, run()).await;
    store.leave(one).await.unwrap();
    assert_eq!(due(&store).await, [ThreadId::from("a")]);
    assert!(matches!(store.renew(one).await, Err(StoreError::DeadNode)));
    assert_eq!(store.renew(other).await.unwrap().n_nodes, 1);
}

/// Any node may take a thread that its owner offers.
pub async fn an_offered_thread_is_due_at_once(subject: impl Subject) {
    let store = subject.store();
    let node = store.join("a").await.unwrap();
    let mut owner = thread(&store, "t").await;
    owner.take(node, run()).await;
    let append = Append {
        ownership: Ownership::Offer,
        ..owner.append_of(Command::Park)
    };
    owner.append(append).await.unwrap();
    assert_eq!(due(&store).await, [ThreadId::from("t")]);
    owner.take(node, Command::Resume).await;
    assert_eq!(due(&store).await, []);
}

/// A thread without work is never due.
pub async fn a_thread_at_rest_is_not_due(subject: impl Subject) {
    let store = subject.store();
    let node = store.join("a").await.unwrap();
    let records = super::script::first(NewThread::new("m", Some("m")), jiff::Timestamp::UNIX_EPOCH);
    let made = store.get_or_create(&tenant(), records, None, None).await;
    made.unwrap();
    let mut owner = thread(&store, "t").await;
    owner.commit(keep("i1")).await;
    owner.take(node, run()).await;
    owner.commit(complete_step(None)).await;
    let append = Append {
        ownership: Ownership::Rest,
        ..owner.append_of(end())
    };
    owner.append(append).await.unwrap();
    assert_eq!(store.head(&owner.thread).await.unwrap().owner, None);
    store.leave(node).await.unwrap();
    assert_eq!(due(&store).await, []);
}

/// A process that starts again under its name has the threads of the former one to take.
pub async fn a_node_that_joins_again_replaces_the_one_before(subject: impl Subject) {
    let store = subject.store();
    let before = store.join("a").await.unwrap();
    thread(&store, "t").await.take(before, run()).await;
    let after = store.join("a").await.unwrap();
    assert!(after > before);
    assert_eq!(due(&store).await, [ThreadId::from("t")]);
    assert!(matches!(
        store.renew(before).await,
        Err(StoreError::DeadNode)
    ));
    assert_eq!(store.renew(after).await.unwrap().n_nodes, 1);
}

/// A node asks for as many due threads as it can run.
pub async fn due_threads_are_limited(subject: impl Subject) {
    let store = subject.store();
    for name in ["a", "b", "c"] {
        thread(&store, name).await.commit(enqueue("i")).await;
    }
    assert_eq!(store.due(DueSearch::new(2)).await.unwrap().len(), 2);
    assert_eq!(store.due(DueSearch::new(9)).await.unwrap().len(), 3);
}

/// A node does not search for threads of tenants that wait there already, or for threads that it knows.
pub async fn a_search_for_due_threads_leaves_some_out(subject: impl Subject) {
    let store = subject.store();
    for name in ["a", "b", "c"] {
        thread(&store, name).await.commit(enqueue("i")).await;
    }
    let known = DueSearch {
        limit: 2,
        without: vec!["a".into(), "b".into()],
        ..DueSearch::default()
    };
    assert_eq!(store.due(known).await.unwrap(), [ThreadId::from("c")]);
    let of_tenant = DueSearch {
        without_tenants: vec![tenant()],
        ..DueSearch::new(9)
    };
    assert_eq!(store.due(of_tenant).await.unwrap(), []);
    let of_other = DueSearch {
        without_tenants: vec!["other".into()],
        ..DueSearch::new(9)
    };
    assert_eq!(store.due(of_other).await.unwrap().len(), 3);
}
