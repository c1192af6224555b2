//! Damage of a store is found, and never served.

use super::{open, place, written};
use jiff::Timestamp;
use loomline_stores::Remedy;
use loomline_stores::Upkeep as _;
use rusqlite::Connection;
use store::objects::NewObject;
use store::suite::script;
use store::suite::script::keep;
use store::{EventLog as _, Filter, Store as _, StoreError, ThreadTable as _, Token};
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
        assert!(
            found[0].starts_with("thread t, event "),
            "{what}: {found:?}"
        );
        assert!(
            found[0].ends_with("; restore a backup"),
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

const ROWS: [(&str, &str); 8] = [
    (
        "title",
        "UPDATE thread_threads SET title = 'other' WHERE no = 1",
    ),
    (
        "tenant",
        "UPDATE thread_threads SET tenant = 'globex' WHERE no = 1",
    ),
    (
        "end",
        "UPDATE thread_threads SET updated_at = 7 WHERE no = 1",
    ),
    ("object", "UPDATE tenant_objects SET json = '[]'"),
    ("content", "UPDATE tenant_contents SET content = x'01'"),
    ("answer", "UPDATE thread_tokens SET answer = 'other'"),
    ("checkpoint", "UPDATE agent_checkpoints SET step = 9"),
    ("state", "UPDATE agent_checkpoints SET state = '{}'"),
];

#[tokio::test]
async fn a_changed_row_is_refused_and_found() {
    for (what, sql) in ROWS {
        let (_directory, path) = place();
        let store = open(&path);
        let mut author = written(&store, "t", vec![]).await;
        let mut append = author.append_of(keep("once"));
        append.token = Some(Token {
            token: "once".into(),
            answer: "the answer".into(),
        });
        author.append(append).await.unwrap();
        let acme = "acme".into();
        let object = NewObject {
            kind: "file".into(),
            id: "a".into(),
            created_at: Timestamp::UNIX_EPOCH,
            json: "{}".into(),
            content: Some(b"content".to_vec()),
            thread: None,
            is_limited: true,
        };
        store.objects().put(&acme, object).await.unwrap();
        let table = store.checkpoints();
        let about = crate::checkpoints::row("s");
        table
            .save(&acme, about, r#"{"step":4}"#.into())
            .await
            .unwrap();
        let conn = Connection::open(&path).unwrap();
        assert!(conn.execute(sql, []).unwrap() > 0, "{what}");
        let id = &author.thread;
        let refused = match what {
            "object" => store.objects().get(&acme, "file", "a").await.err(),
            "content" => store.objects().content(&acme, "file", "a").await.err(),
            "answer" => store.answer(id, "once").await.err(),
            "checkpoint" => table.row(&acme, "s").await.err(),
            "state" => table.load(&acme, "s").await.err(),
            _ => store.row(id).await.err(),
        };
        assert!(
            matches!(refused, Some(StoreError::Damaged(_))),
            "{what}: {refused:?}"
        );
        assert_ne!(store.check().await.unwrap(), Vec::<String>::new(), "{what}");
    }
}

#[tokio::test]
async fn a_rebuild_restores_a_changed_title() {
    let (_directory, path) = place();
    let store = open(&path);
    let author = written(&store, "t", script()).await;
    let row = store.row(&author.thread).await.unwrap();
    let conn = Connection::open(&path).unwrap();
    let sql = "UPDATE thread_threads SET title = 'other', bytes = 1 WHERE no = 1";
    conn.execute(sql, []).unwrap();
    let found = store.findings().await.unwrap();
    assert!(
        found
            .iter()
            .all(|it| it.thread.as_deref() == Some("t") || it.thread.is_none())
    );
    assert!(
        found.iter().any(|it| it.remedy == Remedy::Rebuild),
        "{found:?}"
    );
    store.rebuild_tables().await.unwrap();
    assert_eq!(store.row(&author.thread).await.unwrap(), row);
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}
