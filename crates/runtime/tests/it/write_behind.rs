//! Chunks are followed before they are stored, and stored before the next fact.

use crate::mortal::Mortal;
use agents::{Agent, AgentOptions};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use loomline_runtime as runtime;
use runtime::{
    AgentReactor, BlockDelta, Follow, FollowedRecord, PageRequest, Policy, Position, ReactRequest,
    Reacted, Reactor, ReactorError, Runtime, RuntimeError, RuntimeOptions, StepRun, Until,
};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use store::{EventLog as _, Filter, MemoryStore, Quotas, TenantId, ThreadTable as _};
use timeline::{Event, NewItem, ReadPosition, Record, Seq, ThreadUpdate, verify};
use upp::Scripted;

const KEY: &str = "k";

fn tenant() -> TenantId {
    "acme".into()
}

/// A process over a store, whose writes are counted.
struct Process {
    store: Arc<Mortal>,
    runtime: Runtime,
}

impl Process {
    fn over(store: Arc<Mortal>) -> Self {
        let options = AgentOptions::new("demo", Arc::new(Scripted::new()));
        let reactor = AgentReactor::new(Agent::new(options).unwrap());
        let options = RuntimeOptions {
            restart_pause: Duration::ZERO,
            ..RuntimeOptions::default()
        };
        let runtime = Runtime::new(store.clone(), Arc::new(Arc::new(reactor)), options);
        Self { store, runtime }
    }

    fn new(inner: &Arc<MemoryStore>) -> Self {
        Self::over(Mortal::new(inner, usize::MAX, false, false))
    }

    async fn say(&self, text: &str, policy: Policy) {
        let content = json!([{"type": "input_text", "text": text}]).into();
        let item = NewItem::user(self.runtime.mint(), content);
        let request = ReactRequest {
            policy,
            ..ReactRequest::new(tenant(), KEY, item)
        };
        self.runtime.react(request).await.unwrap();
    }

    async fn follow(&self, after: impl Into<ReadPosition> + Send) -> Follow {
        let tenant = tenant();
        let follow = self.runtime.follow(&tenant, KEY, after, Until::Rest);
        follow.await.unwrap()
    }

    async fn read(&self, after: impl Into<ReadPosition> + Send) -> Vec<FollowedRecord> {
        let follow = self.follow(after).await;
        follow.map(|it| it.unwrap()).collect().await
    }

    async fn rename(&self, title: &str) -> Result<Seq, RuntimeError> {
        let title = ThreadUpdate {
            title: Some(Some(title.to_owned())),
            metadata: None,
        };
        let tenant = tenant();
        self.runtime.update_thread(&tenant, KEY, title).await
    }

    async fn log(&self) -> Vec<Record> {
        let tenant = tenant();
        let read = self.runtime.read(&tenant, KEY, Seq::ZERO, 10_000).await;
        read.unwrap().into_iter().map(|it| it.record).collect()
    }
}

fn kind(record: &Record) -> &str {
    match &record.event {
        Event::ChunkEmitted { chunk_type, .. } => chunk_type,
        event => event.event_type().name(),
    }
}

/// The text that a reader has of the last step, after resets.
fn text<'r>(records: impl IntoIterator<Item = &'r Record>) -> String {
    let mut text = String::new();
    for record in records {
        match &record.event {
            Event::ChunkEmitted {
                chunk_type,
                data: Some(data),
                ..
            } if chunk_type == "text-delta" => text += &data.str_field("delta").unwrap(),
            Event::ChunkEmitted { chunk_type, .. } if chunk_type == "data-step-reset" => {
                text.clear();
            }
            _ => {}
        }
    }
    text
}

fn records(followed: &[FollowedRecord]) -> Vec<Record> {
    followed.iter().map(|it| it.record.clone()).collect()
}

/// Reads until `n` text deltas have arrived.
async fn until_deltas(follow: &mut Follow, n: usize) -> Vec<FollowedRecord> {
    let mut all = Vec::new();
    let mut n_found = 0;
    while n_found < n {
        let followed = follow.next().await.unwrap().unwrap();
        n_found += usize::from(kind(&followed.record) == "text-delta");
        all.push(followed);
    }
    all
}

#[tokio::test(start_paused = true)]
async fn a_streamed_answer_makes_two_commits_and_its_first_delta_waits_for_one() {
    let process = Process::new(&Arc::new(MemoryStore::new()));
    process.say("slow 40ms say 20 words", Policy::Queue).await;
    let mut follow = process.follow(Seq::ZERO).await;
    let mut seen = until_deltas(&mut follow, 1).await;
    assert_eq!(process.store.writes(), 1);
    assert!(seen.last().unwrap().is_unstored());
    seen.extend(follow.map(|it| it.unwrap()).collect::<Vec<_>>().await);
    assert_eq!(process.store.writes(), 2);
    let deltas = seen.iter().filter(|it| kind(&it.record) == "text-delta");
    assert!(deltas.count() >= 20);
    assert_eq!(records(&seen), process.log().await);
    assert_eq!(verify(&process.log().await), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_long_answer_is_stored_every_ten_seconds() {
    let process = Process::new(&Arc::new(MemoryStore::new()));
    process.say("slow 40ms say 1000 words", Policy::Queue).await;
    let seen = process.read(Seq::ZERO).await;
    // Forty seconds.
    let n_writes = process.store.writes();
    assert!((5..=6).contains(&n_writes), "{n_writes}");
    let n_ahead = seen.iter().map(|it| it.position.n_ahead).max().unwrap();
    assert!((200..=260).contains(&n_ahead), "{n_ahead}");
    assert_eq!(records(&seen), process.log().await);
}

#[tokio::test(start_paused = true)]
async fn a_large_answer_is_stored_before_it_takes_much_memory() {
    let process = Process::new(&Arc::new(MemoryStore::new()));
    process.say("slow 1ms say 50000 words", Policy::Queue).await;
    let seen = process.read(Seq::ZERO).await;
    let (mut bytes, mut most, mut last) = (0, 0, Seq::ZERO);
    for followed in seen.iter().filter(|it| it.is_unstored()) {
        bytes = if followed.position.seq == last {
            bytes
        } else {
            0
        };
        last = followed.position.seq;
        bytes += followed.text.len();
        most = most.max(bytes);
    }
    // The limit is 128 KB, and one window more.
    assert!((64 << 10..140 << 10).contains(&most), "{most}");
    assert_eq!(records(&seen), records(&process.read(Seq::ZERO).await));
}

#[tokio::test(start_paused = true)]
async fn another_append_stores_the_chunks_first() {
    let process = Process::new(&Arc::new(MemoryStore::new()));
    process.say("slow 40ms say 30 words", Policy::Queue).await;
    let mut follow = process.follow(Seq::ZERO).await;
    let mut seen = until_deltas(&mut follow, 5).await;
    process.say("hello", Policy::Queue).await;
    seen.extend(until_deltas(&mut follow, 5).await);
    process.rename("t").await.unwrap();
    seen.extend(follow.map(|it| it.unwrap()).collect::<Vec<_>>().await);
    let log = process.log().await;
    assert_eq!(records(&seen), log);
    assert_eq!(verify(&log), Ok(()));
    assert!(seen.is_sorted_by(|a, b| a.position < b.position));
}

#[tokio::test(start_paused = true)]
async fn a_follower_resumes_behind_any_chunk_that_was_not_stored() {
    let process = Process::new(&Arc::new(MemoryStore::new()));
    process.say("slow 40ms say 30 words", Policy::Queue).await;
    let mut follow = process.follow(Seq::ZERO).await;
    let mut seen = until_deltas(&mut follow, 10).await;
    let mut resumed = Vec::new();
    for (n, followed) in seen.iter().enumerate() {
        resumed.push((n, process.follow(followed.position).await));
    }
    seen.extend(follow.map(|it| it.unwrap()).collect::<Vec<_>>().await);
    let all = records(&seen);
    for (n, follow) in resumed {
        let rest: Vec<_> = follow.map(|it| it.unwrap()).collect().await;
        assert_eq!(records(&rest), all[n + 1..], "after record {n}");
    }
    // The positions stay valid when the chunks are stored.
    for (n, followed) in seen.iter().enumerate() {
        let rest = process.read(followed.position).await;
        assert_eq!(records(&rest), all[n + 1..], "after record {n}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_follower_behind_a_lost_chunk_is_reset_after_a_crash() {
    let inner = Arc::new(MemoryStore::new());
    let first = Process::new(&inner);
    first.say("slow 40ms say 30 words", Policy::Queue).await;
    let mut follow = first.follow(Seq::ZERO).await;
    let seen = until_deltas(&mut follow, 10).await;
    let n_stored = first.log().await.len();
    first.store.die();
    let second = Process::new(&inner);
    second.runtime.recover().await.unwrap();
    let log = {
        let _ = second.read(Seq::ZERO).await;
        second.log().await
    };
    assert_eq!(verify(&log), Ok(()));
    for (n, followed) in seen.iter().enumerate() {
        let rest = second.read(followed.position).await;
        assert_eq!(records(&rest), log[(n + 1).min(n_stored)..], "record {n}");
        let both = seen[..=n].iter().chain(&rest).map(|it| &it.record);
        assert_eq!(text(both), text(&log));
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_after_a_crash_resets_what_was_shown() {
    let inner = Arc::new(MemoryStore::new());
    let first = Process::new(&inner);
    first.say("slow 40ms say 30 words", Policy::Queue).await;
    let mut follow = first.follow(Seq::ZERO).await;
    let seen = until_deltas(&mut follow, 10).await;
    first.store.die();
    let second = Process::new(&inner);
    let own = tenant();
    let cancelled = second.runtime.cancel(&own, KEY, None, "user_cancelled");
    cancelled.await.unwrap();
    let rest = second.read(seen.last().unwrap().position).await;
    assert_eq!(kind(&rest[0].record), "data-step-reset");
    assert_eq!(kind(&rest.last().unwrap().record), "thread.finished");
    let both = seen.iter().chain(&rest).map(|it| &it.record);
    assert_eq!(text(both), text(&stored(&inner).await));
}

#[tokio::test(start_paused = true)]
async fn a_cancel_by_another_process_leaves_followers_the_stored_text() {
    let inner = Arc::new(MemoryStore::new());
    let first = Process::new(&inner);
    first.say("slow 40ms say 30 words", Policy::Queue).await;
    let mut follow = first.follow(Seq::ZERO).await;
    let mut seen = until_deltas(&mut follow, 5).await;
    // A reader has the first chunks stored.
    assert!(!first.log().await.is_empty());
    seen.extend(until_deltas(&mut follow, 5).await);
    let second = Process::new(&inner);
    let own = tenant();
    let cancelled = second.runtime.cancel(&own, KEY, None, "user_cancelled");
    cancelled.await.unwrap();
    seen.extend(follow.map(|it| it.unwrap()).collect::<Vec<_>>().await);
    let log = stored(&inner).await;
    assert_eq!(verify(&log), Ok(()));
    assert_eq!(kind(&seen.last().unwrap().record), "thread.finished");
    let said = text(&log);
    assert!(said.split_whitespace().count() >= 5, "{said}");
    assert_eq!(text(&records(&seen)), said);
    let n_resets = seen
        .iter()
        .filter(|it| kind(&it.record) == "data-step-reset");
    assert_eq!(n_resets.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_follower_is_reset_if_the_store_fails_to_store_its_chunks() {
    let inner = Arc::new(MemoryStore::new());
    let process = Process::over(Mortal::stumbling(&inner, 2));
    process.say("slow 40ms say 30 words", Policy::Queue).await;
    let seen = process.read(Seq::ZERO).await;
    assert!(process.store.has_stumbled());
    let n_resets = seen
        .iter()
        .filter(|it| kind(&it.record) == "data-step-reset");
    assert_eq!(n_resets.count(), 1);
    let log = process.log().await;
    assert_eq!(verify(&log), Ok(()));
    assert_eq!(text(&records(&seen)), text(&log));
    assert!(seen.is_sorted_by(|a, b| a.position < b.position));
}

/// What the store has, without a process that could write to it first.
async fn stored(inner: &MemoryStore) -> Vec<Record> {
    let row = inner.find(&tenant(), KEY).await.unwrap();
    let read = inner.read(&row.thread.id, Seq::ZERO, 10_000, Filter::All);
    read.await
        .unwrap()
        .into_iter()
        .map(|it| it.record)
        .collect()
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_pauses_is_stored_after_ten_seconds() {
    let inner = Arc::new(MemoryStore::new());
    let process = Process::new(&inner);
    process.say("slow 60s say 2 words", Policy::Queue).await;
    let mut follow = process.follow(Seq::ZERO).await;
    let seen = until_deltas(&mut follow, 1).await;
    tokio::time::sleep(Duration::from_secs(9)).await;
    assert_eq!(text(&stored(&inner).await), "");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(stored(&inner).await, records(&seen));
    assert_eq!(process.store.writes(), 2);
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(process.store.writes(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_reader_of_earlier_events_stores_no_chunks() {
    let inner = Arc::new(MemoryStore::new());
    let process = Process::new(&inner);
    process.say("hello", Policy::Queue).await;
    let first = process.read(Seq::ZERO).await;
    process.say("slow 40ms say 30 words", Policy::Queue).await;
    let mut follow = process.follow(first.last().unwrap().position).await;
    let seen = until_deltas(&mut follow, 5).await;
    let (n_writes, own, runtime) = (process.store.writes(), tenant(), &process.runtime);
    runtime.read(&own, KEY, Seq::ZERO, 3).await.unwrap();
    let records = runtime.records(&own, KEY, Position::START, 3);
    records.await.unwrap();
    let old = || PageRequest::After {
        after: Position::START,
        n: 1,
    };
    let page = runtime.page(&own, KEY, old(), Filter::All).await.unwrap();
    assert!(page.more);
    assert_eq!(process.store.writes(), n_writes);
    let new = PageRequest::Before {
        before: Position::END,
        n: 1,
    };
    runtime.page(&own, KEY, new, Filter::All).await.unwrap();
    assert_eq!(process.store.writes(), n_writes + 1);
    let stored_text = text(&stored(&inner).await);
    let seen_text = text(&self::records(&seen));
    assert!(stored_text.ends_with(&seen_text), "{stored_text}");
    until_deltas(&mut follow, 5).await;
    let last = runtime.records(&own, KEY, Position::START, 10_000);
    let (records, _) = last.await.unwrap();
    assert_eq!(process.store.writes(), n_writes + 2);
    assert_eq!(
        records.last().unwrap().record,
        *stored(&inner).await.last().unwrap()
    );
}

#[tokio::test(start_paused = true)]
async fn a_reader_does_not_take_a_thread_back() {
    let inner = Arc::new(MemoryStore::new());
    let first = Process::new(&inner);
    first.say("slow 40ms say 30 words", Policy::Queue).await;
    let mut follow = first.follow(Seq::ZERO).await;
    until_deltas(&mut follow, 5).await;
    let second = Process::new(&inner);
    second.runtime.recover().await.unwrap();
    let mut follow = second.follow(Seq::ZERO).await;
    until_deltas(&mut follow, 5).await;
    for _ in 0..20 {
        first.log().await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let _: Vec<_> = follow.collect().await;
    let log = stored(&inner).await;
    assert_eq!(verify(&log), Ok(()));
    let n_resets = log.iter().filter(|it| kind(it) == "data-step-reset");
    assert_eq!(n_resets.count(), 1);
    assert_eq!(kind(log.last().unwrap()), "thread.finished");
}

#[tokio::test(start_paused = true)]
async fn an_attempt_goes_on_after_another_process_wrote() {
    let inner = Arc::new(MemoryStore::new());
    let first = Process::new(&inner);
    first.say("slow 40ms say 30 words", Policy::Queue).await;
    let mut follow = first.follow(Seq::ZERO).await;
    let mut seen = until_deltas(&mut follow, 5).await;
    let second = Process::new(&inner);
    second.rename("second").await.unwrap();
    first.rename("first").await.unwrap();
    seen.extend(follow.map(|it| it.unwrap()).collect::<Vec<_>>().await);
    let log = stored(&inner).await;
    assert_eq!(verify(&log), Ok(()));
    assert_eq!(kind(log.last().unwrap()), "thread.finished");
    let said = text(&log);
    assert_eq!(said.split_whitespace().count(), 30, "{said}");
    assert_eq!(text(&records(&seen)), said);
    let n_resets = log.iter().filter(|it| kind(it) == "data-step-reset");
    assert_eq!(n_resets.count(), 0);
}

/// Shows 100 KB and stores it.
#[derive(Default)]
struct Large {
    is_shown: AtomicBool,
    is_stored: AtomicBool,
}

impl Reactor for Large {
    fn react<'a>(&'a self, step: &'a mut StepRun) -> BoxFuture<'a, Result<Reacted, ReactorError>> {
        Box::pin(async move {
            let text = "x".repeat(100 << 10);
            step.writer.delta(BlockDelta::Text, "t", &text).await?;
            self.is_shown.store(true, Ordering::SeqCst);
            step.writer.flush().await?;
            self.is_stored.store(true, Ordering::SeqCst);
            Err(ReactorError::failed("over"))
        })
    }
}

#[tokio::test(start_paused = true)]
async fn chunks_that_were_shown_count_against_the_limit_when_they_are_stored() {
    let inner = Arc::new(MemoryStore::with_limits(Quotas::default(), 50 << 10));
    let (store, reactor) = (
        Mortal::new(&inner, usize::MAX, false, false),
        Arc::default(),
    );
    let reactors = Arc::new(Arc::<Large>::clone(&reactor));
    let runtime = Runtime::new(store.clone(), reactors, RuntimeOptions::default());
    let process = Process { store, runtime };
    process.say("hello", Policy::Queue).await;
    process.read(Seq::ZERO).await;
    assert!(reactor.is_shown.load(Ordering::SeqCst));
    assert!(!reactor.is_stored.load(Ordering::SeqCst));
}

fn has_secret(records: &[Record]) -> bool {
    format!("{records:?}").contains("secret")
}

#[tokio::test(start_paused = true)]
async fn followers_read_no_erased_text_from_memory() {
    for is_running in [true, false] {
        let inner = Arc::new(MemoryStore::new());
        let first = Process::new(&inner);
        first.say("say secret", Policy::Queue).await;
        assert!(has_secret(&records(&first.read(Seq::ZERO).await)));
        let process = Process::new(&inner);
        // It has the page, and the next records.
        let mut early = process.follow(Seq::ZERO).await;
        early.next().await.unwrap().unwrap();
        if is_running {
            let again = "slow 40ms say 30 secret words";
            process.say(again, Policy::Queue).await;
            let mut follow = process.follow(Seq::ZERO).await;
            until_deltas(&mut follow, 5).await;
            early = follow;
        }
        process.store.erase();
        let own = tenant();
        let forgotten = process.runtime.forget_removed(&own, KEY);
        forgotten.await.unwrap();
        let mut items = Vec::new();
        for mut follow in [early, process.follow(Seq::ZERO).await] {
            let next = tokio::time::timeout(Duration::from_millis(500), async {
                while let Some(followed) = follow.next().await {
                    items.extend(Some(followed.unwrap().record.clone()));
                }
            });
            let _ = next.await;
        }
        items.retain(|record| matches!(record.event, Event::ItemCreated { .. }));
        assert!(!items.is_empty() && !has_secret(&items), "{items:?}");
    }
}
