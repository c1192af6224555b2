//! A follower that reads a thread at one node after another, from where it was.

use crate::clients::MOMENT;
use crate::nodes::{Heard, Nodes};
use crate::world::{World, tenant};
use futures_util::StreamExt;
use loomline_runtime::{FollowedRecord, Until};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use timeline::{Event, ReadPosition, Record, Seq, StepId, ThreadId, chunk_type};

/// The text of a step's chunks since its last reset, by step.
type Chunks = BTreeMap<StepId, Vec<String>>;

#[derive(Default)]
struct Read {
    thread: Option<ThreadId>,
    position: ReadPosition,
    /// The numbers of the facts that it has read.
    facts: Vec<Seq>,
    chunks: Chunks,
}

pub(crate) struct Follower {
    nodes: Arc<Nodes>,
    key: String,
    read: Mutex<Read>,
}

/// Folds a record into the chunks. True if it is a fact.
fn fold(chunks: &mut Chunks, record: &Record, text: &str) -> bool {
    let Event::ChunkEmitted {
        chunk_type,
        step_id,
        ..
    } = &record.event
    else {
        return true;
    };
    let Some(step) = step_id else { return true };
    if chunk_type == chunk_type::STEP_RESET {
        chunks.insert(step.clone(), Vec::new());
    }
    if record.event.is_streamed() {
        chunks
            .entry(step.clone())
            .or_default()
            .push(text.to_owned());
    }
    !record.event.is_streamed()
}

impl Follower {
    pub(crate) fn new(nodes: &Arc<Nodes>, key: &str) -> Arc<Self> {
        Arc::new(Self {
            nodes: Arc::clone(nodes),
            key: key.to_owned(),
            read: Mutex::default(),
        })
    }

    fn world(&self) -> &World {
        &self.nodes.world
    }

    pub(crate) async fn run(&self) {
        loop {
            let world = self.world();
            let at = self.nodes.any().await;
            let position = self.read.lock().unwrap().position;
            let follow = at.ask(async |runtime| {
                runtime
                    .follow(&tenant(), &self.key, position, Until::Forever)
                    .await
            });
            let Heard::Done(mut follow) = follow.await else {
                tokio::time::sleep(MOMENT).await;
                continue;
            };
            world.note(format_args!(
                "n{} is followed on {} from {position:?}",
                at.link.place, self.key
            ));
            // Once it is calm it stays where it is: news must come by themselves.
            let patience = Duration::from_millis(world.roll(world.pick(&[500, 3_000, 20_000])));
            let until = tokio::time::Instant::now() + patience;
            loop {
                let next = async {
                    let next = follow.next().await;
                    at.link.life.pass().await;
                    next
                };
                let left = async {
                    tokio::time::sleep_until(until).await;
                    if world.is_calm() {
                        std::future::pending::<()>().await;
                    }
                };
                let next = tokio::select! {
                    biased;
                    () = at.link.life.ended() => break,
                    next = next => next,
                    () = left => break,
                };
                match next {
                    Some(Ok(record)) => self.heard(at.link.place, &record),
                    Some(Err(error)) => {
                        world.note(format_args!(
                            "n{} ends the stream of {}: {error}",
                            at.link.place, self.key
                        ));
                        tokio::time::sleep(MOMENT).await;
                        break;
                    }
                    None => break,
                }
            }
        }
    }

    fn heard(&self, place: usize, followed: &FollowedRecord) {
        let world = self.world();
        let mut read = self.read.lock().unwrap();
        let record = &followed.logged.record;
        let name = match &record.event {
            Event::ChunkEmitted { chunk_type, .. } => chunk_type,
            event => event.event_type().name(),
        };
        world.note(format_args!(
            "n{place} shows {} {name} {} {:?}",
            self.key, record.seq, followed.position
        ));
        if let Event::ThreadCreated { thread } = &record.event {
            read.thread = Some(thread.id.clone());
        }
        let is_fact = fold(&mut read.chunks, record, &followed.logged.text);
        if is_fact && !followed.is_unstored() {
            let last = read.facts.last().copied().unwrap_or_default();
            world.check(record.seq > last, || {
                format!(
                    "a follower of {} has read {} after {last}",
                    self.key, record.seq
                )
            });
            read.facts.push(record.seq);
            let logs = world.logs.lock().unwrap();
            let stored = read.thread.as_ref().and_then(|thread| logs.get(thread));
            let stored =
                stored.and_then(|log| log.records.get(usize::try_from(record.seq.0).unwrap() - 1));
            let is_same = stored.is_some_and(|stored| stored.text == followed.logged.text);
            drop(logs);
            world.check(is_same, || {
                format!(
                    "a follower of {} has read something else at {}",
                    self.key, record.seq
                )
            });
        }
        read.position = followed.position;
    }

    /// Whether it has read the whole log.
    pub(crate) fn is_at_the_end(&self) -> bool {
        let read = self.read.lock().unwrap();
        let logs = self.world().logs.lock().unwrap();
        let mut logs = logs.values().filter(|log| !log.is_deleted);
        let log = logs.find(|log| log.key() == Some(self.key.as_str()));
        let Some(log) = log else {
            return true;
        };
        read.position.seq.0 == log.records.len() as u64
    }

    /// Checks that what it has read is what the log has.
    pub(crate) fn check(&self) {
        let world = self.world();
        let read = self.read.lock().unwrap();
        let Some(thread) = &read.thread else { return };
        let logs = world.logs.lock().unwrap();
        let (mut chunks, mut facts) = (Chunks::new(), Vec::new());
        for logged in &logs[thread].records {
            if fold(&mut chunks, &logged.record, &logged.text) {
                facts.push(logged.record.seq);
            }
        }
        drop(logs);
        let missing = facts.iter().find(|seq| !read.facts.contains(seq));
        world.check(facts == read.facts, || {
            format!("a follower of {} lacks the fact {missing:?}", self.key)
        });
        let differs = chunks.iter().find(|(step, chunks)| {
            read.chunks
                .get(*step)
                .map_or(!chunks.is_empty(), |it| it != *chunks)
        });
        world.check(differs.is_none(), || {
            let step = differs.map(|(step, _)| step);
            format!(
                "a follower of {} has read other chunks of {step:?}: {differs:?}, not {:?}",
                self.key,
                step.and_then(|it| read.chunks.get(it))
            )
        });
    }

    pub(crate) fn about(&self) -> String {
        let read = self.read.lock().unwrap();
        format!("the follower of {} is at {:?}", self.key, read.position)
    }
}
