//! Much text that is deleted at once: its words leave the full-text index by a merge.

use super::{open, place};
use jiff::Timestamp;
use loomline_stores::SqliteStore;
use loomline_stores::{Erasure as _, Upkeep as _};
use rusqlite::Connection;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use store::search::{Search, SearchWords};
use store::suite::Author;
use store::{Store, TenantId, TextIndex as _, ThreadTable as _};
use timeline::{Command, NewItem, NewThread, Removed, ThreadId};

fn acme() -> TenantId {
    "acme".into()
}

/// Writes a thread with texts of 8 KiB, each with a word that no other text has.
async fn write(store: &Arc<SqliteStore>, name: &str, n_texts: usize) {
    let store: Arc<dyn Store> = store.clone();
    let mut author = Author::new(&store, "acme", NewThread::new(name, Some(name))).await;
    for n in 0..n_texts {
        let text = format!("{name}word{n}secret {}", "some other words ".repeat(480));
        let content = json!([{"type": "input_text", "text": text}]);
        let item = NewItem::user(&*format!("{name}-{n}"), content.into());
        author.commit(Command::Record { item }).await;
    }
}

async fn n_found(store: &SqliteStore, words: &str) -> usize {
    let search = Search {
        words: SearchWords::parse(words).unwrap(),
        limit: 100,
        ..Search::default()
    };
    let found = store.search(&acme(), search).await.unwrap();
    found.threads.len()
}

/// What FTS5's setting says: 1, or more while words wait for a merge.
fn setting(path: &Path) -> i64 {
    let conn = Connection::open(path).unwrap();
    let sql = "SELECT v FROM thread_words_config WHERE k = 'secure-delete'";
    conn.query_row(sql, [], |row| row.get(0)).unwrap()
}

async fn assert_gone(store: &Arc<SqliteStore>, path: &Path, name: &str) {
    assert_eq!(setting(path), 1);
    let bytes = std::fs::read(path).unwrap();
    // The index has the beginning of a word only once.
    for n in 0..10 {
        let word = format!("{name}word{n}secret");
        let is_left = bytes.windows(word.len()).any(|it| it == word.as_bytes());
        assert!(!is_left, "{word}");
    }
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn the_words_of_a_large_thread_leave_the_index_by_a_merge() {
    let (_directory, path) = place();
    let store = open(&path);
    write(&store, "stays", 300).await;
    write(&store, "goes", 100).await;
    let samples = store.samples_of_thread(&"goes".into()).await.unwrap();
    let before = store.activity().n_commits;
    store.delete(&acme(), &"goes".into(), None).await.unwrap();
    // Sixteen texts a commit would be seven.
    assert!(store.activity().n_commits - before <= 2);
    assert!(setting(&path) > 1);
    assert_eq!(n_found(&store, "goesword7secret").await, 0);
    assert_eq!(n_found(&store, "staysword7secret").await, 1);
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());

    store.reclaim().await.unwrap();

    assert_gone(&store, &path, "goes").await;
    let found = store.search_for(Arc::new(samples)).await.unwrap();
    assert_eq!(found.left, 0, "{found:?}");
    assert_eq!(n_found(&store, "staysword7secret").await, 1);
    assert_eq!(n_found(&store, "some other").await, 1);
}

#[tokio::test]
async fn many_small_deletions_become_one_in_bulk() {
    let (_directory, path) = place();
    let store = open(&path);
    for n in 0..60 {
        write(&store, &format!("t{n}x"), 1).await;
    }
    let delete = async |range: std::ops::Range<usize>| {
        for n in range {
            let id = ThreadId::from(format!("t{n}x").as_str());
            store.delete(&acme(), &id, None).await.unwrap();
        }
    };
    delete(0..20).await;
    assert_eq!(setting(&path), 1);
    delete(20..50).await;
    assert!(setting(&path) > 1);
    store.reclaim().await.unwrap();
    for n in 0..50 {
        assert_gone(&store, &path, &format!("t{n}x")).await;
    }
    delete(50..51).await;
    assert_eq!(setting(&path), 1);
    assert_eq!(n_found(&store, "some").await, 9);
}

#[tokio::test]
async fn announced_deletions_are_in_bulk_from_the_first_thread_on() {
    let (_directory, path) = place();
    let store = open(&path);
    for n in 0..40 {
        write(&store, &format!("t{n}x"), 1).await;
    }
    store.announce_deletions(300 << 10);
    store.delete(&acme(), &"t0x".into(), None).await.unwrap();
    assert!(setting(&path) > 1);
    store.reclaim().await.unwrap();
    assert_gone(&store, &path, "t0x").await;
    store.delete(&acme(), &"t1x".into(), None).await.unwrap();
    assert_eq!(setting(&path), 1);
}

#[tokio::test]
async fn the_next_thread_gets_other_numbers_while_words_wait() {
    let (_directory, path) = place();
    let store = open(&path);
    write(&store, "stays", 300).await;
    write(&store, "goes", 100).await;
    store.delete(&acme(), &"goes".into(), None).await.unwrap();
    drop(store);
    let store = open(&path);
    // The same words, of which some are looked up and removed before the merge.
    write(&store, "goes", 100).await;
    let shared: Arc<dyn Store> = store.clone();
    let mut author = Author::of(&shared, "goes".into(), Timestamp::UNIX_EPOCH).await;
    for n in 0..50 {
        let what = Removed::Item(format!("goes-{n}").as_str().into());
        author.commit(Command::Remove { what }).await;
    }
    store.reclaim().await.unwrap();
    assert_eq!(setting(&path), 1);
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
    assert_eq!(n_found(&store, "goesword7secret").await, 0);
    assert_eq!(n_found(&store, "goesword77secret").await, 1);
}

#[tokio::test]
async fn an_index_without_texts_is_made_anew() {
    let (_directory, path) = place();
    let store = open(&path);
    for name in ["one", "two"] {
        write(&store, name, 50).await;
    }
    for name in ["one", "two"] {
        store.delete(&acme(), &name.into(), None).await.unwrap();
    }
    store.reclaim().await.unwrap();
    for name in ["one", "two"] {
        assert_gone(&store, &path, name).await;
    }
    write(&store, "three", 1).await;
    assert_eq!(n_found(&store, "threeword0secret").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_merges_follow_each_other() {
    let (_directory, path) = place();
    let store = open(&path);
    for name in ["stays", "goes", "follows"] {
        write(&store, name, 280).await;
    }
    store.delete(&acme(), &"goes".into(), None).await.unwrap();
    let (tenant, id) = (acme(), ThreadId::from("follows"));
    let delete = store.delete(&tenant, &id, None);
    let (one, two, deleted) = tokio::join!(store.reclaim(), store.reclaim_at_once(), delete);
    one.unwrap();
    two.unwrap();
    deleted.unwrap();
    store.reclaim().await.unwrap();
    for name in ["goes", "follows"] {
        assert_gone(&store, &path, name).await;
    }
    assert_eq!(n_found(&store, "staysword4secret").await, 1);
}

#[tokio::test]
async fn a_merge_that_did_not_happen_is_made_after_the_next_start() {
    let (_directory, path) = place();
    let store = open(&path);
    write(&store, "stays", 300).await;
    write(&store, "goes", 50).await;
    store.delete(&acme(), &"goes".into(), None).await.unwrap();
    drop(store);
    let store = open(&path);
    assert!(setting(&path) > 1 && store.has_deleted());
    store.reclaim_at_once().await.unwrap();
    assert_gone(&store, &path, "goes").await;
    assert!(!store.has_deleted());
}

#[tokio::test(flavor = "multi_thread")]
async fn threads_are_written_and_deleted_while_the_index_is_merged() {
    let (_directory, path) = place();
    let store = open(&path);
    for name in ["stays", "goes", "follows"] {
        write(&store, name, 280).await;
    }
    store.delete(&acme(), &"goes".into(), None).await.unwrap();
    let during = async {
        write(&store, "comes", 20).await;
        let tenant = acme();
        store
            .delete(&tenant, &"follows".into(), None)
            .await
            .unwrap();
        write(&store, "last", 5).await;
    };
    let (reclaimed, ()) = tokio::join!(store.reclaim(), during);
    reclaimed.unwrap();
    store.reclaim().await.unwrap();
    for name in ["goes", "follows"] {
        assert_gone(&store, &path, name).await;
    }
    for name in ["stays", "comes", "last"] {
        assert_eq!(n_found(&store, &format!("{name}word4secret")).await, 1);
    }
}
