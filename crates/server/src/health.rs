//! Whether the server is ready for requests, and why not.

use crate::app::{App, DEV_TENANT};
use crate::state::Api;
use runtime::{Page, RuntimeError, StoreError, TenantId};
use std::fs::File;
use stores::StoreHealth;

/// The process, or the system, has too many open files.
const EMFILE: i32 = 24;
const ENFILE: i32 = 23;

/// Why the server is not ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotReady {
    /// What the last process left unfinished is being taken up.
    Starting,
    /// The process is about to end.
    ShuttingDown,
    /// The last commit failed: the disk is full, or writing to it fails.
    CommitsFail,
    /// Damage was found in the store since the process started.
    StoreDamaged,
    /// The store can't be read.
    StoreFailed,
    /// The process has no descriptors left for connections.
    DescriptorsExhausted,
}

impl NotReady {
    /// Stable, for programs.
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::ShuttingDown => "shutting_down",
            Self::CommitsFail => "commits_fail",
            Self::StoreDamaged => "store_damaged",
            Self::StoreFailed => "store_failed",
            Self::DescriptorsExhausted => "descriptors_exhausted",
        }
    }

    /// What is wrong, for people.
    pub(crate) const fn advice(self) -> &'static str {
        match self {
            Self::Starting => "it has not finished starting",
            Self::ShuttingDown => "it is shutting down",
            Self::CommitsFail => "commits fail; see whether its disk is full",
            Self::StoreDamaged => "its store is damaged; run `loomline doctor`",
            Self::StoreFailed => "its store can't be read",
            Self::DescriptorsExhausted => "it has no file descriptors left",
        }
    }
}

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
    let page = Page {
        limit: 1,
        ..Page::default()
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
