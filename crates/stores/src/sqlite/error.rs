//! From SQLite's errors to the store's.

use crate::durable::violation;
use rusqlite::ErrorCode;
use rusqlite::ffi;
use std::sync::Arc;
use store::StoreError;

/// A commit that failed took every request in it along.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the commit failed")]
pub(super) struct CommitFailed(#[source] pub(super) Arc<dyn std::error::Error + Send + Sync>);

pub(super) fn failed(error: impl std::error::Error + Send + Sync + 'static) -> StoreError {
    StoreError::Failed(Box::new(error))
}

/// The error of a statement that failed because of its values, the file or the disk.
pub(super) fn statement(error: rusqlite::Error) -> StoreError {
    let Some(cause) = error.sqlite_error() else {
        // A column has another type than the program writes.
        let is_damage = matches!(
            error,
            rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::Utf8Error(..)
        );
        return if is_damage {
            StoreError::Damaged(error.to_string())
        } else {
            failed(error)
        };
    };
    let unique = [
        ffi::SQLITE_CONSTRAINT_UNIQUE,
        ffi::SQLITE_CONSTRAINT_PRIMARYKEY,
        ffi::SQLITE_CONSTRAINT_ROWID,
    ];
    if unique.contains(&cause.extended_code) {
        return StoreError::Duplicate(error.to_string());
    }
    if cause.code == ErrorCode::ConstraintViolation {
        StoreError::Damaged(violation(&error.to_string()))
    } else if matches!(
        cause.code,
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase
    ) {
        StoreError::Damaged(error.to_string())
    } else {
        failed(error)
    }
}

/// Maps an error of an insert whose new id is known.
pub(super) fn making(id: &str) -> impl FnOnce(rusqlite::Error) -> StoreError {
    move |error| {
        let error = statement(error);
        if matches!(error, StoreError::Duplicate(_)) {
            return StoreError::Duplicate(id.to_owned());
        }
        error
    }
}
