//! Two nodes of one store: a worker may use any of them.

use super::{
    KEY, Lease, at_rest, cancel, complete, external, lease_now, leased, over, post, says, short,
    tenant, text, until,
};
use futures_util::future::BoxFuture;
use loomline_runtime as runtime;
use runtime::{ExternalError, LeaseState, Runtime, WorkerPolicy};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::suite::Layer;
use store::{MemoryStore, Store, StoreError};

/// A store in memory that several nodes share.
struct Shared(Arc<MemoryStore>);

impl Layer for Shared {
    fn inner(&self) -> &dyn Store {
        &*self.0
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn close(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

async fn two_nodes(policy: WorkerPolicy) -> (Runtime, Runtime) {
    let store = Arc::new(MemoryStore::new());
    let node = || {
        let store = Arc::new(Shared(Arc::clone(&store)));
        over(store, external(Vec::new(), policy))
    };
    let (one, other) = (node(), node());
    one.recover().await.unwrap();
    other.recover().await.unwrap();
    (one, other)
}

#[tokio::test]
async fn a_worker_at_one_node_answers_the_step_of_another() {
    let (runs, serves) = two_nodes(WorkerPolicy::default()).await;
    post(&runs, &tenant(), KEY, "hello").await;
    let step = leased(&serves).await;
    let beat = serves.external().heartbeat(Lease::of(&step).at()).await;
    assert!(matches!(beat, Ok(LeaseState::Running(_))));
    let at = Instant::now();
    complete(&serves, &step, &says("from the other node")).await;
    at_rest(&runs).await;
    assert!(at.elapsed() < Duration::from_secs(5));
    assert_eq!(text(&runs).await, "from the other node");
}

#[tokio::test]
async fn of_two_workers_at_two_nodes_one_leases_the_step() {
    let (one, other) = two_nodes(WorkerPolicy::default()).await;
    post(&one, &tenant(), KEY, "hello").await;
    let acme = tenant();
    let mut n_leased = 0;
    let waited = async {
        while n_leased == 0 {
            let (first, second) = tokio::join!(
                lease_now(one.external(), &acme, "desk"),
                lease_now(other.external(), &acme, "desk"),
            );
            n_leased += usize::from(first.is_some()) + usize::from(second.is_some());
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(super::PATIENCE, waited).await.unwrap();
    assert_eq!(n_leased, 1);
    assert!(lease_now(one.external(), &acme, "desk").await.is_none());
}

#[tokio::test]
async fn a_cancel_at_one_node_reaches_the_worker_at_another() {
    let (runs, serves) = two_nodes(WorkerPolicy::default()).await;
    post(&runs, &tenant(), KEY, "hello").await;
    let step = leased(&serves).await;
    let lease = Lease::of(&step);
    cancel(&serves).await;
    let told = || async {
        let beat = serves.external().heartbeat(lease.at()).await;
        matches!(beat, Ok(LeaseState::Cancelled))
    };
    until(told).await;
}

#[tokio::test]
async fn a_lease_that_ends_is_offered_at_both_nodes() {
    let (runs, serves) = two_nodes(short(200)).await;
    post(&runs, &tenant(), KEY, "hello").await;
    let lost = leased(&serves).await;
    let next = leased(&serves).await;
    assert_eq!(next.attempt, 2);
    let late = serves
        .external()
        .complete(Lease::of(&lost).at(), &says("late"))
        .await;
    assert!(matches!(late, Err(ExternalError::NotLeased)));
    complete(&runs, &next, &says("in time")).await;
    at_rest(&runs).await;
    assert_eq!(text(&runs).await, "in time");
}

#[tokio::test]
async fn a_wait_polls_a_shared_store_and_no_other() {
    let (shared, _) = two_nodes(WorkerPolicy::default()).await;
    let polled = shared.external().poll();
    assert_eq!(polled, Some(Duration::from_secs(1)));
    let alone = super::in_memory(external(Vec::new(), WorkerPolicy::default()));
    assert_eq!(alone.external().poll(), None);
}
