//! Many threads that are due at once.

use crate::agents::World;
use crate::cluster::{Node, Options, SOON, n_marked, until};
use crate::database::{Database, Server, tenant};
use futures_util::{StreamExt as _, stream};
use std::time::Duration;
use store::NewRecord;
use timeline::{Event, Record, chunk_type};

const THREADS: u32 = 10_000;
/// The maximum number of runs of a node.
const SLOTS: usize = 8;
/// The test ends after this number of runs.
const ENDS: i64 = 1_000;

/// The records of a thread with a run, as those of another thread.
fn copied(records: &[Record], ids: &[String], n: u32) -> Vec<NewRecord> {
    let copy = |record: &Record| {
        let mut text = serde_json::to_string(&record.event).unwrap();
        for id in ids {
            text = text.replace(id, &format!("{id}-{n}"));
        }
        let text = text.replace(r#""key":"k""#, &format!(r#""key":"k{n}""#));
        NewRecord::new(record.at, Event::decode(&text).unwrap()).unwrap()
    };
    records.iter().map(copy).collect()
}

/// All ids in a log.
fn ids(records: &[Record]) -> Vec<String> {
    let mut ids = Vec::new();
    for record in records {
        find(&serde_json::to_value(&record.event).unwrap(), &mut ids);
    }
    ids.sort();
    ids.dedup();
    ids
}

fn find(value: &serde_json::Value, ids: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(members) => {
            for (name, member) in members {
                match member {
                    serde_json::Value::String(id) if name == "id" => ids.push(id.clone()),
                    _ => find(member, ids),
                }
            }
        }
        serde_json::Value::Array(members) => members.iter().for_each(|member| find(member, ids)),
        _ => {}
    }
}

/// Row 19 of engines.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_due_threads_wait_for_slots() {
    let (server, world) = (Server::start(), World::new());
    let database = Database::on(&server).await;
    let mut dies = Node::start(&database, &world, "dies").await;
    dies.say("k", "hold say 1 word").await;
    until("the model is called", SOON, async || {
        world.n_open_calls() == 1
    })
    .await;
    // Nobody takes up threads before all are made.
    dies.kill();
    let records = database.log("k").await;
    let ids = ids(&records);
    let (tenant, store) = (tenant(), database.store());
    let owner = store.join("owner").await.unwrap();
    let create = |n| {
        let records = copied(&records, &ids, n);
        let created = store.get_or_create(&tenant, records, None, Some(owner));
        async move { drop(created.await.unwrap()) }
    };
    let creations = stream::iter(1..THREADS).map(create).buffer_unordered(512);
    creations.for_each(async |()| {}).await;
    store.leave(owner).await.unwrap();
    world.answers.send_replace(true);

    let options = Options {
        slots: SLOTS,
        ..Options::default()
    };
    let one = Node::start_with(&database, &world, "a", options).await;
    let other = Node::start_with(&database, &world, "b", options).await;
    let client = database.client().await;
    let count = async |status: &str| -> i64 {
        let sql = "SELECT count(*) FROM thread_threads WHERE status = $1";
        client.query_one(sql, &[&status]).await.unwrap().get(0)
    };
    assert_eq!(count("streaming").await, i64::from(THREADS));
    let nodes = [&one, &other];
    until("runs end", Duration::from_mins(2), async || {
        assert!(world.n_open_calls() <= 2 * SLOTS);
        for node in nodes {
            // What waits for a slot when a search begins, and what it finds.
            let n_waiting = node.runtime.unrecovered();
            assert!(n_waiting < 3 * 16, "{n_waiting}");
        }
        count("open").await >= ENDS
    })
    .await;
    let by = |name: &str| world.calls("hold").iter().filter(|it| *it == name).count();
    assert!(by("a") > 0 && by("b") > 0);
    assert_eq!(by("dies"), 1);
    // A thread is taken up once, by one node.
    let sql = "SELECT key FROM thread_threads WHERE status = 'open' LIMIT 20";
    for row in client.query(sql, &[]).await.unwrap() {
        let records = database.log(row.get(0)).await;
        assert_eq!(timeline::verify(&records), Ok(()));
        assert_eq!(n_marked(&records, chunk_type::EXECUTION_RESUMED), 1);
    }
}
