//! Files that other versions of the program have written.

use super::version_9::{WITHOUT_V7, WITHOUT_V8, write_version_9};
use super::{dump, open, place, read_only, selected, written};
use flate2::read::GzDecoder;
use jiff::Timestamp;
use loomline_stores::{SqliteOptions, SqliteStore};
use rusqlite::Connection;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::Path;
use store::suite::script;
use store::{
    EventLog as _, Filter, LogIndex as _, NewRecord, Store, StoreError, ThreadRows,
    ThreadTable as _, WaitIndex as _,
};
use timeline::{Event, Removed, Seq, ThreadId};

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
                    known: 12
                })
            ),
            "{refused:?}"
        );
    }
}

// Takes back what versions 4 and 5 have made; objects are lost.
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

/// An event of the older store: its thread, its position, its instant and its JSON text.
type OldEvent = (String, u64, Timestamp, String);

fn old_events() -> Vec<OldEvent> {
    let mut lines = String::new();
    let mut packed = GzDecoder::new(&include_bytes!("../older/v9.jsonl.gz")[..]);
    packed.read_to_string(&mut lines).unwrap();
    let lines = lines.lines();
    lines.map(|it| serde_json::from_str(it).unwrap()).collect()
}

#[tokio::test]
async fn a_store_of_version_9_migrates_with_equal_events() {
    let (_directory, path) = place();
    write_version_9(&path, "");
    let store = open(&path);
    let expected = old_events();
    assert!(expected.len() > 900, "{}", expected.len());
    let threads: BTreeSet<_> = expected.iter().map(|event| event.0.clone()).collect();
    let mut found = Vec::new();
    for thread in &threads {
        let mut after = Seq::ZERO;
        loop {
            let id = thread.as_str().into();
            let page = store.read(&id, after, 17, Filter::All).await.unwrap();
            let Some(last) = page.last() else { break };
            after = last.record.seq;
            for it in page {
                let text = it.text.to_string();
                found.push((thread.clone(), it.record.seq.0, it.record.at, text));
            }
        }
    }
    let mut expected = expected;
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
    assert!(path.with_extension("db.backup-v9").exists());
}

#[tokio::test]
async fn a_migrated_store_equals_one_that_was_written_now() {
    let (_directory, path) = place();
    write_version_9(&path, "");
    let migrated = open(&path);
    let (_other_directory, other) = place();
    let written = open(&other);
    let mut logs: BTreeMap<String, Vec<NewRecord>> = BTreeMap::new();
    for (thread, _, at, text) in old_events() {
        let event = Event::decode(&text).unwrap();
        let records = logs.entry(thread).or_default();
        records.push(NewRecord::new(at, event).unwrap());
    }
    // Forks are written after what they are forked from.
    let mut logs: Vec<_> = logs.into_iter().collect();
    logs.sort_by_key(|(id, _)| usize::from(id.starts_with("fork")) * id.len());
    for (id, records) in logs {
        let id: ThreadId = id.as_str().into();
        let tenant = migrated.row(&id).await.unwrap().tenant;
        written
            .get_or_create(&tenant, records, None, None)
            .await
            .unwrap();
        let [ours, theirs] = [&migrated, &written];
        let [ours, theirs] = [ours.head(&id).await, theirs.head(&id).await].map(Result::unwrap);
        assert_eq!((ours.tail, ours.last_at), (theirs.tail, theirs.last_at));
        assert_eq!(ours.state, theirs.state, "{id}");
    }
    let texts = |path: &Path| {
        let sql = "SELECT t.id, s.* FROM thread_trace_spans s JOIN thread_threads t ON t.no = s.thread_no";
        let mut rows: Vec<_> = selected(path, "spans", sql);
        for table in ["contexts", "items", "executions", "steps", "parts"] {
            let sql = format!(
                "SELECT t.id, x.* FROM thread_{table}_text x JOIN thread_threads t ON t.no = x.thread_no"
            );
            rows.append(&mut selected(path, table, &sql));
        }
        // The numbers of the threads are others.
        let without_number = |row: String| {
            let (head, rest) = row.split_once(", Integer(").unwrap();
            let (_, tail) = rest.split_once(')').unwrap();
            format!("{head}{tail}")
        };
        let mut rows: Vec<_> = rows.into_iter().map(without_number).collect();
        rows.sort();
        rows
    };
    let rows = texts(&path);
    assert!(rows.len() > 400, "{}", rows.len());
    assert_eq!(rows, texts(&other));
}

#[tokio::test]
async fn a_store_of_version_9_keeps_what_is_beside_its_logs() {
    let (_directory, path) = place();
    write_version_9(&path, "");
    let store = open(&path);
    let acme = "acme".into();
    let row = store.find(&acme, "told").await.unwrap();
    assert_eq!(row.thread.title.as_deref(), Some("A title with words"));
    assert_eq!(row.thread.metadata.unwrap().text(), r#"{"k":1.0}"#);
    let answer = store.answer(&row.thread.id, "once").await.unwrap();
    assert_eq!(answer.as_deref(), Some("stored"));
    let file = store.objects().content(&acme, "notes", "n1").await.unwrap();
    assert_eq!(file.as_deref(), Some(&b"content of a file"[..]));
    assert!(
        store
            .checkpoints()
            .load(&acme, "monday")
            .await
            .unwrap()
            .is_some()
    );
    let removed = vec![Removed::Item("a".into())];
    let removals = store.removals(&row.thread.id, removed).await.unwrap();
    assert_eq!(removals.len(), 1);
    let page = store::WaitingRows {
        limit: 9,
        ..Default::default()
    };
    let waiting = store.waiting(&acme, page).await.unwrap();
    let ids: Vec<_> = waiting.iter().map(|it| it.row.thread.id.as_str()).collect();
    assert_eq!(
        ids,
        ["waits", "asks", "fork", "fork-of-fork", "fork-that-waits"]
    );
    assert!(waiting[0].calls_since.is_some() && waiting[1].may_ask);
    let usage = store.usage().await.unwrap();
    assert!(usage.iter().all(|(_, it)| it.bytes > 1000), "{usage:?}");
}

#[tokio::test]
async fn stores_of_versions_3_to_8_become_the_same() {
    let (_directory, path) = place();
    write_version_9(&path, "");
    drop(open(&path));
    let expected = dump(&path);
    let older = [
        (
            "v8",
            "DROP TABLE thread_waits; PRAGMA user_version=8;".to_owned(),
        ),
        ("v7", WITHOUT_V8.to_owned()),
        ("v6", [WITHOUT_V8, WITHOUT_V7].concat()),
        ("v3", [WITHOUT_V8, WITHOUT_V7, WITHOUT_V4].concat()),
    ];
    for (version, sql) in older {
        let (_directory, path) = place();
        write_version_9(&path, &sql);
        let store = open(&path);
        let mut found = dump(&path);
        let mut expected = expected.clone();
        if version == "v3" {
            // It had another order of the list.
            found.retain(|row| !row.starts_with("threads"));
            expected.retain(|row| !row.starts_with("threads"));
        }
        assert_eq!(found, expected, "{version}");
        assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_store_of_version_6_has_the_usage_of_its_tenants() {
    let (_directory, path) = place();
    write_version_9(&path, "");
    let before = open(&path).usage().await.unwrap();
    let (_directory, path) = place();
    write_version_9(&path, &[WITHOUT_V8, WITHOUT_V7].concat());

    let store = open(&path);

    assert_eq!(store.usage().await.unwrap(), before);
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
    write_version_9(&path, "");
    let expected = open(&path).head(&"t".into()).await.unwrap();
    let (_directory, path) = place();
    let sql = [
        WITHOUT_V8,
        WITHOUT_V7,
        WITHOUT_V4,
        "DROP TABLE agent_checkpoints; PRAGMA user_version=2;",
    ];
    write_version_9(&path, &sql.concat());

    let store = open(&path);

    let head = store.head(&"t".into()).await.unwrap();
    assert_eq!(head.state, expected.state);
    let state = r#"{"version":"1.0.0","id":"i","messages":[],"step":4,"metadata":{}}"#;
    let about = crate::checkpoints::row("tuesday");
    let acme = "acme".into();
    let table = store.checkpoints();
    table
        .save(&acme, about.clone(), state.into())
        .await
        .unwrap();
    assert_eq!(table.load(&acme, "tuesday").await.unwrap().unwrap(), state);
    let found = table.row(&acme, "tuesday").await.unwrap();
    assert_eq!(found, Some(about));
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_store_of_version_5_lists_its_threads_as_they_were_listed() {
    let (_directory, path) = place();
    let sql = [
        WITHOUT_V8,
        WITHOUT_V7,
        "DROP INDEX thread_recent;
         ALTER TABLE thread_threads DROP COLUMN change;
         CREATE INDEX thread_recent ON thread_threads (tenant, updated_at, id);
         UPDATE thread_threads SET updated_at = CASE id WHEN 't' THEN 2 WHEN 'told' THEN 3 ELSE 1 END;
         PRAGMA user_version=5;",
    ];
    write_version_9(&path, &sql.concat());

    let store = open(&path);

    let page = ThreadRows {
        limit: 2,
        ..ThreadRows::default()
    };
    let rows = store.list(&"acme".into(), page).await.unwrap();
    let listed: Vec<_> = rows.iter().map(|row| row.thread.id.to_string()).collect();
    assert_eq!(listed, ["told", "t"]);
}

#[tokio::test]
async fn a_log_with_a_gap_is_not_migrated() {
    let (_directory, path) = place();
    write_version_9(
        &path,
        "DELETE FROM thread_events WHERE thread_no = 1 AND seq = 5",
    );
    let before = std::fs::read(&path).unwrap();
    let refused = SqliteStore::open(&path, &SqliteOptions::default());
    let Err(StoreError::Damaged(what)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(what, "thread t: event 5 is missing in its log");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}
