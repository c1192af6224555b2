//! A transcript as a document.

use super::agents::Registry;
use super::clock::{Clock, rfc3339};
use super::delta::{ORDER, patched, read, read_object};
use super::events::note_targets;
use super::open_calls::Left;
use super::resolve_open_calls::resolve_open_calls;
use super::turns::{EXTENSION, ItemTurn, agent_turn, item_turn};
use crate::parts::{ThreadEvent, cut_off_parts};
use crate::{Converted, Loss, Losses};
use thread::{Json, Object, Version};
use timeline::{Entry, ExecutionStatus, Transcript, messages_with_answers};

/// The canonical document of a thread, in the newest version.
///
/// It is a pure function of the transcript. It omits items that wait for their execution, and the
/// running execution. An interrupted turn has its complete cycles, and its usage counts in full
/// (TP-13). Timestamps are the log's and never go back; imported ones have their original text.
pub fn to_document(transcript: &Transcript) -> Converted<thread::Thread> {
    let Some(thread) = &transcript.thread else {
        let what = "the thread was never created".to_owned();
        let pointer = String::new();
        return Converted {
            value: thread::Thread::new("", ""),
            losses: vec![Loss { pointer, what }],
        };
    };
    let metadata = thread.metadata.as_ref().map(read);
    let kept = metadata
        .as_ref()
        .and_then(|metadata| metadata.get(EXTENSION));
    let kept_object = |key: &str| kept.and_then(|kept| kept.get(key)?.as_object());
    let mut registry = Registry::new(kept_object("agents").cloned().unwrap_or_default());
    let mut losses = Losses::default();
    let Turns {
        list: turns,
        is_open,
        ..
    } = Turns::of(transcript, &mut registry, &mut losses);
    let unchanged = kept
        .and_then(|kept| kept.get("n_entries")?.as_u64())
        .is_some_and(|n_entries| n_entries == transcript.entries.len() as u64);
    let imported_at = kept.and_then(|kept| kept.get("updated_at")?.as_str());
    let updated_at = imported_at.filter(|_| unchanged).map_or_else(
        || rfc3339(thread.updated_at.unwrap_or(thread.created_at)),
        str::to_owned,
    );
    let own = thread.metadata.as_ref().map(|metadata| {
        let mut own = read_object(Some(metadata));
        own.remove(EXTENSION);
        own
    });
    if metadata
        .as_ref()
        .is_some_and(|metadata| metadata.as_object().is_none())
    {
        losses.push("/metadata", "metadata that is no object");
    }
    let root = Root {
        thread_id: thread.id.as_str(),
        created_at: rfc3339(thread.created_at),
        updated_at,
        title: thread.title.as_deref(),
        metadata: own.filter(|own| !own.is_empty()),
        agents: registry.into_object(),
        turns,
    };
    let said = kept_object("root");
    let grown = said.filter(|_| !unchanged).map(beside);
    let mut root = patched(root.into_object(), grown.as_ref().or(said));
    if let Some(fork) = &thread.fork {
        link(&mut root, fork.thread_id.as_str(), fork.seq.0);
    }
    let mut value = thread::Thread::from_root(root);
    if is_open {
        resolve_open_calls(&mut value, &mut losses);
    }
    losses.with(value)
}

/// Where the turns of each entry are in the document of a transcript: the number of turns before each
/// entry, and the number of all.
pub fn turn_bounds(transcript: &Transcript) -> Vec<usize> {
    let (mut registry, mut losses) = (Registry::new(Object::new()), Losses::default());
    Turns::of(transcript, &mut registry, &mut losses).bounds
}

/// The turns of a transcript.
struct Turns {
    list: Vec<Json>,
    /// The number of turns before each entry, and of all.
    bounds: Vec<usize>,
    /// Whether one of them has calls without results.
    is_open: bool,
}

impl Turns {
    fn of(transcript: &Transcript, registry: &mut Registry, losses: &mut Losses) -> Self {
        let mut clock = Clock::new();
        let mut turns = Vec::with_capacity(transcript.entries.len());
        let mut bounds = Vec::with_capacity(transcript.entries.len() + 1);
        let mut is_open = false;
        let left = Left::of(transcript);
        for (place, entry) in transcript.entries.iter().enumerate() {
            let at = || format!("/entries/{place}");
            bounds.push(turns.len());
            match entry {
                Entry::Item(item) if item.run.is_some() => {}
                Entry::Item(item) => {
                    let beside = messages_with_answers(item);
                    for item in std::iter::once(item).chain(&beside) {
                        match item_turn(item, &mut clock, registry) {
                            ItemTurn::Turn(turn) => {
                                if item.metadata.is_some() && ThreadEvent::of_item(item).is_some() {
                                    losses.push(at(), "what an event keeps beside it");
                                }
                                turns.push(turn);
                            }
                            ItemTurn::Nothing => {}
                            ItemTurn::Lost(what) => losses.push(at(), what),
                        }
                    }
                }
                // All that it said is removed.
                Entry::Reaction(reaction) if reaction.steps.is_empty() => {}
                Entry::Reaction(reaction) => {
                    if reaction.execution.status == ExecutionStatus::Executing {
                        continue;
                    }
                    registry.note(reaction);
                    note_targets(reaction, registry);
                    let agent = agent_turn(reaction, &left, &mut clock);
                    if agent.n_dropped > 0 {
                        losses.push(
                            at(),
                            format!("{} messages of incomplete cycles", agent.n_dropped),
                        );
                    }
                    for step in &reaction.steps {
                        let n_chars: usize = cut_off_parts(step)
                            .iter()
                            .filter_map(|part| Some(part.str_field("text")?.chars().count()))
                            .sum();
                        if n_chars > 0 {
                            losses.push(
                                at(),
                                format!("{n_chars} characters of an answer that was cut off"),
                            );
                        }
                    }
                    is_open |= agent.is_open;
                    turns.push(agent.turn.into());
                }
            }
        }
        bounds.push(turns.len());
        Self {
            list: turns,
            bounds,
            is_open,
        }
    }
}

/// The root members that every thread's log supplies.
const OWN: [&str; 5] = ["thread_id", "created_at", "updated_at", "agents", "turns"];

/// The other root members of an imported document. Once anything was posted since the import, the
/// members in [`OWN`] come from the log, even if the document lacked them or had other values.
fn beside(said: &Object) -> Object {
    let others = said.iter().filter(|(key, _)| !OWN.contains(key));
    let mut others: Object = others.map(|(key, value)| (key, value.clone())).collect();
    if let Some(order) = said.get(ORDER).and_then(Json::as_array) {
        let told: Vec<&str> = order.iter().filter_map(Json::as_str).collect();
        let more = OWN.into_iter().filter(|key| !told.contains(key));
        let order: Json = told.iter().copied().chain(more).collect();
        others.insert(ORDER, order);
    }
    others
}

/// The content of a document's root to write.
pub(super) struct Root<'a> {
    pub(super) thread_id: &'a str,
    pub(super) created_at: String,
    pub(super) updated_at: String,
    pub(super) title: Option<&'a str>,
    pub(super) metadata: Option<Object>,
    pub(super) agents: Object,
    pub(super) turns: Vec<Json>,
}

impl Root<'_> {
    /// The root in this system's order.
    pub(super) fn into_object(self) -> Object {
        Object::new()
            .with("version", Version::NEWEST.as_str())
            .with("thread_id", self.thread_id)
            .with("created_at", self.created_at)
            .with("updated_at", self.updated_at)
            .with_some("title", self.title)
            .with_some("metadata", self.metadata)
            .with("agents", self.agents)
            .with("turns", Json::Array(self.turns))
    }
}

/// Adds the link from a fork to its parent (0.0.3 `relationships`).
fn link(root: &mut Object, parent: &str, seq: u64) {
    let metadata = Object::new().with("branch_point", seq);
    let link = Object::new()
        .with("thread_id", parent)
        .with("relation", "spawned_from")
        .with("metadata", metadata);
    let known = root.get_mut("relationships").and_then(|relationships| {
        relationships
            .as_object_mut()?
            .get_mut("links")?
            .as_array_mut()
    });
    if let Some(links) = known {
        links.push(link.into());
    } else {
        let links = Object::new().with("links", Json::Array(vec![link.into()]));
        root.insert("relationships", links);
    }
}
