//! The server's readiness, and the reason if it is not ready.

use crate::app::{App, Database};
use crate::auth::DEV_TENANT;
use crate::error::NotReady;
use crate::state::Api;
use futures_util::future::join_all;
use runtime::{LeaseFault, RuntimeError, StoreError, TenantId, ThreadRows};
use std::fs::File;
use std::time::Duration;
use stores::StoreHealth;
use tokio::time::timeout;

/// Maximum time of a look at the store.
const PATIENCE: Duration = Duration::from_secs(5);
/// The error code for too many open files in the process or the system.
const EMFILE: i32 = 24;
const ENFILE: i32 = 23;

/// Why the server is not ready; none if it is.
pub(crate) async fn not_ready(api: &Api) -> Option<NotReady> {
    let app = api.app();
    if api.is_shutting_down() {
        return Some(NotReady::ShuttingDown);
    }
    if !app.is_recovered() {
        return Some(NotReady::Starting);
    }
    if descriptors_run_out() {
        return Some(NotReady::DescriptorsExhausted);
    }
    // Another database that is down does not concern the tenants of this one.
    of_database(app.databases().next()?).await
}

/// The shards with the reason if they are not ready, in the order of their names.
pub(crate) async fn shards(app: &App) -> Vec<(String, Option<NotReady>)> {
    let shards = app.databases().skip(1);
    let each = shards.map(|database| async move {
        let name = database.name.clone();
        if !database.is_recovered() {
            return (name, Some(NotReady::Starting));
        }
        (name, of_database(database).await)
    });
    join_all(each).await
}

async fn of_database(database: &Database) -> Option<NotReady> {
    match database.runtime.lease_fault() {
        Some(LeaseFault::Ended) => return Some(NotReady::NotLeased),
        Some(LeaseFault::Skewed) => return Some(NotReady::ClockDiffers),
        None => {}
    }
    of_store(database).await
}

/// Whether fewer than 8 descriptors can be opened.
fn descriptors_run_out() -> bool {
    let opened: Result<Vec<File>, _> = (0..8).map(|_| File::open("/dev/null")).collect();
    opened.is_err_and(|error| matches!(error.raw_os_error(), Some(EMFILE | ENFILE)))
}

async fn of_store(database: &Database) -> Option<NotReady> {
    let page = ThreadRows {
        limit: 1,
        ..ThreadRows::default()
    };
    // A read finds out whether the store can be read at all; damage that it finds is noted.
    let tenant = TenantId::from(DEV_TENANT);
    let look = async {
        let read = database.runtime.list(&tenant, page).await;
        (database.store.health().await, read)
    };
    // A database may not answer.
    let Ok((health, read)) = timeout(PATIENCE, look).await else {
        return Some(NotReady::StoreFailed);
    };
    match (health, read) {
        (StoreHealth::Damaged, _)
        | (
            StoreHealth::Healthy | StoreHealth::CommitsFail,
            Err(RuntimeError::Store(StoreError::Damaged(_))),
        ) => Some(NotReady::StoreDamaged),
        (StoreHealth::CommitsFail, _) => Some(NotReady::CommitsFail),
        (StoreHealth::Healthy, Err(_)) => Some(NotReady::StoreFailed),
        (StoreHealth::Healthy, Ok(_)) => None,
    }
}
