//! Entries of a transcript as runs, steps and messages, in order.

use super::ids::read_message_id;
use super::message::message_of_item;
use super::metadata::{Carrier, Metadata, own};
use super::object::{MessageObject, ThreadObject};
use super::run::{CANCELS, Run};
use crate::ids::THREAD;
use crate::run::continues;
use crate::{Converted, Losses};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use timeline::{
    Entry, Execution, Item, ItemId, ItemType, Reaction, Removed, StepRecord, StepStatus, Thread,
    Transcript, said_beside,
};

/// The thread's object. What of its metadata is neither a string nor AITP's is left out.
pub fn thread_object(thread: &Thread) -> Converted<ThreadObject> {
    let mut losses = Losses::default();
    let kept = thread.metadata.as_ref();
    let metadata = Metadata::shown(kept, Carrier::Thread, "", &mut losses);
    let mut own = own(kept);
    losses.with(ThreadObject {
        id: THREAD.write(thread.id.as_str()),
        object: "thread",
        created_at: thread.created_at.as_second(),
        tool_resources: own.remove("tool_resources"),
        metadata,
        messages: None,
    })
}

/// A message in its place.
#[derive(Clone, Copy, Debug)]
pub struct Listed<'a> {
    view: &'a ThreadView,
    place: Place,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Said(usize),
    Step(usize, usize),
}

impl Listed<'_> {
    /// Its object.
    pub fn object(&self) -> Option<MessageObject> {
        match self.place {
            Place::Said(said) => {
                let item = self.view.said.get(said)?;
                Some(message_of_item(&self.view.thread, item)?.value)
            }
            Place::Step(run, step) => self.view.runs.get(run)?.message(step),
        }
    }
}

/// A stretch of a thread as this API sees it. Its size is the stretch's.
///
/// The stretch begins where no run is under way: at the thread's first entry, or at any item that
/// begins a run. A caller that can find entries by their place reads only those it lists.
#[derive(Clone, Debug, Default)]
pub struct ThreadView {
    thread: String,
    said: Vec<Item>,
    runs: Vec<Run>,
    order: Vec<Place>,
    /// What executions may answer: items by their ids, until they do.
    triggers: BTreeMap<ItemId, Item>,
    /// The items that stop a run which waits. An execution that answers one is no run.
    stops: BTreeSet<ItemId>,
}

impl ThreadView {
    /// An empty stretch of the thread with this id of ours.
    pub fn new(thread_id: &str) -> Self {
        Self {
            thread: thread_id.to_owned(),
            ..Self::default()
        }
    }

    /// The whole of a transcript. What an answer had said that was cut off is in it if the transcript
    /// was read with its chunks. Of an answer that is marked as removed it knows that it was given, and
    /// what it used.
    pub fn of(transcript: &Transcript) -> Self {
        let id = transcript.thread.as_ref().map(|thread| thread.id.as_str());
        let mut view = Self::new(id.unwrap_or_default());
        for entry in &transcript.entries {
            view.take(entry, |what| transcript.removed().contains_key(what));
        }
        view
    }

    /// Takes the next entry in.
    pub fn push(&mut self, entry: &Entry) {
        self.take(entry, |_| false);
    }

    fn take(&mut self, entry: &Entry, is_removed: impl Fn(&Removed) -> bool) {
        match entry {
            Entry::Item(item) if is_removed(&Removed::Item(item.id.clone())) => {}
            Entry::Item(item) => self.item(item),
            Entry::Reaction(reaction) => self.reaction(reaction, is_removed),
        }
    }

    fn item(&mut self, item: &Item) {
        match item.item_type {
            ItemType::Message => {
                self.last(|run| run.left_behind(item.created_at));
                self.order.push(Place::Said(self.said.len()));
                self.said.push(item.clone());
            }
            ItemType::ActionResult => {
                self.last(|run| run.answered(item));
                self.triggers.insert(item.id.clone(), item.clone());
                for message in said_beside(item) {
                    self.order.push(Place::Said(self.said.len()));
                    self.said.push(message);
                }
            }
            ItemType::ItemReference => {
                if cancelled(item).is_some() {
                    self.stops.insert(item.id.clone());
                    self.last(|run| run.cancelled(item.created_at));
                }
            }
            ItemType::ActionExecute => {}
        }
    }

    fn last(&mut self, change: impl FnOnce(&mut Run)) {
        if let Some(run) = self.runs.last_mut() {
            change(run);
            run.take_changes();
        }
    }

    fn reaction(&mut self, reaction: &Reaction, is_removed: impl Fn(&Removed) -> bool) {
        if self.stops.remove(&reaction.execution.trigger_item_id) {
            return;
        }
        self.begin(&reaction.execution);
        let place = self.runs.len().saturating_sub(1);
        let Some(run) = self.runs.last_mut() else {
            return;
        };
        for step in &reaction.steps {
            self.order.push(Place::Step(place, run.n_steps()));
            if is_removed(&Removed::Step(step.step.id.clone())) {
                run.step_removed(step);
            } else {
                stepped(run, step);
            }
        }
        if let Some(at) = reaction.ended_at {
            let why = reaction.execution.interruption.as_ref();
            run.ended(reaction.execution.status, why, at);
        }
        run.take_changes();
    }

    fn begin(&mut self, execution: &Execution) {
        let trigger = self.triggers.remove(&execution.trigger_item_id);
        match self.runs.last_mut() {
            Some(run) if continues(execution, trigger.as_ref()) => {
                run.go_on(execution, trigger.as_ref());
            }
            last => {
                if let Some(run) = last {
                    run.left_behind(execution.created_at);
                    run.take_changes();
                }
                self.runs.push(Run::begin(&self.thread, execution));
            }
        }
    }

    /// The runs, in order.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The run of this id, in the protocol's spelling.
    pub fn run(&self, id: &str) -> Option<&Run> {
        self.runs.iter().rev().find(|run| run.id() == id)
    }

    /// The run that locks the thread, if one does.
    pub fn active(&self, now: Timestamp) -> Option<&Run> {
        let last = self.runs.last();
        last.filter(|run| run.status(now).is_active())
    }

    /// The messages, in order. One that is asked for its object costs itself.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = Listed<'_>> {
        let places = self.order.iter();
        places.map(|place| Listed {
            view: self,
            place: *place,
        })
    }

    /// The message of this id, in the protocol's spelling.
    pub fn message(&self, id: &str) -> Option<MessageObject> {
        let own = read_message_id(id);
        let mut said = self.said.iter();
        if let Some(item) = said.find(|item| item.id.as_str() == own) {
            return Some(message_of_item(&self.thread, item)?.value);
        }
        let mut runs = self.runs.iter().rev();
        runs.find_map(|run| run.message_by_id(&own))
    }
}

/// The execution that an item says is stopped, if it says that.
pub(crate) fn cancelled(item: &Item) -> Option<String> {
    if item.item_type != ItemType::ItemReference {
        return None;
    }
    item.content.as_ref()?.str_field(CANCELS)
}

fn stepped(run: &mut Run, record: &StepRecord) {
    run.attempt_began(&record.step, record.n_resets);
    if record.response.is_none() {
        for (kind, data) in &record.chunks {
            run.chunk(kind, data.as_ref());
        }
    }
    for (idx, part) in (0..).zip(&record.parts) {
        run.part(idx, &part.part, part.updated_at);
    }
    if let Some((response, at)) = &record.response {
        run.told(Some(response), *at);
    }
    if record.step.status == StepStatus::Completed {
        let at = record.ended_at.unwrap_or(record.step.created_at);
        run.step_ended(record.step.status, &record.step.outcome, at);
    }
}
