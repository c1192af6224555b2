//! Entries of a transcript as runs, steps and messages, in order.

use super::ids::read_message_id;
use super::message::message_of_item;
use super::metadata::{Carrier, Metadata, own};
use super::object::{MessageObject, ThreadObject};
use super::run::{CANCELS, Run};
use crate::ids::THREAD;
use crate::run::{RunEvent, continues, replay};
use crate::{Converted, Losses};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use timeline::{
    Entry, Execution, Item, ItemId, ItemType, Reaction, Removed, Thread, Transcript,
    messages_with_answers,
};

/// The thread's object. It leaves out metadata that is neither a string nor AITP's.
pub fn thread_object(thread: &Thread) -> Converted<ThreadObject> {
    let mut losses = Losses::default();
    let stored = thread.metadata.as_ref();
    let metadata = Metadata::view(stored, Carrier::Thread, "", &mut losses);
    let mut own = own(stored);
    losses.with(ThreadObject {
        id: THREAD.write(thread.id.as_str()),
        object: "thread",
        created_at: thread.created_at.as_second(),
        tool_resources: own.remove("tool_resources"),
        metadata,
        messages: None,
    })
}

/// A message of a thread.
#[derive(Clone, Copy, Debug)]
pub struct Listed<'a> {
    view: &'a ThreadView,
    source: MessageSource,
}

#[derive(Clone, Copy, Debug)]
enum MessageSource {
    /// The position of an item.
    Item(usize),
    /// The positions of a run and of its step.
    Step(usize, usize),
}

impl Listed<'_> {
    /// Its object.
    pub fn object(&self) -> Option<MessageObject> {
        match self.source {
            MessageSource::Item(item) => {
                let item = self.view.items.get(item)?;
                Some(message_of_item(&self.view.thread, item)?.value)
            }
            MessageSource::Step(run, step) => self.view.runs.get(run)?.message(step),
        }
    }
}

/// A range of a thread as this API shows it. Its memory use is that of the range.
///
/// The range must start where no run is active: at the thread's first entry, or at an item that starts
/// a run. A caller that finds entries by position therefore reads only those that it lists.
#[derive(Clone, Debug, Default)]
pub struct ThreadView {
    thread: String,
    items: Vec<Item>,
    runs: Vec<Run>,
    order: Vec<MessageSource>,
    /// The items of answers that no execution has acted on.
    triggers: BTreeMap<ItemId, Item>,
    /// The items that stop a waiting run. An execution triggered by one is not a run.
    stops: BTreeSet<ItemId>,
}

impl ThreadView {
    /// An empty range of the thread with this id.
    pub fn new(thread_id: &str) -> Self {
        Self {
            thread: thread_id.to_owned(),
            ..Self::default()
        }
    }

    /// The view of a whole transcript. It has the text of an answer that was cut off if the transcript
    /// was read with chunks. A removed answer retains its ids and its usage.
    pub fn of(transcript: &Transcript) -> Self {
        let id = transcript.thread.as_ref().map(|thread| thread.id.as_str());
        let mut view = Self::new(id.unwrap_or_default());
        for entry in &transcript.entries {
            view.add(entry, |what| transcript.removed().contains_key(what));
        }
        view
    }

    /// Adds the next entry.
    pub fn push(&mut self, entry: &Entry) {
        self.add(entry, |_| false);
    }

    fn add(&mut self, entry: &Entry, is_removed: impl Fn(&Removed) -> bool) {
        match entry {
            Entry::Item(item) if is_removed(&Removed::Item(item.id.clone())) => {}
            Entry::Item(item) => self.item(item),
            Entry::Reaction(reaction) => self.reaction(reaction, is_removed),
        }
    }

    fn item(&mut self, item: &Item) {
        match item.item_type {
            ItemType::Message => {
                self.last(|run| run.overtaken(item.created_at));
                self.order.push(MessageSource::Item(self.items.len()));
                self.items.push(item.clone());
            }
            ItemType::ActionResult => {
                self.last(|run| run.answered(item));
                self.triggers.insert(item.id.clone(), item.clone());
                for message in messages_with_answers(item) {
                    self.order.push(MessageSource::Item(self.items.len()));
                    self.items.push(message);
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
        let position = self.runs.len().saturating_sub(1);
        let Some(run) = self.runs.last_mut() else {
            return;
        };
        let mut steps = reaction.steps.iter();
        for (at, event) in replay([reaction], false) {
            if let RunEvent::StepStarted { step } = event {
                self.order
                    .push(MessageSource::Step(position, run.n_steps()));
                let n_resets = steps.next().map_or(0, |record| record.n_resets);
                let is_removed = is_removed(&Removed::Step(step.id.clone()));
                run.step_started(step, n_resets, is_removed);
            } else {
                run.event(&event, at);
            }
        }
        run.take_changes();
    }

    fn begin(&mut self, execution: &Execution) {
        let trigger = self.triggers.remove(&execution.trigger_item_id);
        match self.runs.last_mut() {
            Some(run) if continues(execution, trigger.as_ref()) => {
                run.continue_with(execution, trigger.as_ref());
            }
            last => {
                if let Some(run) = last {
                    run.overtaken(execution.created_at);
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

    /// The messages, in order. The object of each is built when it is read.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = Listed<'_>> {
        let sources = self.order.iter();
        sources.map(|source| Listed {
            view: self,
            source: *source,
        })
    }

    /// The message of this id, in the protocol's spelling.
    pub fn message(&self, id: &str) -> Option<MessageObject> {
        let own = read_message_id(id);
        let mut items = self.items.iter();
        if let Some(item) = items.find(|item| item.id.as_str() == own) {
            return Some(message_of_item(&self.thread, item)?.value);
        }
        let mut runs = self.runs.iter().rev();
        runs.find_map(|run| run.message_by_id(&own))
    }
}

/// The execution that an item stops, if it stops one.
pub(crate) fn cancelled(item: &Item) -> Option<String> {
    if item.item_type != ItemType::ItemReference {
        return None;
    }
    item.content.as_ref()?.str_field(CANCELS)
}
