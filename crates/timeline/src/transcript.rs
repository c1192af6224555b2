//! The whole conversation, folded from its log.

use crate::change::Removed;
use crate::entity::{Execution, Item, OpenCall, Step, StepOutcome, Thread};
use crate::event::{Event, Record, chunk_type};
use crate::ids::{ExecutionId, ItemId, Seq, StepId};
use crate::payload::Payload;
use crate::state::update_of;
use crate::status::{ExecutionStatus, StepStatus};
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// A part, and when it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartRecord {
    /// The current content.
    pub part: Payload,
    /// When it was first written.
    pub created_at: Timestamp,
    /// When it was last written.
    pub updated_at: Timestamp,
}

/// A step with its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepRecord {
    /// The step.
    pub step: Step,
    /// The model's metadata about its answer, and the answer's time; `None` if the model did not
    /// answer.
    pub response: Option<(Payload, Timestamp)>,
    /// The parts, in order.
    pub parts: Vec<PartRecord>,
    /// The chunks since the last answer or reset: the text of an answer that was cut off.
    pub chunks: Vec<(String, Option<Payload>)>,
    /// The number of earlier attempts that died.
    pub n_resets: usize,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

impl StepRecord {
    /// The time from the beginning of the step to the model's answer: the latency of EK §6.
    pub fn latency(&self) -> Option<SignedDuration> {
        let (_, answered_at) = self.response.as_ref()?;
        Some(answered_at.duration_since(self.step.created_at))
    }
}

/// An execution with its steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reaction {
    /// The execution.
    pub execution: Execution,
    /// The item it writes.
    pub item: Option<Item>,
    /// Its steps, in order.
    pub steps: Vec<StepRecord>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

impl Reaction {
    /// The calls that it left without results.
    pub fn open_calls(&self) -> Vec<OpenCall> {
        let last = self.steps.last();
        OpenCall::list(last.and_then(|step| step.step.outcome.open_calls.as_ref()))
    }
}

/// One entry of a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "entries live in one vector and are read in place"
)]
pub enum Entry {
    /// A message or an answer to the agents.
    Item(Item),
    /// The reaction of an agent.
    Reaction(Reaction),
}

/// The whole conversation in the order of the log. Its size is that of the thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transcript {
    /// The thread.
    pub thread: Option<Thread>,
    /// Its entries.
    pub entries: Vec<Entry>,
    /// The last event that is in it.
    pub seq: Seq,
    // Where the things are that can still change; what has ended is not looked up again.
    waiting: BTreeMap<ItemId, usize>,
    executions: BTreeMap<ExecutionId, usize>,
    steps: BTreeMap<StepId, ExecutionId>,
    removed: BTreeMap<Removed, usize>,
    n_reactions: usize,
}

impl Transcript {
    /// The transcript of a fork that continues this one. Messages that wait for their run stay with
    /// the parent and are not part of the fork.
    #[must_use]
    pub fn continued(mut self) -> Self {
        if !self.waiting.is_empty() {
            self.entries
                .retain(|entry| !matches!(entry, Entry::Item(item) if item.run.is_some()));
            self.waiting.clear();
            self.executions.clear();
        }
        self.seq = Seq::ZERO;
        self
    }

    /// The removed entries that are still in the list, each with the number of executions that had
    /// started when it was removed.
    pub fn removed(&self) -> &BTreeMap<Removed, usize> {
        &self.removed
    }

    /// Adds removals that are not in its records.
    pub fn note_removed(&mut self, removed: impl IntoIterator<Item = Removed>) {
        for what in removed {
            self.removed.entry(what).or_insert(usize::MAX);
        }
    }

    /// The transcript without removed items and steps. A reaction without remaining steps stays and
    /// is empty.
    ///
    /// It is one pass over all entries, so call it once, after the last record.
    #[must_use]
    pub fn without_removed(mut self) -> Self {
        let removed = std::mem::take(&mut self.removed);
        if removed.is_empty() {
            return self;
        }
        self.waiting
            .retain(|id, _| !removed.contains_key(&Removed::Item(id.clone())));
        self.retain(|entry| match entry {
            Entry::Item(item) => !removed.contains_key(&Removed::Item(item.id.clone())),
            Entry::Reaction(_) => true,
        });
        for entry in &mut self.entries {
            if let Entry::Reaction(reaction) = entry {
                let is_gone = |step: &StepRecord| {
                    let id = step.step.id.clone();
                    removed.contains_key(&Removed::Step(id))
                };
                reaction.steps.retain(|step| !is_gone(step));
            }
        }
        self
    }

    /// The items that wait for an execution.
    pub fn waiting(&self) -> impl Iterator<Item = &Item> {
        let places = self.waiting.values();
        places.filter_map(|place| match self.entries.get(*place)? {
            Entry::Item(item) => Some(item),
            Entry::Reaction(_) => None,
        })
    }

    /// Removes the waiting items for which `keep` returns false.
    pub fn retain_waiting(&mut self, keep: impl Fn(&Item) -> bool) {
        let gone: BTreeSet<ItemId> = self
            .waiting()
            .filter(|item| !keep(item))
            .map(|item| item.id.clone())
            .collect();
        self.waiting.retain(|id, _| !gone.contains(id));
        self.retain(|entry| !matches!(entry, Entry::Item(item) if gone.contains(&item.id)));
    }

    /// Removes entries, and updates the indexes of those that can still change.
    fn retain(&mut self, keep: impl Fn(&Entry) -> bool) {
        self.entries.retain(keep);
        for (place, entry) in self.entries.iter().enumerate() {
            let found = match entry {
                Entry::Item(item) => self.waiting.get_mut(&item.id),
                Entry::Reaction(reaction) => self.executions.get_mut(&reaction.execution.id),
            };
            if let Some(found) = found {
                *found = place;
            }
        }
    }

    /// Whether an item waits for an execution.
    pub fn waits(&self, item: &ItemId) -> bool {
        self.entries
            .iter()
            .any(|entry| matches!(entry, Entry::Item(i) if i.id == *item && i.run.is_some()))
    }

    /// Folds one record in. The cost is the size of the record plus O(log n) to find its place.
    /// Removed entries stay in the list until [`Transcript::without_removed`].
    pub fn apply(&mut self, record: &Record) {
        self.seq = record.seq;
        let at = record.at;
        match &record.event {
            Event::ThreadCreated { thread } => self.thread = Some(thread.clone()),
            Event::ThreadStatusChanged { to, .. } => {
                if let Some(thread) = &mut self.thread {
                    thread.status = *to;
                    thread.updated_at = Some(at);
                }
            }
            Event::ItemCreated { item } => self.item(item),
            Event::ItemStatusChanged { item_id, to, .. } => {
                if let Some(item) = self.last_item(item_id) {
                    item.status = *to;
                }
            }
            Event::ExecutionCreated { execution } => self.execution(execution),
            Event::ExecutionStatusChanged {
                execution_id,
                to,
                interruption,
                ..
            } => {
                if let Some(reaction) = self.reaction(execution_id) {
                    reaction.execution.status = *to;
                    reaction.execution.interruption.clone_from(interruption);
                    if *to != ExecutionStatus::Executing {
                        reaction.ended_at = Some(at);
                        self.executions.remove(execution_id);
                    }
                }
            }
            Event::StepCreated { step } => self.step_created(step),
            Event::StepStatusChanged {
                step_id,
                to,
                outcome,
                ..
            } => {
                if let Some(step) = self.step(step_id) {
                    close_step(step, *to, outcome, at);
                }
                self.steps.remove(step_id);
            }
            Event::PartCreated {
                step_id, idx, part, ..
            }
            | Event::PartUpdated {
                step_id, idx, part, ..
            } => {
                if let Some(step) = self.step(step_id) {
                    put(step, *idx, part, at);
                }
            }
            Event::ChunkEmitted {
                chunk_type,
                step_id: Some(step_id),
                data,
                ..
            } => {
                if let Some(step) = self.step(step_id) {
                    chunk(step, chunk_type, data.as_ref(), at);
                }
            }
            Event::ChunkEmitted {
                chunk_type,
                step_id: None,
                data,
                ..
            } => self.marked(chunk_type, data.as_ref()),
            Event::ContextCreated { .. }
            | Event::ContextResolved { .. }
            | Event::ContextStatusChanged { .. }
            | Event::ThreadResolved { .. }
            | Event::ThreadFinished { .. } => {}
        }
        if let Some(thread) = &mut self.thread
            && !is_for_models(&record.event)
        {
            thread.updated_at = Some(at);
        }
    }

    fn marked(&mut self, kind: &str, data: Option<&Payload>) {
        if let Some(thread) = &mut self.thread
            && let Some(update) = update_of(kind, data)
        {
            update.apply(thread);
        }
        let data = data.filter(|_| kind == chunk_type::ITEM_REMOVED);
        if let Some(what) = data.and_then(|data| data.read().ok()) {
            self.removed.entry(what).or_insert(self.n_reactions);
        }
    }

    fn item(&mut self, item: &Item) {
        if let Some(reaction) = item.execution_id.as_ref().and_then(|id| self.reaction(id)) {
            reaction.item = Some(item.clone());
            return;
        }
        if item.run.is_some() {
            self.waiting.insert(item.id.clone(), self.entries.len());
        }
        self.entries.push(Entry::Item(item.clone()));
    }

    // An answer stands right after what it answers, even if that waited while others were written.
    fn execution(&mut self, execution: &Execution) {
        if let Some(place) = self.waiting.remove(&execution.trigger_item_id) {
            let mut item = self.entries.remove(place);
            for index in self
                .waiting
                .values_mut()
                .chain(self.executions.values_mut())
            {
                if *index > place {
                    *index -= 1;
                }
            }
            if let Entry::Item(item) = &mut item {
                item.run = None;
            }
            self.entries.push(item);
        }
        self.n_reactions += 1;
        self.executions
            .insert(execution.id.clone(), self.entries.len());
        self.entries.push(Entry::Reaction(Reaction {
            execution: execution.clone(),
            item: None,
            steps: Vec::new(),
            ended_at: None,
        }));
    }

    fn step_created(&mut self, step: &Step) {
        let Some(reaction) = self.reaction(&step.execution_id) else {
            return;
        };
        reaction.steps.push(StepRecord {
            step: step.clone(),
            response: None,
            parts: Vec::new(),
            chunks: Vec::new(),
            n_resets: 0,
            ended_at: None,
        });
        self.steps
            .insert(step.id.clone(), step.execution_id.clone());
    }

    fn reaction(&mut self, id: &ExecutionId) -> Option<&mut Reaction> {
        let index = self.executions.get(id).copied()?;
        match self.entries.get_mut(index)? {
            Entry::Reaction(reaction) => Some(reaction),
            Entry::Item(_) => None,
        }
    }

    /// The item of this id, which is most often that of the last reaction.
    fn last_item(&mut self, id: &ItemId) -> Option<&mut Item> {
        let items = self
            .entries
            .iter_mut()
            .rev()
            .filter_map(|entry| match entry {
                Entry::Item(item) => Some(item),
                Entry::Reaction(reaction) => reaction.item.as_mut(),
            });
        items.into_iter().find(|item| item.id == *id)
    }

    fn step(&mut self, id: &StepId) -> Option<&mut StepRecord> {
        let execution = self.steps.get(id)?.clone();
        self.reaction(&execution)?
            .steps
            .iter_mut()
            .rev()
            .find(|step| step.step.id == *id)
    }
}

/// Whether an event changes only what models read.
fn is_for_models(event: &Event) -> bool {
    let Event::ChunkEmitted {
        chunk_type,
        step_id: None,
        data,
        ..
    } = event
    else {
        return false;
    };
    match chunk_type.as_str() {
        chunk_type::THREAD_COMPACTED => true,
        chunk_type::ITEM_REMOVED => {
            let what = data.as_ref().map(Payload::read);
            matches!(what, Some(Ok(Removed::Compaction(_))))
        }
        _ => false,
    }
}

fn close_step(step: &mut StepRecord, to: StepStatus, outcome: &StepOutcome, at: Timestamp) {
    step.step.status = to;
    step.step.outcome = outcome.clone();
    step.step.updated_at = Some(at);
    step.ended_at = Some(at);
}

fn put(step: &mut StepRecord, idx: u32, part: &Payload, at: Timestamp) {
    let idx = idx as usize;
    if let Some(slot) = step.parts.get_mut(idx) {
        slot.part = part.clone();
        slot.updated_at = at;
    } else if idx == step.parts.len() {
        step.parts.push(PartRecord {
            part: part.clone(),
            created_at: at,
            updated_at: at,
        });
    }
}

fn chunk(step: &mut StepRecord, kind: &str, data: Option<&Payload>, at: Timestamp) {
    match kind {
        chunk_type::STEP_RESPONSE => {
            step.response = data.map(|data| (data.clone(), at));
            step.chunks.clear();
        }
        chunk_type::STEP_RESET => {
            step.parts.clear();
            step.response = None;
            step.chunks.clear();
            step.n_resets += 1;
        }
        chunk_type::EXECUTION_RESUMED | chunk_type::EXECUTION_PARKED => {}
        _ => step.chunks.push((kind.to_owned(), data.cloned())),
    }
}
