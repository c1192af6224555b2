//! Leases: heartbeats, expiry, cancels and restarts.

use super::{
    KEY, Lease, at_rest, cancel, complete, external, has_steps, in_memory, interrupted, is_clean,
    lease_now, leased, over, post, says, short, steps, tenant, text, until,
};
use loomline_runtime as runtime;
use runtime::{ExternalError, LeaseState, StepDelta, WorkerPolicy};
use std::sync::Arc;
use std::time::Duration;
use store::MemoryStore;

fn is_ended(answer: &Result<impl Sized, ExternalError>) -> bool {
    matches!(answer, Err(ExternalError::NotLeased))
}

#[tokio::test]
async fn a_step_whose_lease_ends_is_leased_again_and_late_answers_are_refused() {
    let runtime = in_memory(external(Vec::new(), short(150)));
    let workers = runtime.external();
    post(&runtime, &tenant(), KEY, "hello").await;
    let lost = leased(&runtime).await;
    let late = Lease::of(&lost);
    let delta = StepDelta::OutputText {
        index: 0,
        delta: "lost text".to_owned(),
    };
    workers.stream(late.at(), 0, &[delta]).await.unwrap();
    let next = leased(&runtime).await;
    assert_eq!((next.step.clone(), next.attempt), (lost.step.clone(), 2));
    assert_ne!(next.lease, lost.lease);
    assert!(is_ended(&workers.heartbeat(late.at()).await));
    assert!(is_ended(&workers.stream(late.at(), 1, &[]).await));
    assert!(is_ended(&workers.complete(late.at(), &says("late")).await));
    assert!(is_ended(&workers.fail(late.at(), "late").await));
    complete(&runtime, &next, &says("in time")).await;
    at_rest(&runtime).await;
    assert_eq!(text(&runtime).await, "in time");
    assert_eq!(steps(&runtime).await[0].n_resets, 1);
    let store = runtime.store();
    assert!(is_clean(&**store, &lost).await && is_clean(&**store, &next).await);
}

#[tokio::test]
async fn a_heartbeat_prolongs_the_lease() {
    let runtime = in_memory(external(Vec::new(), short(400)));
    post(&runtime, &tenant(), KEY, "hello").await;
    let step = leased(&runtime).await;
    for _ in 0..8 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let state = runtime.external().heartbeat(Lease::of(&step).at()).await;
        let lease = Duration::from_millis(400);
        assert_eq!(state.unwrap(), LeaseState::Running(lease));
    }
    complete(&runtime, &step, &says("at last")).await;
    at_rest(&runtime).await;
    assert_eq!(text(&runtime).await, "at last");
    assert_eq!(steps(&runtime).await[0].n_resets, 0);
}

#[tokio::test]
async fn a_cancelled_run_tells_its_worker_at_the_next_heartbeat() {
    let runtime = in_memory(external(Vec::new(), WorkerPolicy::default()));
    let workers = runtime.external();
    post(&runtime, &tenant(), KEY, "hello").await;
    let step = leased(&runtime).await;
    let lease = Lease::of(&step);
    cancel(&runtime).await;
    until(|| async { workers.heartbeat(lease.at()).await.unwrap() == LeaseState::Cancelled }).await;
    let refused = workers.complete(lease.at(), &says("late")).await;
    assert!(matches!(refused, Err(ExternalError::Cancelled)));
    assert!(lease_now(workers, &tenant(), "desk").await.is_none());
    assert_eq!(interrupted(&runtime).await.0, "enough");
}

#[tokio::test]
async fn a_cancelled_run_withdraws_a_step_that_nobody_has_leased() {
    let runtime = in_memory(external(Vec::new(), WorkerPolicy::default()));
    post(&runtime, &tenant(), KEY, "hello").await;
    let step = leased(&runtime).await;
    complete(&runtime, &step, &says("one")).await;
    at_rest(&runtime).await;
    post(&runtime, &tenant(), KEY, "again").await;
    let exists = || async { has_steps(&runtime).await };
    until(&exists).await;
    cancel(&runtime).await;
    until(|| async { !exists().await }).await;
}

#[tokio::test]
async fn a_restarted_runtime_refuses_the_lease_of_the_former_attempt() {
    let store = Arc::new(MemoryStore::new());
    let reactor = external(Vec::new(), WorkerPolicy::default());
    let first = over(
        crate::mortal::Mortal::new(&store, usize::MAX, true, false),
        Arc::clone(&reactor),
    );
    post(&first, &tenant(), KEY, "hello").await;
    let former = leased(&first).await;
    first.shutdown().await.unwrap();
    let second = over(store, reactor);
    second.recover().await.unwrap();
    let next = leased(&second).await;
    assert_eq!((next.step.clone(), next.attempt), (former.step.clone(), 2));
    let late = Lease::of(&former);
    let workers = second.external();
    assert!(is_ended(&workers.heartbeat(late.at()).await));
    assert!(is_ended(&workers.complete(late.at(), &says("late")).await));
    complete(&second, &next, &says("after the restart")).await;
    at_rest(&second).await;
    assert_eq!(text(&second).await, "after the restart");
}

#[tokio::test]
async fn a_repeated_answer_under_one_lease_changes_nothing() {
    let runtime = in_memory(external(Vec::new(), WorkerPolicy::default()));
    post(&runtime, &tenant(), KEY, "hello").await;
    let step = leased(&runtime).await;
    let lease = Lease::of(&step);
    complete(&runtime, &step, &says("once")).await;
    // The run has read the answer by then, or it has not.
    let twice = says("twice");
    let again = runtime.external().complete(lease.at(), &twice);
    assert!(matches!(
        again.await,
        Ok(()) | Err(ExternalError::NotLeased)
    ));
    at_rest(&runtime).await;
    assert_eq!(text(&runtime).await, "once");
    assert!(is_ended(
        &runtime.external().stream(lease.at(), 0, &[]).await
    ));
    assert!(is_clean(&**runtime.store(), &step).await);
}

#[tokio::test]
async fn a_failure_of_a_worker_fails_the_run_with_its_message() {
    let runtime = in_memory(external(Vec::new(), WorkerPolicy::default()));
    post(&runtime, &tenant(), KEY, "hello").await;
    let step = leased(&runtime).await;
    let lease = Lease::of(&step);
    let failed = runtime.external().fail(lease.at(), "the model is gone");
    failed.await.unwrap();
    at_rest(&runtime).await;
    let (reason, detail) = interrupted(&runtime).await;
    assert_eq!(reason, "error");
    assert!(detail.contains("the model is gone"), "{detail}");
    until(|| async { is_clean(&**runtime.store(), &step).await }).await;
}
