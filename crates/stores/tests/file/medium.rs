//! Reading where nothing can be written, and logs without their database.

use super::{open, place, read_only, written};
use loomline_stores::{SqliteOptions, SqliteStore};
use std::path::{Path, PathBuf};
use store::suite::{Author, script};
use store::{EventLog as _, Filter, Store, StoreError, ThreadTable as _};
use timeline::Seq;

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// The index of the log can't be made here, whoever asks.
#[cfg(unix)]
fn without_index(path: &Path) {
    std::os::unix::fs::symlink("/nowhere/shm", beside(path, "-shm")).unwrap();
}

async fn assert_readable(path: &Path, author: &Author) {
    let store = SqliteStore::open(path, &read_only()).unwrap();
    let row = store.row(&author.thread).await.unwrap();
    assert_eq!(row.tail, author.tail);
    let log = store
        .read(&author.thread, Seq::ZERO, 10_000, Filter::All)
        .await
        .unwrap();
    assert_eq!(log.len() as u64, author.tail.0);
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
    store.close().await.unwrap();
}

#[tokio::test]
#[cfg(unix)]
async fn a_store_is_read_where_no_index_can_be_made() {
    let (_directory, path) = place();
    let store = open(&path);
    let author = written(&store, "t", script()).await;
    store.close().await.unwrap();
    drop(store);
    assert!(!beside(&path, "-wal").exists());
    without_index(&path);
    assert_readable(&path, &author).await;
}

#[tokio::test]
#[cfg(unix)]
async fn a_log_is_applied_where_no_index_can_be_made() {
    let (directory, path) = place();
    let store = open(&path);
    let author = written(&store, "t", script()).await;
    // As a killed process leaves it.
    let copy = directory.path().join("a copy & more?.db");
    std::fs::copy(&path, &copy).unwrap();
    std::fs::copy(beside(&path, "-wal"), beside(&copy, "-wal")).unwrap();
    without_index(&copy);
    let before = std::fs::read(beside(&copy, "-wal")).unwrap();
    assert!(!before.is_empty());
    assert_readable(&copy, &author).await;
    assert_eq!(std::fs::read(beside(&copy, "-wal")).unwrap(), before);
}

#[tokio::test]
async fn a_log_without_its_database_is_refused() {
    let (directory, path) = place();
    let store = open(&path);
    written(&store, "t", script()).await;
    for is_empty in [false, true] {
        let lost = directory.path().join(format!("lost-{is_empty}.db"));
        std::fs::copy(beside(&path, "-wal"), beside(&lost, "-wal")).unwrap();
        if is_empty {
            std::fs::write(&lost, "").unwrap();
        }
        let before = std::fs::read(beside(&lost, "-wal")).unwrap();
        for options in [SqliteOptions::default(), read_only()] {
            let refused = SqliteStore::open(&lost, &options);
            let Err(error @ StoreError::OrphanedLog { .. }) = refused else {
                unreachable!("{refused:?}");
            };
            assert!(error.to_string().contains("put the database back"));
        }
        assert_eq!(std::fs::read(beside(&lost, "-wal")).unwrap(), before);
        assert_eq!(lost.exists(), is_empty);
    }
}

#[tokio::test]
async fn an_empty_log_without_a_database_is_a_new_store() {
    let (_directory, path) = place();
    std::fs::write(beside(&path, "-wal"), "").unwrap();
    let store = open(&path);
    let author = written(&store, "t", script()).await;
    assert_eq!(store.row(&author.thread).await.unwrap().tail, author.tail);
}
