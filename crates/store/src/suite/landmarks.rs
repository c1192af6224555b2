//! Tests of the positions of landmarks in a log.

use super::Subject;
use super::heads::rolled;
use super::script::{Author, answer, end, enqueue, item, keep, leave_open, respond, start};
use crate::{Filter, FoundExecution, Landmark, Side, Store, StoreError};
use std::sync::Arc;
use timeline::{
    Command, Compaction, Event, ItemType, NewThread, Removed, Replaced, Seq, SummaryAuthor,
    ThreadId, Trigger,
};

/// An item, an execution and a step are found where they were created. A trigger that had to wait is
/// found at the start of its execution.
pub async fn a_landmark_stands_where_it_was_made(mut subject: impl Subject) {
    let mut author = Author::new(&subject.store(), "acme", NewThread::new("t", Some("k"))).await;
    author
        .commit_all([
            keep("kept"),
            start("one", Trigger::New(item("ask"))),
            enqueue("later"),
        ])
        .await;
    let thread = author.thread.clone();
    let of = |store: &Arc<dyn Store>, landmark| {
        let (store, thread) = (Arc::clone(store), thread.clone());
        async move { store.position_of(&thread, landmark).await.unwrap() }
    };
    let (kept, ask, later) = ("kept".into(), "ask".into(), "later".into());
    let (execution, step) = ("one-execution".into(), "one-step-0".into());
    let store = subject.store();
    let enqueued = of(&store, Landmark::Item(&later)).await;
    assert_eq!(enqueued, Some(author.tail));
    author.commit_all([respond(), leave_open(), end()]).await;
    author.commit(start("two", Trigger::Waiting)).await;
    drop(store);
    author.store = subject.store();
    subject.reopen().await;

    let store = subject.store();
    let read = store.read(&thread, Seq::ZERO, 100, Filter::All).await;
    let log = read.unwrap();
    let place = |is: &dyn Fn(&Event) -> bool| {
        let found = log.iter().find(|logged| is(&logged.record.event));
        found.map(|logged| logged.record.seq)
    };
    let created = |id: &'static str| {
        place(&move |event| matches!(event, Event::ItemCreated { item } if item.id.as_str() == id))
    };
    let began = |id: &'static str| {
        place(
            &move |event| matches!(event, Event::ExecutionCreated { execution } if execution.id.as_str() == id),
        )
    };
    assert_eq!(of(&store, Landmark::Item(&kept)).await, created("kept"));
    assert_eq!(of(&store, Landmark::Item(&ask)).await, created("ask"));
    let found = of(&store, Landmark::Item(&later)).await;
    assert_eq!(found, began("two-execution"));
    let found = of(&store, Landmark::Execution(&execution)).await;
    assert_eq!(found, began("one-execution"));
    let made = place(&|event| matches!(event, Event::StepCreated { .. }));
    assert_eq!(of(&store, Landmark::Step(&step)).await, made);
    for nothing in [
        Landmark::Item(&"one-execution".into()),
        Landmark::Execution(&"ask".into()),
        Landmark::Step(&"none".into()),
    ] {
        assert_eq!(store.position_of(&thread, nothing).await.unwrap(), None);
    }
}

/// The positions of triggers and the executions, computed from a fold of the whole log.
#[derive(Default)]
struct Told {
    said: Vec<Seq>,
    runs: Vec<FoundExecution>,
}

impl Told {
    async fn by(store: &Arc<dyn Store>, thread: &ThreadId) -> Self {
        let mut told = Self::default();
        let mut items = Vec::new();
        let log = store.read(thread, Seq::ZERO, 100_000, Filter::All).await;
        for logged in log.unwrap() {
            let seq = logged.record.seq;
            if let Event::ItemCreated { item } = &logged.record.event
                && item.execution_id.is_none()
            {
                if item.run.is_none() && item.item_type == ItemType::Message {
                    told.said.push(seq);
                }
                items.push((seq, item.clone()));
            } else if let Event::ExecutionCreated { execution } = &logged.record.event {
                let id = &execution.trigger_item_id;
                let (trigger, item) = items.iter().find(|(_, it)| it.id == *id).unwrap();
                if item.run.is_some() && item.item_type == ItemType::Message {
                    told.said.push(seq);
                }
                told.runs.push(FoundExecution {
                    execution_id: execution.id.clone(),
                    trigger: *trigger,
                    trigger_type: item.item_type,
                    goes_on: item.item_type == ItemType::ActionResult,
                    created: seq,
                    finished: None,
                });
            } else if let Event::ThreadFinished { .. } = &logged.record.event {
                told.runs.last_mut().unwrap().finished = Some(seq);
            }
        }
        told
    }
}

/// Triggers and executions before and after any position are found.
pub async fn triggers_and_executions_are_found_from_any_position(mut subject: impl Subject) {
    for seed in 1..=3 {
        let id = format!("t{seed}");
        let store = subject.store();
        let mut author = Author::new(&store, "acme", NewThread::new(id.as_str(), Some(&id))).await;
        author.commit_some(rolled(seed, 0..200)).await;
        author.commit_some([enqueue("waits"), keep("last")]).await;
        drop((store, author.store));
        subject.reopen().await;
        let (store, thread) = (subject.store(), author.thread);
        let told = Told::by(&store, &thread).await;
        let n_told = (told.said.len(), told.runs.len());
        assert!(n_told.0 > 5 && n_told.1 > 3, "seed {seed}: {n_told:?}");
        for place in (0..=author.tail.0 + 1).map(Seq) {
            for limit in [0, 1, 3, 1_000] {
                let found = store
                    .nearest_triggers(&thread, Side::Before(place), limit)
                    .await
                    .unwrap();
                let before = told.said.iter().rev().filter(|seq| **seq < place);
                assert!(found.iter().eq(before.take(limit)), "{place}: {found:?}");
                let found = store
                    .nearest_triggers(&thread, Side::After(place), limit)
                    .await
                    .unwrap();
                let after = told.said.iter().filter(|seq| **seq > place);
                assert!(found.iter().eq(after.take(limit)), "{place}: {found:?}");
            }
            let found = store
                .nearest_run(&thread, Side::Before(place))
                .await
                .unwrap();
            let before = told.runs.iter().rev().find(|run| run.created < place);
            assert_eq!(found.as_ref(), before);
            let found = store
                .nearest_run(&thread, Side::After(place))
                .await
                .unwrap();
            let after = told.runs.iter().find(|run| run.created > place);
            assert_eq!(found.as_ref(), after);
        }
    }
}

/// Answers and pointers don't count as messages.
pub async fn an_answer_is_no_trigger(subject: impl Subject) {
    let store = subject.store();
    let mut author = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    let ask = start("one", Trigger::New(item("ask")));
    author
        .commit_all([ask, respond(), leave_open(), end()])
        .await;
    author
        .commit(start("two", Trigger::New(answer("yes"))))
        .await;
    let end = author.tail.next();
    let said = store
        .nearest_triggers(&author.thread, Side::Before(end), 9)
        .await
        .unwrap();
    let ask = "ask".into();
    let ask = store
        .position_of(&author.thread, Landmark::Item(&ask))
        .await;
    assert_eq!(said, [ask.unwrap().unwrap()]);
    let last = store
        .nearest_run(&author.thread, Side::Before(end))
        .await
        .unwrap();
    let last = last.unwrap();
    assert_eq!(last.trigger_type, ItemType::ActionResult);
    assert!(last.goes_on);
}

fn missing<T>(answer: Result<T, StoreError>) -> bool {
    matches!(answer, Err(StoreError::NotFound))
}

/// Look-ups in a missing thread fail.
pub async fn a_missing_thread_has_no_landmarks(subject: impl Subject) {
    let store = subject.store();
    let nobody = ThreadId::from("nobody");
    let item = "i".into();
    assert!(missing(
        store.position_of(&nobody, Landmark::Item(&item)).await
    ));
    assert!(missing(
        store
            .nearest_triggers(&nobody, Side::Before(Seq(9)), 1)
            .await
    ));
    assert!(missing(
        store
            .nearest_triggers(&nobody, Side::After(Seq(0)), 1)
            .await
    ));
    assert!(missing(
        store.nearest_run(&nobody, Side::Before(Seq(9))).await
    ));
    assert!(missing(
        store.nearest_run(&nobody, Side::After(Seq(0))).await
    ));
}

/// Compactions are found by their events, newest first, withdrawn ones included.
pub async fn compactions_are_found_from_the_newest_back(mut subject: impl Subject) {
    let mut author = Author::new(&subject.store(), "acme", NewThread::new("t", Some("k"))).await;
    author
        .commit_all([
            start("one", Trigger::New(item("ask"))),
            respond(),
            leave_open(),
            end(),
        ])
        .await;
    let mut made = Vec::new();
    for id in ["a", "b", "c"] {
        let compaction = Compaction {
            id: id.into(),
            execution_id: "one-execution".into(),
            through: author.tail,
            summary: "In short.".into(),
            author: SummaryAuthor::default(),
            replaced: Replaced::default(),
            agent_states: std::collections::BTreeMap::new(),
        };
        author.commit(Command::Compact { compaction }).await;
        made.push(author.tail);
    }
    let what = Removed::Compaction("b".into());
    author.commit(Command::Remove { what: what.clone() }).await;
    let (thread, withdrawn) = (author.thread.clone(), author.tail);
    drop(author);
    subject.reopen().await;

    let store = subject.store();
    let found = async |before: u64, limit| {
        let found = store.compactions(&thread, Seq(before), limit).await;
        found.unwrap()
    };
    made.reverse();
    assert_eq!(found(u64::MAX, 9).await, made);
    assert_eq!(found(u64::MAX, 1).await, made[..1]);
    assert_eq!(found(made[0].0, 9).await, made[1..]);
    assert_eq!(found(made[2].0, 9).await, []);
    let removed = store.removals(&thread, vec![what.clone()]).await.unwrap();
    assert_eq!(removed, [(what, withdrawn)]);
    let log = store.read(&thread, Seq::ZERO, 100, Filter::Facts).await;
    let is_made = |logged: &&crate::Logged| made.contains(&logged.record.seq);
    assert_eq!(log.unwrap().iter().filter(is_made).count(), 3);
    let nobody = ThreadId::from("nobody");
    assert!(missing(store.compactions(&nobody, Seq(9), 1).await));
}
