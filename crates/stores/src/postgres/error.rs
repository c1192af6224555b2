//! From PostgreSQL's errors to the store's.

use crate::durable::violation;
use store::StoreError;
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, SqlState};

/// The effect of a failed statement on its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The connection is gone, or its server is no longer the one that writes.
    Lost,
    /// Another transaction was in the way. The same statements may succeed.
    Overtaken,
    /// The disk of the server is full.
    DiskFull,
    /// The server lacks memory or connections. No other statement fares better now.
    Exhausted,
    /// The server refused a statement.
    Refused,
}

impl Failure {
    pub(super) fn of(error: &Error) -> Self {
        let Some(code) = error.code() else {
            return Self::Lost;
        };
        let lost = [
            SqlState::READ_ONLY_SQL_TRANSACTION,
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
        ];
        let overtaken = [
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
            SqlState::LOCK_NOT_AVAILABLE,
        ];
        if code.code().starts_with("08") || lost.contains(code) {
            Self::Lost
        } else if overtaken.contains(code) {
            Self::Overtaken
        } else if *code == SqlState::DISK_FULL {
            Self::DiskFull
        } else if code.code().starts_with("53") {
            Self::Exhausted
        } else {
            Self::Refused
        }
    }
}

/// The error of a statement.
pub(super) fn statement(error: Error) -> StoreError {
    let Some(cause) = error.as_db_error() else {
        return StoreError::Failed(Box::new(error));
    };
    let code = cause.code();
    if *code == SqlState::UNIQUE_VIOLATION {
        return StoreError::Duplicate(duplicate(cause));
    }
    // The class of constraints.
    if code.code().starts_with("23") {
        return StoreError::Damaged(violation(cause.message()));
    }
    if [SqlState::DATA_CORRUPTED, SqlState::INDEX_CORRUPTED].contains(code) {
        return StoreError::Damaged(cause.message().to_owned());
    }
    StoreError::Failed(Box::new(error))
}

/// The effect of a failed statement, if this is the error of one that may be done again.
pub(super) fn failure(error: &StoreError) -> Option<Failure> {
    let StoreError::Failed(cause) = error else {
        return None;
    };
    cause.downcast_ref().map(Failure::of)
}

/// Whether the same work may succeed if it is done again at once.
pub(super) fn is_overtaken(error: &StoreError) -> bool {
    failure(error) == Some(Failure::Overtaken)
}

/// An error that has no cause of its own.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unavailable {
    #[error("the database can't be reached: {0}")]
    Unreachable(String),
    #[error("the write failed: {0}")]
    Refused(String),
    #[error(
        "a commit was not confirmed by the standby servers, so it is unknown whether it is safe"
    )]
    Unconfirmed,
    #[error("the database did not answer in time")]
    Silent,
    #[error("too many connections still wait for an answer of the database")]
    TooManyOpen,
    #[error("other transactions were in the way too often")]
    Overtaken,
}

impl From<Unavailable> for StoreError {
    fn from(why: Unavailable) -> Self {
        Self::Failed(Box::new(why))
    }
}

/// The id that is in use: the last value of `Key (thread_no, id)=(1, i1) already exists.`
fn duplicate(cause: &DbError) -> String {
    let detail = cause.detail().unwrap_or_default();
    let value = detail.split_once(")=(").and_then(|(columns, values)| {
        let values = values.rsplit_once(')').map_or(values, |(values, _)| values);
        // Of several columns, an id is the last one.
        Some(if columns.contains(", ") {
            values.split_once(", ")?.1
        } else {
            values
        })
    });
    super::value::original(value.unwrap_or(cause.message()).to_owned())
}
