//! What is the SQLite store's own about objects: their rows, their file, what looking it over finds.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "older/version_9.rs"]
mod version_9;

use jiff::Timestamp;
use loomline_stores::Upkeep as _;
use loomline_stores::{OpenMode, SqliteOptions, SqliteStore};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::objects::{NewObject, ObjectPage};
use store::{Store, StoreError, TenantId, ThreadTable as _};
use tempfile::TempDir;
use version_9::{WITHOUT_V7, WITHOUT_V8, write_version_9};

fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("loomline.db");
    (directory, path)
}

fn open(path: &Path) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(path, &SqliteOptions::default()).unwrap())
}

fn file(id: &str, content: &[u8]) -> NewObject {
    NewObject {
        kind: "file".into(),
        id: id.into(),
        created_at: Timestamp::UNIX_EPOCH,
        json: "{}".into(),
        content: Some(content.to_vec()),
        thread: None,
        is_limited: true,
    }
}

async fn put(store: &SqliteStore, tenant: &str, object: NewObject) {
    let tenant = TenantId::from(tenant);
    store.objects().put(&tenant, object).await.unwrap();
}

fn n_contents(path: &Path) -> i64 {
    let conn = Connection::open(path).unwrap();
    let sql = "SELECT count(*) FROM tenant_contents";
    conn.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn a_tenant_has_a_content_once_and_it_goes_with_the_last_object() {
    let (_directory, path) = place();
    let store = open(&path);
    for (tenant, id) in [("acme", "a"), ("acme", "b"), ("globex", "a")] {
        put(&store, tenant, file(id, b"shared")).await;
    }
    assert_eq!(n_contents(&path), 2);
    put(&store, "acme", file("a", b"its own")).await;
    assert_eq!(n_contents(&path), 3);
    let acme = "acme".into();
    store
        .objects()
        .delete(&acme, "file", "b", None)
        .await
        .unwrap();
    assert_eq!(n_contents(&path), 2);
    store
        .objects()
        .delete(&acme, "file", "a", None)
        .await
        .unwrap();
    assert_eq!(n_contents(&path), 1);
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

// Takes back what versions 5 and 6 have made.
const WITHOUT_V5: &str = "
    DROP INDEX thread_recent;
    ALTER TABLE thread_threads DROP COLUMN change;
    CREATE INDEX thread_recent ON thread_threads (tenant, updated_at, id);
    PRAGMA foreign_keys=OFF;
    DROP INDEX tenant_objects_thread;
    ALTER TABLE tenant_objects DROP COLUMN thread_no;
    PRAGMA user_version=4;";

// A thread of the tenant `other`.
const THREAD: &str = "0b9c7a2e-5f0e-7c3a-8f66-1d2e3c4b5a01";
const GONE: &str = "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5062";

/// What servers have kept beside a thread since before stores knew that it lies there: kind and id.
fn beside(thread: &str) -> [(String, String); 4] {
    let response = format!("resp_{}{}", thread.replace('-', ""), "0".repeat(32));
    [
        ("aitp.desk".to_owned(), thread.to_owned()),
        (format!("threads.notes:{thread}"), "a note".to_owned()),
        (format!("threads.attached:{thread}"), "bytes".to_owned()),
        ("responses.deleted".to_owned(), response),
    ]
}

#[tokio::test]
async fn in_a_store_of_version_4_what_lies_beside_a_thread_is_found_and_the_rest_swept() {
    let (_directory, path) = place();
    write_version_9(&path, &[WITHOUT_V8, WITHOUT_V7, WITHOUT_V5].concat());
    let conn = Connection::open(&path).unwrap();
    let put = |tenant: &str, kind: &str, id: &str| {
        let sql = "INSERT INTO tenant_objects (tenant, kind, id, created_at, json) VALUES (?1, ?2, ?3, 0, '{}')";
        conn.execute(sql, [tenant, kind, id]).unwrap();
    };
    for (tenant, thread) in [("other", THREAD), ("other", GONE), ("globex", THREAD)] {
        for (kind, id) in beside(thread) {
            put(tenant, &kind, &id);
        }
    }
    put("other", "file", THREAD);

    let store = open(&path);

    let there = async |tenant: &str, thread| {
        let mut n_there = 0;
        for (kind, id) in beside(thread) {
            let id = if id == "bytes" { "1" } else { &id };
            let found = store.objects().get(&tenant.into(), &kind, id).await;
            n_there += usize::from(found.unwrap().is_some());
        }
        n_there
    };
    assert_eq!(there("other", THREAD).await, 4);
    assert_eq!(there("other", GONE).await, 0);
    assert_eq!(there("globex", THREAD).await, 0);
    let other = "other".into();
    store.delete(&other, &THREAD.into(), None).await.unwrap();
    assert_eq!(there("other", THREAD).await, 0);
    let files = store.objects().get(&other, "file", THREAD).await.unwrap();
    assert!(files.is_some(), "it lies beside no thread");
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn check_finds_a_content_that_is_nobodys_or_another() {
    let (_directory, path) = place();
    let store = open(&path);
    for id in ["a", "b", "c"] {
        put(&store, "acme", file(id, id.as_bytes())).await;
    }
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch(
        "PRAGMA foreign_keys=OFF;
         DELETE FROM tenant_objects WHERE id = 'a';
         UPDATE tenant_contents SET content = x'00' WHERE no = 2;
         DELETE FROM tenant_contents WHERE no = 3;",
    )
    .unwrap();
    let found = store.check().await.unwrap();
    assert_eq!(found.len(), 4, "{found:?}");
    for part in [
        "file c is not what was written",
        "belongs to no object",
        "its hash is another",
        "tenant_objects",
    ] {
        assert!(found.iter().any(|line| line.contains(part)), "{found:?}");
    }
}

#[tokio::test]
async fn rebuilding_the_tables_leaves_objects_alone() {
    let (_directory, path) = place();
    let store = open(&path);
    put(&store, "acme", file("a", b"x")).await;
    store.rebuild_tables().await.unwrap();
    let acme = "acme".into();
    let found = store.objects().content(&acme, "file", "a").await.unwrap();
    assert_eq!(found.as_deref(), Some(&b"x"[..]));
}

#[tokio::test]
async fn a_store_that_is_open_for_reading_shows_objects_and_takes_none() {
    let (_directory, path) = place();
    let served = open(&path);
    put(&served, "acme", file("a", b"x")).await;
    let options = SqliteOptions {
        mode: OpenMode::ReadOnly,
        ..SqliteOptions::default()
    };
    let looking = SqliteStore::open(&path, &options).unwrap();
    let acme = "acme".into();
    let page = ObjectPage {
        limit: 9,
        ..ObjectPage::default()
    };
    let listed = looking.objects().list(&acme, "file", page).await.unwrap();
    assert_eq!(listed.len(), 1);
    let refused = [
        looking.objects().put(&acme, file("b", b"y")).await.err(),
        looking
            .objects()
            .delete(&acme, "file", "a", None)
            .await
            .err(),
    ];
    for error in refused {
        assert!(matches!(error, Some(StoreError::InUse(_))), "{error:?}");
    }
}
