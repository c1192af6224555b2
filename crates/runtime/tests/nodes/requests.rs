//! Requests and followers at several nodes.

use crate::agents::World;
use crate::cluster::{Node, SOON, check_undisturbed, n_marked, say, until};
use crate::database::{Database, tenant};
use crate::proxy::Traffic;
use futures_util::StreamExt as _;
use loomline_runtime as runtime;
use runtime::{
    AnswerRequest, FollowedRecord, Policy, ReactRequest, RuntimeError, StoreError, Until,
};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use timeline::{Event, ItemType, NewItem, OpenKind, ReadPosition, Record, Seq, chunk_type};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

fn n_items(records: &[Record], text: &str) -> usize {
    let has = |record: &&Record| {
        matches!(&record.event, Event::ItemCreated { item } if item.item_type == ItemType::Message
            && serde_json::to_string(item).unwrap().contains(text))
    };
    records.iter().filter(has).count()
}

/// Row 4.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_resumes_at_another_node_while_the_owner_works() {
    let (database, world) = (Database::new().await, World::new());
    let owner = Node::start(&database, &world, "a").await;
    let other = Node::start(&database, &world, "b").await;
    owner.say("k", "slow 20ms say 60 words").await;
    let mut read: Vec<FollowedRecord> = Vec::new();
    let mut first = owner
        .follow("k", ReadPosition::default(), Until::Rest)
        .await;
    while read.len() < 30 {
        read.push(first.next().await.unwrap().unwrap());
    }
    drop(first);
    let position = read.last().unwrap().position;
    let mut rest = other.follow("k", position, Until::Rest).await;
    while let Some(next) = timeout(SOON, rest.next()).await.unwrap() {
        read.push(next.unwrap());
    }
    let is_fact = |record: &Record| !record.event.is_streamed();
    let facts = read.iter().map(|it| &it.logged.record);
    let facts: Vec<Seq> = facts.filter(|it| is_fact(it)).map(|it| it.seq).collect();
    let log = database.log("k").await;
    check_undisturbed(&log);
    let expected: Vec<Seq> = log
        .iter()
        .filter(|it| is_fact(it))
        .map(|it| it.seq)
        .collect();
    let is_reset = |it: &&FollowedRecord| matches!(&it.logged.record.event, Event::ChunkEmitted { chunk_type, .. } if chunk_type == chunk_type::STEP_RESET);
    assert_eq!(read.iter().filter(is_reset).count(), 0);
    assert_eq!(facts, expected);
    assert_eq!(world.calls("say 60"), ["a"]);
}

/// Row 7.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_whose_commit_loses_its_answer_is_answered_once() {
    let (database, world) = (Database::new().await, World::new());
    let node = Node::start(&database, &world, "a").await;
    for (n, key) in ["new", "new", "other"].into_iter().enumerate() {
        node.proxy.lose_next_answer();
        let text = format!("say \"message {n}\"");
        let accepted = node.say(key, &text).await;
        assert!(!node.proxy.loses_answer() && !accepted.repeated);
        let records = node.at_rest(key).await;
        assert_eq!(timeline::verify(&records), Ok(()));
        assert_eq!(n_items(&records, &format!("message {n}")), 1);
        assert_eq!(world.calls(&format!("message {n}")), ["a"]);
    }
}

/// Row 11.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_at_another_node_ends_a_silent_model_call_within_a_second() {
    let (database, world) = (Database::new().await, World::new());
    let owner = Node::start(&database, &world, "a").await;
    let other = Node::start(&database, &world, "b").await;
    for has_hints in [true, false] {
        let key = format!("k-{has_hints}");
        owner.say(&key, "say \"hold\"").await;
        until("the model is called", SOON, async || {
            world.n_open_calls() == 1
        })
        .await;
        if !has_hints {
            owner.hints.set(Traffic::HALF_OPEN);
        }
        let began = Instant::now();
        let cancelled = other.ask(|runtime| async move {
            runtime
                .cancel(&tenant(), &key, None, "user_cancelled")
                .await
        });
        assert!(cancelled.await.unwrap().execution_id.is_some());
        let appended = began.elapsed();
        until("the call ends", SOON, async || world.n_open_calls() == 0).await;
        let ended = began.elapsed();
        println!("hints {has_hints}: the cancel took {appended:?}, the call ended after {ended:?}");
        assert!(appended < Duration::from_secs(1), "{appended:?}");
        // A look at all threads once a second, and other tests on the same machine.
        assert!(ended < Duration::from_secs(3), "{ended:?}");
    }
}

/// Row 12. The requests of a policy: which of them are refused, and in which order the others are in the log.
async fn hundred(policy: Policy) {
    let (database, world) = (Database::new().await, World::new());
    let mut nodes = Vec::new();
    for name in ["a", "b", "c"] {
        nodes.push(Arc::new(Node::start(&database, &world, name).await));
    }
    let mut requests = JoinSet::new();
    for n in 0..100 {
        let node = Arc::clone(&nodes[n % 3]);
        requests.spawn(async move {
            let text = format!("say \"message {n:03}\"");
            let request = ReactRequest {
                policy,
                ..say("k", &text)
            };
            (text, node.react(request).await)
        });
    }
    let (mut n_accepted, mut accepted) = (0, Vec::new());
    for (text, answer) in requests.join_all().await {
        match answer {
            Ok(answer) => {
                n_accepted += 1;
                accepted.push((text, Some(answer.item_id)));
            }
            Err(RuntimeError::Busy(_)) if policy == Policy::Reject => {
                accepted.push((text, None));
            }
            Err(error) => panic!("{text}: {error:?}"),
        }
    }
    assert!(n_accepted > 0);
    assert!(policy == Policy::Reject || n_accepted == 100);
    let records = nodes[0].at_rest("k").await;
    assert_eq!(timeline::verify(&records), Ok(()));
    for (text, item) in accepted {
        let is_it = |record: &&Record| matches!(&record.event, Event::ItemCreated { item: of } if Some(&of.id) == item.as_ref());
        let n = records.iter().filter(is_it).count();
        assert_eq!(n, usize::from(item.is_some()), "{text}");
    }
    // Each of them is answered, or stopped by the one that interrupts it.
    let begins = |record: &&Record| matches!(record.event, Event::ExecutionCreated { .. });
    let ends = |record: &&Record| matches!(record.event, Event::ThreadFinished { .. });
    assert_eq!(records.iter().filter(begins).count(), n_accepted);
    assert_eq!(records.iter().filter(ends).count(), n_accepted);
    if policy != Policy::Interrupt {
        check_undisturbed(&records);
        assert_eq!(world.calls("message").len(), n_accepted);
    }
    for node in &nodes[1..] {
        assert_eq!(node.at_rest("k").await.len(), records.len());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_queued_requests_at_three_nodes_have_one_order() {
    hundred(Policy::Queue).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_interrupting_requests_at_three_nodes_have_one_order() {
    hundred(Policy::Interrupt).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_rejectable_requests_at_three_nodes_have_one_order() {
    hundred(Policy::Reject).await;
}

/// Approves the first call that waits below a thread, this time after it is found.
async fn answer_first(node: &Node, key: &str, pause: Duration) {
    let found = loop {
        let key = key.to_owned();
        let pending = node.ask(|runtime| async move { runtime.pending(&tenant(), &key).await });
        let mut pending = pending.await.unwrap().0.into_iter();
        if let Some(found) = pending.find(|it| it.call.kind == OpenKind::Approval) {
            break found.address;
        }
    };
    tokio::time::sleep(pause).await;
    let said =
        json!([{"type": "loomline-answer", "toolCallId": found.tool_call_id, "approved": true}]);
    let item = NewItem {
        item_type: ItemType::ActionResult,
        role: None,
        ..NewItem::user(format!("answer to {key}"), said.into())
    };
    let request = AnswerRequest {
        tenant: tenant(),
        key: found.key,
        item,
        run: None,
        token: None,
    };
    let answered = node.ask(|runtime| async move { runtime.answer(request).await });
    answered.await.unwrap();
}

/// Row 13. The child is answered as soon as it asks, so its parent is about to fall asleep.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_answered_at_another_node_wakes_its_parent_once() {
    let (database, world) = (Database::new().await, World::new());
    let owner = Node::start(&database, &world, "a").await;
    let other = Arc::new(Node::start(&database, &world, "b").await);
    let mut answers = JoinSet::new();
    for n in 0..12 {
        let key = format!("k{n}");
        owner.say(&key, "helper approved").await;
        let other = Arc::clone(&other);
        answers.spawn(async move {
            answer_first(&other, &key, Duration::from_millis(n % 4 * 5)).await;
            key
        });
    }
    for key in timeout(SOON, answers.join_all()).await.unwrap() {
        until("the parent ends", SOON, async || {
            let records = database.log(&key).await;
            let ends = |record: &&Record| matches!(record.event, Event::ThreadFinished { .. });
            let head = database.head(&key).await;
            head.state.active().is_none()
                && head.state.open().is_none()
                && records.iter().any(|it| ends(&it))
        })
        .await;
        let records = database.log(&key).await;
        assert_eq!(timeline::verify(&records), Ok(()));
    }
    let mut ledger = world.ledger.lock().unwrap().clone();
    assert_eq!(ledger.len(), 12);
    ledger.sort_by(|one, other| one.1.cmp(&other.1));
    ledger.dedup_by(|one, other| one.1 == other.1);
    assert_eq!(ledger.len(), 12);
}

/// Row 14.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_fork_and_a_deletion_at_two_nodes_one_is_refused() {
    let (database, world) = (Database::new().await, World::new());
    let one = Node::start(&database, &world, "a").await;
    let other = Node::start(&database, &world, "b").await;
    let mut n_forked = 0;
    for n in 0..20 {
        let (key, of_fork) = (format!("k{n}"), format!("fork{n}"));
        one.say(&key, "say 1 word").await;
        one.at_rest(&key).await;
        let (from, new) = (key.clone(), of_fork.clone());
        let fork =
            one.ask(|runtime| async move { runtime.fork(&tenant(), &from, Some(new), None).await });
        let of = key.clone();
        let delete = other.ask(|runtime| async move {
            tokio::time::sleep(Duration::from_millis(n % 5 * 2)).await;
            runtime.delete(&tenant(), &of).await
        });
        let (forked, deleted) = futures_util::join!(fork, delete);
        n_forked += u32::from(forked.is_ok());
        assert!(forked.is_ok() != deleted.is_ok(), "{forked:?} {deleted:?}");
        let store = database.store();
        let is_there = store.find(&tenant(), &key).await.is_ok();
        assert_eq!(is_there, forked.is_ok());
        assert_eq!(
            store.find(&tenant(), &of_fork).await.is_ok(),
            forked.is_ok()
        );
    }
    println!("{n_forked} of 20 were forked");
}

/// Row 15.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_made_anew_at_another_node_is_found() {
    let (database, world) = (Database::new().await, World::new());
    let one = Node::start(&database, &world, "a").await;
    let other = Node::start(&database, &world, "b").await;
    for has_hints in [true, false] {
        if !has_hints {
            one.hints.set(Traffic::HALF_OPEN);
        }
        let old = one.say("k", "say 1 word").await;
        one.at_rest("k").await;
        let deleted = other.ask(|runtime| async move { runtime.delete(&tenant(), "k").await });
        deleted.await.unwrap();
        let new = other.say("k", "say 2 words").await;
        assert_ne!(old.thread_id, new.thread_id);
        let next = one.say("k", "say 3 words").await;
        assert_eq!(next.thread_id, new.thread_id);
        let records = one.at_rest("k").await;
        assert_eq!(n_items(&records, "say 3 words"), 1);
        let clear = one.ask(|runtime| async move { runtime.delete(&tenant(), "k").await });
        clear.await.unwrap();
    }
}

/// Row 16. A follower at a node without hints reads all, late by a second and the time of a read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_hints_cost_a_follower_a_second_at_most() {
    let (database, world) = (Database::new().await, World::new());
    let owner = Node::start(&database, &world, "a").await;
    let other = Node::start(&database, &world, "b").await;
    for traffic in [Traffic::HALF_OPEN, Traffic::REFUSED] {
        let key = format!("k-{}", traffic.is_open);
        owner.say(&key, "say 1 word").await;
        let n = owner.at_rest(&key).await.len();
        let mut followed = other
            .follow(&key, ReadPosition::default(), Until::Forever)
            .await;
        for _ in 0..n {
            timeout(SOON, followed.next()).await.unwrap();
        }
        other.hints.set(traffic);
        let began = Instant::now();
        owner.say(&key, "say 2 words").await;
        timeout(SOON, followed.next())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        let late = began.elapsed();
        assert!(late < Duration::from_secs(3), "{late:?}");
        other.hints.set(Traffic::FREE);
        owner.at_rest(&key).await;
    }
    // The listener has connected again.
    other.hints.cut().await;
    owner.say("again", "say 1 word").await;
    let mut followed = other
        .follow("again", ReadPosition::default(), Until::Rest)
        .await;
    while let Some(next) = timeout(SOON, followed.next()).await.unwrap() {
        next.unwrap();
    }
}

/// Events that another node's cancel overtakes are not lost for a follower: it reads a reset in their place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_thread_ends_its_followers_at_another_node() {
    let (database, world) = (Database::new().await, World::new());
    let one = Node::start(&database, &world, "a").await;
    let other = Node::start(&database, &world, "b").await;
    one.say("k", "say 1 word").await;
    let records = one.at_rest("k").await;
    assert_eq!(n_marked(&records, chunk_type::STEP_RESET), 0);
    let mut followed = other
        .follow("k", ReadPosition::default(), Until::Forever)
        .await;
    for _ in &records {
        timeout(SOON, followed.next())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
    }
    let deleted = one.ask(|runtime| async move { runtime.delete(&tenant(), "k").await });
    deleted.await.unwrap();
    let last = timeout(SOON, followed.next()).await.unwrap().unwrap();
    assert!(matches!(last, Err(StoreError::NotFound)), "{last:?}");
}
