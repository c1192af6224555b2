//! Reads a database that can't be written to: on a read-only medium, or in another user's directory.
//!
//! Readers of a write-ahead log share its index, a file that the first reader creates. Here it can't be
//! created, so each reader has its own.

use super::connection::{exists, wal};
use super::key::{self, StoreKey};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use store::StoreError;

/// Whether an open failed because the index of the write-ahead log can't be made.
pub(super) fn is_read_only(error: &StoreError) -> bool {
    let StoreError::Failed(source) = error else {
        return false;
    };
    let error = source.downcast_ref::<rusqlite::Error>();
    let code = error.and_then(rusqlite::Error::sqlite_error_code);
    matches!(
        code,
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::FileLockingProtocolFailed)
    )
}

/// A read-only connection to a database that no process changes meanwhile.
///
/// Without a log the file is read unchanged. A log is read into memory and applied there.
pub(super) fn opened(path: &Path, key: Option<&StoreKey>) -> Result<Connection, StoreError> {
    exists(path)?;
    let file = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let has_log = std::fs::metadata(wal(&file)).is_ok_and(|log| log.len() > 0);
    let (how, before) = if has_log {
        ("vfs=unix-none", "PRAGMA locking_mode=EXCLUSIVE")
    } else {
        ("immutable=1", "")
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    key::opened_with(&uri(&file, how), flags, key, before)
}

fn uri(path: &Path, query: &str) -> PathBuf {
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.".contains(byte) {
            uri.push(char::from(*byte));
        } else {
            // Writing to a string can't fail.
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri.push('?');
    uri.push_str(query);
    uri.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_becomes_a_uri_that_leads_to_it() {
        let uri = uri(Path::new("/a b/50%?#.db"), "immutable=1");
        assert_eq!(uri, Path::new("file:/a%20b/50%25%3F%23.db?immutable=1"));
    }
}
