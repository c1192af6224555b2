//! Nodes without their database, and with a wrong clock.

use crate::agents::World;
use crate::cluster::{LEASE, Node, Options, SOON, SWEEP, check_undisturbed, until};
use crate::database::Database;
use crate::proxy::Traffic;
use futures_util::StreamExt as _;
use jiff::SignedDuration;
use loomline_runtime as runtime;
use runtime::{LeaseFault, Until};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use timeline::{Event, ReadPosition};
use tokio::task::JoinSet;

fn refuse(nodes: &[&Node]) {
    for node in nodes {
        node.proxy.set(Traffic::REFUSED);
        node.hints.set(Traffic::REFUSED);
    }
}

fn free(nodes: &[&Node]) {
    for node in nodes {
        node.proxy.set(Traffic::FREE);
        node.hints.set(Traffic::FREE);
    }
}

/// Row 5, with the leases of production. One run is silent in a model call that ends in the outage, one streams.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_of_the_database_causes_no_takeover_and_no_second_model_call() {
    let (database, world) = (Database::new().await, World::new());
    let options = Options {
        lease: Duration::from_secs(12),
        ..Options::default()
    };
    let one = Node::start_with(&database, &world, "a", options).await;
    let other = Node::start_with(&database, &world, "b", options).await;
    one.say("silent", "effect \"hold\"").await;
    other.say("streams", "slow 200ms say 120 words").await;
    until("the models are called", SOON, async || {
        world.n_open_calls() == 2
    })
    .await;
    let before = [
        database.head("silent").await,
        database.head("streams").await,
    ];
    let nodes = database.nodes().await;
    let n_read = Arc::new(AtomicUsize::new(0));
    let mut followers = JoinSet::new();
    let n = Arc::clone(&n_read);
    let mut follow = other
        .follow("streams", ReadPosition::default(), Until::Rest)
        .await;
    followers.spawn(async move {
        while follow.next().await.is_some() {
            n.fetch_add(1, Ordering::Relaxed);
        }
    });

    refuse(&[&one, &other]);
    tokio::time::sleep(Duration::from_secs(5)).await;
    world.answers.send_replace(true);
    let n_at_5 = n_read.load(Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(8)).await;
    let n_at_13 = n_read.load(Ordering::Relaxed);
    assert!(n_at_13 > n_at_5 + 10, "{n_at_5} and {n_at_13}");
    assert_eq!(one.runtime.lease_fault(), Some(LeaseFault::Ended));
    tokio::time::sleep(Duration::from_secs(7)).await;
    free(&[&one, &other]);

    for (node, key, head) in [
        (&one, "silent", &before[0]),
        (&other, "streams", &before[1]),
    ] {
        check_undisturbed(&node.at_rest(key).await);
        assert_eq!(database.head(key).await.epoch, head.epoch);
    }
    followers.join_all().await;
    // One for the answer with the call, and one for its result.
    assert_eq!(world.calls("hold"), ["a", "a"]);
    assert_eq!(world.calls("say 120"), ["b"]);
    assert_eq!(world.effects(), ["a"]);
    assert_eq!(database.nodes().await, nodes);
    assert!(one.runtime.is_leased() && other.runtime.is_leased());
}

/// Row 5, where the connections stay open and nothing passes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_hangs_longer_than_a_lease_costs_no_run() {
    let (database, world) = (Database::new().await, World::new());
    let one = Node::start(&database, &world, "a").await;
    let other = Node::start(&database, &world, "b").await;
    one.say("k", "effect \"hold\"").await;
    until("the model is called", SOON, async || {
        world.n_open_calls() == 1
    })
    .await;
    let nodes = database.nodes().await;
    for node in [&one, &other] {
        node.proxy.set(Traffic::HALF_OPEN);
    }
    world.answers.send_replace(true);
    tokio::time::sleep(LEASE * 5 / 2).await;
    free(&[&one, &other]);
    check_undisturbed(&one.at_rest("k").await);
    assert_eq!(world.calls("hold"), ["a", "a"]);
    assert_eq!(world.effects(), ["a"]);
    assert_eq!(database.nodes().await, nodes);
}

/// A request that reads from a database that hangs has an end, and its thread is free afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_from_a_database_that_hangs_has_an_end() {
    let (database, world) = (Database::new().await, World::new());
    let options = Options {
        patience: Duration::from_secs(1),
        ..Options::default()
    };
    let node = Node::start_with(&database, &world, "a", options).await;
    node.say("k", "say 1 word").await;
    node.at_rest("k").await;
    node.proxy.set(Traffic::HALF_OPEN);
    let asked = tokio::time::timeout(SOON, node.react(crate::cluster::say("k", "hello")));
    assert!(asked.await.unwrap().is_err());
    free(&[&node]);
    node.say("k", "say 2 words").await;
    check_undisturbed(&node.at_rest("k").await);
}

/// Row 6.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_dies_in_an_outage_loses_only_its_own_threads() {
    let (database, world) = (Database::new().await, World::new());
    let mut dies = Node::start(&database, &world, "a").await;
    let lives = Node::start(&database, &world, "b").await;
    let third = Node::start(&database, &world, "c").await;
    dies.say("of-a", "say \"hold a\"").await;
    lives.say("of-b", "say \"hold b\"").await;
    until("the models are called", SOON, async || {
        world.n_open_calls() == 2
    })
    .await;
    refuse(&[&dies, &lives, &third]);
    tokio::time::sleep(LEASE).await;
    dies.kill();
    tokio::time::sleep(LEASE).await;
    free(&[&lives, &third]);
    let took = until("the dead node's run is taken up", SOON, async || {
        world.calls("hold a").len() == 2
    })
    .await;
    // A renewal, a lease without a failure, and a search.
    assert!(took > LEASE / 2, "{took:?}");
    assert!(
        took < LEASE * 2 + SWEEP + Duration::from_secs(3),
        "{took:?}"
    );
    world.answers.send_replace(true);
    check_undisturbed(&lives.at_rest("of-b").await);
    let records = third.at_rest("of-a").await;
    assert_eq!(timeline::verify(&records), Ok(()));
    assert_eq!(world.calls("hold b"), ["b"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_repeats_a_read_that_an_outage_has_ended() {
    let (database, world) = (Database::new().await, World::new());
    let one = Node::start(&database, &world, "a").await;
    let other = Node::start(&database, &world, "b").await;
    one.say("k", "say 3 words").await;
    let records = one.at_rest("k").await;
    let follow = other
        .follow("k", ReadPosition::default(), Until::Rest)
        .await;
    refuse(&[&other]);
    let followed = tokio::spawn(follow.collect::<Vec<_>>());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!followed.is_finished());
    free(&[&other]);
    let followed = tokio::time::timeout(SOON, followed).await.unwrap();
    let followed = followed.unwrap().into_iter();
    let followed: Vec<_> = followed.map(|it| it.unwrap().record.clone()).collect();
    assert_eq!(followed, records);
}

/// Row 3. A patience of 4 s stands for that of a minute, as the leases are shorter.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_its_database_is_unready_and_gives_up() {
    let (database, world) = (Database::new().await, World::new());
    let options = Options {
        patience: Duration::from_secs(4),
        ..Options::default()
    };
    let cut_off = Node::start_with(&database, &world, "a", options).await;
    let other = Node::start(&database, &world, "b").await;
    cut_off.say("k", "effect then say \"hold\"").await;
    until("the model is called", SOON, async || {
        world.n_open_calls() == 1
    })
    .await;
    let follow = cut_off
        .follow("k", ReadPosition::default(), Until::Forever)
        .await;
    assert!(cut_off.runtime.is_leased());
    refuse(&[&cut_off]);
    let ended = tokio::time::timeout(SOON, follow.collect::<Vec<_>>());
    until("the cut node is not ready", SOON, async || {
        cut_off.runtime.lease_fault() == Some(LeaseFault::Ended)
    })
    .await;
    until("the run is taken up", SOON, async || {
        world.calls("hold") == ["a", "b"]
    })
    .await;
    until("the cut node gives up its model call", SOON, async || {
        world.n_open_calls() == 1
    })
    .await;
    world.answers.send_replace(true);
    let records = other.at_rest("k").await;
    assert_eq!(world.effects(), ["b"]);
    // Its followers hear that they must read elsewhere.
    let followed = ended.await.unwrap();
    assert!(followed.last().unwrap().is_err());
    let requested = cut_off.react(crate::cluster::say("k", "hello")).await;
    assert!(requested.is_err());
    free(&[&cut_off]);
    until("the node is ready again", SOON, async || {
        cut_off.runtime.is_leased()
    })
    .await;
    tokio::time::sleep(LEASE).await;
    assert_eq!(database.log("k").await, records);
    assert_eq!(world.effects(), ["b"]);
}

/// Row 19.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_with_a_wrong_clock_is_not_ready() {
    for hours in [1, -1] {
        let (database, world) = (Database::new().await, World::new());
        let options = Options {
            skew: SignedDuration::from_hours(hours),
            ..Options::default()
        };
        let wrong = Node::start_with(&database, &world, "a", options).await;
        let right = Node::start(&database, &world, "b").await;
        assert_eq!(wrong.runtime.lease_fault(), Some(LeaseFault::Skewed));
        assert!(right.runtime.is_leased());
        right.say("k", "say 3 words").await;
        check_undisturbed(&right.at_rest("k").await);
        // It is ready at the next renewal after its clock is right, and no longer when it is wrong again.
        wrong.set_clock(SignedDuration::ZERO);
        until("the clock is right", SOON, async || {
            wrong.runtime.is_leased()
        })
        .await;
        wrong.set_clock(SignedDuration::from_secs(6 * hours));
        until("the clock is wrong", SOON, async || {
            wrong.runtime.lease_fault() == Some(LeaseFault::Skewed)
        })
        .await;
    }
}

/// Row 23. Each tenant's database is a store of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tenants_of_another_database_are_unaffected_by_an_outage() {
    let (down, up, world) = (Database::new().await, Database::new().await, World::new());
    let of_one = Node::start(&down, &world, "a").await;
    let of_other = Node::start(&up, &world, "a").await;
    of_one.say("k", "say \"hold\"").await;
    until("the model is called", SOON, async || {
        world.n_open_calls() == 1
    })
    .await;
    refuse(&[&of_one]);
    let records = {
        of_other.say("k", "effect then say 3 words").await;
        of_other.at_rest("k").await
    };
    check_undisturbed(&records);
    let is_end = |event: &Event| matches!(event, Event::ThreadFinished { .. });
    assert!(records.iter().any(|record| is_end(&record.event)));
    until("the lease of the one store ends", SOON, async || {
        !of_one.runtime.is_leased()
    })
    .await;
    assert!(of_other.runtime.is_leased());
    free(&[&of_one]);
    world.answers.send_replace(true);
    check_undisturbed(&of_one.at_rest("k").await);
}
