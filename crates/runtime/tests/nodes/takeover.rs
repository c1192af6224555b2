//! Owners that die, freeze or leave.

use crate::agents::World;
use crate::cluster::{LEASE, Node, SOON, SWEEP, is_completed, n_marked, until};
use crate::database::Database;
use std::time::Duration;
use timeline::{Event, Record, chunk_type};

/// The time that other tests on the same machine may take.
const SLACK: Duration = Duration::from_secs(3);

fn interruptions(records: &[Record]) -> Vec<String> {
    let reason = |record: &Record| match &record.event {
        Event::ExecutionStatusChanged { interruption, .. } => {
            interruption.as_ref().map(|why| why.reason.clone())
        }
        _ => None,
    };
    records.iter().filter_map(reason).collect()
}

/// Row 1, in a model's stream.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_killed_in_a_stream_is_replaced_within_a_lease_and_a_search() {
    let (database, world) = (Database::new().await, World::new());
    let mut owner = Node::start(&database, &world, "a").await;
    let other = Node::start(&database, &world, "b").await;
    // The successor must have renewed its own lease for the length of one.
    tokio::time::sleep(LEASE).await;
    owner.say("k", "slow 40ms say 40 words").await;
    until("the model is called", SOON, async || {
        world.calls("say 40").len() == 1
    })
    .await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    owner.kill();
    let took = until("the run is taken up", SOON, async || {
        world.calls("say 40").len() == 2
    })
    .await;
    assert!(took < LEASE + SWEEP + SLACK, "{took:?}");
    let records = other.at_rest("k").await;
    assert_eq!(timeline::verify(&records), Ok(()));
    assert!(is_completed(&records));
    assert_eq!(n_marked(&records, chunk_type::STEP_RESET), 1);
    assert_eq!(world.calls("say 40"), ["a", "b"]);
}

/// Row 1, between the start and the result of an effect tool.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_effect_of_a_killed_owner_is_unknown_and_not_repeated() {
    let (database, world) = (Database::new().await, World::new());
    world.acts.send_replace(false);
    let mut owner = Node::start(&database, &world, "a").await;
    let other = Node::start(&database, &world, "b").await;
    owner.say("k", "effect").await;
    until("the effect begins", SOON, async || world.effects() == ["a"]).await;
    owner.kill();
    world.acts.send_replace(true);
    until("the run ends", SOON, async || {
        is_completed(&database.log("k").await)
    })
    .await;
    let records = other.at_rest("k").await;
    assert_eq!(timeline::verify(&records), Ok(()));
    assert_eq!(world.effects(), ["a"]);
    let is_unknown = |record: &Record| {
        let text = serde_json::to_string(&record.event).unwrap();
        text.contains(r#""interrupted""#)
    };
    assert!(records.iter().any(is_unknown));
}

/// Row 2. The frozen node has its model's answer when it wakes, and may not act on it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_owner_that_wakes_writes_nothing() {
    let (database, world) = (Database::new().await, World::new());
    let owner = Node::start(&database, &world, "a").await;
    let other = Node::start(&database, &world, "b").await;
    owner.say("k", "effect \"hold\"").await;
    until("the model is called", SOON, async || {
        world.calls("hold") == ["a"]
    })
    .await;
    let frozen = owner.freeze().await;
    until("the run is taken up", SOON, async || {
        world.calls("hold") == ["a", "b"]
    })
    .await;
    world.answers.send_replace(true);
    let records = other.at_rest("k").await;
    assert!(is_completed(&records));
    drop(frozen);
    until("the woken node joins again", SOON, async || {
        owner.runtime.is_leased() && world.n_open_calls() == 0
    })
    .await;
    tokio::time::sleep(LEASE).await;
    assert_eq!(database.log("k").await, records);
    assert_eq!(world.effects(), ["b"]);
}

/// A part of row 21: a node that is stopped in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_leaves_hands_over_at_once() {
    let (database, world) = (Database::new().await, World::new());
    let owner = Node::start(&database, &world, "a").await;
    let other = Node::start(&database, &world, "b").await;
    owner.say("k", "hold say 3 words").await;
    until("the model is called", SOON, async || {
        world.calls("hold") == ["a"]
    })
    .await;
    let left = owner.ask(|runtime| async move { runtime.shutdown().await });
    left.await.unwrap();
    let took = until("the run is taken up", SOON, async || {
        world.calls("hold") == ["a", "b"]
    })
    .await;
    assert!(took < LEASE, "{took:?}");
    world.answers.send_replace(true);
    let records = other.at_rest("k").await;
    assert!(is_completed(&records));
}

/// Row 22. A process that starts again under its name takes up its runs at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_kills_its_process_is_poisoned_after_five_starts() {
    let (database, world) = (Database::new().await, World::new());
    let mut node = Node::start(&database, &world, "a").await;
    node.say("k", "hold").await;
    for n in 1..=5 {
        until("the model is called", SOON, async || {
            world.calls("hold").len() == n
        })
        .await;
        // The start is in the log before the model is called.
        node.kill();
        node = Node::start(&database, &world, "a").await;
    }
    let records = node.at_rest("k").await;
    assert_eq!(timeline::verify(&records), Ok(()));
    assert_eq!(interruptions(&records), ["poisoned"]);
    assert_eq!(world.calls("hold").len(), 5);
}
