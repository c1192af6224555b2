//! A store that is only read, and the store's own report of its state.

use crate::subject::{Opened, Schema, client, server};
use crate::suite::Operated as _;
use crate::suite::content::{Content, remove};
use loomline_stores::{
    Erasure as _, OpenMode, PostgresOptions, PostgresStore, Remedy, StoreHealth, Upkeep as _,
};
use std::sync::Arc;
use std::time::Duration;
use store::objects::NewObject;
use store::suite::Subject as _;
use store::suite::script::{Author, keep, record, script};
use store::{Filter, Hint, NodeTable as _, Store, StoreError, ThreadTable as _, WaitIndex as _};
use timeline::{Command, NewThread, Seq, State};
use tokio::time::{sleep, timeout};

fn read_only(url: String) -> PostgresOptions {
    PostgresOptions {
        mode: OpenMode::ReadOnly,
        ..PostgresOptions::new(url)
    }
}

/// The texts of an error and its causes.
fn texts(error: &StoreError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(found) = cause {
        text = format!("{text}: {found}");
        cause = found.source();
    }
    text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_only_read_refuses_every_write() {
    let opened = Opened::new().await;
    let mut author = Author::new(&opened.store(), "acme", NewThread::new("t", Some("t"))).await;
    author.commit_all(script()).await;
    let read = PostgresStore::open(&read_only(opened.url())).await.unwrap();
    let (tenant, thread) = ("acme".into(), author.thread.clone());
    let log = Filter::All;
    let records = store::EventLog::read(&read, &thread, Seq::ZERO, 10_000, log).await;
    assert_eq!(records.unwrap().len() as u64, author.tail.0);

    let first = store::suite::script::first(NewThread::new("u", None), jiff::Timestamp::UNIX_EPOCH);
    let object = NewObject {
        kind: "assistant".into(),
        id: "a".into(),
        created_at: jiff::Timestamp::UNIX_EPOCH,
        json: "{}".into(),
        content: None,
        thread: None,
        is_limited: false,
    };
    let (made, kept) = (first, author.append_of(keep("i")));
    let refused = [
        store::EventLog::append(&read, kept).await.map(drop),
        store::EventLog::get_or_create(&read, &tenant, made, None, None)
            .await
            .map(drop),
        read.delete(&tenant, &thread, None).await,
        read.settle(&thread, Seq(1)).await,
        read.objects().put(&tenant, object).await,
        read.checkpoints().forget(&tenant, "s").await,
        read.join("n").await.map(drop),
        read.declare_dead().await.map(drop),
    ];
    for refused in refused {
        assert!(matches!(refused, Err(StoreError::InUse(_))), "{refused:?}");
    }
    read.announce(Hint::Due);
    assert_eq!(read.health().await, StoreHealth::Healthy);
    Store::close(&read).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_only_read_makes_no_tables() {
    let schema = Schema::new().await;
    let error = PostgresStore::open(&read_only(schema.url()))
        .await
        .unwrap_err();
    assert!(texts(&error).contains("no tables of a store"), "{error:?}");
    let client = client(&schema.url()).await;
    let sql = "SELECT count(*) FROM pg_class WHERE relnamespace = current_schema()::regnamespace";
    let n_tables: i64 = client.query_one(sql, &[]).await.unwrap().get(0);
    assert_eq!(n_tables, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_only_read_refuses_older_tables() {
    let opened = Opened::new().await;
    let client = client(&opened.url()).await;
    client
        .batch_execute("UPDATE schema_version SET version = 0")
        .await
        .unwrap();
    let error = PostgresStore::open(&read_only(opened.url()))
        .await
        .unwrap_err();
    assert!(
        texts(&error).contains("the tables have version 0"),
        "{error:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failing_commits_are_reported_until_one_succeeds() {
    let opened = Opened::new().await;
    let store = PostgresStore::open(&PostgresOptions::new(opened.url()))
        .await
        .unwrap();
    let store = Arc::new(store);
    let shared: Arc<dyn Store> = store.clone();
    let mut author = Author::new(&shared, "acme", NewThread::new("t", Some("t"))).await;
    assert_eq!(store.health().await, StoreHealth::Healthy);
    let before = store.activity();
    assert!(
        before.n_commits >= 1 && before.n_requests >= before.n_commits,
        "{before:?}"
    );
    // Neither an append nor a trial can be written.
    let client = client(&opened.url()).await;
    let sql = "ALTER TABLE thread_blocks RENAME TO no_blocks; ALTER TABLE schema_version RENAME TO no_version";
    client.batch_execute(sql).await.unwrap();
    let append = author.append_of(keep("i"));
    let failed = author.append(append.clone()).await;
    assert!(matches!(failed, Err(StoreError::Failed(_))), "{failed:?}");
    let activity = store.activity();
    assert_eq!(activity.health, StoreHealth::CommitsFail);
    assert!(
        activity.n_failures > 0 && activity.n_damaged == 0,
        "{activity:?}"
    );
    assert_eq!(store.health().await, StoreHealth::CommitsFail);
    let sql = "ALTER TABLE no_blocks RENAME TO thread_blocks; ALTER TABLE no_version RENAME TO schema_version";
    client.batch_execute(sql).await.unwrap();
    // Nobody has to write anything: a commit is tried.
    sleep(Duration::from_millis(1_100)).await;
    assert_eq!(store.health().await, StoreHealth::Healthy);
    author.append(append).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lane_without_a_connection_is_reported() {
    let opened = Opened::new().await;
    let name = opened.schema();
    let admin = client(&server()).await;
    let sql = format!(
        "CREATE ROLE {name} LOGIN; GRANT USAGE ON SCHEMA {name} TO {name};
         GRANT ALL ON ALL TABLES IN SCHEMA {name} TO {name}; GRANT ALL ON ALL SEQUENCES IN SCHEMA {name} TO {name}"
    );
    admin.batch_execute(&sql).await.unwrap();
    let url = opened.url().replacen("postgres@", &format!("{name}@"), 1);
    let store = Arc::new(
        PostgresStore::open(&PostgresOptions::new(url))
            .await
            .unwrap(),
    );
    let shared: Arc<dyn Store> = store.clone();
    let mut author = Author::new(&shared, "acme", NewThread::new("t", Some("t"))).await;
    let sql = format!(
        "ALTER ROLE {name} NOLOGIN; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{name}'"
    );
    admin.batch_execute(&sql).await.unwrap();
    let append = author.append_of(keep("i"));
    let appending = tokio::spawn(async move { author.append(append).await });
    let seen = async {
        while store.health().await != StoreHealth::CommitsFail {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(10), seen).await.unwrap();
    admin
        .batch_execute(&format!("ALTER ROLE {name} LOGIN"))
        .await
        .unwrap();
    appending.await.unwrap().unwrap();
    assert_eq!(store.health().await, StoreHealth::Healthy);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_that_is_read_is_reported() {
    let opened = Opened::new().await;
    let store = PostgresStore::open(&PostgresOptions::new(opened.url()))
        .await
        .unwrap();
    let mut author = Author::new(&opened.store(), "acme", NewThread::new("t", Some("t"))).await;
    author.commit_all(script()).await;
    let client = client(&opened.url()).await;
    let sql = "UPDATE thread_blocks SET body = set_byte(body, 9, 255 - get_byte(body, 9)) WHERE first = 1";
    client.batch_execute(sql).await.unwrap();
    let read = store::EventLog::read(&store, &author.thread, Seq::ZERO, 10, Filter::All).await;
    assert!(matches!(read, Err(StoreError::Damaged(_))), "{read:?}");
    assert_eq!(store.health().await, StoreHealth::Damaged);
    assert_eq!(store.activity().n_damaged, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_schema_is_found() {
    for (sql, what) in [
        (
            "DROP INDEX thread_recent",
            "the schema lacks the index thread_recent of thread_threads",
        ),
        (
            "ALTER TABLE thread_items ADD COLUMN more text",
            "the schema has another column more of thread_items",
        ),
        (
            "ALTER TABLE tenant_usage ALTER COLUMN bytes DROP NOT NULL",
            "the schema has another column bytes of tenant_usage",
        ),
        (
            "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
             CREATE TRIGGER other BEFORE INSERT ON nodes FOR EACH ROW EXECUTE FUNCTION f()",
            "the schema has another trigger other of nodes",
        ),
        (
            "ALTER TABLE thread_parts DROP CONSTRAINT thread_parts_idx_check",
            "the schema lacks the constraint thread_parts_idx_check of thread_parts",
        ),
        (
            "DROP VIEW thread_parts_text",
            "the schema lacks the view thread_parts_text",
        ),
        (
            "ALTER TABLE thread_items DROP COLUMN channel CASCADE",
            "the schema lacks the column channel of thread_items",
        ),
    ] {
        let opened = Opened::new().await;
        client(&opened.url())
            .await
            .batch_execute(sql)
            .await
            .unwrap();
        let found = Content::of(opened.durable()).findings().await;
        let has = found
            .iter()
            .any(|it| it.what == what && it.remedy == Remedy::Restore);
        assert!(has, "{what}: {found:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_words_are_found_and_rebuilt() {
    let opened = Opened::new().await;
    let content = Content::of(opened.durable());
    content.everything().await;
    for sql in [
        "UPDATE thread_words SET words = array_to_tsvector(ARRAY['other']) WHERE seq > 0",
        "UPDATE thread_words SET text_offset = text_offset + 1",
        "DELETE FROM thread_words WHERE seq = 0",
    ] {
        assert!(opened.execute(sql).await > 0, "{sql}");
        let found = content.findings().await;
        let is_words = found.iter().all(|it| it.what.contains("of thread_words"));
        assert!(!found.is_empty() && is_words, "{sql}: {found:?}");
        content.durable.rebuild_tables().await.unwrap();
        content.assert_sound().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_a_thread_that_is_not_there_are_found() {
    let opened = Opened::new().await;
    let content = Content::of(opened.durable());
    let sql = "INSERT INTO thread_tokens VALUES (99, 'token', 'answer', 1)";
    assert_eq!(opened.execute(sql).await, 1);
    let found = content.findings().await;
    let is_token = found
        .iter()
        .all(|it| it.what.contains("a row of thread_tokens"));
    assert!(found.len() == 1 && is_token, "{found:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_tables_and_odd_columns_do_not_disturb_an_operator() {
    let opened = Opened::new().await;
    let content = Content::of(opened.durable());
    let author = content.secrets("t", 3).await;
    opened
        .execute("CREATE TABLE \"an Other\" (\"a text\" text)")
        .await;
    opened
        .execute("ALTER TABLE thread_items ADD COLUMN \"a text\" text")
        .await;
    content.durable.compact().await.unwrap();
    let samples = content.durable.samples_of_thread(&author.thread).await;
    let samples = Arc::new(samples.unwrap());
    content.durable.search_for(samples).await.unwrap();
    let storage = content.durable.storage().await.unwrap();
    let has_other = storage.kinds.iter().any(|(kind, _)| kind == "an Other");
    assert!(!has_other, "{storage:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_works_while_another_node_writes() {
    let opened = Opened::new().await;
    let content = Content::of(opened.durable());
    content.everything().await;
    let removed = "removed".into();
    let other = opened.again().await;
    let writing = tokio::spawn(async move {
        let mut removed = Author::of(&other, "removed".into(), jiff::Timestamp::UNIX_EPOCH).await;
        for n in 0..60 {
            let id = format!("new-{n}");
            let mut author =
                Author::new(&other, "acme", NewThread::new(id.as_str(), Some(&id))).await;
            author.commit_all(script().into_iter().take(n % 20)).await;
            removed.commit(keep(&format!("i{n}"))).await;
            if n % 3 == 0 {
                other
                    .delete(&"acme".into(), &author.thread, None)
                    .await
                    .unwrap();
            }
        }
    });
    let mut n_rounds = 0;
    while !writing.is_finished() {
        content.assert_sound().await;
        content.durable.rebuild_tables().await.unwrap();
        content.durable.erase_removed(&removed).await.unwrap();
        content.durable.reclaim().await.unwrap();
        content.durable.compact().await.unwrap();
        n_rounds += 1;
    }
    writing.await.unwrap();
    assert!(n_rounds > 0);
    content.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_of_a_store_that_is_only_read_changes_nothing() {
    let opened = Opened::new().await;
    let content = Content::of(opened.durable());
    let mut author = content.secrets("t", 3).await;
    remove(&mut author).await;
    let read = PostgresStore::open(&read_only(opened.url())).await.unwrap();
    assert_eq!(read.findings().await.unwrap(), Vec::new());
    let expected = read.erasable(&author.thread).await.unwrap();
    assert_eq!(expected.entries, 2);
    let refused = [
        read.rebuild_tables().await,
        read.erase_removed(&author.thread).await.map(drop),
        read.erase_tenant(&"acme".into()).await.map(drop),
        read.reclaim().await.map(drop),
        read.compact().await,
    ];
    for refused in refused {
        assert!(matches!(refused, Err(StoreError::InUse(_))), "{refused:?}");
    }
    assert_eq!(read.erasable(&author.thread).await.unwrap(), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_the_tables_refuse_is_found_and_the_check_continues() {
    let opened = Opened::new().await;
    let content = Content::of(opened.durable());
    let sql = "ALTER TABLE thread_contexts DROP CONSTRAINT thread_contexts_id_key";
    opened.execute(sql).await;
    for name in ["one", "two"] {
        let thread = NewThread::new(name, Some(name));
        let context_id = "same".into();
        let at = jiff::Timestamp::UNIX_EPOCH;
        let made = State::default().decide(Command::Create { thread, context_id }, at);
        let first = made.unwrap().into_iter().map(|event| record(event, at));
        let first = first.collect();
        let tenant = "acme".into();
        let made = content.store.get_or_create(&tenant, first, None, None);
        made.await.unwrap();
    }
    let mut author = content.thread("three").await;
    author.commit_all(script()).await;
    opened.execute("UPDATE thread_steps SET asks = true").await;
    let found = content.findings().await;
    let of = |thread: &str| {
        found
            .iter()
            .filter(|it| it.thread.as_deref() == Some(thread))
            .count()
    };
    assert_eq!((of("one"), of("two"), of("three")), (0, 1, 1), "{found:?}");
    assert!(
        found
            .iter()
            .any(|it| it.what == "an id of its log is in use: same")
    );
}
