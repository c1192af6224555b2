//! Batches of appends.

use crate::subject::{Opened, client};
use std::sync::Arc;
use store::suite::Subject as _;
use store::suite::script::{Author, keep};
use store::{Append, Store, StoreError};
use timeline::NewThread;
use tokio::task::JoinSet;

async fn threads(store: &Arc<dyn Store>, n: usize) -> Vec<Author> {
    let mut authors = Vec::new();
    for n in 0..n {
        let id = format!("t{n}");
        authors.push(Author::new(store, "acme", NewThread::new(id.as_str(), Some(&id))).await);
    }
    authors
}

/// Each thread guards its neighbour, in both directions, from two handles of the store.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_with_crossing_threads_do_not_deadlock() {
    let opened = Opened::new().await;
    let other = opened.again().await;
    let stores = [opened.store(), other];
    let authors = threads(&stores[0], 16).await;
    let tails: Vec<_> = authors
        .iter()
        .map(|it| (it.thread.clone(), it.tail))
        .collect();
    let mut tasks = JoinSet::new();
    for (n, mut author) in authors.into_iter().enumerate() {
        let store = stores[n % 2].clone();
        let tails = tails.clone();
        tasks.spawn(async move {
            author.store = store;
            let mut n_landed = 0;
            for round in 0..20 {
                let neighbour = if round % 2 == 0 { n + 1 } else { n + 15 } % 16;
                let (thread, _) = tails[neighbour].clone();
                let tail = author.store.head(&thread).await.unwrap().tail;
                let append = Append {
                    unmoved: vec![(thread, tail)],
                    ..author.append_of(keep(&format!("i{n}-{round}")))
                };
                match author.append(append).await {
                    Ok(_) => n_landed += 1,
                    Err(StoreError::Moved { .. }) => {}
                    Err(error) => panic!("{error:?}"),
                }
            }
            n_landed
        });
    }
    let landed: u32 = tasks.join_all().await.into_iter().sum();
    assert!(landed > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_bad_request_of_a_batch_is_refused_alone() {
    let opened = Opened::new().await;
    let store = opened.store();
    let mut authors = threads(&store, 24).await;
    authors[7].commit(keep("taken")).await;
    let mut tasks = JoinSet::new();
    for (n, mut author) in authors.into_iter().enumerate() {
        tasks.spawn(async move {
            let mut append = author.append_of(keep("taken-not"));
            if n == 7 {
                // The state of the author forbids it, the database must, too.
                let again =
                    Author::of(&author.store, "t0".into(), jiff::Timestamp::UNIX_EPOCH).await;
                let mut again = again;
                append.records = again.append_of(keep("taken")).records;
            }
            (n, author.append(append).await)
        });
    }
    for (n, answer) in tasks.join_all().await {
        if n == 7 {
            assert!(
                matches!(&answer, Err(StoreError::Duplicate(id)) if id == "taken"),
                "{answer:?}"
            );
        } else {
            answer.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_is_done_though_its_caller_is_gone() {
    let opened = Opened::new().await;
    let store = opened.store();
    let mut author = threads(&store, 1).await.remove(0);
    let append = author.append_of(keep("i"));
    let tail = append.tail.next();
    {
        let mut asked = store.append(append);
        // It is in the queue once it was polled.
        assert!(futures_util::poll!(&mut asked).is_pending());
    }
    while store.row(&author.thread).await.unwrap().tail < tail {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_with_null_characters_are_stored_unchanged() {
    let opened = Opened::new().await;
    let store = opened.store();
    let new = NewThread {
        title: Some("a\0title".into()),
        metadata: Some(serde_json::json!({"a": "\0"}).into()),
        ..NewThread::new("t", Some("k\0\u{1}"))
    };
    let author = Author::new(&store, "acme\0", new).await;
    let row = store.find(&"acme\0".into(), "k\0\u{1}").await.unwrap();
    assert_eq!(row.thread.title.as_deref(), Some("a\0title"));
    assert_eq!(row.tenant, "acme\0".into());
    assert_eq!(row, store.row(&author.thread).await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_views_show_the_texts_of_a_thread() {
    let opened = Opened::new().await;
    let store = opened.store();
    let mut author = threads(&store, 1).await.remove(0);
    author.commit_all(store::suite::script()).await;
    let client = client(&opened.url()).await;
    let count = async |sql: &str| -> i64 { client.query_one(sql, &[]).await.unwrap().get(0) };
    for (view, column) in [
        ("thread_items_text", "content"),
        ("thread_contexts_text", "id"),
        ("thread_executions_text", "trigger_item_id"),
        ("thread_steps_text", "event_id"),
        ("thread_parts_text", "part"),
        ("thread_trace_runs", "id"),
        ("thread_trace_spans", "run_id"),
        ("thread_trace_events", "name"),
    ] {
        let sql = format!("SELECT count(*) FROM {view} WHERE {column} IS NOT NULL");
        assert!(count(&sql).await > 0, "{view}");
    }
}

/// How often each table of threads was read as a whole, and the number of rows written to all of them.
async fn scans(client: &tokio_postgres::Client, schema: &str) -> (Vec<(String, i64)>, i64) {
    let sql = "SELECT relname::text, seq_scan, n_tup_ins FROM pg_stat_user_tables
               WHERE schemaname = $1 AND relname LIKE 'thread\\_%' ORDER BY relname";
    let rows = client.query(sql, &[&schema]).await.unwrap();
    let scans = rows.iter().map(|row| (row.get(0), row.get(1)));
    let n_written = rows.iter().map(|row| row.get::<_, i64>(2)).sum();
    (scans.collect(), n_written)
}

/// Statistics arrive some time after the connection that they are of has ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_append_reads_a_whole_table() {
    let mut opened = Opened::new().await;
    opened.reopen().await;
    let client = client(&opened.url()).await;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let (before, _) = scans(&client, opened.schema()).await;
    let store = opened.store();
    for mut author in threads(&store, 3).await {
        author.commit_all(store::suite::script()).await;
    }
    drop(store);
    opened.reopen().await;
    let after = loop {
        let (after, n_written) = scans(&client, opened.schema()).await;
        if n_written > 100 {
            break after;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    assert_eq!(after, before);
}
