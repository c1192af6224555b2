//! The server's readiness, and the reason if it is not ready.

use crate::app::App;
use crate::auth::DEV_TENANT;
use crate::error::NotReady;
use crate::state::Api;
use runtime::{RuntimeError, StoreError, TenantId, ThreadRows};
use std::fs::File;
use stores::StoreHealth;

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
    of_store(app).await
}

/// Whether fewer than 8 descriptors can be opened.
fn descriptors_run_out() -> bool {
    let opened: Result<Vec<File>, _> = (0..8).map(|_| File::open("/dev/null")).collect();
    opened.is_err_and(|error| matches!(error.raw_os_error(), Some(EMFILE | ENFILE)))
}

async fn of_store(app: &App) -> Option<NotReady> {
    let page = ThreadRows {
        limit: 1,
        ..ThreadRows::default()
    };
    // A read finds out whether the store can be read at all; damage that it finds is noted.
    let read = app.runtime().list(&TenantId::from(DEV_TENANT), page).await;
    match (app.store().health().await, read) {
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
