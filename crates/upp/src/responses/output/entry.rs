//! One output item.

use super::super::item::{self, Kind};
use super::about::About;
use super::part::{self, Part, Slot};
use crate::codec::AnswerBuilder;
use crate::codec::items::Item;
use crate::content::AssistantContent;
use crate::message::MessageId;
use crate::tool::Arguments;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(super) struct Entry {
    /// The item as it was last sent, without its parts.
    pub(super) item: Map<String, Value>,
    /// Whether it is whole.
    pub(super) whole: bool,
    pub(super) parts: BTreeMap<Slot, Part>,
    /// The block of an image, or of reasoning that is only encrypted.
    block: Option<u32>,
    pub(super) call: Option<Call>,
    /// Arguments that came before the name of their call.
    pub(super) waiting: String,
}

#[derive(Debug)]
pub(super) struct Call {
    index: u32,
    id: String,
    /// The input of a custom tool so far.
    input: Option<String>,
    closed: bool,
}

impl Entry {
    /// Whether the item is a call with a name and an id, so that it can be emitted.
    pub(super) fn names_call(&self) -> bool {
        let has = |key| part::text_at(&self.item, key).is_some();
        matches!(Kind::of(&self.item), Kind::Function | Kind::Custom)
            && has("name")
            && has("call_id")
    }

    /// Whether the provider marks the item as incomplete.
    pub(super) fn is_incomplete(&self) -> bool {
        part::text_at(&self.item, "status") == Some("incomplete")
    }

    pub(super) fn refuses(&self) -> bool {
        self.parts.values().any(Part::refuses)
    }

    /// Sets the item's type if no event has set it yet.
    pub(super) fn imply(&mut self, kind: &str, about: &About<'_>) {
        if !self.item.contains_key("type") {
            self.item.insert("type".into(), Value::from(kind));
            if let Some(id) = about.item_id.to_value() {
                self.item.insert("id".into(), id);
            }
            if kind == "message" {
                self.item.insert("role".into(), json!("assistant"));
            }
        }
    }

    /// The part that a text event is about; `None` if the item has no such parts.
    pub(super) fn part(&mut self, about: &About<'_>, kind: &'static str) -> Option<&mut Part> {
        let section = part::section(kind);
        self.imply(part::item_type(section, Some(kind)), about);
        let of = Kind::of(&self.item);
        if !of.sections().contains(&section) {
            return None;
        }
        let part = self.parts.entry(Slot::of(about, section)).or_default();
        part.imply(of, kind);
        Some(part)
    }

    /// Replaces the item by its current form and splits off its parts.
    pub(super) fn take(&mut self, mut item: Map<String, Value>) {
        let kind = Kind::of(&item);
        for section in kind.sections() {
            let Some(Value::Array(parts)) = item.get_mut(*section) else {
                continue;
            };
            for (at, raw) in std::mem::take(parts).into_iter().enumerate() {
                let place = Slot::new(section, u64::try_from(at).unwrap_or(u64::MAX));
                self.parts.entry(place).or_default().take(kind, raw);
            }
        }
        self.item = item;
        self.whole = true;
    }

    /// Emits all content of the item that no event has emitted yet.
    pub(super) fn finish_call(
        &mut self,
        call_ids: &mut BTreeSet<String>,
        builder: &mut AnswerBuilder,
    ) {
        for part in self.parts.values_mut() {
            part.finish(true, builder);
        }
        match Kind::of(&self.item) {
            Kind::Reasoning => self.encrypted(builder),
            Kind::Image => self.image(builder),
            Kind::Function | Kind::Custom => self.whole_call(call_ids, builder),
            Kind::Message | Kind::Other => {}
        }
    }

    fn encrypted(&mut self, builder: &mut AnswerBuilder) {
        let Some(encrypted) = part::text_at(&self.item, "encrypted_content") else {
            return;
        };
        let first = self.parts.values().find_map(|part| part.block);
        let block = first.or(self.block).unwrap_or_else(|| {
            let (text, signature) = (String::new(), None);
            let block = builder.open(AssistantContent::Reasoning { text, signature });
            builder.close(block);
            block
        });
        if first.is_none() {
            self.block = Some(block);
        }
        let unsigned = matches!(
            builder.block(block),
            Some(AssistantContent::Reasoning {
                signature: None,
                ..
            })
        );
        if unsigned {
            builder.sign(block, encrypted);
        }
    }

    fn image(&mut self, builder: &mut AnswerBuilder) {
        if let Some(image) = item::take_image(&mut self.item)
            && self.block.is_none()
        {
            let block = builder.open(image);
            builder.close(block);
            self.block = Some(block);
        }
    }

    fn whole_call(&mut self, call_ids: &mut BTreeSet<String>, builder: &mut AnswerBuilder) {
        self.open_call(call_ids, builder);
        if let Some(call) = &self.call {
            builder.order(call.index, self.item.get("after"));
        }
        let custom = Kind::of(&self.item) == Kind::Custom;
        let key = if custom { "input" } else { "arguments" };
        let text = match self.item.get(key) {
            Some(Value::String(text)) => text.clone(),
            Some(whole @ (Value::Object(_) | Value::Array(_))) => whole.to_string(),
            Some(Value::Null | Value::Bool(_) | Value::Number(_)) | None => String::new(),
        };
        self.catch_up_call(&text, builder);
        let incomplete = self.is_incomplete();
        if let Some(call) = &mut self.call
            // Free text shows nowhere that it is cut off; so the object around it stays open.
            && !incomplete
            && call.input.is_some()
            && !call.closed
        {
            call.closed = true;
            builder.arguments(call.index, "\"}");
        }
    }

    pub(super) fn open_call(
        &mut self,
        call_ids: &mut BTreeSet<String>,
        builder: &mut AnswerBuilder,
    ) {
        if self.call.is_some() {
            return;
        }
        let custom = Kind::of(&self.item) == Kind::Custom;
        // A result is told by the call's id alone, so no two calls have the same.
        let id = part::text_at(&self.item, "call_id")
            .or_else(|| part::text_at(&self.item, "id"))
            .filter(|id| !call_ids.contains(*id))
            .map_or_else(
                || format!("call_{}", MessageId::random().as_str()),
                str::to_owned,
            );
        call_ids.insert(id.clone());
        let name = part::text_at(&self.item, "name").unwrap_or_default();
        let index = builder.call(id.as_str(), name);
        if custom {
            builder.arguments(index, "{\"input\":\"");
        }
        self.call = Some(Call {
            index,
            id,
            input: custom.then(String::new),
            closed: false,
        });
        let waiting = std::mem::take(&mut self.waiting);
        self.push_arguments(&waiting, builder);
    }

    pub(super) fn push_arguments(&mut self, more: &str, builder: &mut AnswerBuilder) {
        match &mut self.call {
            None => self.waiting.push_str(more),
            Some(call) => match &mut call.input {
                None => builder.arguments(call.index, more),
                Some(_) if call.closed => {}
                Some(input) => {
                    input.push_str(more);
                    builder.arguments(call.index, &part::escaped(more));
                }
            },
        }
    }

    /// Emits the missing rest of a call's arguments.
    pub(super) fn catch_up_call(&mut self, whole: &str, builder: &mut AnswerBuilder) {
        let Some(call) = &self.call else { return };
        let told = match &call.input {
            Some(input) => input.as_str(),
            None => builder.arguments_of(call.index),
        };
        if let Some(rest) = whole.strip_prefix(told).map(str::to_owned) {
            self.push_arguments(&rest, builder);
        }
    }

    /// Marks a call that was cut off. A call whose arguments never came must not read as one without
    /// any.
    pub(super) fn cut_call(&self, builder: &mut AnswerBuilder) {
        if let Some(call) = &self.call
            && Arguments::from_text(builder.arguments_of(call.index)).is_empty()
        {
            builder.truncate(call.index);
        }
    }

    /// The item with its parts.
    pub(super) fn snapshot(&self) -> Map<String, Value> {
        let mut item = self.item.clone();
        for (place, part) in &self.parts {
            let slot = item
                .entry(place.section())
                .or_insert_with(|| Value::Array(Vec::new()));
            if !slot.is_array() {
                *slot = Value::Array(Vec::new());
            }
            if let Value::Array(parts) = slot {
                parts.push(part.raw.clone());
            }
        }
        item
    }

    pub(super) fn joined_text(&self, builder: &mut AnswerBuilder) -> String {
        let mut joined = String::new();
        for block in self.parts.values().filter_map(|part| part.block) {
            if let Some(AssistantContent::Text { text }) = builder.block(block) {
                joined.push_str(text);
            }
        }
        joined
    }

    /// Appends the item in the form that the message stores.
    pub(super) fn finish(mut self, items: &mut Vec<Item>, builder: &mut AnswerBuilder) {
        if self.item.is_empty() {
            return;
        }
        if let Some(call) = &self.call {
            let arguments = match &call.input {
                Some(input) => input.as_str(),
                None => builder.arguments_of(call.index),
            };
            let item = item::without_call(self.item, &call.id, arguments);
            let with = Map::from_iter([("item".to_owned(), Value::Object(item))]);
            items.push(Item::Call(at(call.index), with));
            return;
        }
        let mut blocks: Vec<u32> = self.parts.values().filter_map(|part| part.block).collect();
        blocks.extend(self.block);
        for part in self.parts.values_mut() {
            part.give_up_text(Kind::of(&self.item));
        }
        let mut item = self.snapshot();
        let Some((first, others)) = blocks.split_first() else {
            items.push(Item::Native(Value::Object(item)));
            return;
        };
        if Kind::of(&item) == Kind::Reasoning && item::is_encrypted(&item) {
            item.insert("encrypted_content".into(), Value::Null);
        }
        let with = Map::from_iter([("item".to_owned(), Value::Object(item))]);
        items.push(Item::Content(at(*first), with));
        let more = Map::from_iter([("more".to_owned(), Value::Bool(true))]);
        items.extend(
            others
                .iter()
                .map(|block| Item::Content(at(*block), more.clone())),
        );
    }
}

fn at(index: u32) -> usize {
    usize::try_from(index).unwrap_or(usize::MAX)
}
