//! The key of an encrypted store, and opening a file with it.
//!
//! `SQLCipher` encrypts (feature `encryption`): every page of the file and of its write-ahead log by
//! AES-256, each with a code that shows tampering. It is SQLite otherwise.

use super::error::{failed, statement};
use runtime::{KeyError, StoreError};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use secrecy::{ExposeSecret, SecretString};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::str::FromStr;

/// What a file that is not encrypted begins with.
const PLAIN: &[u8; 16] = b"SQLite format 3\0";

/// A key of 256 bits.
///
/// It is the key itself and no passphrase that one is derived from: make it from random bits.
#[derive(Clone, Debug)]
pub struct StoreKey(SecretString);

/// What is no key.
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
    /// As SQL wants it. It never stands in a statement's text, which errors show.
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

/// A connection to a file that the key fits.
pub(super) fn opened(
    path: &Path,
    flags: OpenFlags,
    key: Option<&StoreKey>,
) -> Result<Connection, StoreError> {
    match (key, is_plain(path)?) {
        (None, Some(false)) => return Err(KeyError::Missing.into()),
        (Some(_), Some(true)) => return Err(KeyError::NotEncrypted.into()),
        (None, Some(true) | None) | (Some(_), Some(false) | None) => {}
    }
    if key.is_some() {
        supported()?;
    }
    let conn = Connection::open_with_flags(path, flags).map_err(statement)?;
    if let Some(key) = key {
        unlock(&conn, key)?;
    }
    Ok(conn)
}

/// Whether a file is not encrypted; nothing if there is none, or nothing in it.
fn is_plain(path: &Path) -> Result<Option<bool>, StoreError> {
    let mut header = Vec::with_capacity(PLAIN.len());
    match File::open(path) {
        Ok(file) => file
            .take(PLAIN.len() as u64)
            .read_to_end(&mut header)
            .map_err(failed)?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    Ok((!header.is_empty()).then(|| header == PLAIN))
}

fn unlock(conn: &Connection, key: &StoreKey) -> Result<(), StoreError> {
    // It would print to standard error what is answered here as an error.
    conn.pragma_update(None, "cipher_log_level", "NONE")
        .map_err(statement)?;
    // What the error says is not told: it may have the statement, and that has the key.
    conn.pragma_update(None, "key", key.literal())
        .map_err(|_| StoreError::Failed("SQLite did not take the store's key".into()))?;
    let read = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()));
    read.map_err(|error| match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => KeyError::Wrong.into(),
        _ => statement(error),
    })
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
