//! Stores that earlier versions have written.

use flate2::read::GzDecoder;
use rusqlite::Connection;
use std::io::Read as _;
use std::path::Path;

/// Takes back what versions 8 and 9 have made.
#[allow(dead_code, reason = "not every test crate needs it")]
pub(crate) const WITHOUT_V8: &str = "
    DROP TABLE thread_waits;
    DROP TABLE thread_words;
    ALTER TABLE thread_parts DROP COLUMN seq;
    PRAGMA user_version=7;";

/// Takes back what version 7 has made.
#[allow(dead_code, reason = "not every test crate needs it")]
pub(crate) const WITHOUT_V7: &str = "
    DROP TABLE tenant_usage;
    DROP TRIGGER tenant_usage_thread_made;
    DROP TRIGGER tenant_usage_thread_grown;
    DROP TRIGGER tenant_usage_thread_deleted;
    DROP TRIGGER tenant_usage_content_made;
    DROP TRIGGER tenant_usage_content_deleted;
    DROP TRIGGER tenant_usage_object_made;
    DROP TRIGGER tenant_usage_object_changed;
    DROP TRIGGER tenant_usage_object_deleted;
    PRAGMA user_version=6;";

/// Writes the store of version 9 to a file, changed by these statements.
pub(crate) fn write_version_9(path: &Path, sql: &str) {
    let mut file = Vec::new();
    let mut packed = GzDecoder::new(&include_bytes!("v9.db.gz")[..]);
    packed.read_to_end(&mut file).unwrap();
    std::fs::write(path, file).unwrap();
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

/// The events of that store, one a line: thread, position, instant and JSON text.
#[allow(dead_code, reason = "not every test crate needs it")]
pub(crate) fn events_of_version_9() -> String {
    let mut lines = String::new();
    let mut packed = GzDecoder::new(&include_bytes!("v9.jsonl.gz")[..]);
    packed.read_to_string(&mut lines).unwrap();
    lines
}
