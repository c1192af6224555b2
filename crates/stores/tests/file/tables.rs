//! The tables that are derived from the log, and the links that the database holds between them.

use super::{dump, open, place, stored_rows, written};
use jiff::{SignedDuration, Timestamp};
use loomline_stores::Upkeep as _;
use rusqlite::{Connection, ErrorCode};
use std::sync::Arc;
use store::suite::script::{item, start};
use store::suite::{Author, rolled, script};
use store::{EventLog as _, Store, StoreError, ThreadTable as _};
use timeline::{Command, Event, NewThread, Seq, Trigger};

#[tokio::test]
async fn rebuilding_the_tables_changes_nothing() {
    let (_directory, path) = place();
    let store = open(&path);
    for name in ["t1", "t2", "t3"] {
        written(&store, name, script()).await;
    }
    written(&store, "mid-step", script().into_iter().take(15).collect()).await;
    let before = stored_rows(&path);
    assert!(before.len() > 150, "{}", before.len());

    store.rebuild_tables().await.unwrap();

    assert_eq!(stored_rows(&path), before);
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

/// Those of the commands that a thread accepts, with so many of them in one append.
async fn appended(store: &Arc<dyn Store>, name: &str, commands: &[Command], together: usize) {
    let thread = NewThread::new(name, Some(name));
    let mut author = Author::new(store, "acme", thread).await;
    let mut state = author.state.clone();
    let mut at = Timestamp::UNIX_EPOCH;
    for commands in commands.chunks(together) {
        let mut append = author.append_with(Vec::new());
        for command in commands {
            let Ok(events) = state.decide(command.clone(), Timestamp::UNIX_EPOCH) else {
                continue;
            };
            for event in &events {
                state.apply(event);
            }
            for mut record in author.append_with(events).records {
                at += SignedDuration::from_secs(1);
                record.at = at;
                append.records.push(record);
            }
        }
        author.append(append).await.unwrap();
    }
}

#[tokio::test]
async fn rows_of_one_append_are_those_of_many() {
    for seed in 1..=8 {
        let mut commands = rolled(seed, 0..250);
        commands.insert(0, start("first", Trigger::New(item("first"))));
        let mut dumps = Vec::new();
        for together in [1, 2, 3, 7, 50, 251] {
            let (_directory, path) = place();
            let store: Arc<dyn Store> = open(&path);
            appended(&store, "t", &commands, together).await;
            let mut rows = dump(&path);
            // The number of the thread's last change counts its appends.
            rows.retain(|row| !row.starts_with("threads"));
            assert!(rows.len() > 50, "{}", rows.len());
            dumps.push(rows);
        }
        for dump in &dumps {
            assert_eq!(dump, &dumps[0], "seed {seed}");
        }
    }
}

/// Statements that break a link or another rule of the tables.
const BROKEN_LINKS: [(&str, &str); 23] = [
    (
        "a context without a thread",
        "INSERT INTO thread_contexts (thread_no, id, status, created_at) VALUES (9, 'c', 0, 0)",
    ),
    (
        "a second context of a thread",
        "INSERT INTO thread_contexts (thread_no, id, status, created_at) VALUES (2, 'c', 0, 0)",
    ),
    (
        "a context of two threads",
        "UPDATE thread_contexts SET id = 't1-context' WHERE thread_no = 2",
    ),
    (
        "an item without a context",
        "DELETE FROM thread_contexts WHERE thread_no = 1",
    ),
    (
        "an item of another thread's context",
        "UPDATE thread_items SET context_no = 2 WHERE thread_no = 1",
    ),
    (
        "an execution without its trigger",
        "UPDATE thread_executions SET trigger_seq = 9999",
    ),
    (
        "an execution without its reaction",
        "UPDATE thread_executions SET reaction_seq = 9999",
    ),
    (
        "an execution of another thread's context",
        "UPDATE thread_executions SET context_no = 2 WHERE id = 'four-execution'",
    ),
    (
        "an execution of another thread",
        "UPDATE thread_executions SET thread_no = 2, context_no = 2 WHERE id = 'four-execution'",
    ),
    (
        "a deleted thread that has a context",
        "DELETE FROM thread_threads WHERE no = 2",
    ),
    (
        "an item without a thread",
        "UPDATE thread_items SET thread_no = 9, context_no = 9 WHERE id = 'kept-0'",
    ),
    (
        "a deleted trigger that has an execution",
        "DELETE FROM thread_items WHERE id = 'ask-1'",
    ),
    (
        "a deleted reaction that has an execution",
        "DELETE FROM thread_items WHERE id = 'one-reaction'",
    ),
    (
        "a deleted execution that has steps",
        "DELETE FROM thread_executions WHERE id = 'one-execution'",
    ),
    (
        "a part of another thread's step",
        "UPDATE thread_parts SET thread_no = 2",
    ),
    (
        "a step without an execution",
        "UPDATE thread_steps SET execution_seq = 9999 WHERE id = 'two-step-0'",
    ),
    (
        "a step without its item",
        "UPDATE thread_steps SET event_seq = 9999 WHERE id = 'two-step-0'",
    ),
    (
        "a part without a step",
        "INSERT INTO thread_parts
             (thread_no, execution_seq, iteration, idx, seq, block, part_offset, part_length, created_at, updated_at)
         VALUES (1, 9999, 0, 0, 1, 1, 0, 0, 0, 0)",
    ),
    (
        "two running executions",
        "UPDATE thread_executions SET status = 0",
    ),
    (
        "an unknown status",
        "UPDATE thread_steps SET status = 7",
    ),
    (
        "a deleted step that has parts",
        "DELETE FROM thread_steps",
    ),
    (
        "a block without a thread",
        "INSERT INTO thread_blocks (thread_no, first, n, epoch, facts, sum, body)
         VALUES (9, 1, 1, 1, 0, zeroblob(16), x'00')",
    ),
    (
        "two blocks of two writers at one place",
        "INSERT INTO thread_blocks (thread_no, first, n, epoch, facts, sum, body)
         SELECT thread_no, first, n + 1, epoch, facts, sum, body FROM thread_blocks LIMIT 1",
    ),
];

#[tokio::test]
async fn the_links_between_the_tables_are_held_by_the_database() {
    let (_directory, path) = place();
    let store = open(&path);
    written(&store, "t1", script()).await;
    written(&store, "t2", script().into_iter().take(1).collect()).await;
    store.close().await.unwrap();
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch("PRAGMA foreign_keys=ON").unwrap();
    for (what, sql) in BROKEN_LINKS {
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
        "DELETE FROM thread_blocks WHERE thread_no = 1 AND first = (
             SELECT max(first) FROM thread_blocks WHERE thread_no = 1 AND first < 20);
         UPDATE thread_threads SET head_seq = head_seq + 1 WHERE no = 3;",
    )
    .unwrap();
    let found = store.check().await.unwrap();
    assert!(found[0].starts_with("thread t1, event "), "{found:?}");
    let expected = "thread t3: where the log of thread t3 ends is not what was written";
    assert!(found[1].starts_with(expected), "{found:?}");
    let expected = "thread t3: its log has 92 events, its row says 93; restore a backup";
    assert_eq!(found[2], expected);
}

#[tokio::test]
async fn check_finds_a_row_that_its_log_does_not_say() {
    let (_directory, path) = place();
    let store = open(&path);
    written(&store, "t", script()).await;
    let conn = Connection::open(&path).unwrap();
    let sql = "UPDATE thread_executions SET end_seq = NULL WHERE id = 'two-execution'";
    conn.execute(sql, []).unwrap();
    let found = store.check().await.unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    let expected = "thread t: row 2 of thread_executions is not what its log says";
    assert!(found[0].starts_with(expected), "{found:?}");
}
