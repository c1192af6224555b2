//! Backups beside a writer, and stores from them.

use super::{dump, open, place, stored_rows, written};
use jiff::{SignedDuration, Timestamp};
use loomline_stores::{
    BackupError, BackupKind, Manifest, SqliteStore, back_up, restore_backup, verify_backups,
};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::objects::NewObject;
use store::suite::{Author, script};
use store::{
    CheckpointRow, EventLog as _, Filter, Store, StoreError, TenantId, ThreadTable as _, Token,
};
use tempfile::TempDir;
use timeline::{Command, NewThread, Seq, ThreadId};

/// A store, and a directory for its backups.
struct Drill {
    directory: TempDir,
    path: PathBuf,
    store: Arc<SqliteStore>,
    n_restored: u32,
}

impl Drill {
    fn new() -> Self {
        let (directory, path) = place();
        let store = open(&path);
        Self {
            directory,
            path,
            store,
            n_restored: 0,
        }
    }

    fn backups(&self) -> PathBuf {
        self.directory.path().join("backups")
    }

    fn back_up(&self) -> Manifest {
        back_up(&self.path, None, &self.backups(), false).unwrap()
    }

    /// The file of a restored store.
    fn restored(&mut self, at: Option<Timestamp>) -> Result<PathBuf, BackupError> {
        self.n_restored += 1;
        let name = format!("restored-{}", self.n_restored);
        let to = self.directory.path().join(name).join("loomline.db");
        restore_backup(&self.backups(), &to, at, None)?;
        Ok(to)
    }

    async fn put(&self, id: &str, json: &str, content: Option<&[u8]>) {
        let file = NewObject {
            kind: "file".into(),
            id: id.into(),
            created_at: Timestamp::UNIX_EPOCH,
            json: json.to_owned(),
            content: content.map(<[u8]>::to_vec),
            thread: None,
            is_limited: false,
        };
        self.store.objects().put(&acme(), file).await.unwrap();
    }

    async fn save(&self, session: &str, state: &str) {
        let row = CheckpointRow {
            session_id: session.to_owned(),
            checkpoint_id: "c".to_owned(),
            timestamp: Timestamp::UNIX_EPOCH,
            step: 1,
            agent_id: None,
        };
        let checkpoints = self.store.checkpoints();
        let saved = checkpoints.save(&acme(), row, state.to_owned()).await;
        saved.unwrap();
    }

    /// Appends with a token.
    async fn told(&self, author: &mut Author, token: &str) {
        let mut append = author.append_with(Vec::new());
        append.records = author.append_with(title(author, token)).records;
        append.token = Some(Token {
            token: token.to_owned(),
            answer: format!("{{\"to\":{token:?}}}"),
        });
        author.append(append).await.unwrap();
    }

    async fn delete(&self, id: &ThreadId) {
        self.store.delete(&acme(), id, None).await.unwrap();
    }
}

fn title(author: &Author, text: &str) -> Vec<timeline::Event> {
    let command = Command::Update {
        title: Some(Some(text.to_owned())),
        metadata: None,
    };
    author.state.decide(command, Timestamp::now()).unwrap()
}

/// The commands until the middle of a step: what is appended after them is accepted.
fn running() -> Vec<Command> {
    script().into_iter().take(15).collect()
}

fn acme() -> TenantId {
    TenantId::from("acme")
}

/// Every row of a store, those beside the log included.
fn rows(path: &Path) -> Vec<String> {
    let mut rows = stored_rows(path);
    rows.extend(dump(path));
    let conn = Connection::open(path).unwrap();
    for table in [
        "thread_tokens",
        "tenant_objects",
        "tenant_contents",
        "tenant_usage",
        "agent_checkpoints",
        "thread_threads",
    ] {
        let sql = format!("SELECT * FROM {table}");
        let mut select = conn.prepare(&sql).unwrap();
        let n = select.column_count();
        let mut found = select.query([]).unwrap();
        while let Some(row) = found.next().unwrap() {
            let values: Vec<_> = (0..n).map(|it| row.get_ref(it).unwrap()).collect();
            rows.push(format!("{table} {values:?}"));
        }
    }
    rows.sort();
    rows
}

/// Two texts that differ, shortly.
fn assert_same(found: &[String], expected: &[String]) {
    let missing: Vec<_> = expected.iter().filter(|it| !found.contains(it)).collect();
    let more: Vec<_> = found.iter().filter(|it| !expected.contains(it)).collect();
    assert!(
        missing.is_empty() && more.is_empty(),
        "missing: {missing:#?}\nmore: {more:#?}"
    );
}

#[tokio::test]
async fn five_increments_restore_every_row_of_the_store() {
    let mut drill = Drill::new();
    let mut first = written(&drill.store, "first", running()).await;
    let gone = written(&drill.store, "gone", script()).await;
    drill.put("kept", "{}", Some(b"one")).await;
    drill.put("changed", "{\"n\":0}", Some(b"zero")).await;
    drill.save("s", "{\"n\":0}").await;
    assert_eq!(drill.back_up().kind, BackupKind::Full);
    let mut last = gone;
    for n in 1..=5 {
        drill.told(&mut first, &format!("token-{n}")).await;
        // The number of the deleted thread, and those of its blocks, are used again.
        drill.delete(&last.thread).await;
        last = written(&drill.store, &format!("t{n}"), script()).await;
        drill
            .put(
                "changed",
                &format!("{{\"n\":{n}}}"),
                Some(n.to_string().as_bytes()),
            )
            .await;
        drill.put(&format!("new-{n}"), "{}", Some(b"one")).await;
        drill.save("s", &format!("{{\"n\":{n}}}")).await;
        let taken = drill.back_up();
        assert_eq!((taken.kind, taken.number), (BackupKind::Increment, n + 1));
    }
    let expected = rows(&drill.path);
    let restored = drill.restored(None).unwrap();
    assert_same(&rows(&restored), &expected);
    let verified = verify_backups(&drill.backups(), None).unwrap();
    assert_eq!((verified.backups.len(), verified.n_restored), (6, 1));
    let store = open(&restored);
    let answer = store.answer(&first.thread, "token-3").await.unwrap();
    assert_eq!(answer.unwrap(), "{\"to\":\"token-3\"}");
    let before = events(&drill.store, &first).await;
    assert_eq!(events(&store, &first).await, before);
}

async fn events(store: &SqliteStore, author: &Author) -> Vec<String> {
    let read = store.read(&author.thread, Seq::ZERO, 100_000, Filter::All);
    let read = read.await.unwrap();
    read.into_iter().map(|it| format!("{it:?}")).collect()
}

#[tokio::test]
async fn an_unchanged_store_gives_an_increment_without_blocks() {
    let drill = Drill::new();
    written(&drill.store, "t", script()).await;
    drill.put("f", "{}", Some(&vec![7; 100_000])).await;
    drill.back_up();
    let taken = drill.back_up();
    let conn = Connection::open(drill.backups().join("000002.db")).unwrap();
    let count = |table: &str| -> i64 {
        let sql = format!("SELECT count(*) FROM {table}");
        conn.query_row(&sql, [], |row| row.get(0)).unwrap()
    };
    let found = ["thread_blocks", "tenant_contents", "kept_contents"].map(count);
    assert_eq!(found, [0, 0, 1]);
    assert!(taken.bytes < 150_000, "{}", taken.bytes);
}

#[tokio::test]
async fn backups_beside_a_writer_are_snapshots() {
    let mut drill = Drill::new();
    let mut author = written(&drill.store, "busy", running()).await;
    let (path, to) = (drill.path.clone(), drill.backups());
    let backing = tokio::task::spawn_blocking(move || {
        let taken = (0..5).map(|_| back_up(&path, None, &to, false).unwrap());
        taken.collect::<Vec<_>>()
    });
    let mut n = 0;
    while !backing.is_finished() {
        n += 1;
        drill.told(&mut author, &format!("token-{n}")).await;
    }
    let taken = backing.await.unwrap();
    let heads: Vec<_> = taken.iter().map(|it| it.counts.events).collect();
    assert!(heads.is_sorted() && n > 5, "{heads:?} {n}");
    let restored = drill.restored(None).unwrap();
    let store = open(&restored);
    let found = events(&store, &author).await;
    let all = events(&drill.store, &author).await;
    assert_eq!(found, all[..found.len()]);
}

#[tokio::test]
async fn a_point_in_time_has_the_events_up_to_it_and_no_later_ones() {
    let mut drill = Drill::new();
    let mut author = written(&drill.store, "t", running()).await;
    let deleted = written(&drill.store, "deleted", script()).await;
    drill.put("f", "{\"n\":1}", None).await;
    let base = drill.back_up();
    let mut append = author.append_with(title(&author, "early"));
    let early = base.taken_at + SignedDuration::from_secs(10);
    append.records.iter_mut().for_each(|it| it.at = early);
    append.token = Some(Token {
        token: "early".to_owned(),
        answer: "1".to_owned(),
    });
    author.append(append).await.unwrap();
    let known = events(&drill.store, &author).await;
    let mut append = author.append_with(title(&author, "late"));
    let late = base.taken_at + SignedDuration::from_secs(60);
    append.records.iter_mut().for_each(|it| it.at = late);
    append.token = Some(Token {
        token: "late".to_owned(),
        answer: "2".to_owned(),
    });
    author.append(append).await.unwrap();
    drill.delete(&deleted.thread).await;
    drill.put("f", "{\"n\":2}", None).await;
    let mut second = drill.back_up();
    // As if it had been taken after all of this.
    second.taken_at = late + SignedDuration::from_secs(60);
    let manifest = drill.backups().join("000002.json");
    std::fs::write(&manifest, serde_json::to_string(&second).unwrap()).unwrap();

    let at = base.taken_at + SignedDuration::from_secs(30);
    let restored = drill.restored(Some(at)).unwrap();
    let store = open(&restored);
    assert_eq!(events(&store, &author).await, known);
    assert_eq!(
        store
            .answer(&author.thread, "early")
            .await
            .unwrap()
            .unwrap(),
        "1"
    );
    assert_eq!(store.answer(&author.thread, "late").await.unwrap(), None);
    // Neither objects nor deletions have a history between two backups.
    let object = store.objects().get(&acme(), "file", "f").await.unwrap();
    assert_eq!(object.unwrap().json, "{\"n\":1}");
    store.row(&deleted.thread).await.unwrap();
    let row = store.row(&author.thread).await.unwrap();
    assert_eq!(row.thread.title.as_deref(), Some("early"));

    let whole = drill.restored(Some(second.taken_at)).unwrap();
    assert_same(&rows(&whole), &rows(&drill.path));
    let before = drill.restored(Some(base.taken_at - SignedDuration::from_secs(1)));
    assert!(
        matches!(before, Err(BackupError::NoneBefore { .. })),
        "{before:?}"
    );
}

#[tokio::test]
async fn a_thread_made_after_the_backup_is_there_at_a_later_instant() {
    let mut drill = Drill::new();
    let replaced = written(&drill.store, "old", script()).await;
    let base = drill.back_up();
    drill.delete(&replaced.thread).await;
    let new = written(&drill.store, "new", script()).await;
    let mut second = back_up(&drill.path, None, &drill.backups(), true).unwrap();
    assert_eq!(second.kind, BackupKind::Full);
    second.taken_at = base.taken_at + SignedDuration::from_secs(60);
    let manifest = drill.backups().join("000002.json");
    std::fs::write(&manifest, serde_json::to_string(&second).unwrap()).unwrap();
    let at = base.taken_at + SignedDuration::from_secs(30);
    let restored = drill.restored(Some(at)).unwrap();
    let store = open(&restored);
    assert_eq!(events(&store, &new).await, events(&drill.store, &new).await);
    // Its number was given to the new thread, so it was deleted before.
    let row = store.row(&replaced.thread).await;
    assert!(matches!(row, Err(StoreError::NotFound)), "{row:?}");
}

#[tokio::test]
async fn a_damaged_or_missing_increment_is_found() {
    let mut drill = Drill::new();
    let mut author = written(&drill.store, "t", running()).await;
    for n in 0..3 {
        drill.told(&mut author, &format!("t{n}")).await;
        drill.back_up();
    }
    let file = drill.backups().join("000002.db");
    let whole = std::fs::read(&file).unwrap();
    let mut damaged = whole.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    for bytes in [&damaged[..], &whole[..middle], &[]] {
        std::fs::write(&file, bytes).unwrap();
        let found = verify_backups(&drill.backups(), None);
        assert!(
            matches!(found, Err(BackupError::Damaged { .. })),
            "{found:?}"
        );
        let refused = drill.restored(None);
        assert!(
            matches!(refused, Err(BackupError::Damaged { .. })),
            "{refused:?}"
        );
    }
    std::fs::remove_file(&file).unwrap();
    let refused = drill.restored(None);
    assert!(
        matches!(refused, Err(BackupError::Io { .. })),
        "{refused:?}"
    );
    std::fs::remove_file(drill.backups().join("000002.json")).unwrap();
    let found = verify_backups(&drill.backups(), None);
    let expected = matches!(
        found,
        Err(BackupError::Missing {
            missing: 2,
            number: 3
        })
    );
    assert!(expected, "{found:?}");
    // A broken chain is not continued, and keeps no new one from beginning.
    assert_eq!(drill.back_up().kind, BackupKind::Full);
    drill.restored(None).unwrap();
}

#[tokio::test]
async fn a_directory_with_files_is_no_target() {
    let drill = Drill::new();
    written(&drill.store, "t", script()).await;
    drill.back_up();
    let before = rows(&drill.path);
    let refused = restore_backup(&drill.backups(), &drill.path, None, None);
    assert!(
        matches!(refused, Err(BackupError::NotEmpty(_))),
        "{refused:?}"
    );
    assert_same(&rows(&drill.path), &before);
    let none = restore_backup(drill.directory.path(), &drill.path, None, None);
    assert!(matches!(none, Err(BackupError::None(_))), "{none:?}");
}

#[tokio::test]
async fn what_an_interrupted_backup_left_is_cleared() {
    let mut drill = Drill::new();
    written(&drill.store, "t", script()).await;
    drill.back_up();
    for left in ["000002.db", "000002.db.partial", "000002.json.partial"] {
        std::fs::write(drill.backups().join(left), "half").unwrap();
    }
    verify_backups(&drill.backups(), None).unwrap();
    assert_eq!(drill.back_up().number, 2);
    let restored = drill.restored(None).unwrap();
    assert_same(&rows(&restored), &rows(&drill.path));
}

#[tokio::test]
async fn a_fork_is_restored_with_its_parent() {
    let mut drill = Drill::new();
    let parent = written(&drill.store, "parent", script()).await;
    drill.back_up();
    let store: Arc<dyn Store> = drill.store.clone();
    let mut new = NewThread::new("fork", Some("fork"));
    new.fork = Some(timeline::Fork {
        thread_id: parent.thread.clone(),
        seq: parent.tail,
    });
    let mut fork = Author::new(&store, "acme", new).await;
    fork.commit_all(script()).await;
    drill.back_up();
    let restored = drill.restored(None).unwrap();
    assert_same(&rows(&restored), &rows(&drill.path));
}
