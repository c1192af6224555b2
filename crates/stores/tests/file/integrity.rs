//! Damage of a store is found, and never served.

use super::{open, place, written};
use rusqlite::Connection;
use store::suite::script;
use store::{EventLog as _, Filter, StoreError};
use timeline::Seq;

const CHANGES: [(&str, &str); 4] = [
    (
        "body",
        "UPDATE thread_blocks SET body = unhex(replace(hex(body), hex('output_text'), hex('outpux_text')))
         WHERE thread_no = 1 AND instr(body, CAST('output_text' AS BLOB))",
    ),
    (
        "facts",
        "UPDATE thread_blocks SET facts = 0 WHERE thread_no = 1 AND first = 1",
    ),
    (
        "epoch",
        "UPDATE thread_blocks SET epoch = 9 WHERE thread_no = 1 AND first = 1",
    ),
    (
        "sum",
        "UPDATE thread_blocks SET sum = zeroblob(16) WHERE thread_no = 1 AND first = 1",
    ),
];

#[tokio::test]
async fn a_changed_block_is_refused_and_found() {
    for (what, sql) in CHANGES {
        let (_directory, path) = place();
        let store = open(&path);
        let author = written(&store, "t", script()).await;
        written(&store, "other", script()).await;
        let conn = Connection::open(&path).unwrap();
        assert!(conn.execute(sql, []).unwrap() > 0, "{what}");
        let read = store
            .read(&author.thread, Seq::ZERO, 500, Filter::All)
            .await;
        assert!(
            matches!(read, Err(StoreError::Damaged(_))),
            "{what}: {read:?}"
        );
        let found = store.check().await.unwrap();
        assert!(found[0].starts_with("thread t: "), "{what}: {found:?}");
        assert!(
            found[0].ends_with("restore it from a backup"),
            "{what}: {found:?}"
        );
        assert!(
            !found.iter().any(|line| line.starts_with("thread other")),
            "{what}: {found:?}"
        );
    }
}

#[tokio::test]
async fn a_missing_last_block_is_found() {
    let (_directory, path) = place();
    let store = open(&path);
    written(&store, "t", script()).await;
    let conn = Connection::open(&path).unwrap();
    let sql = "DELETE FROM thread_blocks WHERE first = (SELECT max(first) FROM thread_blocks)";
    conn.execute(sql, []).unwrap();
    let found = store.check().await.unwrap();
    assert!(found[0].starts_with("thread t: its log has "), "{found:?}");
}
