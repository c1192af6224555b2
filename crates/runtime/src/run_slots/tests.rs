use super::*;
use futures_util::FutureExt;

fn tenant(name: &str) -> TenantId {
    TenantId::from(name)
}

fn slots(process: usize, of_tenant: usize) -> Arc<RunSlots> {
    RunSlots::new(RunLimits {
        concurrent_runs: process,
        tenant: TenantRunLimits {
            concurrent_runs: of_tenant,
            queued_triggers: 2,
        },
        models: BTreeMap::from([("gpu".to_owned(), 1)]),
        ..RunLimits::default()
    })
}

#[test]
fn a_run_beyond_a_limit_is_refused_until_another_one_ends() {
    let slots = slots(3, 2);
    let first = slots.take(&tenant("a"), None).unwrap();
    let _second = slots.take(&tenant("a"), None).unwrap();
    let refused = slots.take(&tenant("a"), None).unwrap_err();
    assert_eq!((refused.name, refused.max), ("tenant.concurrent_runs", 2));
    let _third = slots.take(&tenant("b"), None).unwrap();
    let refused = slots.take(&tenant("b"), None).unwrap_err();
    assert_eq!((refused.name, refused.max), ("concurrent_runs", 3));
    drop(first);
    assert!(slots.take(&tenant("b"), None).is_ok());
    assert_eq!(slots.running(), 2);
}

#[test]
fn a_run_of_a_full_model_is_refused() {
    let slots = slots(9, 9);
    let first = slots.take(&tenant("a"), Some("gpu")).unwrap();
    let refused = slots.take(&tenant("b"), Some("gpu")).unwrap_err();
    assert_eq!(
        (refused.name, refused.max),
        ("models.NAME.concurrent_runs", 1)
    );
    assert!(slots.take(&tenant("b"), Some("other")).is_ok());
    drop(first);
    assert!(slots.take(&tenant("b"), Some("gpu")).is_ok());
}

#[tokio::test]
async fn resumed_runs_use_half_of_a_limit() {
    let slots = slots(8, 4);
    let _one = slots.wait(&tenant("a"), None).await;
    let two = slots.wait(&tenant("a"), None).await;
    let a = tenant("a");
    let mut third = Box::pin(slots.wait(&a, None));
    assert!(third.as_mut().now_or_never().is_none());
    assert!(slots.take(&tenant("a"), None).is_ok());
    drop(two);
    let _three = third.await;
    assert_eq!(slots.running(), 2);
}

#[tokio::test]
async fn slots_go_to_tenants_in_turn() {
    let slots = slots(2, 2);
    let held = slots.take(&tenant("other"), None).unwrap();
    let first = slots.wait(&tenant("a"), None).await;
    let (a, b) = (tenant("a"), tenant("b"));
    let mut of_a = Box::pin(slots.wait(&a, None));
    let mut of_b = Box::pin(slots.wait(&b, None));
    assert!(of_a.as_mut().now_or_never().is_none());
    assert!(of_b.as_mut().now_or_never().is_none());
    drop(first);
    let granted = of_a.as_mut().now_or_never().unwrap();
    assert!(of_b.as_mut().now_or_never().is_none());
    drop(granted);
    assert!(of_b.as_mut().now_or_never().is_some());
    drop(held);
}

#[tokio::test]
async fn a_waiter_that_is_gone_leaves_its_slot_to_the_next() {
    let slots = slots(1, 1);
    let held = slots.take(&tenant("a"), None).unwrap();
    let (a, b) = (tenant("a"), tenant("b"));
    let mut gone = Box::pin(slots.wait(&a, None));
    let mut next = Box::pin(slots.wait(&b, None));
    assert!(gone.as_mut().now_or_never().is_none());
    assert!(next.as_mut().now_or_never().is_none());
    drop(gone);
    drop(held);
    let granted = next.await;
    assert_eq!((slots.running(), slots.waiting()), (1, 0));
    drop(granted);
    assert_eq!(slots.running(), 0);
}

#[test]
fn a_tenant_without_runs_and_triggers_is_not_kept() {
    let slots = slots(1, 1);
    let slot = slots.take(&tenant("a"), None).unwrap();
    let queued = slots.queue(&tenant("a")).unwrap();
    let usage = slots.tenants().pop().unwrap();
    assert_eq!((usage.running, usage.queued_triggers), (1, 1));
    drop((slot, queued));
    assert_eq!(slots.tenants(), []);
}

#[test]
fn a_trigger_beyond_the_limit_of_its_tenant_is_refused() {
    let slots = slots(1, 1);
    let _many = slots.queued(&tenant("a"), 2);
    let refused = slots.queue(&tenant("a")).unwrap_err();
    assert_eq!((refused.name, refused.max), ("tenant.queued_triggers", 2));
    assert!(slots.queue(&tenant("b")).is_ok());
}

#[test]
fn processes_share_the_limits_of_tenants() {
    let slots = slots(9, 5);
    let n_processes = slots.shared_by();
    n_processes.store(2, Ordering::Relaxed);
    let mut taken = Vec::new();
    while let Ok(slot) = slots.take(&tenant("a"), None) {
        taken.push(slot);
    }
    assert_eq!(taken.len(), 3);
    n_processes.store(1, Ordering::Relaxed);
    assert!(slots.take(&tenant("a"), None).is_ok());
}
