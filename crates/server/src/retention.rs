//! Deletes the threads whose time is over, and returns the space of what was deleted.

use crate::app::App;
use crate::error::render_error;
use crate::threads::key_of;
use jiff::{SignedDuration, Timestamp};
use runtime::{RuntimeError, StoreError, TenantId, is_subagent};
use std::time::Duration;
use tokio::task::JoinSet;

/// The pause between two sweeps.
const PAUSE: Duration = Duration::from_mins(1);
/// Threads that are looked at together.
const PAGE: usize = 100;
/// Maximum number of threads that one sweep deletes for a tenant. The next one goes on.
const DELETED: usize = 1000;

/// Sweeps until the set is dropped.
pub(crate) fn start(app: &App) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    let app = app.clone();
    tasks.spawn(async move {
        loop {
            tokio::time::sleep(PAUSE).await;
            sweep(&app, Timestamp::now()).await;
        }
    });
    tasks
}

/// One sweep, as of this instant.
pub(crate) async fn sweep(app: &App, now: Timestamp) {
    for (name, tenant) in &app.config().tenants {
        let Some(after) = tenant.delete_threads_after else {
            continue;
        };
        let after = SignedDuration::try_from(after).unwrap_or(SignedDuration::MAX);
        // An instant before all threads, if the time is longer than there were any.
        let Ok(since) = now.checked_sub(after) else {
            continue;
        };
        match delete(app, &name.as_str().into(), since).await {
            Ok(0) => {}
            Ok(n_threads) => tracing::info!(tenant = name, n_threads, "old threads are deleted"),
            Err(error) => {
                let error = render_error(&error);
                tracing::warn!(tenant = name, error, "old threads can't be deleted");
            }
        }
    }
    if app.store().has_deleted()
        && let Err(error) = app.store().reclaim().await
    {
        let error = render_error(&error);
        tracing::warn!(error, "the space of what was deleted is not returned");
    }
}

/// Deletes the threads at rest of a tenant that have not changed since. Returns how many.
async fn delete(app: &App, tenant: &TenantId, since: Timestamp) -> Result<usize, RuntimeError> {
    let (mut n_deleted, mut after) = (0, 0);
    loop {
        let rows = app.store().oldest_threads(tenant, after, PAGE).await?;
        let Some(last) = rows.last() else {
            return Ok(n_deleted);
        };
        after = last.change;
        for row in &rows {
            if row.thread.updated_at.unwrap_or(row.thread.created_at) >= since {
                return Ok(n_deleted);
            }
            // A sub-agent's thread goes with its parent.
            if is_subagent(row) {
                continue;
            }
            let deleted = app.runtime().delete_at_rest(tenant, key_of(row), row.tail);
            match deleted.await {
                Ok(is_deleted) => n_deleted += usize::from(is_deleted),
                // The fork is newer. The next sweep deletes the parent.
                Err(RuntimeError::Store(StoreError::HasForks { .. } | StoreError::NotFound)) => {}
                Err(error) => return Err(error),
            }
        }
        if n_deleted >= DELETED {
            return Ok(n_deleted);
        }
    }
}
