//! The messages of a path, each once (UAP §7.3).

use std::collections::BTreeMap;
use upp::{Message, MessageId, Messages};

/// Identifies a message: its id, and its number among the messages with this id in one list.
type Key = (MessageId, usize);

/// Lists of messages merged in the order of the path.
pub(super) struct Merged {
    messages: Vec<Message>,
    places: BTreeMap<Key, usize>,
}

impl Merged {
    pub(super) fn new(first: &Messages) -> Self {
        let mut merged = Self {
            messages: Vec::new(),
            places: BTreeMap::new(),
        };
        for (key, message) in keyed(first) {
            merged.push(key, message);
        }
        merged
    }

    /// Adds a later list. The time is linear in that list, unless it inserts messages between
    /// existing ones.
    pub(super) fn add(&mut self, later: &Messages) {
        let mut waiting = Vec::new();
        let mut between = BTreeMap::new();
        for (key, message) in keyed(later) {
            let Some(place) = self.places.get(&key).copied() else {
                waiting.push((key, message));
                continue;
            };
            if let Some(known) = self.messages.get_mut(place) {
                *known = message;
            }
            if !waiting.is_empty() {
                between
                    .entry(place)
                    .or_insert_with(Vec::new)
                    .append(&mut waiting);
            }
        }
        if !between.is_empty() {
            self.put_between(between);
        }
        for (key, message) in waiting {
            self.push(key, message);
        }
    }

    pub(super) fn into_messages(self) -> Vec<Message> {
        self.messages
    }

    fn push(&mut self, key: Key, message: Message) {
        self.places.insert(key, self.messages.len());
        self.messages.push(message);
    }

    /// Inserts messages before those at these indexes.
    fn put_between(&mut self, mut between: BTreeMap<usize, Vec<(Key, Message)>>) {
        let mut keys: BTreeMap<usize, Key> = std::mem::take(&mut self.places)
            .into_iter()
            .map(|(key, place)| (place, key))
            .collect();
        for (place, message) in std::mem::take(&mut self.messages).into_iter().enumerate() {
            for (key, message) in between.remove(&place).unwrap_or_default() {
                self.push(key, message);
            }
            if let Some(key) = keys.remove(&place) {
                self.push(key, message);
            }
        }
    }
}

fn keyed(messages: &Messages) -> impl Iterator<Item = (Key, Message)> {
    let mut n_seen: BTreeMap<MessageId, usize> = BTreeMap::new();
    messages.iter().map(move |message| {
        let n = n_seen.entry(message.id().clone()).or_default();
        *n += 1;
        ((message.id().clone(), *n), message.clone())
    })
}
