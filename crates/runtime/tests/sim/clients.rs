//! Clients: sequences of requests at any node, repeated while their outcome is unknown.

use crate::nodes::{Heard, Nodes};
use crate::seen_log::SeenLog;
use crate::world::{Habit, World, tenant};
use loomline_runtime as runtime;
use runtime::{Accepted, AnswerRequest, Cut, NewCompaction, Policy, ReactRequest};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::Logged;
use timeline::{Event, ItemType, NewItem, OpenKind, Seq, SummaryAuthor, ThreadId, ThreadUpdate};

/// The attempts at one request.
const MAX_TRIES: usize = 6;

/// A message that has been accepted.
struct Posted {
    thread: ThreadId,
    seq: Seq,
    accepted_at: tokio::time::Instant,
}

pub(crate) struct Clients {
    nodes: Arc<Nodes>,
    posted: Mutex<Vec<Posted>>,
    /// The texts of all requests, each of which is at most once in the logs.
    pub(crate) texts: Mutex<Vec<String>>,
    keys: Vec<String>,
}

fn has(logged: &Logged, text: &str) -> bool {
    logged.text.contains(text)
}

/// Whether a record is a message or answer with this text.
fn is_item_with(logged: &Logged, text: &str) -> bool {
    matches!(logged.record.event, Event::ItemCreated { .. }) && has(logged, text)
}

impl Clients {
    pub(crate) fn new(nodes: &Arc<Nodes>) -> Arc<Self> {
        let n = match nodes.world.faults.habit {
            Habit::Talk => 1,
            _ => 1 + nodes.world.index(3),
        };
        Arc::new(Self {
            nodes: Arc::clone(nodes),
            posted: Mutex::default(),
            texts: Mutex::default(),
            keys: (0..n).map(|n| format!("key-{n}")).collect(),
        })
    }

    /// The keys of threads that are never deleted.
    pub(crate) fn keys(&self) -> &[String] {
        &self.keys
    }

    fn world(&self) -> &World {
        &self.nodes.world
    }

    /// A key to ask about: mostly one that is never deleted.
    fn key(&self) -> String {
        let world = self.world();
        match world.roll(10) {
            0 => "brief".to_owned(),
            1 => format!("fork-{}", world.roll(2)),
            _ => self.keys[world.index(self.keys.len())].clone(),
        }
    }

    /// A new text that is found in the logs.
    fn text(&self, what: &str) -> String {
        let text = format!("<{}>", self.world().mint(what));
        self.texts.lock().unwrap().push(text.clone());
        text
    }

    pub(crate) async fn run(&self, n_requests: usize) {
        for _ in 0..n_requests {
            let world = self.world();
            world.pause(world.pick(&[20, 300, 3_000])).await;
            let kind = match world.faults.habit {
                // Answers at once, and stops of what waits.
                Habit::Children if world.happens(600) => world.pick(&[9, 15, 20, 20]),
                _ => world.roll(20),
            };
            match kind {
                0..=8 => self.say().await,
                9..=10 => self.cancel().await,
                11..=14 => {
                    self.answer_any().await;
                }
                15 => self.answer_soon().await,
                20 => self.stop_soon().await,
                16 => self.fork().await,
                17 => self.compact_or_rename().await,
                18 => self.delete().await,
                _ => Box::pin(self.race()).await,
            }
        }
    }

    async fn say(&self) {
        self.say_on(&self.key()).await;
    }

    /// Several requests for one thread at once.
    async fn race(&self) {
        let key = self.key();
        futures_util::join!(self.say_on(&key), self.say_on(&key), self.cancel());
    }

    async fn say_on(&self, key: &str) {
        let world = self.world();
        let text = self.text("says");
        let policy = world.pick(&[
            Policy::Queue,
            Policy::Queue,
            Policy::Interrupt,
            Policy::Reject,
        ]);
        let token = (!world.happens(200)).then(|| format!("token {text}"));
        let began = tokio::time::Instant::now();
        for n in 0..MAX_TRIES {
            let at = self.nodes.any().await;
            let content = json!([{"type": "input_text", "text": text}]).into();
            let mut request =
                ReactRequest::new(tenant(), key, NewItem::user(world.mint("item"), content));
            request.policy = policy;
            request.token = token.clone().map(Into::into);
            world.note(format_args!(
                "n{} says {text} on {key} {policy:?}",
                at.link.place
            ));
            let heard = at
                .ask(async |runtime| runtime.react(request.clone()).await)
                .await;
            world.note(format_args!(
                "n{} has heard {text}: {heard:?}",
                at.link.place
            ));
            match heard {
                Heard::Done(accepted) => return self.posted(&text, &accepted, began),
                Heard::Refused(_) if n == 0 => return self.refused(&text),
                Heard::Refused(_) => return,
                Heard::Nothing if token.is_none() => return,
                Heard::Nothing => world.pause(500).await,
            }
        }
    }

    fn posted(&self, text: &str, accepted: &Accepted, began: tokio::time::Instant) {
        let world = self.world();
        let thread = &accepted.thread_id;
        let (seq, n) = world.found(thread, |it| is_item_with(it, text));
        let Some(seq) = seq.filter(|_| n == 1) else {
            return world.violate(format!(
                "{text} was accepted and is {n} times in the log of {thread}"
            ));
        };
        world.check(seq > accepted.after, || {
            format!("{text} is at {seq}, not after {}", accepted.after)
        });
        let mut posted = self.posted.lock().unwrap();
        let before = posted
            .iter()
            .filter(|it| it.thread == *thread && it.accepted_at < began);
        let last = before.map(|it| it.seq).max();
        world.check(last.is_none_or(|last| last < seq), || {
            format!("{text} at {seq} is before {last:?}, which was accepted before it was sent")
        });
        posted.push(Posted {
            thread: thread.clone(),
            seq,
            accepted_at: tokio::time::Instant::now(),
        });
    }

    fn refused(&self, text: &str) {
        let world = self.world();
        let logs = world.logs.lock().unwrap();
        let n = logs
            .values()
            .flat_map(|log| &log.records)
            .filter(|it| has(it, text))
            .count();
        drop(logs);
        world.check(n == 0, || format!("{text} was refused and is in the log"));
    }

    async fn cancel(&self) {
        self.cancel_on(&self.any_key()).await;
    }

    async fn cancel_on(&self, key: &str) {
        let (world, at) = (self.world(), self.nodes.any().await);
        let heard = at
            .ask(async |runtime| runtime.cancel(&tenant(), key, None, "user_cancelled").await)
            .await;
        world.note(format_args!("n{} cancels {key}: {heard:?}", at.link.place));
        if let Heard::Done(cancelled) = heard
            && let Some(execution) = cancelled.execution_id
        {
            let ends = |it: &Logged| matches!(&it.record.event, Event::ThreadFinished { execution_id, .. } if *execution_id == execution);
            let logs: Vec<ThreadId> = world.logs.lock().unwrap().keys().cloned().collect();
            let found = logs.iter().find_map(|thread| world.found(thread, ends).0);
            world.check(found.is_some_and(|seq| seq <= cancelled.seq), || {
                format!(
                    "{execution} was cancelled at {}, and its end is at {found:?}",
                    cancelled.seq
                )
            });
        }
    }

    /// Answers one of the open calls of all threads. False if there is none.
    pub(crate) async fn answer_any(&self) -> bool {
        let world = self.world();
        let mut open: Vec<(String, String, OpenKind)> = {
            let logs = world.logs.lock().unwrap();
            let there = logs.values().filter(|log| !log.is_deleted);
            there.flat_map(SeenLog::questions).collect()
        };
        if open.is_empty() {
            return false;
        }
        let (key, call, kind) = open.swap_remove(world.index(open.len()));
        let is_denied = world.happens(200);
        for _ in 0..MAX_TRIES {
            let at = self.nodes.any().await;
            let said: Value = match kind {
                OpenKind::External => {
                    json!([{"type": "loomline-answer", "toolCallId": call, "output": "brought"}])
                }
                _ => {
                    json!([{"type": "loomline-answer", "toolCallId": call, "approved": !is_denied}])
                }
            };
            let item = NewItem {
                item_type: ItemType::ActionResult,
                role: None,
                ..NewItem::user(world.mint("item"), said.into())
            };
            let request = AnswerRequest {
                tenant: tenant(),
                key: key.clone(),
                item,
                run: None,
                token: Some(format!("answer {call}").into()),
            };
            world.note(format_args!("n{} answers {call} on {key}", at.link.place));
            let heard = at
                .ask(async |runtime| runtime.answer(request.clone()).await)
                .await;
            world.note(format_args!(
                "n{} has heard of {call}: {heard:?}",
                at.link.place
            ));
            match heard {
                Heard::Done(accepted) => {
                    let (_, n) = world.found(&accepted.thread_id, |it| is_item_with(it, &call));
                    world.check(n == 1, || {
                        format!("the answer to {call} was accepted and is {n} times in the log")
                    });
                    break;
                }
                Heard::Refused(_) => break,
                Heard::Nothing => world.pause(500).await,
            }
        }
        true
    }

    /// Stops a sub-agent as soon as it waits for an answer.
    async fn stop_soon(&self) {
        let world = self.world();
        for _ in 0..200 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            let waiting = {
                let logs = world.logs.lock().unwrap();
                let mut keys = logs
                    .values()
                    .filter(|log| log.waits())
                    .filter_map(SeenLog::key);
                keys.find(|key| key.contains('/')).map(str::to_owned)
            };
            if let Some(key) = waiting {
                return self.cancel_on(&key).await;
            }
        }
    }

    /// Answers the next call as soon as it waits.
    async fn answer_soon(&self) {
        for _ in 0..100 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            if self.answer_any().await {
                return;
            }
        }
    }

    async fn compact_or_rename(&self) {
        if self.world().happens(500) {
            self.compact().await;
        } else {
            self.rename().await;
        }
    }

    /// The key of any thread, those of sub-agents included.
    fn any_key(&self) -> String {
        let keys: Vec<String> = {
            let logs = self.world().logs.lock().unwrap();
            logs.values()
                .filter_map(SeenLog::key)
                .map(str::to_owned)
                .collect()
        };
        match keys.get(self.world().index(keys.len())) {
            Some(key) => key.clone(),
            None => self.key(),
        }
    }

    async fn rename(&self) {
        let world = self.world();
        let (key, at, text) = (self.key(), self.nodes.any().await, self.text("title"));
        let update = ThreadUpdate {
            title: Some(Some(text.clone())),
            ..ThreadUpdate::default()
        };
        let heard = at
            .ask(async |runtime| runtime.update_thread(&tenant(), &key, update.clone()).await)
            .await;
        world.note(format_args!(
            "n{} renames {key} {text}: {heard:?}",
            at.link.place
        ));
        match heard {
            Heard::Done(seq) => {
                let logs: Vec<ThreadId> = world.logs.lock().unwrap().keys().cloned().collect();
                let found = logs
                    .iter()
                    .find_map(|thread| world.found(thread, |it| has(it, &text)).0);
                world.check(found == Some(seq), || {
                    format!("{text} was written at {seq} and is at {found:?}")
                });
            }
            Heard::Refused(_) => self.refused(&text),
            Heard::Nothing => {}
        }
    }

    async fn fork(&self) {
        let world = self.world();
        let (key, at) = (self.key(), self.nodes.any().await);
        let new = format!("fork-{}", world.roll(2));
        let heard = at
            .ask(async |runtime| runtime.fork(&tenant(), &key, Some(new.clone()), None).await)
            .await;
        let heard = match heard {
            Heard::Done(row) => row.thread.id.to_string(),
            Heard::Refused(error) => error.to_string(),
            Heard::Nothing => "nothing".into(),
        };
        world.note(format_args!(
            "n{} forks {key} to {new}: {heard}",
            at.link.place
        ));
    }

    async fn compact(&self) {
        let world = self.world();
        let (key, at) = (self.key(), self.nodes.any().await);
        let new = NewCompaction {
            cut: Cut::KeepRuns(world.index(2)),
            summary: "A summary.".into(),
            author: SummaryAuthor::default(),
        };
        let heard = at
            .ask(async |runtime| runtime.compact(&tenant(), &key, new.clone()).await)
            .await;
        world.note(format_args!(
            "n{} compacts {key}: {}",
            at.link.place,
            matches!(heard, Heard::Done(_))
        ));
    }

    async fn delete(&self) {
        let world = self.world();
        let (key, at) = (format!("fork-{}", world.roll(2)), self.nodes.any().await);
        let key = if world.happens(500) {
            "brief".to_owned()
        } else {
            key
        };
        let heard = at
            .ask(async |runtime| runtime.delete_stopping(&tenant(), &key).await)
            .await;
        world.note(format_args!("n{} deletes {key}: {heard:?}", at.link.place));
    }

    /// Each message is at most once in the logs. After a deletion a repeated request makes another thread.
    pub(crate) fn check_texts(&self) {
        let world = self.world();
        let logs = world.logs.lock().unwrap();
        let mut counts = BTreeMap::new();
        for (thread, log) in &*logs {
            let items = log.records.iter().filter(|it| {
                matches!(&it.record.event, Event::ItemCreated { item } if item.item_type == ItemType::Message)
            });
            for item in items {
                let start = item.text.find("<says-");
                let said = start.and_then(|start| item.text[start..].split('>').next());
                let place = log.is_deleted.then_some(thread.clone());
                if let Some(said) = said {
                    *counts.entry((place, said.to_owned())).or_insert(0) += 1;
                }
            }
        }
        drop(logs);
        for ((_, text), n) in counts {
            world.check(n == 1, || format!("{text}> is {n} times in the logs"));
        }
    }
}

/// Longest time between two requests of a follower for the thread's existence.
pub(crate) const MOMENT: Duration = Duration::from_millis(200);
