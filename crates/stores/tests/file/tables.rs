//! The tables that are derived from the log, and the links that the database holds between them.

use super::{dump, open, place, written};
use rusqlite::{Connection, ErrorCode};
use store::suite::script;
use store::{EventLog as _, StoreError, ThreadTable as _};
use timeline::{Event, Seq};

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
