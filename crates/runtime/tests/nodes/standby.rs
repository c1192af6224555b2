//! Servers that take no commits: their standby server is away, they only read, their disk is full, or they have no
//! connection left. And standby servers that take their place.

use crate::agents::World;
use crate::cluster::{
    LEASE, Node, Options, SOON, check_undisturbed, is_completed, n_marked, say, until,
};
use crate::database::{Database, Server};
use futures_util::StreamExt as _;
use loomline_runtime as runtime;
use runtime::{FollowedRecord, LeaseFault, RuntimeError, Until};
use std::sync::Arc;
use std::time::Duration;
use store::StoreError;
use stores::{StoreHealth, Upkeep as _};
use timeline::{Event, ReadPosition, Record, chunk_type};
use tokio::task::JoinSet;

/// Row 8. The server waits for a standby server that there is not, and somebody cancels its wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_without_its_standby_server_is_not_acknowledged_before_it_is_safe() {
    let (server, world) = (Server::start(), World::new());
    let database = Database::on(&server).await;
    let node = Arc::new(Node::start(&database, &world, "a").await);
    node.say("k", "say 1 word").await;
    node.at_rest("k").await;
    let reload = "SELECT pg_reload_conf()";
    server
        .admin(&[
            "ALTER SYSTEM SET synchronous_standby_names = 'nobody'",
            reload,
        ])
        .await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let mut requests = JoinSet::new();
    let asked = Arc::clone(&node);
    requests.spawn(async move { asked.react(say("k", "say \"late\"")).await });
    let client = database.client().await;
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    let count = async |sql: &str| -> i64 { client.query_one(sql, &[]).await.unwrap().get(0) };
    until("the commit waits", SOON, async || count(waiting).await > 0).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.calls("late").len(), 0);
    for _ in 0..3 {
        let cancel = "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
        count(cancel).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!(requests.try_join_next().is_none());
        assert_eq!(world.calls("late").len(), 0);
    }
    until(
        "the lease ends, as it can't be renewed safely",
        SOON,
        async || node.runtime.lease_fault() == Some(LeaseFault::Ended),
    )
    .await;
    server
        .admin(&["ALTER SYSTEM RESET synchronous_standby_names", reload])
        .await;
    requests.join_next().await.unwrap().unwrap().unwrap();
    check_undisturbed(&node.at_rest("k").await);
    assert_eq!(world.calls("late").len(), 1);
}

/// Ends the replication, so that the standby server lacks what is written from now on.
async fn cut_off(standby: &Server) {
    let sql = [
        "ALTER SYSTEM SET primary_conninfo = ''",
        "SELECT pg_reload_conf()",
    ];
    standby.admin(&sql).await;
    standby
        .until("SELECT NOT EXISTS (SELECT FROM pg_stat_wal_receiver)")
        .await;
}

/// Row 9.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_asynchronous_failover_that_loses_the_end_of_a_log_is_detected() {
    let (server, world) = (Server::start(), World::new());
    let standby = server.standby();
    let database = Database::on_pair(&server, &standby).await;
    let one = Node::start(&database, &world, "a").await;
    let other = Node::start(&database, &world, "b").await;
    one.say("k", "say 3 words").await;
    let safe = one.at_rest("k").await;
    let caught_up =
        "SELECT count(*) = 1 FROM pg_stat_replication WHERE replay_lsn >= pg_current_wal_lsn()";
    one.say("runs", "slow 30ms say 100 words").await;
    // A follower at another node has the owner store the chunks.
    let from = ReadPosition::default();
    let streamed = other.follow("runs", from, Until::Forever).await;
    let streamed = tokio::spawn(streamed.collect::<Vec<_>>());
    one.say("acts", "effect \"hold\"").await;
    until("the models are called", SOON, async || {
        world.n_open_calls() == 2
    })
    .await;
    server.until(caught_up).await;
    cut_off(&standby).await;
    world.answers.send_replace(true);
    let follow = other.follow("k", from, Until::Forever).await;
    one.say("k", "say \"lost\"").await;
    let seen = one.at_rest("k").await.last().unwrap().seq;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let epoch = database.head("k").await.epoch;
    let is_before = |it: &Result<FollowedRecord, _>| {
        let is_before = it.as_ref().is_ok_and(|it| it.record.seq < seen);
        std::future::ready(is_before)
    };
    let mut followed = follow.skip_while(is_before);
    assert!(followed.next().await.unwrap().is_ok());
    let stays = other.follow("k", seen.into(), Until::Forever).await;

    server.end();
    standby.admin(&["SELECT pg_promote()"]).await;
    for node in [&one, &other] {
        until("the node has its lease", SOON, async || {
            node.runtime.is_leased()
        })
        .await;
    }
    // A stream that is open ends, and one that resumes is refused.
    let ended = tokio::time::timeout(SOON, stays.collect::<Vec<_>>());
    let ended = ended.await.unwrap();
    assert!(matches!(ended[..], [Err(StoreError::AheadOfLog { .. })]));
    let tail = safe.last().unwrap().seq;
    for node in [&one, &other] {
        let resumed = node.resume("k", seen.into(), Until::Rest).await;
        let is_refused = matches!(
            resumed.map(drop),
            Err(RuntimeError::Store(StoreError::AheadOfLog { at, tail: end })) if at == seen && end == tail
        );
        assert!(is_refused);
        assert_eq!(node.at_rest("k").await, safe);
    }
    one.say("k", "say 4 words").await;
    let records = other.at_rest("k").await;
    check_undisturbed(&records);
    assert!(records.starts_with(&safe));
    assert_eq!(one.at_rest("k").await, records);
    assert!(database.head("k").await.epoch > epoch);
    // A run that the cut has met begins its step again, and its answer is whole.
    one.say("same", "slow 30ms say 100 words").await;
    let undisturbed = one.at_rest("same").await;
    for key in ["runs", "acts"] {
        let records = other.at_rest(key).await;
        assert_eq!(timeline::verify(&records), Ok(()));
        assert!(is_completed(&records), "{key}");
        assert_eq!(n_marked(&records, chunk_type::STEP_RESET), 1, "{key}");
    }
    let last = streamed.await.unwrap().pop();
    let last = last.map(|it| it.map(|it| it.record.seq));
    let is_refused = matches!(last, Some(Err(StoreError::AheadOfLog { .. })));
    assert!(is_refused, "{last:?}");
    let cut = other.at_rest("runs").await;
    assert!(answer(&undisturbed).len() > 400);
    assert_eq!(answer(&cut), answer(&undisturbed));
}

/// The text of the last answer.
fn answer(records: &[Record]) -> String {
    let text = |record: &Record| match &record.event {
        Event::PartCreated { part, .. } => {
            let part: serde_json::Value = part.read().unwrap();
            part["text"].as_str().map(str::to_owned)
        }
        _ => None,
    };
    records.iter().rev().find_map(text).unwrap_or_default()
}

/// Row 10. The agent of the old primary ends it, as Patroni's does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_primaries_the_one_without_a_standby_server_acknowledges_nothing() {
    let (server, world) = (Server::start(), World::new());
    let standby = server.standby();
    let synchronous = [
        "ALTER SYSTEM SET synchronous_standby_names = 'standby'",
        "SELECT pg_reload_conf()",
    ];
    server.admin(&synchronous).await;
    server
        .until("SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'")
        .await;
    let database = Database::on_pair(&server, &standby).await;
    let node = Arc::new(Node::start(&database, &world, "a").await);
    node.say("k", "say 3 words").await;
    let safe = node.at_rest("k").await;
    cut_off(&standby).await;
    standby.admin(&["SELECT pg_promote()"]).await;
    let mut requests = JoinSet::new();
    let asked = Arc::clone(&node);
    requests.spawn(async move { asked.react(say("k", "say \"late\"")).await });
    until("the node is not ready", SOON, async || {
        node.runtime.lease_fault() == Some(LeaseFault::Ended)
    })
    .await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(requests.try_join_next().is_none());
    assert_eq!(world.calls("late").len(), 0);

    server.end();
    requests.join_next().await.unwrap().unwrap().unwrap();
    let records = node.at_rest("k").await;
    check_undisturbed(&records);
    assert!(records.starts_with(&safe));
    assert_eq!(world.calls("late").len(), 1);
    until("the node is ready", SOON, async || node.runtime.is_leased()).await;
}

/// Row 20, a full disk.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_a_full_disk_pauses_runs_and_loses_nothing() {
    let (server, world) = (Server::start(), World::new());
    let database = Database::on(&server).await;
    let node = Arc::new(Node::start(&database, &world, "a").await);
    let options = Options {
        patience: Duration::from_secs(1),
        ..Options::default()
    };
    let impatient = Node::start_with(&database, &world, "b", options).await;
    node.say("k", "effect \"hold\"").await;
    until("the model is called", SOON, async || {
        world.n_open_calls() == 1
    })
    .await;
    // The file of the log becomes longer than those of the write-ahead log. Its pages are full: each has four rows.
    let client = database.client().await;
    let fill = "INSERT INTO thread_blocks (thread_no, first, n, epoch, facts, sum, body)
            SELECT -2, g, 1, 1, 0, decode(repeat('00', 16), 'hex'), convert_to(repeat('x', 1932), 'UTF8')
            FROM generate_series(1, 12000) g";
    client.batch_execute(fill).await.unwrap();
    let size = client.query_one("SELECT pg_relation_size('thread_blocks')", &[]);
    let size: i64 = size.await.unwrap().get(0);
    // The server finds that it has written a part of a page.
    server.limit_files(Some(size + 1024));
    let mut requests = JoinSet::new();
    for n in 0.. {
        assert!(n < 100, "the disk is not full");
        let asked = Arc::clone(&node);
        let key = format!("k{n}");
        requests.spawn(async move {
            asked.react(say(&key, "say 3 words")).await.unwrap();
            key
        });
        tokio::time::sleep(Duration::from_millis(100)).await;
        if node.store.activity().health == StoreHealth::CommitsFail {
            break;
        }
    }
    world.answers.send_replace(true);
    let mut n_accepted = 0;
    let refused = loop {
        match impatient.react(say("other", "say 1 word")).await {
            Err(error) => break error,
            Ok(_) => n_accepted += 1,
        }
        assert!(n_accepted < 100, "the disk is not full");
    };
    let is_refused = matches!(&refused, RuntimeError::Store(StoreError::Failed(why)) if why.to_string().contains("could not extend file"));
    assert!(is_refused, "{refused:?}");
    tokio::time::sleep(LEASE).await;
    assert!(node.runtime.is_leased());
    server.limit_files(None);
    until("commits succeed", SOON, async || {
        node.store.health().await == StoreHealth::Healthy
    })
    .await;
    check_undisturbed(&node.at_rest("k").await);
    for key in requests.join_all().await {
        check_undisturbed(&node.at_rest(&key).await);
    }
    assert_eq!(world.calls("hold").len(), 2);
    assert_eq!(world.effects(), ["a"]);
}

/// Row 20, read-only.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_only_reads_pauses_runs_and_loses_nothing() {
    let (server, world) = (Server::start(), World::new());
    let database = Database::on(&server).await;
    let node = Node::start(&database, &world, "a").await;
    node.say("k", "effect \"hold\"").await;
    until("the model is called", SOON, async || {
        world.n_open_calls() == 1
    })
    .await;
    let reload = "SELECT pg_reload_conf()";
    server
        .admin(&[
            "ALTER SYSTEM SET default_transaction_read_only = on",
            reload,
        ])
        .await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    world.answers.send_replace(true);
    until("the node is not ready", SOON, async || {
        node.runtime.lease_fault() == Some(LeaseFault::Ended)
    })
    .await;
    assert_eq!(world.effects().len(), 0);
    server
        .admin(&[
            "BEGIN READ WRITE; SELECT 1; COMMIT",
            "ALTER SYSTEM RESET default_transaction_read_only",
            reload,
        ])
        .await;
    check_undisturbed(&node.at_rest("k").await);
    assert_eq!(world.calls("hold").len(), 2);
    assert_eq!(world.effects(), ["a"]);
    until("the node is ready", SOON, async || node.runtime.is_leased()).await;
}

/// Row 20, no connections. Superusers have some of their own, so the node is none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_free_connections_pauses_runs_and_loses_nothing() {
    let (database, world) = (Database::new().await, World::new());
    let name = &database.schema;
    let admin = database.client().await;
    let make = format!(
        "CREATE ROLE {name} LOGIN; GRANT ALL ON SCHEMA {name} TO {name}; GRANT ALL ON ALL TABLES IN SCHEMA {name} TO {name}; GRANT ALL ON ALL SEQUENCES IN SCHEMA {name} TO {name}"
    );
    admin.batch_execute(&make).await.unwrap();
    let options = Options {
        is_limited: true,
        ..Options::default()
    };
    let node = Node::start_with(&database, &world, "a", options).await;
    node.say("k", "effect \"hold\"").await;
    until("the model is called", SOON, async || {
        world.n_open_calls() == 1
    })
    .await;
    let limit = format!("ALTER ROLE {name} CONNECTION LIMIT 0");
    admin.batch_execute(&limit).await.unwrap();
    node.proxy.cut().await;
    world.answers.send_replace(true);
    until("the node is not ready", SOON, async || {
        node.runtime.lease_fault() == Some(LeaseFault::Ended)
    })
    .await;
    assert!(node.react(say("other", "say 1 word")).await.is_err());
    assert_eq!(world.effects().len(), 0);
    let unlimited = format!("ALTER ROLE {name} CONNECTION LIMIT -1");
    admin.batch_execute(&unlimited).await.unwrap();
    check_undisturbed(&node.at_rest("k").await);
    assert_eq!(world.calls("hold").len(), 2);
    assert_eq!(world.effects(), ["a"]);
}
