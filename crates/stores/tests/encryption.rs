//! A store that is encrypted: what is on the disk, who can open it, and changing its key.
#![cfg(feature = "encryption")]
#![allow(clippy::unwrap_used, reason = "tests")]

use jiff::Timestamp;
use loomline_stores::{
    BackupError, BackupKind, OpenMode, SqliteOptions, SqliteStore, StoreKey, Upkeep as _, back_up,
    rekey, restore_backup, verify_backups,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::objects::NewObject;
use store::suite::{Author, script};
use store::{EventLog as _, Filter, KeyError, Store, StoreError, TenantId, ThreadTable as _};
use tempfile::TempDir;
use timeline::{NewThread, Seq};

const SAID: &str = "kept to ourselves";

fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("loomline.db");
    (directory, path)
}

fn key(digits: &str) -> StoreKey {
    digits.repeat(32).parse().unwrap()
}

fn options(key: Option<&StoreKey>) -> SqliteOptions {
    SqliteOptions {
        key: key.cloned(),
        ..SqliteOptions::default()
    }
}

fn open(path: &Path, key: Option<&StoreKey>) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(path, &options(key)).unwrap())
}

/// What opening a file answers, to serve it and to look at it.
fn refusals(path: &Path, key: Option<&StoreKey>) -> Vec<KeyError> {
    let modes = [OpenMode::ReadWrite, OpenMode::ReadOnly];
    let refused = modes.map(|mode| {
        let options = SqliteOptions {
            mode,
            ..options(key)
        };
        match SqliteStore::open(path, &options) {
            Err(StoreError::Key(error)) => Some(error),
            Err(_) | Ok(_) => None,
        }
    });
    refused.into_iter().flatten().collect()
}

/// A thread with a turn, and a file, whose key, metadata and content have what was said.
async fn filled(store: &Arc<SqliteStore>) -> Author {
    let tenant = TenantId::from("acme");
    let said: Arc<dyn Store> = Arc::<SqliteStore>::clone(store);
    let mut author = Author::new(&said, "acme", NewThread::new("t", Some(SAID))).await;
    author.commit_all(script()).await;
    let file = NewObject {
        kind: "file".into(),
        id: "f".into(),
        created_at: Timestamp::UNIX_EPOCH,
        json: format!("{{\"name\":\"{SAID}\"}}"),
        content: Some(SAID.repeat(10_000).into_bytes()),
        thread: None,
        is_limited: true,
    };
    store.objects().put(&tenant, file).await.unwrap();
    author
}

async fn read(store: &SqliteStore, author: &Author) -> Vec<String> {
    let records = store.read(&author.thread, Seq::ZERO, 10_000, Filter::All);
    let records = records.await.unwrap();
    records
        .into_iter()
        .map(|logged| format!("{logged:?}"))
        .collect()
}

/// The files of a directory.
fn files(directory: &TempDir) -> Vec<String> {
    let entries = std::fs::read_dir(directory.path()).unwrap();
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
    let mut files: Vec<_> = entries.map(|it| name(it).into_string().unwrap()).collect();
    files.sort();
    files
}

/// Those that have what was said in them.
fn telling(directory: &TempDir) -> Vec<String> {
    let mut files = files(directory);
    files.retain(|name| {
        let bytes = std::fs::read(directory.path().join(name)).unwrap();
        let mut windows = bytes.windows(SAID.len());
        windows.any(|window| window == SAID.as_bytes())
    });
    files
}

#[tokio::test]
async fn nothing_that_was_said_is_on_the_disk() {
    for (key, expected) in [
        (None, vec!["loomline.db-wal"]),
        (Some(key("5a")), Vec::new()),
    ] {
        let (directory, path) = place();
        let store = open(&path, key.as_ref());
        let author = filled(&store).await;
        assert_eq!(telling(&directory), expected, "while it is served");
        store.close().await.unwrap();
        drop(store);
        let expected: Vec<_> = expected.iter().map(|_| "loomline.db").collect();
        assert_eq!(telling(&directory), expected, "when it is closed");
        let store = open(&path, key.as_ref());
        assert_eq!(store.row(&author.thread).await.unwrap().tail, author.tail);
        assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_store_opens_with_its_key_alone() {
    let (_directory, path) = place();
    open(&path, Some(&key("5a"))).close().await.unwrap();
    let missing = vec![KeyError::Missing; 2];
    assert_eq!(refusals(&path, None), missing);
    let wrong = vec![KeyError::Wrong; 2];
    assert_eq!(refusals(&path, Some(&key("a5"))), wrong);
    open(&path, Some(&key("5a")));

    let (_directory, path) = place();
    open(&path, None).close().await.unwrap();
    let plain = vec![KeyError::NotEncrypted; 2];
    assert_eq!(refusals(&path, Some(&key("5a"))), plain);
    open(&path, None);
}

#[tokio::test]
async fn a_store_gets_a_key_another_and_none_and_keeps_everything() {
    let (directory, path) = place();
    let store = open(&path, None);
    let author = filled(&store).await;
    let before = (read(&store, &author).await, store.stats().await.unwrap());
    store.close().await.unwrap();
    drop(store);

    let (one, other) = (key("5a"), key("a5"));
    for (from, to) in [
        (None, Some(&one)),
        (Some(&one), Some(&other)),
        (Some(&other), Some(&other)),
        (Some(&other), None),
    ] {
        assert_eq!(rekey(&path, from, to).unwrap(), Vec::<PathBuf>::new());
        let expected = usize::from(to.is_none());
        assert_eq!(telling(&directory).len(), expected, "{from:?} to {to:?}");
        assert_eq!(files(&directory), ["loomline.db", "loomline.db.lock"]);
        let store = open(&path, to);
        let after = (read(&store, &author).await, store.stats().await.unwrap());
        assert_eq!(after, before);
        assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
        let tenant = TenantId::from("acme");
        let content = store.objects().content(&tenant, "file", "f").await.unwrap();
        assert_eq!(content.unwrap().len(), 10_000 * SAID.len());
        store.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_key_is_not_changed_under_those_who_serve_or_read() {
    let (_directory, path) = place();
    let (one, other) = (key("5a"), key("a5"));
    let store = open(&path, Some(&one));
    filled(&store).await;
    let in_use = |refused: Result<_, StoreError>| {
        assert!(matches!(refused, Err(StoreError::InUse(_))), "{refused:?}");
    };
    in_use(rekey(&path, Some(&one), Some(&other)));
    store.close().await.unwrap();
    drop(store);

    let mode = OpenMode::ReadOnly;
    let looking = SqliteStore::open(
        &path,
        &SqliteOptions {
            mode,
            ..options(Some(&one))
        },
    )
    .unwrap();
    in_use(rekey(&path, Some(&one), Some(&other)));
    drop(looking);
    assert_eq!(refusals(&path, Some(&other)), vec![KeyError::Wrong; 2]);
    rekey(&path, Some(&one), Some(&other)).unwrap();
    open(&path, Some(&other));
}

#[tokio::test]
async fn a_key_that_does_not_fit_changes_nothing() {
    let (directory, path) = place();
    let one = key("5a");
    let store = open(&path, Some(&one));
    filled(&store).await;
    store.close().await.unwrap();
    drop(store);
    let before = std::fs::read(&path).unwrap();
    for (from, expected) in [
        (Some(&key("a5")), KeyError::Wrong),
        (None, KeyError::Missing),
    ] {
        let refused = rekey(&path, from, None);
        assert!(
            matches!(&refused, Err(StoreError::Key(error)) if *error == expected),
            "{refused:?}"
        );
    }
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(telling(&directory), Vec::<String>::new());
}

#[tokio::test]
async fn what_a_killed_change_left_is_taken_away() {
    let (directory, path) = place();
    open(&path, Some(&key("5a"))).close().await.unwrap();
    std::fs::write(directory.path().join("loomline.db.rekey"), SAID).unwrap();
    assert_eq!(telling(&directory), vec!["loomline.db.rekey"]);
    open(&path, Some(&key("5a"))).close().await.unwrap();
    assert_eq!(telling(&directory), Vec::<String>::new());

    std::fs::write(directory.path().join("loomline.db.rekey"), SAID).unwrap();
    rekey(&path, Some(&key("5a")), Some(&key("a5"))).unwrap();
    assert_eq!(telling(&directory), Vec::<String>::new());
    open(&path, Some(&key("a5")));
}

#[tokio::test]
async fn a_link_stays_one_and_what_it_leads_to_is_replaced() {
    let (directory, path) = place();
    let (elsewhere, real) = place();
    filled(&open(&real, None)).await;
    std::os::unix::fs::symlink(&real, &path).unwrap();

    std::fs::hard_link(&real, elsewhere.path().join("other.db")).unwrap();
    let refused = rekey(&path, None, Some(&key("5a")));
    assert!(
        matches!(&refused, Err(StoreError::Failed(_))),
        "{refused:?}"
    );
    std::fs::remove_file(elsewhere.path().join("other.db")).unwrap();

    rekey(&path, None, Some(&key("5a"))).unwrap();
    assert!(path.is_symlink());
    assert_eq!(telling(&directory), Vec::<String>::new());
    assert_eq!(telling(&elsewhere), Vec::<String>::new());
    assert_eq!(refusals(&real, None), vec![KeyError::Missing; 2]);
    open(&path, Some(&key("5a")));
}

#[tokio::test]
async fn copies_of_before_are_named_and_the_file_keeps_its_readers() {
    use std::os::unix::fs::PermissionsExt;
    let (directory, path) = place();
    open(&path, None).close().await.unwrap();
    let owner_only = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(&path, owner_only).unwrap();
    let copy = directory.path().join("loomline.db.backup-v4");
    std::fs::write(&copy, "").unwrap();
    assert_eq!(rekey(&path, None, Some(&key("5a"))).unwrap(), vec![copy]);
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// Those files of a directory that have what was said in them.
fn telling_files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut files: Vec<_> = entries.map(|it| it.unwrap().path()).collect();
    files.retain(|path| {
        let bytes = std::fs::read(path).unwrap();
        let mut windows = bytes.windows(SAID.len());
        windows.any(|window| window == SAID.as_bytes())
    });
    files
}

#[tokio::test]
async fn backups_of_an_encrypted_store_are_encrypted_and_can_be_restored() {
    let (directory, path) = place();
    let key = key("5a");
    let store = open(&path, Some(&key));
    let author = filled(&store).await;
    let backups = directory.path().join("backups");
    let kinds = [0, 1].map(|n| {
        let taken = back_up(&path, Some(&key), &backups, false).unwrap();
        assert!(taken.encrypted, "{n}");
        taken.kind
    });
    assert_eq!(kinds, [BackupKind::Full, BackupKind::Increment]);
    assert_eq!(telling_files(&backups), Vec::<PathBuf>::new());
    assert_eq!(verify_backups(&backups, Some(&key)).unwrap().n_restored, 1);
    let to = directory.path().join("restored/loomline.db");
    for wrong in [None, Some("b6".repeat(32).parse().unwrap())] {
        let refused = restore_backup(&backups, &to, None, wrong.as_ref());
        let expected = matches!(
            refused,
            Err(BackupError::Store(StoreError::Key(
                KeyError::Missing | KeyError::Wrong
            )))
        );
        assert!(expected, "{refused:?}");
        assert!(!to.exists());
    }
    restore_backup(&backups, &to, None, Some(&key)).unwrap();
    let restored = open(&to, Some(&key));
    assert_eq!(read(&restored, &author).await, read(&store, &author).await);
}

#[tokio::test]
async fn a_store_with_a_new_key_gets_a_full_backup() {
    let (directory, path) = place();
    let store = open(&path, None);
    filled(&store).await;
    let backups = directory.path().join("backups");
    back_up(&path, None, &backups, false).unwrap();
    store.close().await.unwrap();
    drop(store);
    rekey(&path, None, Some(&key("5a"))).unwrap();
    let taken = back_up(&path, Some(&key("5a")), &backups, false).unwrap();
    assert_eq!(taken.kind, BackupKind::Full);
}
