//! The key of an encrypted store, and opening a file with it.
//!
//! `SQLCipher` encrypts (feature `encryption`): every page of the file and of its write-ahead log by
//! AES-256, each with a code that shows tampering. It is SQLite otherwise.

use super::error::{failed, statement};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use secrecy::{ExposeSecret, SecretString};
use std::io::Error;
use std::path::Path;
use std::str::FromStr;
use store::{KeyError, StoreError};

/// A key of 256 bits.
///
/// It is the key itself and no passphrase that one is derived from: make it from random bits.
#[derive(Clone, Debug)]
pub struct StoreKey(SecretString);

/// The text is not a store key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this is no key of a store, expected 64 hexadecimal digits, as `loomline key --store` makes them"
)]
pub struct NoStoreKey;

impl FromStr for StoreKey {
    type Err = NoStoreKey;

    /// Reads 64 hexadecimal digits.
    fn from_str(text: &str) -> Result<Self, NoStoreKey> {
        if text.len() == 64 && text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            Ok(Self(format!("x'{text}'").into()))
        } else {
            Err(NoStoreKey)
        }
    }
}

impl StoreKey {
    /// The key as an SQL literal. It is never part of a statement's text, because errors show that.
    pub(super) fn literal(&self) -> &str {
        self.0.expose_secret()
    }
}

/// Whether this program can read and write encrypted stores.
pub(super) fn supported() -> Result<(), KeyError> {
    if cfg!(feature = "encryption") {
        Ok(())
    } else {
        Err(KeyError::Unsupported)
    }
}

/// A connection to a file, if the key fits.
///
/// Only SQLite may open the file: closing any other file handle releases the locks of the whole process.
pub(super) fn opened(
    path: &Path,
    flags: OpenFlags,
    key: Option<&StoreKey>,
) -> Result<Connection, StoreError> {
    opened_with(path, flags, key, "")
}

/// A connection to a file, if the key fits; runs the statements of `before` before the first read.
pub(super) fn opened_with(
    path: &Path,
    flags: OpenFlags,
    key: Option<&StoreKey>,
    before: &str,
) -> Result<Connection, StoreError> {
    if key.is_some() {
        supported()?;
    }
    match connected(path, flags, key, before)? {
        Some(conn) => Ok(conn),
        None if key.is_none() => Err(KeyError::Missing.into()),
        None if connected(path, flags, None, before)?.is_some() => {
            Err(KeyError::NotEncrypted.into())
        }
        None => Err(KeyError::Wrong.into()),
    }
}

/// A connection; `None` if the file is not a database with this key. An empty file fits every key.
fn connected(
    path: &Path,
    flags: OpenFlags,
    key: Option<&StoreKey>,
    before: &str,
) -> Result<Option<Connection>, StoreError> {
    let conn = Connection::open_with_flags(path, flags).map_err(statement)?;
    if let Some(key) = key {
        // It would print to standard error what is answered here as an error.
        conn.pragma_update(None, "cipher_log_level", "NONE")
            .map_err(statement)?;
        // What the error says is not told: it may have the statement, and that has the key.
        conn.pragma_update(None, "key", key.literal())
            .map_err(|_| failed(Error::other("SQLite did not take the store's key")))?;
    }
    conn.execute_batch(before).map_err(statement)?;
    let read = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()));
    match read {
        Ok(()) => Ok(Some(conn)),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => Ok(None),
        Err(error) => Err(statement(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_64_hexadecimal_digits_and_is_not_shown() {
        let key: StoreKey = "0aF9".repeat(16).parse().unwrap();
        assert_eq!(key.literal(), format!("x'{}'", "0aF9".repeat(16)));
        assert!(!format!("{key:?}").contains("0aF9"), "{key:?}");
        for wrong in [
            "",
            "secret",
            &"0".repeat(63),
            &"0".repeat(65),
            &"g".repeat(64),
            &"ä".repeat(32),
        ] {
            assert_eq!(
                wrong.parse::<StoreKey>().unwrap_err(),
                NoStoreKey,
                "{wrong}"
            );
        }
    }
}
