//! Tenants go from one kind of store to the other, while nodes serve them.

use crate::subject::{Opened, client};
use crate::suite::{Content, Operated as _, acme, fill, own_lines};
use loomline_stores::{SqliteOptions, SqliteStore, TransferError, export_tenant, import_tenant};
use std::io::Cursor;
use std::sync::Arc;
use store::suite::Author;
use store::suite::script::keep;
use store::{DueSearch, Store as _, StoreError};
use timeline::NewThread;
use tokio::task::JoinSet;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_of_sqlite_is_the_same_in_postgresql_and_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("one.db");
    let options = SqliteOptions::default();
    let sqlite = Arc::new(SqliteStore::open(&path, &options).unwrap());
    let content = Content::of(sqlite.clone());
    fill(&content).await;
    let ends = content.durable.chain_ends().await.unwrap();
    drop(content);
    sqlite.close().await.unwrap();
    let mut lines = Vec::new();
    let counts = export_tenant(&path, None, "acme", &mut lines).unwrap();

    let mut opened = Opened::new().await;
    assert_eq!(opened.import(&lines).await.unwrap(), counts);
    let content = Content::of(opened.durable());
    content.assert_sound().await;
    for end in ends.iter().filter(|it| it.thread != "theirs") {
        let compared = content.durable.compare(end.clone()).await.unwrap();
        assert_eq!(compared, loomline_stores::Compared::Continues, "{end:?}");
    }
    let (again, _) = opened.export("acme").await.unwrap();
    assert_eq!(own_lines(&again), own_lines(&lines));

    let path = directory.path().join("other.db");
    import_tenant(&path, &options, &mut Cursor::new(&again)).unwrap();
    let mut back = Vec::new();
    export_tenant(&path, None, "acme", &mut back).unwrap();
    assert_eq!(own_lines(&back), own_lines(&lines));
    let sqlite = SqliteStore::open(&path, &options).unwrap();
    assert_eq!(sqlite.check().await.unwrap(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_is_imported_while_nodes_write_to_it() {
    let source = Opened::new().await;
    fill(&Content::of(source.durable())).await;
    let (lines, counts) = source.export("acme").await.unwrap();
    let mut opened = Opened::new().await;
    let other = opened.again().await;
    let mut tasks = JoinSet::new();
    for n in 0..8 {
        let store = other.clone();
        tasks.spawn(async move {
            let id = format!("own-{n}");
            let mut author =
                Author::new(&store, "acme", NewThread::new(id.as_str(), Some(&id))).await;
            for n in 0..20 {
                author.commit(keep(&format!("i{n}"))).await;
            }
        });
    }
    assert_eq!(opened.import(&lines).await.unwrap(), counts);
    tasks.join_all().await;
    Content::of(opened.durable()).assert_sound().await;
    let due = other.due(DueSearch::new(100)).await.unwrap();
    assert!(due.contains(&"running".into()), "{due:?}");
    let found = other.find(&acme(), "parent").await.unwrap();
    assert_eq!(found.thread.id, "parent".into());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_holds_up_nobody_and_shows_nothing_before_its_commit() {
    let source = Opened::new().await;
    fill(&Content::of(source.durable())).await;
    let (lines, _) = source.export("acme").await.unwrap();
    let mut opened = Opened::new().await;
    let other = opened.again().await;
    // The import waits for this lock in its middle.
    let client = client(&opened.url()).await;
    let sql = "BEGIN; LOCK TABLE agent_checkpoints IN ACCESS EXCLUSIVE MODE";
    client.batch_execute(sql).await.unwrap();
    let importing = tokio::spawn(async move {
        let imported = opened.import(&lines).await;
        (opened, imported)
    });
    let sql = "SELECT count(*) FROM pg_locks WHERE relation = 'agent_checkpoints'::regclass AND NOT granted";
    while client.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        tokio::task::yield_now().await;
    }
    assert!(matches!(
        other.find(&acme(), "parent").await,
        Err(StoreError::NotFound)
    ));
    let taken = Author::new(&other, "acme", NewThread::new("other-id", Some("parent"))).await;
    client.batch_execute("COMMIT").await.unwrap();
    let (opened, imported) = importing.await.unwrap();
    let expected = matches!(
        &imported,
        Err(TransferError::Store(StoreError::KeyTaken(key))) if key == "parent"
    );
    assert!(expected, "{imported:?}");
    let found = other.find(&acme(), "parent").await.unwrap();
    assert_eq!(found.thread.id, taken.thread);
    Content::of(opened.durable()).assert_sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_is_one_moment_of_a_store_that_is_written() {
    let opened = Opened::new().await;
    let other = opened.again().await;
    let writing = tokio::spawn(async move {
        let mut author = Author::new(&other, "acme", NewThread::new("t", Some("t"))).await;
        for n in 0..200 {
            author.commit(keep(&format!("i{n}"))).await;
        }
    });
    let mut n_exports = 0;
    while !writing.is_finished() {
        match opened.export("acme").await {
            Ok((lines, counts)) => {
                let mut to = Opened::new().await;
                assert_eq!(to.import(&lines).await.unwrap(), counts);
                n_exports += 1;
            }
            Err(TransferError::NoTenant(_)) => {}
            Err(other) => panic!("{other:?}"),
        }
    }
    writing.await.unwrap();
    assert!(n_exports > 0);
}
