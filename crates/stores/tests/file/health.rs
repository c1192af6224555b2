//! What a store says of itself when commits fail or damage is found.

use super::{open, place, written};
use loomline_stores::StoreHealth;
use loomline_stores::Upkeep as _;
use rusqlite::Connection;
use std::io::{Seek, SeekFrom, Write};
use std::time::Duration;
use store::suite::script;
use store::{EventLog as _, Filter, Store, StoreError, ThreadTable as _};
use timeline::Seq;

#[tokio::test]
async fn failing_commits_are_reported_until_one_succeeds() {
    let (_directory, path) = place();
    let store = open(&path);
    let author = written(&store, "t", script()).await;
    assert_eq!(store.health().await, StoreHealth::Healthy);
    // Whoever holds the write lock makes commits fail.
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let failed = store.append(author.append_with(Vec::new())).await;
    assert!(matches!(failed, Err(StoreError::Failed(_))), "{failed:?}");
    let activity = store.activity();
    assert_eq!(activity.health, StoreHealth::CommitsFail);
    assert_eq!((activity.n_failures, activity.n_damaged), (1, 0));
    assert_eq!(store.health().await, StoreHealth::CommitsFail);
    assert!(store.row(&author.thread).await.is_ok(), "reading goes on");
    other.execute_batch("ROLLBACK").unwrap();
    // Nobody has to write anything: a commit is tried.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert_eq!(store.health().await, StoreHealth::Healthy);
    store.append(author.append_with(Vec::new())).await.unwrap();
}

#[tokio::test]
async fn damage_that_is_read_is_reported() {
    let (_directory, path) = place();
    let store = open(&path);
    let author = written(&store, "t", script()).await;
    store.close().await.unwrap();
    drop(store);
    let conn = Connection::open(&path).unwrap();
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'thread_blocks'";
    let page: u64 = conn
        .query_row(sql, [], |row| row.get::<_, i64>(0))
        .unwrap()
        .try_into()
        .unwrap();
    drop(conn);
    let mut file = std::fs::File::options().write(true).open(&path).unwrap();
    file.seek(SeekFrom::Start((page - 1) * 4096)).unwrap();
    file.write_all(&[0xa5; 4096]).unwrap();
    drop(file);

    let store = open(&path);
    assert_eq!(store.health().await, StoreHealth::Healthy);
    let read = store.read(&author.thread, Seq::ZERO, 10, Filter::All).await;
    assert!(matches!(read, Err(StoreError::Damaged(_))), "{read:?}");
    assert_eq!(store.health().await, StoreHealth::Damaged);
    assert_eq!(store.activity().n_damaged, 1);
}
