//! Stores that version 9 wrote without a server. `crates/cli/tests/fixtures/stores/README.md` says how they were made.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "older_stores/shown.rs"]
mod shown;

use loomline_stores::Upkeep as _;
use loomline_stores::{SqliteOptions, SqliteStore, StoreKey};
use serde_json::Value;
use shown::shown;
use std::path::{Path, PathBuf};
use std::process::Command;
use store::{Store as _, ThreadTable as _};

const STORES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../cli/tests/fixtures/stores");

fn unpacked(store: &str, name: &str) -> Vec<u8> {
    let packed = Path::new(STORES).join(store).join(format!("{name}.gz"));
    let unpacked = Command::new("gzip").arg("-dc").arg(&packed).output();
    let unpacked = unpacked.unwrap();
    assert!(unpacked.status.success(), "{}", packed.display());
    unpacked.stdout
}

/// Asserts that a store shows what it showed to the version that wrote it, now and after it was rebuilt.
async fn assert_migrates(name: &str, key: Option<StoreKey>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("loomline.db");
    std::fs::write(&path, unpacked(name, "loomline.db")).unwrap();
    let truth: Value = serde_json::from_slice(&unpacked(name, "truth.json")).unwrap();
    let is_encrypted = key.is_some();
    let options = SqliteOptions {
        key,
        ..SqliteOptions::default()
    };
    let store = SqliteStore::open(&path, &options).unwrap();
    assert_equal(&shown(&store).await, &truth["tenants"]);
    let unfinished = store.unfinished().await.unwrap();
    let mut unfinished: Vec<_> = unfinished.iter().map(ToString::to_string).collect();
    unfinished.sort_unstable();
    assert_eq!(unfinished, ["globex-life", "mid-step"]);
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
    store.rebuild_tables().await.unwrap();
    assert_equal(&shown(&store).await, &truth["tenants"]);
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());

    let version = store.stats().await.unwrap().schema_version;
    store.close().await.unwrap();
    let copy = PathBuf::from(format!("{}.backup-v9", path.display()));
    assert_eq!(copy.exists(), version > 9);
    for file in [path, copy].iter().filter(|file| file.exists()) {
        let is_plain = std::fs::read(file).unwrap().starts_with(b"SQLite format 3");
        assert_eq!(is_plain, !is_encrypted, "{}", file.display());
    }
}

/// Asserts that values are equal. The message has the first difference only, because they are long.
fn assert_equal(shown: &Value, recorded: &Value) {
    for (tenant, recorded) in recorded.as_object().unwrap() {
        for (part, recorded) in recorded.as_object().unwrap() {
            let shown = &shown[tenant][part];
            let both = shown.as_array().unwrap().iter();
            for (shown, recorded) in both.zip(recorded.as_array().unwrap()) {
                assert_eq!(shown, recorded, "{part} of {tenant}");
            }
            assert_eq!(shown, recorded, "{part} of {tenant}");
        }
    }
}

#[tokio::test]
async fn a_store_of_version_9_migrates_with_its_events_objects_and_checkpoints() {
    assert_migrates("library-v9", None).await;
}

#[tokio::test]
#[cfg(feature = "encryption")]
async fn an_encrypted_store_of_version_9_migrates_with_its_events_and_checkpoints() {
    assert_migrates("encrypted-v9", Some("5a".repeat(32).parse().unwrap())).await;
}
