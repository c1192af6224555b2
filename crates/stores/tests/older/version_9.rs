//! Stores that earlier versions have written.

use flate2::read::GzDecoder;
use rusqlite::Connection;
use std::io::Read as _;
use std::path::Path;

/// Takes back what versions 8 and 9 have made.
pub(crate) const WITHOUT_V8: &str = "
    DROP TABLE thread_waits;
    DROP TABLE thread_words;
    ALTER TABLE thread_parts DROP COLUMN seq;
    PRAGMA user_version=7;";

/// Takes back what version 7 has made.
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
