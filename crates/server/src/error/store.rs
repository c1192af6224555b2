//! The statuses and codes of the store's errors.

use super::{Verdict, of_limit};
use http::StatusCode;
use runtime::StoreError;
use serde_json::json;

pub(super) fn of_store(error: &StoreError) -> Verdict {
    use StatusCode as S;
    match error {
        StoreError::NotFound => Verdict::new(S::NOT_FOUND, "thread_not_found"),
        StoreError::KeyTaken(_) => Verdict::new(S::CONFLICT, "key_taken").at("/key"),
        StoreError::NoSuchObject { .. } => Verdict::new(S::NOT_FOUND, "object_not_found"),
        StoreError::AheadOfLog { tail, .. } => {
            Verdict::new(S::CONFLICT, "ahead_of_log").with(json!({ "tail": tail }))
        }
        StoreError::HasForks { .. } => Verdict::new(S::CONFLICT, "has_forks"),
        StoreError::LimitReached(reached) => of_limit(reached),
        StoreError::Duplicate(_) => Verdict::hidden(
            S::CONFLICT,
            "duplicate_id",
            "an id is in use on this thread already",
        ),
        StoreError::Conflict { .. }
        | StoreError::Fenced { .. }
        | StoreError::Moved { .. }
        | StoreError::DeadNode => Verdict::hidden(
            S::SERVICE_UNAVAILABLE,
            "taken_over",
            "another process writes this thread; try again",
        ),
        StoreError::InUse(_) => Verdict::hidden(
            S::SERVICE_UNAVAILABLE,
            "read_only",
            "this server can't write; another process does",
        ),
        StoreError::Closed => Verdict::hidden(
            S::SERVICE_UNAVAILABLE,
            "shutting_down",
            "the server is shutting down",
        ),
        StoreError::Failed(_) => Verdict::hidden(
            S::SERVICE_UNAVAILABLE,
            "store_failed",
            "the store failed; try again",
        ),
        StoreError::Damaged(_) => Verdict::hidden(
            S::INTERNAL_SERVER_ERROR,
            "store_damaged",
            "the server's store is damaged; its operator has to restore it, see `loomline doctor`",
        ),
        StoreError::Repeated { .. }
        | StoreError::OrphanedLog { .. }
        | StoreError::TooNew { .. }
        | StoreError::Key(_) => {
            Verdict::hidden(S::INTERNAL_SERVER_ERROR, "internal", "the server failed")
        }
    }
}
