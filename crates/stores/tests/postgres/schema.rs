//! The tables and their version.

use crate::subject::{Opened, Schema, client, server};
use loomline_stores::{PostgresOptions, PostgresStore};
use std::time::Duration;
use store::StoreError;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_start_together_make_the_tables_once() {
    let schema = Schema::new().await;
    let mut tasks = JoinSet::new();
    for _ in 0..8 {
        let options = schema.options();
        tasks.spawn(async move { PostgresStore::open(&options).await.map(drop) });
    }
    for opened in tasks.join_all().await {
        opened.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_of_a_newer_program_are_refused() {
    let opened = Opened::new().await;
    let client = client(&opened.url()).await;
    let sql = "UPDATE schema_version SET version = 99, min_version = 98";
    client.batch_execute(sql).await.unwrap();
    let refused = PostgresStore::open(&PostgresOptions::new(opened.url())).await;
    let is_refused = matches!(refused, Err(StoreError::TooNew { found: 99, .. }));
    assert!(is_refused, "{refused:?}");
    // A newer program may leave the tables usable for older ones.
    let sql = "UPDATE schema_version SET min_version = 1";
    client.batch_execute(sql).await.unwrap();
    PostgresStore::open(&PostgresOptions::new(opened.url()))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_rises_while_a_program_waits_for_it_stays() {
    let opened = Opened::new().await;
    let newer = client(&opened.url()).await;
    let sql = "UPDATE schema_version SET version = 0";
    newer.batch_execute(sql).await.unwrap();
    let sql = "BEGIN; UPDATE schema_version SET version = 99";
    newer.batch_execute(sql).await.unwrap();
    let options = PostgresOptions::new(opened.url());
    let opening = tokio::spawn(async move { PostgresStore::open(&options).await.map(drop) });
    let admin = client(&server()).await;
    let sql =
        "SELECT pid FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'";
    let waits = async {
        while admin
            .query(sql, &[&opened.schema()])
            .await
            .unwrap()
            .is_empty()
        {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(20), waits).await.unwrap();
    newer.batch_execute("COMMIT").await.unwrap();
    opening.await.unwrap().unwrap();
    let sql = "SELECT version FROM schema_version";
    let version: i32 = newer.query_one(sql, &[]).await.unwrap().get(0);
    assert_eq!(version, 99);
}

#[tokio::test]
async fn an_unreachable_database_is_an_error_that_names_no_password() {
    let options = PostgresOptions::new("postgres://me:secret@127.0.0.1:1/db");
    let error = PostgresStore::open(&options).await.unwrap_err();
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(found) = cause {
        text = format!("{text}: {found}");
        cause = found.source();
    }
    assert!(
        text.contains("can't be reached") && !text.contains("secret"),
        "{text}"
    );
}
