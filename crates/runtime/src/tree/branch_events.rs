//! The events of a branch, read from a thread's log entry by entry.

use super::ranges::MessageRange;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use timeline::{
    Entry, Event, ExecutionStatus, Item, ItemId, ItemType, NewItem, Payload, Record, Seq,
    Transcript,
};

const STATE: &str = "loomline-tree-state";
const CHECKOUT: &str = "loomline-tree-checkout";

/// The part of a snapshot that the messages of a log can't express. It is stored in an item that
/// neither models nor clients see.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Saved {
    #[serde(rename = "type")]
    kind: String,
    /// Corrections to the entries since the previous snapshot, with the entries' numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) fixes: Vec<(usize, Vec<MessageRange>)>,
    /// The messages of the snapshot, if they are not the whole conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) view: Option<Vec<MessageRange>>,
    /// The state, without the parts shared with the previous one.
    pub(super) state: Payload,
}

impl Saved {
    pub(super) fn new(
        fixes: Vec<(usize, Vec<MessageRange>)>,
        view: Option<Vec<MessageRange>>,
        state: Payload,
    ) -> Self {
        Self {
            kind: STATE.to_owned(),
            fixes,
            view,
            state,
        }
    }

    /// The item that stores it.
    pub(super) fn item(&self, id: ItemId) -> Result<NewItem, serde_json::Error> {
        Ok(reference(id, Payload::write(self)?))
    }
}

#[derive(Serialize, Deserialize)]
struct Checkout {
    #[serde(rename = "type")]
    kind: String,
    node: Arc<str>,
}

/// The item that names the current node.
pub(super) fn checkout(id: ItemId, node: &Arc<str>) -> Result<NewItem, serde_json::Error> {
    let content = Checkout {
        kind: CHECKOUT.to_owned(),
        node: Arc::clone(node),
    };
    Ok(reference(id, Payload::write(&content)?))
}

fn reference(id: ItemId, content: Payload) -> NewItem {
    NewItem {
        content: Some(content),
        ..NewItem::reference(id, None)
    }
}

/// An event that is relevant for a branch.
#[derive(Clone, Debug)]
pub(super) enum BranchEvent {
    /// A posted item, or an execution that is over.
    Message(Box<Entry>),
    /// A state was stored.
    Saved(Box<Saved>),
    /// Another event after which the log can be forked.
    Rests,
}

/// Reads the records of a log, in order. A running execution yields no event.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// The events, each with the log position from which it applies.
    pub(super) events: Vec<(Seq, BranchEvent)>,
    /// The node that was checked out last.
    pub(super) current: Option<Arc<str>>,
    /// The ids of all items.
    pub(super) items: BTreeSet<ItemId>,
    /// The last event.
    pub(super) tail: Seq,
    waiting: BTreeMap<ItemId, Item>,
    running: Option<Running>,
}

#[derive(Debug, Default)]
struct Running {
    transcript: Transcript,
    /// Items posted while it ran.
    beside: Vec<Item>,
}

impl Reader {
    /// A reader of the records after an event.
    pub(super) fn after(tail: Seq) -> Self {
        Self {
            tail,
            ..Self::default()
        }
    }

    /// Reads one record. Fails if a stored value in it can't be parsed.
    pub(super) fn read(&mut self, record: &Record) -> Result<(), serde_json::Error> {
        let seq = record.seq;
        self.tail = seq;
        match &record.event {
            Event::ItemCreated { item } if item.execution_id.is_none() => self.item(seq, item)?,
            Event::ExecutionCreated { execution } => {
                if let Some(item) = self.waiting.remove(&execution.trigger_item_id) {
                    self.push_entry(seq, Entry::Item(Item { run: None, ..item }));
                }
                let mut running = Running::default();
                running.transcript.apply(record);
                self.running = Some(running);
            }
            Event::ExecutionStatusChanged { to, .. } => {
                self.within(record);
                if *to != ExecutionStatus::Executing
                    && let Some(running) = self.running.take()
                {
                    for entry in running.transcript.entries {
                        self.push_entry(seq, entry);
                    }
                    for item in running.beside {
                        self.push_entry(seq, Entry::Item(item));
                    }
                }
            }
            Event::ThreadFinished { .. } | Event::ContextCreated { .. } => {
                self.events.push((seq, BranchEvent::Rests));
            }
            Event::ItemCreated { .. }
            | Event::ItemStatusChanged { .. }
            | Event::StepCreated { .. }
            | Event::StepStatusChanged { .. }
            | Event::PartCreated { .. }
            | Event::PartUpdated { .. }
            | Event::ChunkEmitted { .. } => self.within(record),
            Event::ThreadCreated { .. }
            | Event::ThreadResolved { .. }
            | Event::ThreadStatusChanged { .. }
            | Event::ContextResolved { .. }
            | Event::ContextStatusChanged { .. } => {}
        }
        Ok(())
    }

    fn item(&mut self, seq: Seq, item: &Item) -> Result<(), serde_json::Error> {
        self.items.insert(item.id.clone());
        if item.run.is_some() {
            self.waiting.insert(item.id.clone(), item.clone());
        } else if item.item_type == ItemType::Message {
            if let Some(running) = &mut self.running {
                running.beside.push(item.clone());
            } else {
                self.push_entry(seq, Entry::Item(item.clone()));
            }
        } else if item.item_type == ItemType::ItemReference
            && let Some(content) = &item.content
        {
            match content.str_field("type").as_deref() {
                Some(STATE) => {
                    let saved = BranchEvent::Saved(Box::new(content.read()?));
                    self.events.push((seq, saved));
                }
                Some(CHECKOUT) => self.current = Some(content.read::<Checkout>()?.node),
                Some(_) | None => {}
            }
        }
        Ok(())
    }

    fn within(&mut self, record: &Record) {
        if let Some(running) = &mut self.running {
            running.transcript.apply(record);
        }
    }

    fn push_entry(&mut self, seq: Seq, entry: Entry) {
        self.events
            .push((seq, BranchEvent::Message(Box::new(entry))));
    }
}
