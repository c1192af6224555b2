//! The output items of an answer, assembled from its events.

mod about;
mod entry;
mod part;

use super::item::{self, Kind};
use crate::codec::AnswerBuilder;
use crate::codec::items::Item;
pub(super) use about::About;
use entry::Entry;
use part::Slot;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The items so far, by their index in the output.
#[derive(Debug, Default)]
pub(super) struct Output {
    entries: BTreeMap<u64, Entry>,
    call_ids: BTreeSet<String>,
    /// Whether the events so far show that the model refused.
    refused: bool,
}

/// All items after the end of the answer.
pub(super) struct Finished {
    pub(super) items: Vec<Item>,
    /// The text of the last message.
    pub(super) last_text: String,
    /// Whether the model refused.
    pub(super) refused: bool,
}

impl Output {
    /// The index of the item that an event is about. Some hosts leave the index out.
    fn index(&self, about: &About<'_>) -> u64 {
        let by_id = || {
            let is_it = |id: &Value| !id.is_null() && about.item_id == *id;
            let found = |(at, entry): (&u64, &Entry)| {
                entry.item.get("id").is_some_and(is_it).then_some(*at)
            };
            self.entries.iter().rev().find_map(found)
        };
        about.output_index.0.or_else(by_id).unwrap_or_else(|| {
            let last = self.entries.last_key_value().map_or(0, |(at, _)| *at);
            let begins = about.has_item && !self.entries.is_empty();
            last.saturating_add(u64::from(begins))
        })
    }

    /// Adds an item at its start.
    pub(super) fn added(&mut self, event: &Value, builder: &mut AnswerBuilder) {
        let Some(Value::Object(item)) = event.get("item").cloned() else {
            return;
        };
        let entry = self
            .entries
            .entry(self.index(&About::of(event)))
            .or_default();
        if entry.whole {
            return;
        }
        entry.item = item;
        if !entry.names_call() {
            return;
        }
        entry.open_call(&mut self.call_ids, builder);
        let key = if Kind::of(&entry.item) == Kind::Custom {
            "input"
        } else {
            "arguments"
        };
        if let Some(text) = entry
            .item
            .get(key)
            .and_then(Value::as_str)
            .map(str::to_owned)
        {
            entry.catch_up_call(&text, builder);
        }
    }

    /// An item is whole.
    pub(super) fn done(&mut self, event: &Value, builder: &mut AnswerBuilder) {
        if let Some(Value::Object(item)) = event.get("item").cloned() {
            self.whole(self.index(&About::of(event)), item, builder);
        }
    }

    fn whole(&mut self, index: u64, mut item: Map<String, Value>, builder: &mut AnswerBuilder) {
        part::normalise(&mut item);
        let entry = self.entries.entry(index).or_default();
        entry.take(item);
        entry.finish_call(&mut self.call_ids, builder);
        self.refused |= entry.refuses();
    }

    /// Adds the final output of the answer, which may have more than the items' own events.
    pub(super) fn complete(&mut self, output: &[Value], builder: &mut AnswerBuilder) {
        for (at, item) in output.iter().enumerate() {
            let Value::Object(item) = item else { continue };
            let at = u64::try_from(at).unwrap_or(u64::MAX);
            let Some(index) = self.matching(at, item) else {
                continue;
            };
            let mut item = item.clone();
            part::normalise(&mut item);
            if let Some(entry) = self.entries.get(&index).filter(|entry| entry.whole) {
                let mut known = Value::Object(entry.snapshot());
                item::fill(&mut known, Value::Object(item));
                let Value::Object(known) = known else {
                    continue;
                };
                item = known;
            }
            self.whole(index, item, builder);
        }
    }

    /// The entry for an item of the final output: the one at its place with the same type, else the one
    /// with its id. `None` if the place is taken and no id matches: the item may be known already.
    fn matching(&self, at: u64, item: &Map<String, Value>) -> Option<u64> {
        let same = |entry: &Entry, key: &str| entry.item.get(key) == item.get(key);
        match self.entries.get(&at) {
            None => Some(at),
            Some(entry) if same(entry, "type") => Some(at),
            Some(_) => {
                let found = |(at, entry): (&u64, &Entry)| {
                    (item.contains_key("id") && same(entry, "id")).then_some(*at)
                };
                self.entries.iter().find_map(found)
            }
        }
    }

    /// More text of a part.
    pub(super) fn text(
        &mut self,
        (about, more): (&About<'_>, &str),
        kind: &'static str,
        builder: &mut AnswerBuilder,
    ) {
        self.refused |= kind == "refusal";
        let entry = self.entries.entry(self.index(about)).or_default();
        if let Some(part) = entry.part(about, kind) {
            part.append(more, builder);
        }
    }

    /// The whole text of a part.
    pub(super) fn text_done(
        &mut self,
        event: &Value,
        kind: &'static str,
        builder: &mut AnswerBuilder,
    ) {
        let Some(text) = part::text_of(event, &["text", "refusal"]) else {
            return;
        };
        let about = About::of(event);
        self.refused |= kind == "refusal";
        let entry = self.entries.entry(self.index(&about)).or_default();
        if let Some(part) = entry.part(&about, kind) {
            part.catch_up(text, builder);
        }
    }

    /// Adds a part at its start, or its complete form.
    pub(super) fn part(
        &mut self,
        event: &Value,
        section: &'static str,
        whole: bool,
        builder: &mut AnswerBuilder,
    ) {
        let Some(raw @ Value::Object(_)) = event.get("part") else {
            return;
        };
        let about = About::of(event);
        let entry = self.entries.entry(self.index(&about)).or_default();
        let of = raw.get("type").and_then(Value::as_str);
        entry.imply(part::item_type(section, of), &about);
        let kind = Kind::of(&entry.item);
        if kind.sections().contains(&section) {
            let part = entry.parts.entry(Slot::of(&about, section)).or_default();
            part.take(kind, raw.clone());
            part.finish(whole, builder);
        }
    }

    /// An annotation of a text.
    pub(super) fn annotation(&mut self, event: &Value) {
        let about = About::of(event);
        if let Some(annotation) = event.get("annotation").filter(|it| !it.is_null()) {
            let entry = self.entries.entry(self.index(&about)).or_default();
            if let Some(part) = entry.part(&about, "output_text") {
                part.annotate(annotation);
            }
        }
    }

    /// More of a call's arguments.
    pub(super) fn arguments(
        &mut self,
        (about, more): (&About<'_>, &str),
        builder: &mut AnswerBuilder,
    ) {
        let entry = self.entries.entry(self.index(about)).or_default();
        entry.push_arguments(more, builder);
    }

    /// All of a call's arguments.
    pub(super) fn arguments_done(&mut self, event: &Value, builder: &mut AnswerBuilder) {
        let entry = self.entries.entry(self.index(&About::of(event)));
        let entry = entry.or_default();
        if let Some(text) = part::text_of(event, &["arguments", "input"]) {
            if entry.call.is_some() {
                entry.catch_up_call(text, builder);
            } else {
                text.clone_into(&mut entry.waiting);
            }
        }
    }

    /// Closes open entries and returns the items. If the answer was cut off (`cut`), its last call may
    /// be incomplete.
    pub(super) fn finish(mut self, cut: bool, builder: &mut AnswerBuilder) -> Finished {
        let mut items = Vec::new();
        let mut last_text = String::new();
        let mut refused = self.refused;
        let last = self.entries.last_key_value().map(|(at, _)| *at);
        for (at, entry) in &mut self.entries {
            if !entry.whole {
                // The answer was cut short here.
                if entry.item.get("status") == Some(&json!("in_progress")) {
                    entry.item.insert("status".into(), json!("incomplete"));
                }
                // What came at the beginning may not be all of it.
                entry.item.shift_remove("encrypted_content");
                entry.finish_call(&mut self.call_ids, builder);
                refused |= entry.refuses();
            }
            if entry.is_incomplete() || (cut && last == Some(*at)) {
                entry.cut_call(builder);
            }
            if Kind::of(&entry.item) == Kind::Message {
                last_text = entry.joined_text(builder);
            }
        }
        for entry in self.entries.into_values() {
            entry.finish(&mut items, builder);
        }
        Finished {
            items,
            last_text,
            refused,
        }
    }
}
