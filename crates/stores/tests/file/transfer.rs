//! A tenant's data as lines, and back.

use super::{dump, open, place, written};
use jiff::Timestamp;
use loomline_stores::{SqliteOptions, TransferError, Transferred, export_tenant, import_tenant};
use rusqlite::Connection;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::objects::NewObject;
use store::suite::{Author, script};
use store::{CheckpointRow, EventLog as _, Store, StoreError, TenantId, Token};
use tempfile::TempDir;
use timeline::{Fork, NewThread, Seq};

fn object(kind: &str, id: &str, content: Option<&[u8]>, of: Option<&Author>) -> NewObject {
    NewObject {
        kind: kind.into(),
        id: id.into(),
        created_at: Timestamp::from_second(17).unwrap(),
        json: "{ \"a\" : 1.0, \"a\":\"\u{2028}\" }".to_owned(),
        content: content.map(<[u8]>::to_vec),
        thread: of.map(|author| author.thread.clone()),
        is_limited: false,
    }
}

/// A store with two tenants, one of which has everything that there is.
async fn filled() -> (TempDir, PathBuf) {
    let (directory, path) = place();
    let store = open(&path);
    let author = written(&store, "parent", script()).await;
    written(&store, "between", script().into_iter().take(15).collect()).await;
    let shared: Arc<dyn Store> = store.clone();
    let mut new = NewThread::new("fork", None);
    new.fork = Some(Fork {
        thread_id: author.thread.clone(),
        seq: Seq(author.tail.0 / 2),
    });
    let mut fork = Author::new(&shared, "acme", new).await;
    fork.commit_all(script()).await;
    let mut append = fork.append_with(Vec::new());
    append.token = Some(Token {
        token: "once".to_owned(),
        answer: "{\"said\": \"ok\"}".to_owned(),
    });
    fork.append(append).await.unwrap();
    Author::new(&shared, "other", NewThread::new("theirs", None)).await;
    let acme = TenantId::from("acme");
    for new in [
        object("file", "f1", Some(&[0, 255, 10, 13]), None),
        object("file", "f2", Some(&[0, 255, 10, 13]), None),
        object("file", "empty", Some(&[]), None),
        object("notes", "n", None, Some(&fork)),
    ] {
        store.objects().put(&acme, new).await.unwrap();
    }
    let row = CheckpointRow {
        session_id: "s".to_owned(),
        checkpoint_id: "c".to_owned(),
        timestamp: Timestamp::from_second(5).unwrap(),
        step: 3,
        agent_id: Some("a".to_owned()),
    };
    let state = "{\"n\" :1}".to_owned();
    store.checkpoints().save(&acme, row, state).await.unwrap();
    store.close().await.unwrap();
    (directory, path)
}

fn exported(path: &Path) -> (Vec<u8>, Transferred) {
    let mut text = Vec::new();
    let counts = export_tenant(path, None, "acme", &mut text).unwrap();
    (text, counts)
}

fn import(path: &Path, text: &[u8]) -> Result<Transferred, TransferError> {
    import_tenant(path, &SqliteOptions::default(), &mut Cursor::new(text))
}

/// The lines without the instant of the export, and without the sum over it.
fn lines(text: &[u8]) -> Vec<String> {
    let all = std::str::from_utf8(text).unwrap().lines();
    let mut all: Vec<_> = all.map(str::to_owned).collect();
    all.pop();
    all.remove(0);
    all
}

fn sums(path: &Path) -> Vec<(String, Vec<u8>)> {
    let conn = Connection::open(path).unwrap();
    let sql = "SELECT id, sum FROM thread_threads WHERE tenant = 'acme' ORDER BY id";
    let mut select = conn.prepare(sql).unwrap();
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    rows.unwrap().collect::<Result<_, _>>().unwrap()
}

#[tokio::test]
async fn an_imported_tenant_is_exported_as_the_same_lines() {
    let (_directory, path) = filled().await;
    let (text, counts) = exported(&path);
    assert_eq!((counts.threads, counts.tokens, counts.contents), (3, 1, 2));
    assert_eq!((counts.objects, counts.checkpoints), (4, 1));
    let (_other, to) = place();
    assert_eq!(import(&to, &text).unwrap(), counts);
    let (again, _) = exported(&to);
    assert_eq!(lines(&again), lines(&text));
    assert_eq!(sums(&to), sums(&path));
    let own = |path: &Path| -> Vec<String> {
        let rows = dump(path).into_iter();
        rows.filter(|row| !row.contains("theirs") && !row.starts_with("threads"))
            .collect()
    };
    assert_eq!(own(&to), own(&path));
    let store = open(&to);
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
    let answer = store.answer(&"fork".into(), "once").await.unwrap();
    assert_eq!(answer.unwrap(), "{\"said\": \"ok\"}");
}

#[tokio::test]
async fn a_cut_or_changed_export_writes_nothing() {
    let (_directory, path) = filled().await;
    let (text, _) = exported(&path);
    let mut changed = text.clone();
    let at = text.len() / 2;
    changed[at] ^= 1;
    let ends: Vec<_> = (0..text.len()).filter(|it| text[*it] == b'\n').collect();
    let last = ends[ends.len() - 2] + 1;
    let (_other, to) = place();
    for wrong in [
        &changed[..],
        &text[..at],
        &text[..last],
        &text[..text.len() - 1],
        &[],
    ] {
        let refused = import(&to, wrong);
        assert!(
            matches!(refused, Err(TransferError::NotWhole(_))),
            "{refused:?}"
        );
        assert!(!to.exists());
    }
}

#[tokio::test]
async fn a_served_store_is_exported_and_takes_no_import() {
    let (_directory, path) = filled().await;
    let served = open(&path);
    let (text, _) = exported(&path);
    let refused = import(&path, &text);
    let expected = matches!(refused, Err(TransferError::Store(StoreError::InUse(_))));
    assert!(expected, "{refused:?}");
    drop(served);
}
