//! Who may open the file, and how.

use super::{open, place, read_only, written};
use futures_util::future::join_all;
use loomline_stores::Upkeep as _;
use loomline_stores::{SqliteOptions, SqliteStore};
use store::suite::script;
use store::{EventLog as _, KeyError, Store, StoreError, ThreadTable as _};

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

// A connection that only reads deletes neither the log nor the shared memory, even if it is closed last.
#[tokio::test]
async fn a_closed_store_leaves_no_log_and_no_shared_memory() {
    let (directory, path) = place();
    for n in 0..3 {
        let store = open(&path);
        written(&store, &format!("t{n}"), script()).await;
        // The readers have more to do than the writer.
        let reading = join_all((0..200).map(|_| store.check()));
        let (_, closed) = tokio::join!(reading, store.close());
        closed.unwrap();
        let names = std::fs::read_dir(directory.path()).unwrap();
        let mut names: Vec<_> = names.map(|it| it.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["loomline.db", "loomline.db.lock"]);
    }
}

#[tokio::test]
async fn a_served_store_can_be_looked_at_and_not_changed() {
    let (_directory, path) = place();
    let served = open(&path);
    let mut author = written(&served, "t", script()).await;
    let looking = SqliteStore::open(&path, &read_only()).unwrap();

    assert_eq!(looking.row(&author.thread).await.unwrap().tail, author.tail);
    assert!(matches!(
        looking.append(author.append_with(vec![])).await,
        Err(StoreError::InUse(_))
    ));
    assert!(matches!(
        looking.rebuild_tables().await,
        Err(StoreError::InUse(_))
    ));
    author.commit_all([]).await;
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
