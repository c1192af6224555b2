//! The full-text index: what it has, what leaves it, and how it is built.

use super::version_9::{WITHOUT_V8, write_version_9};
use super::{dump, open, place, written};
use loomline_stores::Upkeep as _;
use loomline_stores::{SqliteOptions, SqliteStore};
use rusqlite::Connection;
use serde_json::json;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use store::search::{Search, SearchWords};
use store::suite::script::{complete_step, end, respond, start};
use store::suite::{Author, rolled, script};
use store::{Store, TextIndex as _, ThreadTable as _};
use timeline::{Command, NewItem, NewThread, Removed, Trigger};

fn says(id: &str, text: &str) -> NewItem {
    NewItem::user(id, json!([{"type": "input_text", "text": text}]).into())
}

/// A thread with a title, messages, answers, a removed message and a removed answer.
async fn life(store: &Arc<SqliteStore>, name: &str) -> Author {
    let store: Arc<dyn Store> = store.clone();
    let new = NewThread {
        title: Some(format!("About {name}")),
        ..NewThread::new(name, Some(name))
    };
    let mut author = Author::new(&store, "acme", new).await;
    for n in ["one", "two"] {
        author
            .commit_all([
                Command::Record {
                    item: says(&format!("kept-{n}"), "a kept message"),
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
        author.commit(Command::Remove { what }).await;
    }
    author
}

/// Every word of the index and where it is.
fn words(path: &Path) -> Vec<String> {
    let conn = Connection::open(path).unwrap();
    conn.execute_batch(
        "CREATE VIRTUAL TABLE temp.words USING fts5vocab('main', 'thread_words', 'instance')",
    )
    .unwrap();
    let sql = "SELECT format('%s %d %s %d', term, doc, col, offset) FROM temp.words
               UNION ALL SELECT format('size of %d', id) FROM thread_words_docsize ORDER BY 1";
    let mut select = conn.prepare(sql).unwrap();
    let rows = select.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

async fn n_found(store: &SqliteStore, words: &str) -> usize {
    let search = Search {
        words: SearchWords::parse(words).unwrap(),
        limit: 100,
        ..Search::default()
    };
    let found = store.search(&"acme".into(), search).await.unwrap();
    found.threads.len()
}

#[tokio::test]
async fn rebuilding_the_index_changes_nothing() {
    let (_directory, path) = place();
    let store = open(&path);
    for name in ["t1", "t2"] {
        life(&store, name).await;
    }
    for seed in 1..=4 {
        let name = format!("rolled-{seed}");
        let mut author = written(&store, &name, vec![]).await;
        author.commit_some(rolled(seed, 0..250)).await;
    }
    let before = words(&path);
    assert!(before.len() > 300, "{}", before.len());
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());

    store.rebuild_tables().await.unwrap();

    assert_eq!(words(&path), before);
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_store_of_version_7_is_indexed_when_it_is_opened() {
    let (_directory, path) = place();
    write_version_9(&path, "");
    drop(open(&path));
    let (_directory, older) = place();
    write_version_9(&older, WITHOUT_V8);

    let store = open(&older);

    assert_eq!((dump(&older), words(&older)), (dump(&path), words(&path)));
    assert_eq!(n_found(&store, "title with").await, 1);
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_deleted_thread_leaves_none_of_its_words_in_the_file() {
    let (_directory, path) = place();
    let store = open(&path);
    // The index has this word in another spelling than the log.
    let (spelled, indexed) = ("Zÿxqwvütz", "zyxqwvutz");
    let mut author = written(&store, "secret", vec![]).await;
    for n in 0..40 {
        let item = says(
            &format!("i{n}"),
            &format!("{spelled} {spelled}{n} and more"),
        );
        author.commit(Command::Record { item }).await;
        written(&store, &format!("other-{n}"), script()).await;
    }
    assert_eq!(n_found(&store, indexed).await, 1);
    let has = |word: &str| {
        let bytes = std::fs::read(&path).unwrap();
        let mut windows = bytes.windows(word.len());
        windows.any(|window| window == word.as_bytes())
    };
    drop(author.store.clone());
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
        .unwrap();
    drop(conn);
    assert!(has(spelled) && has(indexed));

    store
        .delete(&"acme".into(), &author.thread, None)
        .await
        .unwrap();
    store.close().await.unwrap();

    assert!(!has(indexed));
    assert!(!has(spelled));
    assert!(!words(&path).iter().any(|word| word.starts_with("zyx")));
    let store = open(&path);
    assert_eq!(n_found(&store, "dry").await, 40);
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn check_finds_texts_that_are_missing_in_the_index_or_too_many() {
    let (_directory, path) = place();
    // The second check is by the same connection as the first.
    let options = SqliteOptions {
        n_readers: NonZeroUsize::new(1),
        ..SqliteOptions::default()
    };
    let store = Arc::new(SqliteStore::open(&path, &options).unwrap());
    life(&store, "t1").await;
    let conn = Connection::open(&path).unwrap();
    let text = "INSERT INTO thread_words (rowid, scope, text) VALUES (1 << 40, 'tx h9', 'lost')";
    conn.execute(text, []).unwrap();
    let sql =
        "DELETE FROM thread_words_docsize WHERE id = (SELECT min(id) FROM thread_words_docsize)";
    conn.execute(sql, []).unwrap();
    let found = store.check().await.unwrap();
    let expected = [
        "thread t1: 1 of its texts are not in the full-text index; rebuild the tables",
        "the full-text index has 1 texts that no thread has; rebuild the tables",
    ];
    assert_eq!(found, expected);

    store.rebuild_tables().await.unwrap();

    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_page_ends_with_a_cursor_after_ten_thousand_hits() {
    let (_directory, path) = place();
    let store = open(&path);
    let mut old = written(&store, "old", vec![]).await;
    let item = says("i", "word");
    old.commit(Command::Record { item }).await;
    let mut busy = written(&store, "busy", vec![]).await;
    let mut append = busy.append_with(Vec::new());
    for n in 0..10_000 {
        let item = says(&format!("i{n}"), "word");
        append
            .records
            .extend(busy.append_of(Command::Record { item }).records);
    }
    busy.append(append).await.unwrap();
    let page = async |after| {
        let search = Search {
            words: SearchWords::parse("word").unwrap(),
            limit: 10,
            after,
            ..Search::default()
        };
        let found = store.search(&"acme".into(), search).await.unwrap();
        let keys = found.threads.into_iter().map(|it| it.row.thread.key);
        (keys.flatten().collect::<Vec<_>>(), found.next)
    };
    let (first, next) = page(None).await;
    assert_eq!(first, ["busy"]);
    assert!(next.is_some());
    assert_eq!(page(next).await, (vec!["old".to_owned()], None));
}
