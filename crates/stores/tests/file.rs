//! What is the SQLite store's own: its file, its links, its tables, its traces.
#![cfg(feature = "sqlite")]
#![allow(clippy::unwrap_used, reason = "tests")]

use loomline_stores::{OpenMode, SqliteOptions, SqliteStore};
use runtime::checkpoint::CheckpointMetadata;
use runtime::suite::{Author, script};
use runtime::{Filter, KeyError, Page, Store, StoreError};
use rusqlite::types::Value;
use rusqlite::{Connection, ErrorCode};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::TempDir;
use timeline::{Command, Event, ExecutionId, NewItem, NewThread, Seq, Trigger};
use tokio::task::JoinSet;

fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("loomline.db");
    (directory, path)
}

fn open(path: &Path) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(path, &SqliteOptions::default()).unwrap())
}

fn read_only() -> SqliteOptions {
    SqliteOptions {
        mode: OpenMode::ReadOnly,
        ..SqliteOptions::default()
    }
}

async fn written(store: &Arc<SqliteStore>, name: &str, commands: Vec<Command>) -> Author {
    let store: Arc<dyn Store> = store.clone();
    let mut author = Author::new(&store, "acme", NewThread::new(name, Some(name))).await;
    author.tell_all(commands).await;
    author
}

#[tokio::test]
async fn a_second_process_is_refused_until_the_first_has_closed() {
    let (_directory, path) = place();
    let first = open(&path);
    let second = SqliteStore::open(&path, &SqliteOptions::default());
    assert!(
        matches!(&second, Err(StoreError::InUse(file)) if file.ends_with("loomline.db")),
        "{second:?}"
    );
    first.close().await.unwrap();
    let third = open(&path);
    drop((first, third));
    open(&path);
}

#[tokio::test]
async fn a_served_store_can_be_looked_at_and_not_changed() {
    let (_directory, path) = place();
    let served = open(&path);
    let mut author = written(&served, "t", script()).await;
    let looking = SqliteStore::open(&path, &read_only()).unwrap();

    assert_eq!(looking.row(&author.thread).await.unwrap().tail, author.tail);
    assert!(matches!(
        looking.claim(&author.thread).await,
        Err(StoreError::InUse(_))
    ));
    assert!(matches!(
        looking.append(author.append_with(vec![])).await,
        Err(StoreError::InUse(_))
    ));
    assert!(matches!(
        looking.rebuild_tables().await,
        Err(StoreError::InUse(_))
    ));
    author.tell_all([]).await;
    assert!(SqliteStore::open(&path.with_extension("none"), &read_only()).is_err());
}

// A process loses its locks on a file with the first of its handles on it that it closes, whichever that is; then
// the next program that closes the file, a shell of SQLite or a copier, takes the write-ahead log away under us.
#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_store_that_is_open_is_locked_against_strangers() {
    use std::os::unix::fs::MetadataExt;
    let (_directory, path) = place();
    let served = open(&path);
    let looking = SqliteStore::open(&path, &read_only()).unwrap();
    written(&served, "t", script()).await;
    let inode = std::fs::metadata(&path).unwrap().ino();
    let wanted = format!("POSIX ADVISORY READ {} {inode}", std::process::id());
    let locks = std::fs::read_to_string("/proc/locks").unwrap();
    let lock = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().skip(1).take(5).collect();
        let [kind, how, mode, process, file] = fields.try_into().ok()?;
        let inode = file.rsplit(':').next()?;
        Some(format!("{kind} {how} {mode} {process} {inode}"))
    };
    let found: Vec<_> = locks.lines().filter_map(lock).collect();
    assert!(found.contains(&wanted), "{wanted}: {locks}");
    drop((served, looking));
}

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
                    known: 5
                })
            ),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused() {
    let (_directory, path) = place();
    std::fs::write(&path, "dear diary, ".repeat(1000)).unwrap();
    let refused = SqliteStore::open(&path, &SqliteOptions::default());
    assert!(
        matches!(refused, Err(StoreError::Key(KeyError::Missing))),
        "{refused:?}"
    );
}

#[tokio::test]
#[cfg(not(feature = "encryption"))]
async fn a_key_is_refused_by_a_program_without_encryption() {
    let (_directory, path) = place();
    let options = SqliteOptions {
        key: Some("5a".repeat(32).parse().unwrap()),
        ..SqliteOptions::default()
    };
    let refused = SqliteStore::open(&path, &options);
    assert!(
        matches!(refused, Err(StoreError::Key(KeyError::Unsupported))),
        "{refused:?}"
    );
    open(&path).close().await.unwrap();
    let refused = loomline_stores::rekey(&path, None, options.key.as_ref());
    assert!(
        matches!(refused, Err(StoreError::Key(KeyError::Unsupported))),
        "{refused:?}"
    );
    open(&path);
}

#[tokio::test]
async fn rebuilding_the_tables_changes_nothing() {
    let (_directory, path) = place();
    let store = open(&path);
    for name in ["t1", "t2", "t3"] {
        written(&store, name, script()).await;
    }
    written(&store, "mid-step", script().into_iter().take(15).collect()).await;
    let before = dump(&path);
    assert!(before.len() > 150, "{}", before.len());

    store.rebuild_tables().await.unwrap();

    assert_eq!(dump(&path), before);
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

// Every row of the nine tables, as text.
fn dump(path: &Path) -> Vec<String> {
    let conn = Connection::open(path).unwrap();
    let tables = [
        "threads",
        "contexts",
        "items",
        "executions",
        "steps",
        "parts",
        "trace_events",
        "trace_runs",
        "trace_spans",
    ];
    let mut rows = Vec::new();
    for table in tables {
        let mut select = conn
            .prepare(&format!("SELECT * FROM thread_{table}"))
            .unwrap();
        let n_columns = select.column_count();
        let found = select.query_map([], |row| {
            (0..n_columns)
                .map(|column| row.get::<_, Value>(column))
                .collect::<Result<Vec<_>, _>>()
        });
        let mut found: Vec<_> = found
            .unwrap()
            .map(|row| format!("{table} {:?}", row.unwrap()))
            .collect();
        found.sort();
        rows.append(&mut found);
    }
    rows
}

#[tokio::test]
async fn the_links_between_the_tables_are_held_by_the_database() {
    let (_directory, path) = place();
    let store = open(&path);
    written(&store, "t1", script()).await;
    written(&store, "t2", script().into_iter().take(1).collect()).await;
    store.close().await.unwrap();
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch("PRAGMA foreign_keys=ON").unwrap();
    let refused = [
        (
            "a context without a thread",
            "INSERT INTO thread_contexts (id, thread_no, status, created_at) VALUES ('c', 9, 'open', 0)",
        ),
        (
            "a context of two threads",
            "INSERT INTO thread_contexts (id, thread_no, status, created_at) VALUES ('t1-context', 2, 'open', 0)",
        ),
        (
            "an item without a context",
            "UPDATE thread_items SET context_id = 'none'",
        ),
        (
            "an item of another thread's context",
            "UPDATE thread_items SET context_id = 't1-context' WHERE thread_no = 2",
        ),
        (
            "an execution without its trigger",
            "UPDATE thread_executions SET trigger_item_id = 'none'",
        ),
        (
            "an execution without its reaction",
            "UPDATE thread_executions SET reaction_item_id = 'none'",
        ),
        (
            "an execution of another thread",
            "UPDATE thread_executions SET thread_no = 2 WHERE id = 'four-execution'",
        ),
        (
            "a step without an execution",
            "UPDATE thread_steps SET execution_id = 'none' WHERE id = 'one-step-0'",
        ),
        (
            "a part without a step",
            "INSERT INTO thread_parts VALUES (1, 'none', 0, 'none:0', 'output_text', '{}', 0, 0)",
        ),
        (
            "a part under another key",
            "UPDATE thread_parts SET key = 'one-step-0:7' WHERE idx = 0",
        ),
        (
            "two running executions",
            "UPDATE thread_executions SET status = 'executing'",
        ),
        (
            "a status that is none",
            "UPDATE thread_steps SET status = 'walking'",
        ),
        (
            "a step that is gone from under its parts",
            "DELETE FROM thread_steps",
        ),
        (
            "an event without a thread",
            "INSERT INTO thread_events (thread_no, seq, at, kind, payload) VALUES (9, 1, 0, 0, '{}')",
        ),
        (
            "two events at one place",
            "INSERT INTO thread_events (thread_no, seq, at, kind, payload) VALUES (1, 1, 0, 0, '{}')",
        ),
    ];
    for (what, sql) in refused {
        let error = conn.execute(sql, []).expect_err(what);
        assert_eq!(
            error.sqlite_error_code(),
            Some(ErrorCode::ConstraintViolation),
            "{what}: {error}"
        );
    }
}

#[tokio::test]
async fn an_event_whose_links_do_not_hold_is_refused_and_leaves_nothing() {
    let (_directory, path) = place();
    let store = open(&path);
    let author = written(&store, "t", vec![]).await;
    let part = Event::PartCreated {
        part_key: "none:0".into(),
        step_id: "none".into(),
        idx: 0,
        part: serde_json::json!({"type": "output_text", "text": "lost"}).into(),
    };
    let refused = store.append(author.append_with(vec![part])).await;
    assert!(
        matches!(refused, Err(StoreError::Damaged(_))),
        "{refused:?}"
    );
    assert_eq!(store.row(&author.thread).await.unwrap().tail, Seq(2));
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn check_finds_a_gap_and_a_wrong_tail() {
    let (_directory, path) = place();
    let store = open(&path);
    for name in ["t1", "t2", "t3"] {
        written(&store, name, script()).await;
    }
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch(
        "DELETE FROM thread_events WHERE thread_no = 1 AND seq = 5;
         UPDATE thread_threads SET head_seq = head_seq + 1 WHERE no = 3;",
    )
    .unwrap();
    let found = store.check().await.unwrap();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found.iter().any(|line| line.starts_with("thread t1:")),
        "{found:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_of_the_files_in_mid_run_has_every_acknowledged_append() {
    let (directory, path) = place();
    let store = open(&path);
    let acknowledged: Arc<Vec<AtomicU64>> = Arc::new((0..8).map(|_| AtomicU64::new(0)).collect());
    let mut writers = JoinSet::new();
    for n in 0..8 {
        let (store, acknowledged) = (store.clone(), acknowledged.clone());
        writers.spawn(async move {
            let mut author = written(&store, &format!("t{n}"), vec![]).await;
            for i in 0..200 {
                let content = serde_json::json!([{"type": "input_text", "text": "x".repeat(300)}]);
                let item = NewItem::user(format!("i{i}"), content.into());
                author.tell(Command::Record { item }).await;
                acknowledged[n].store(author.tail.0, Ordering::SeqCst);
            }
        });
    }
    let mut n_known = 0;
    for round in 0..5 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        let known: Vec<u64> = acknowledged
            .iter()
            .map(|tail| tail.load(Ordering::SeqCst))
            .collect();
        n_known = known.iter().sum();
        let copy = directory.path().join(format!("copy-{round}"));
        std::fs::copy(&path, &copy).unwrap();
        std::fs::copy(wal(&path), wal(&copy)).unwrap();
        assert_holds(&copy, &known).await;
        // A write-ahead log that ends anywhere: less is there, nothing is broken.
        let torn = directory.path().join(format!("torn-{round}"));
        std::fs::copy(&path, &torn).unwrap();
        let bytes = std::fs::read(wal(&path)).unwrap();
        std::fs::write(wal(&torn), &bytes[..bytes.len() / 5 * round]).unwrap();
        assert_holds(&torn, &[]).await;
    }
    assert!(n_known > 0 && !writers.is_empty());
    writers.join_all().await;
}

fn wal(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

async fn assert_holds(path: &Path, known: &[u64]) {
    let store = open(path);
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
    let all = Page {
        limit: 100,
        ..Page::default()
    };
    for row in store.list(&"acme".into(), all).await.unwrap() {
        let log = store
            .read(&row.thread.id, Seq::ZERO, 10_000, Filter::All)
            .await
            .unwrap();
        assert_eq!(
            timeline::verify(log.iter().map(|logged| &logged.record)),
            Ok(())
        );
        assert_eq!(log.len() as u64, row.tail.0);
    }
    for (n, tail) in known.iter().enumerate().filter(|(_, tail)| **tail > 0) {
        let row = store.row(&format!("t{n}").into()).await.unwrap();
        assert!(
            row.tail.0 >= *tail,
            "{} of {tail} acknowledged events",
            row.tail
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_of_many_writers_share_commits() {
    let (_directory, path) = place();
    let store = open(&path);
    let mut writers = JoinSet::new();
    for n in 0..64 {
        let store = store.clone();
        writers.spawn(async move { written(&store, &format!("t{n}"), script()).await });
    }
    writers.join_all().await;
    let stats = store.stats().await.unwrap();
    let activity = store.activity();
    assert!(
        activity.n_requests >= 64 * 30 && activity.n_commits < activity.n_requests,
        "{activity:?}"
    );
    assert!(activity.file_bytes > 0 && activity.wal_bytes > stats.event_bytes);
    assert_eq!((stats.n_threads, stats.schema_version), (64, 5));
}

#[tokio::test]
async fn an_execution_leaves_a_run_its_spans_and_what_the_model_used() {
    let (_directory, path) = place();
    let store = open(&path);
    written(&store, "t", script()).await;
    let conn = Connection::open(&path).unwrap();
    let lines = |sql: &str| {
        let mut select = conn.prepare(sql).unwrap();
        let rows = select.query_map([], |row| row.get::<_, String>(0)).unwrap();
        rows.map(Result::unwrap).collect::<Vec<_>>()
    };
    assert_eq!(
        lines(
            "SELECT format('%s %s %s %d steps, %d+%d tokens, %d s', id, name, status, n_steps,
                           input_tokens, output_tokens, duration / 1000000000)
             FROM thread_trace_runs ORDER BY started_at"
        ),
        [
            "one-execution demo ok 3 steps, 24+14 tokens, 16 s",
            "two-execution demo error 1 steps, 12+7 tokens, 3 s",
            "three-execution demo error 1 steps, 0+0 tokens, 2 s",
            "four-execution demo ok 1 steps, 0+0 tokens, 2 s",
        ]
    );
    assert_eq!(
        lines(
            "SELECT format('%s %s of %s: %s %s, %d s', kind, id, parent_id, name, status, duration / 1000000000)
             FROM thread_trace_spans WHERE run_id IN ('one-execution', 'two-execution') AND kind = 'tool'
             ORDER BY started_at"
        ),
        [
            "tool one-step-0:c1 of one-step-0: weather ok, 2 s",
            "tool two-step-0:c1 of two-step-0: weather error, 1 s",
        ]
    );
    assert_eq!(
        lines("SELECT id FROM thread_trace_spans WHERE ended_at IS NULL"),
        [""; 0]
    );
    let models = "SELECT model || input_tokens FROM thread_trace_events WHERE name = 'llm'";
    assert_eq!(lines(models), ["m12", "m12", "m12"]);
}

#[tokio::test]
async fn odd_data_in_a_trace_does_not_fail_an_append() {
    let (_directory, path) = place();
    let store = open(&path);
    let start = Command::Start {
        trigger: Trigger::New(NewItem::user("ask", serde_json::json!([]).into())),
        run: Some(serde_json::json!({"agent": {"name": 7}}).into()),
        execution_id: "x".into(),
        reaction_item_id: "r".into(),
        step_id: "s".into(),
        workflow_run_id: None,
    };
    let mut author = written(&store, "t", vec![start]).await;
    let responses = [
        r#"{"usage":{"inputTokens":18446744073709551615,"outputTokens":-1},"model":[]}"#,
        r#"{"usage":"none","model":null}"#,
        "[]",
        "1e999",
    ];
    for data in responses {
        let data = timeline::Payload::from_text(data.to_owned()).ok();
        for chunk_type in ["data-step-response", "data-tool-started", "data-step-reset"] {
            // Commands write no such thing; a log from elsewhere may hold it.
            let odd = Event::ChunkEmitted {
                chunk_type: chunk_type.into(),
                context_id: "c".into(),
                execution_id: Some("e".into()),
                step_id: Some("s".into()),
                data: data.clone(),
            };
            let append = author.append_with(vec![odd]);
            author.append(append).await.unwrap();
        }
    }
    let stray = Event::ChunkEmitted {
        chunk_type: "data-step-response".into(),
        context_id: "nowhere".into(),
        execution_id: Some(ExecutionId::from("nobody")),
        step_id: Some("none".into()),
        data: None,
    };
    let append = author.append_with(vec![stray]);
    author.append(append).await.unwrap();
    let part = serde_json::json!({"type": "tool-x", "toolCallId": "c", "state": "output-denied"});
    author
        .tell(Command::PutPart {
            idx: 0,
            part: part.into(),
        })
        .await;
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

// Takes back what version 4 has made, and those after it.
const WITHOUT_V4: &str = "
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
    written(&store, "t", script()).await;
    written(&store, "mid-step", script().into_iter().take(15).collect()).await;
    store.close().await.unwrap();
    let before = dump(&path);
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch(WITHOUT_V4).unwrap();
    drop(conn);
    assert_ne!(dump(&path), before);

    let store = open(&path);

    assert_eq!(dump(&path), before);
    assert_eq!(store.stats().await.unwrap().schema_version, 5);
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn check_finds_an_execution_whose_end_is_not_known() {
    let (_directory, path) = place();
    let store = open(&path);
    written(&store, "t", script()).await;
    let conn = Connection::open(&path).unwrap();
    let sql = "UPDATE thread_executions SET end_seq = NULL WHERE id = 'two-execution'";
    conn.execute(sql, []).unwrap();
    let found = store.check().await.unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("execution two-execution of thread t"));
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
            "{WITHOUT_V4} DROP TABLE agent_checkpoints; PRAGMA user_version=2"
        ))
        .unwrap();

    let store = open(&path);

    assert_eq!(
        store.head(&author.thread).await.unwrap().state,
        author.state
    );
    let state = r#"{"version":"1.0.0","id":"i","messages":[],"step":4,"metadata":{}}"#;
    let about = CheckpointMetadata::of("monday", state).unwrap();
    let acme = "acme".into();
    let table = store.checkpoints();
    table
        .save(&acme, about.clone(), state.into())
        .await
        .unwrap();
    assert_eq!(table.load(&acme, "monday").await.unwrap().unwrap(), state);
    let found = table.load_metadata(&acme, "monday").await.unwrap();
    assert_eq!(found, Some(about));
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn rebuilding_the_tables_leaves_checkpoints_alone() {
    let (_directory, path) = place();
    let store = open(&path);
    let state = r#"{"version":"1.0.0","id":"i","messages":[],"step":4,"metadata":{}}"#;
    let about = CheckpointMetadata::of("s", state).unwrap();
    let acme = "acme".into();
    let table = store.checkpoints();
    table.save(&acme, about, state.into()).await.unwrap();
    store.rebuild_tables().await.unwrap();
    assert_eq!(table.sessions(&acme).await.unwrap(), ["s"]);
}

#[tokio::test]
async fn a_store_that_is_open_for_reading_shows_checkpoints_and_takes_none() {
    let (_directory, path) = place();
    let served = open(&path);
    let state = r#"{"version":"1.0.0","id":"i","messages":[],"step":4,"metadata":{}}"#;
    let about = CheckpointMetadata::of("s", state).unwrap();
    let acme = "acme".into();
    let table = served.checkpoints();
    table
        .save(&acme, about.clone(), state.into())
        .await
        .unwrap();
    let looking = SqliteStore::open(&path, &read_only()).unwrap();
    let table = looking.checkpoints();
    assert_eq!(table.sessions(&acme).await.unwrap(), ["s"]);
    let refused = table.save(&acme, about, state.into()).await;
    assert!(matches!(refused, Err(StoreError::InUse(_))), "{refused:?}");
}
