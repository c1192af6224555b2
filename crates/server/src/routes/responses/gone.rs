//! What is deleted, or stopped, while it runs.

use runtime::{Runtime, RuntimeError, TenantId};
use timeline::ExecutionId;

/// Why a run is stopped that a client cancels.
const CANCELLED: &str = "user_cancelled";
/// How many runs are stopped for one deletion: one after the other, for what waits begins.
const MAX_STOPPED: usize = 1_000;

/// Stops this execution, if it runs.
pub(super) async fn stopped(
    runtime: &Runtime,
    (tenant, key): (&TenantId, &str),
    execution: &ExecutionId,
) -> Result<(), RuntimeError> {
    let cancelled = runtime.cancel(tenant, key, Some(execution), CANCELLED);
    match cancelled.await {
        // It has ended meanwhile.
        Ok(_) | Err(RuntimeError::NotRunning(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Deletes a thread. What runs on it is stopped, and what waits to run.
pub(super) async fn deleted(
    runtime: &Runtime,
    tenant: &TenantId,
    key: &str,
) -> Result<(), RuntimeError> {
    for _ in 0..MAX_STOPPED {
        match runtime.delete(tenant, key).await {
            Err(RuntimeError::Busy(running)) => stopped(runtime, (tenant, key), &running).await?,
            done => return done,
        }
    }
    runtime.delete(tenant, key).await
}
