//! Connections whose statements get no answer or are refused.

use crate::subject::{Opened, client, server};
use loomline_stores::{PostgresOptions, PostgresStore};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;
use store::search::{Search, SearchWords};
use store::suite::Subject as _;
use store::suite::script::{Author, keep, tenant};
use store::{Store, StoreError, WaitingRows};
use timeline::NewThread;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_postgres::Client;

/// More than any of this takes.
const SOON: Duration = Duration::from_secs(20);

async fn open(options: PostgresOptions) -> Arc<dyn Store> {
    Arc::new(PostgresStore::open(&options).await.unwrap())
}

/// The backends of a schema.
async fn backends(client: &Client, schema: &str) -> Vec<i32> {
    let sql = "SELECT pid FROM pg_stat_activity WHERE application_name = $1";
    let rows = client.query(sql, &[&schema]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// Reads an object eight times at once. Returns the errors.
async fn reads(store: &Arc<dyn Store>) -> Vec<StoreError> {
    let mut reads = JoinSet::new();
    for _ in 0..8 {
        let store = store.clone();
        reads.spawn(async move { store.objects().get(&tenant(), "kind", "o").await.err() });
    }
    reads.join_all().await.into_iter().flatten().collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_without_an_answer_have_a_limited_number_of_connections() {
    let opened = Opened::new().await;
    let store = open(PostgresOptions {
        patience: Duration::from_millis(500),
        ..PostgresOptions::new(opened.url())
    })
    .await;
    let hold = client(&opened.url()).await;
    hold.batch_execute("BEGIN; LOCK TABLE tenant_objects IN ACCESS EXCLUSIVE MODE")
        .await
        .unwrap();
    let admin = client(&server()).await;
    let n_before = backends(&admin, opened.schema()).await.len();
    // 48 reads, each of which would leave a connection.
    for _ in 0..6 {
        assert_eq!(reads(&store).await.len(), 8);
    }
    let n_waiting = backends(&admin, opened.schema()).await.len() - n_before;
    assert!((9..=22).contains(&n_waiting), "{n_waiting}");
    hold.batch_execute("ROLLBACK").await.unwrap();
    let answered = async { while !reads(&store).await.is_empty() {} };
    timeout(SOON, answered).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewal_does_not_wait_for_another_one() {
    let opened = Opened::new().await;
    let store = opened.store();
    let node = store.join("a").await.unwrap();
    let hold = client(&opened.url()).await;
    let sql = "BEGIN; SELECT FROM nodes FOR UPDATE";
    hold.batch_execute(sql).await.unwrap();
    let renewed = timeout(Duration::from_secs(2), store.renew(node)).await;
    assert!(
        matches!(renewed, Ok(Err(StoreError::Failed(_)))),
        "{renewed:?}"
    );
    hold.batch_execute("ROLLBACK").await.unwrap();
    store.renew(node).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn searches_and_lists_behind_a_lock_have_an_end() {
    let opened = Opened::new().await;
    let store = open(PostgresOptions {
        patience: Duration::from_secs(1),
        ..PostgresOptions::new(opened.url())
    })
    .await;
    let hold = client(&opened.url()).await;
    hold.batch_execute("BEGIN; LOCK TABLE thread_words, thread_waits IN ACCESS EXCLUSIVE MODE")
        .await
        .unwrap();
    let tenant = tenant();
    let search = Search {
        words: SearchWords::parse("word").unwrap(),
        limit: 1,
        ..Search::default()
    };
    let search = timeout(SOON, store.search(&tenant, search)).await;
    assert!(search.unwrap().is_err());
    let page = WaitingRows {
        limit: 1,
        ..WaitingRows::default()
    };
    let waiting = timeout(SOON, store.waiting(&tenant, page)).await;
    assert!(waiting.unwrap().is_err());
}

/// The answers of appends that wait behind one that is refused are those of the log, also near the end of their time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_behind_one_that_waits_too_long_are_answered_as_they_landed() {
    let opened = Opened::new().await;
    let store = open(PostgresOptions {
        lanes: NonZeroUsize::MIN,
        patience: Duration::from_secs(6),
        ..PostgresOptions::new(opened.url())
    })
    .await;
    let mut authors = Vec::new();
    for id in ["t0", "t1", "t2", "t3"] {
        authors.push(Author::new(&store, "acme", NewThread::new(id, Some(id))).await);
    }
    let hold = client(&opened.url()).await;
    let sql = "BEGIN; SELECT FROM thread_threads WHERE id = 't0' FOR UPDATE";
    hold.batch_execute(sql).await.unwrap();
    let mut appends = JoinSet::new();
    // The first one is alone in its batch, and the time of the second one ends soon after it.
    for (wait, mut author) in [0, 30, 1000, 1100].into_iter().zip(authors) {
        appends.spawn(async move {
            sleep(Duration::from_millis(wait)).await;
            let append = author.append_of(keep("i"));
            let is_done = author.append(append).await.is_ok();
            (author, is_done)
        });
    }
    let mut done = Vec::new();
    for (author, is_done) in timeout(SOON, appends.join_all()).await.unwrap() {
        let id = author.thread.as_str();
        match id {
            "t0" => assert!(!is_done),
            "t1" => {}
            _ => assert!(is_done, "{id}"),
        }
        done.push(author);
    }
    for author in done.iter().filter(|it| it.thread.as_str() != "t0") {
        let row = opened.store().row(&author.thread).await.unwrap();
        assert_eq!(row.tail, author.tail, "{}", author.thread);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_transaction_leaves_its_connection_open() {
    let opened = Opened::new().await;
    let store = open(PostgresOptions {
        readers: NonZeroUsize::MIN,
        ..PostgresOptions::new(opened.url())
    })
    .await;
    Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    let admin = client(&server()).await;
    let before = backends(&admin, opened.schema()).await;
    for _ in 0..3 {
        let head = store.head(&"none".into()).await;
        assert!(matches!(head, Err(StoreError::NotFound)), "{head:?}");
        let deleted = store.delete(&tenant(), &"none".into(), None).await;
        assert!(matches!(deleted, Err(StoreError::NotFound)), "{deleted:?}");
    }
    let after = backends(&admin, opened.schema()).await;
    let is_open = |pid: &i32| after.contains(pid);
    assert!(before.iter().all(is_open), "{before:?} {after:?}");
}
