//! The stores whose bytes are changed.

use jiff::Timestamp;
use loomline_stores::{SqliteOptions, SqliteStore};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use store::objects::NewObject;
use store::suite::Author;
use store::suite::script::{
    complete_step, end, fork, item, keep, leave_open, respond, script, script_of_answers, start,
};
use store::{CheckpointRow, Store, ThreadTable as _, Token};
use timeline::{Command, NewItem, NewThread, Removed, Trigger};

/// The files of a store, by the end of their name.
pub(crate) type Files = Vec<(&'static str, Vec<u8>)>;

/// The files of a store that was closed, and those of one whose process was killed.
pub(crate) fn stores() -> [Files; 2] {
    let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
    runtime.block_on(async {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("loomline.db");
        let open = || Arc::new(SqliteStore::open(&path, &SqliteOptions::default()).unwrap());
        let store = open();
        first_half(&store).await;
        store.close().await.unwrap();
        drop(store);
        let store = open();
        second_half(&store).await;
        let killed = files(&path);
        store.close().await.unwrap();
        drop(store);
        let closed = files(&path);
        assert_eq!((closed.len(), killed.len()), (1, 2));
        [closed, killed]
    })
}

fn files(path: &Path) -> Files {
    let read = |suffix: &'static str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        Some((suffix, std::fs::read(name).ok()?))
    };
    ["", "-wal"].into_iter().filter_map(read).collect()
}

fn says(id: &str, text: &str) -> NewItem {
    NewItem::user(id, json!([{"type": "input_text", "text": text}]).into())
}

async fn author(store: &Arc<SqliteStore>, tenant: &str, thread: NewThread) -> Author {
    let store: Arc<dyn Store> = store.clone();
    Author::new(&store, tenant, thread).await
}

async fn object(
    store: &SqliteStore,
    kind: &str,
    id: &str,
    content: Option<Vec<u8>>,
    thread: Option<&str>,
) {
    let object = NewObject {
        kind: kind.into(),
        id: id.into(),
        created_at: Timestamp::UNIX_EPOCH,
        json: json!({"name": id, "kind": kind}).to_string(),
        content,
        thread: thread.map(Into::into),
        is_limited: true,
    };
    store.objects().put(&"acme".into(), object).await.unwrap();
}

async fn checkpoint(store: &SqliteStore, session: &str, agent: Option<&str>) {
    let about = CheckpointRow {
        session_id: session.into(),
        checkpoint_id: format!("{session}-1"),
        timestamp: Timestamp::UNIX_EPOCH,
        step: 4,
        agent_id: agent.map(Into::into),
    };
    let state = json!({"version": "1.0.0", "id": session, "messages": ["kept"], "step": 4});
    let table = store.checkpoints();
    table
        .save(&"acme".into(), about, state.to_string())
        .await
        .unwrap();
}

async fn first_half(store: &Arc<SqliteStore>) {
    let new = NewThread {
        title: Some("About the beginning".into()),
        metadata: Some(json!({"k": 1.0}).into()),
        ..NewThread::new("whole", Some("whole"))
    };
    author(store, "acme", new).await.commit_all(script()).await;
    let mut answers = author(store, "acme", NewThread::new("answers", Some("answers"))).await;
    answers.commit_all(script_of_answers()).await;
    for n in 0..3 {
        object(
            store,
            "file",
            &format!("file-{n}"),
            Some(vec![n; 5000]),
            None,
        )
        .await;
    }
    object(store, "assistant", "one", None, None).await;
    checkpoint(store, "monday", Some("demo")).await;
}

async fn second_half(store: &Arc<SqliteStore>) {
    let mut told = author(store, "acme", NewThread::new("told", Some("told"))).await;
    let mut append = told.append_of(keep("once"));
    append.token = Some(Token {
        token: "once".into(),
        answer: "the answer of the request".into(),
    });
    told.append(append).await.unwrap();
    for n in ["one", "two"] {
        told.commit_all([
            Command::Record {
                item: says(&format!("kept-{n}"), "a kept message about Quito"),
            },
            start(n, Trigger::New(says(&format!("ask-{n}"), "a question"))),
            respond(),
            complete_step(None),
            end(),
        ])
        .await;
    }
    for what in [
        Removed::Item("kept-one".into()),
        Removed::Step("two-step-0".into()),
    ] {
        told.commit(Command::Remove { what }).await;
    }
    told.commit(Command::Update {
        title: Some(Some("A title with words".into())),
        metadata: Some(Some(json!({"k": 2}).into())),
    })
    .await;
    let mut waits = author(store, "acme", NewThread::new("waits", Some("waits"))).await;
    let open = [
        start("one", Trigger::New(item("ask"))),
        respond(),
        leave_open(),
        end(),
    ];
    waits.commit_all(open).await;
    let text = json!({"$schema": "https://aitp.dev/v1/decisions/schema.json", "request_decision": {"id": "d"}});
    let ask = Command::Record {
        item: says("asks", &text.to_string()),
    };
    waits.commit(ask).await;
    let forked = NewThread {
        fork: Some(fork("told", 9)),
        ..NewThread::new("forked", Some("forked"))
    };
    author(store, "acme", forked)
        .await
        .commit(keep("own"))
        .await;
    let mut runs = author(store, "globex", NewThread::new("runs", None)).await;
    runs.commit_all([start("now", Trigger::New(item("go"))), respond()])
        .await;
    let mut deleted = author(store, "acme", NewThread::new("deleted", Some("deleted"))).await;
    deleted.commit_all(script()).await;
    store
        .delete(&"acme".into(), &deleted.thread, None)
        .await
        .unwrap();
    object(
        store,
        "file",
        "late",
        Some(b"the content of a late file".to_vec()),
        None,
    )
    .await;
    object(store, "threads.notes:told", "note", None, Some("told")).await;
    checkpoint(store, "tuesday", None).await;
}
