//! Files that other versions of the program have written.

use super::{dump, open, place, read_only, written};
use loomline_stores::{SqliteOptions, SqliteStore};
use rusqlite::Connection;
use serde_json::json;
use store::objects::NewObject;
use store::suite::script;
use store::suite::script::script_of_answers;
use store::{EventLog as _, Store, StoreError, ThreadRows, ThreadTable as _};
use timeline::{Command, NewItem};

#[tokio::test]
async fn a_store_of_a_newer_program_is_refused_by_version() {
    let (_directory, path) = place();
    open(&path).close().await.unwrap();
    Connection::open(&path)
        .unwrap()
        .execute_batch("PRAGMA user_version=99")
        .unwrap();
    for options in [SqliteOptions::default(), read_only()] {
        let refused = SqliteStore::open(&path, &options);
        assert!(
            matches!(
                refused,
                Err(StoreError::TooNew {
                    found: 99,
                    known: 9
                })
            ),
            "{refused:?}"
        );
    }
}

// Takes back what versions 8 and 9 have made.
pub(crate) const WITHOUT_V8: &str = "
    DROP TABLE thread_waits;
    DROP TABLE thread_words;
    ALTER TABLE thread_parts DROP COLUMN seq;
    PRAGMA user_version=7;";

// Takes back what version 7 has made.
const WITHOUT_V7: &str = "
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

// Takes back what versions 4 and 5 have made.
const WITHOUT_V4: &str = "
    DROP INDEX thread_recent;
    ALTER TABLE thread_threads DROP COLUMN change;
    CREATE INDEX thread_recent ON thread_threads (tenant, updated_at, id);
    DROP TABLE tenant_objects;
    DROP TABLE tenant_contents;
    DROP INDEX thread_removals;
    DROP INDEX thread_items_said;
    ALTER TABLE thread_items DROP COLUMN place;
    ALTER TABLE thread_executions DROP COLUMN end_seq;
    PRAGMA user_version=3;";

#[tokio::test]
async fn a_store_of_version_3_is_as_if_version_4_had_written_it() {
    let (_directory, path) = place();
    let store = open(&path);
    written(&store, "mid-step", script().into_iter().take(15).collect()).await;
    written(&store, "t", script()).await;
    store.close().await.unwrap();
    let before = dump(&path);
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch(WITHOUT_V8).unwrap();
    conn.execute_batch(WITHOUT_V7).unwrap();
    conn.execute_batch(WITHOUT_V4).unwrap();
    drop(conn);
    assert_ne!(dump(&path), before);

    let store = open(&path);

    assert_eq!(dump(&path), before);
    assert_eq!(store.stats().await.unwrap().schema_version, 9);
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_store_of_version_8_knows_what_waits() {
    let (_directory, path) = place();
    let store = open(&path);
    written(&store, "answered", script_of_answers()).await;
    written(
        &store,
        "waits",
        script_of_answers().into_iter().take(4).collect(),
    )
    .await;
    let ask = json!({"$schema": "s", "request_data": {"id": "d"}}).to_string();
    let content = json!([{"type": "input_text", "text": ask}]);
    let item = NewItem::user("i", content.into());
    written(&store, "asks", vec![Command::Record { item }]).await;
    store.close().await.unwrap();
    let before = dump(&path);
    let waits = |rows: &[String]| rows.iter().filter(|row| row.starts_with("waits")).count();
    assert_eq!(waits(&before), 2);
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch("DROP TABLE thread_waits; PRAGMA user_version=8;")
        .unwrap();
    drop(conn);

    let store = open(&path);

    assert_eq!(dump(&path), before);
    store.rebuild_tables().await.unwrap();
    assert_eq!(dump(&path), before);
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_store_of_version_6_has_the_usage_of_its_tenants() {
    let (_directory, path) = place();
    let store = open(&path);
    written(&store, "t", script()).await;
    let file = NewObject {
        kind: "file".to_owned(),
        id: "a".to_owned(),
        created_at: jiff::Timestamp::UNIX_EPOCH,
        json: "{}".to_owned(),
        content: Some(b"12345".to_vec()),
        thread: None,
        is_limited: true,
    };
    store.objects().put(&"acme".into(), file).await.unwrap();
    let before = store.usage().await.unwrap();
    assert!(before.iter().any(|(_, it)| it.files == 1 && it.bytes > 7));
    store.close().await.unwrap();
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch(WITHOUT_V8).unwrap();
    conn.execute_batch(WITHOUT_V7).unwrap();
    drop(conn);

    let store = open(&path);

    assert_eq!(store.usage().await.unwrap(), before);
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn usage_that_is_wrong_is_found_by_the_check() {
    let (_directory, path) = place();
    let store = open(&path);
    written(&store, "t", script()).await;
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch("UPDATE tenant_usage SET threads = 7")
        .unwrap();
    let found = store.check().await.unwrap();
    assert!(
        found.len() == 1 && found[0].contains("and its usage says 7"),
        "{found:?}"
    );
}

#[tokio::test]
async fn a_store_of_version_2_keeps_its_threads_and_takes_checkpoints() {
    let (_directory, path) = place();
    let store = open(&path);
    let author = written(&store, "t", script()).await;
    store.close().await.unwrap();
    Connection::open(&path)
        .unwrap()
        .execute_batch(&format!(
            "{WITHOUT_V8} {WITHOUT_V7} {WITHOUT_V4} DROP TABLE agent_checkpoints; PRAGMA user_version=2"
        ))
        .unwrap();

    let store = open(&path);

    assert_eq!(
        store.head(&author.thread).await.unwrap().state,
        author.state
    );
    let state = r#"{"version":"1.0.0","id":"i","messages":[],"step":4,"metadata":{}}"#;
    let about = crate::checkpoints::row("monday");
    let acme = "acme".into();
    let table = store.checkpoints();
    table
        .save(&acme, about.clone(), state.into())
        .await
        .unwrap();
    assert_eq!(table.load(&acme, "monday").await.unwrap().unwrap(), state);
    let found = table.row(&acme, "monday").await.unwrap();
    assert_eq!(found, Some(about));
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_store_of_version_5_lists_its_threads_as_they_were_listed() {
    let (_directory, path) = place();
    let store = open(&path);
    for name in ["a", "b", "c"] {
        written(&store, name, script()).await;
    }
    store.close().await.unwrap();
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch(WITHOUT_V8).unwrap();
    conn.execute_batch(WITHOUT_V7).unwrap();
    conn.execute_batch(
        "DROP INDEX thread_recent;
         ALTER TABLE thread_threads DROP COLUMN change;
         CREATE INDEX thread_recent ON thread_threads (tenant, updated_at, id);
         UPDATE thread_threads SET updated_at = CASE id WHEN 'a' THEN 2 WHEN 'b' THEN 3 ELSE 1 END;
         PRAGMA user_version=5;",
    )
    .unwrap();
    drop(conn);

    let store = open(&path);

    let page = ThreadRows {
        limit: 9,
        ..ThreadRows::default()
    };
    let rows = store.list(&"acme".into(), page).await.unwrap();
    let listed: Vec<_> = rows
        .iter()
        .map(|row| (row.thread.id.to_string(), row.change))
        .collect();
    let expected = [("b", 3), ("a", 2), ("c", 1)].map(|(id, n)| (id.to_owned(), n));
    assert_eq!(listed, expected);
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}
