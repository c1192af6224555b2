//! Puts the parts of an answer together.

use super::super::encode::{CALL, NO_ID, PART};
use super::invalid;
use super::partial::{PartialArgs, PartialArgsError};
use crate::codec::items::Item;
use crate::codec::{AnswerBuilder, made};
use crate::content::AssistantContent;
use crate::error::Error;
use crate::event::StreamEvent;
use crate::message::MessageId;
use crate::tool::ToolCall;
use serde_json::{Map, Value};

/// The parts so far.
#[derive(Debug, Default)]
pub(super) struct Parts {
    answer: AnswerBuilder,
    items: Vec<Item>,
    /// The block that grows, and whether it is a thought.
    open: Option<(u32, bool)>,
    growing: Option<Growing>,
}

/// A call that is not complete. Its arguments are emitted at its end, because the provider sends them as
/// paths in any order.
#[derive(Debug)]
struct Growing {
    index: u32,
    id: Option<String>,
    /// The place of the call among the items.
    item: usize,
    arguments: PartialArgs,
}

impl Growing {
    /// Adds the arguments of a part, whole or in pieces.
    fn take(&mut self, call: &Map<String, Value>) -> Result<(), PartialArgsError> {
        if let Some(whole) = call.get("args") {
            self.arguments.take_whole(whole);
        }
        let pieces = call.get("partialArgs").and_then(Value::as_array);
        pieces
            .into_iter()
            .flatten()
            .try_for_each(|piece| self.arguments.take(piece))
    }
}

/// All parts after the end of the answer.
#[derive(Debug)]
pub(super) struct Whole {
    pub(super) events: Vec<StreamEvent>,
    pub(super) items: Vec<Item>,
    pub(super) content: Vec<AssistantContent>,
    pub(super) calls: Vec<ToolCall>,
}

impl Parts {
    /// Starts the answer.
    pub(super) fn start(&mut self) {
        self.answer.start();
    }

    /// The events since the last time.
    pub(super) fn take_events(&mut self) -> Vec<StreamEvent> {
        self.answer.take_events()
    }

    /// Whether there are tool calls.
    pub(super) fn has_calls(&self) -> bool {
        self.answer.has_calls()
    }

    /// The next part of the answer.
    pub(super) fn push(&mut self, part: &Value) -> Result<(), Error> {
        let Some(fields) = part.as_object() else {
            return Ok(());
        };
        let thought = fields.get("thought").and_then(Value::as_bool) == Some(true);
        if let Some(text) = fields.get("text").and_then(Value::as_str) {
            let signature = fields.get("thoughtSignature").and_then(Value::as_str);
            let known: &[&str] = if thought {
                &["text", "thought", "thoughtSignature"]
            } else {
                &["text"]
            };
            self.text(text, thought, signature, without(fields, known), part);
        } else if let Some(call) = fields.get("functionCall").and_then(Value::as_object) {
            return self.call(call, without(fields, &["functionCall"]));
        } else if let Some(data) = fields.get("inlineData")
            && let Some(block) = media(data)
        {
            self.close();
            let index = self.answer.open(block);
            self.answer.close(index);
            self.content(index, without(fields, &["inlineData"]));
        } else {
            self.close();
            self.items.push(Item::Native(part.clone()));
        }
        Ok(())
    }

    fn text(
        &mut self,
        text: &str,
        thought: bool,
        signature: Option<&str>,
        with: Map<String, Value>,
        part: &Value,
    ) {
        let plain = with.is_empty() && signature.is_none();
        if text.is_empty() {
            // It carries a signature or nothing at all.
            if !plain {
                self.close();
                self.items.push(Item::Native(part.clone()));
            }
            return;
        }
        if let Some((index, of)) = self.open.filter(|_| plain)
            && of == thought
        {
            self.answer.append(index, text);
            return;
        }
        self.close();
        let text = text.to_owned();
        let block = if thought {
            let signature = signature.map(str::to_owned);
            AssistantContent::Reasoning { text, signature }
        } else {
            AssistantContent::Text { text }
        };
        let index = self.answer.open(block);
        self.content(index, with);
        if plain {
            self.open = Some((index, thought));
        } else {
            // What is signed is whole: nothing is joined to it.
            self.answer.close(index);
        }
    }

    fn content(&mut self, index: u32, with: Map<String, Value>) {
        let at = usize::try_from(index).unwrap_or(usize::MAX);
        self.items.push(Item::Content(at, under(PART, with)));
    }

    /// Adds a call, or a piece of the incomplete call.
    fn call(&mut self, call: &Map<String, Value>, part: Map<String, Value>) -> Result<(), Error> {
        self.close();
        let text = |key: &str| call.get(key)?.as_str().filter(|text| !text.is_empty());
        let (id, name) = (text("id"), text("name"));
        let is_more = name.is_none() && (id.is_none() || id == self.growing_id());
        if !is_more || self.growing.is_none() {
            self.end_growing();
            // The end of a call that has ended already says nothing.
            if call.is_empty() && part.is_empty() {
                return Ok(());
            }
            self.begin_call(id, name.unwrap_or_default());
        }
        let more = without(call, &["id", "name", "args", "partialArgs", "willContinue"]);
        self.keep_of_call(PART, part);
        self.keep_of_call(CALL, more);
        if let Some(growing) = &mut self.growing {
            self.answer.order(growing.index, call.get("after"));
            growing.take(call).map_err(|cause| {
                invalid("the arguments of a call can't be read").caused_by(cause)
            })?;
        }
        if call.get("willContinue").and_then(Value::as_bool) != Some(true) {
            self.end_growing();
        }
        Ok(())
    }

    fn begin_call(&mut self, id: Option<&str>, name: &str) {
        let mut with = Map::new();
        let told = id.map_or_else(
            || {
                with.insert(NO_ID.to_owned(), Value::Bool(true));
                format!("call_{}", MessageId::random().as_str())
            },
            str::to_owned,
        );
        let index = self.answer.call(told.as_str(), name);
        self.growing = Some(Growing {
            index,
            id: id.map(str::to_owned),
            item: self.items.len(),
            arguments: PartialArgs::default(),
        });
        let at = usize::try_from(index).unwrap_or(usize::MAX);
        self.items.push(Item::Call(at, with));
    }

    fn growing_id(&self) -> Option<&str> {
        self.growing.as_ref()?.id.as_deref()
    }

    /// Stores a part's other fields (not name, arguments or id) with the incomplete call.
    fn keep_of_call(&mut self, key: &str, more: Map<String, Value>) {
        let Some(growing) = self.growing.as_ref().filter(|_| !more.is_empty()) else {
            return;
        };
        if let Some(Item::Call(_, with)) = self.items.get_mut(growing.item) {
            let kept = with.entry(key).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(kept) = kept {
                kept.extend(more);
            }
        }
    }

    /// Completes the call and emits its arguments.
    fn end_growing(&mut self) {
        if let Some(growing) = self.growing.take() {
            let arguments = growing.arguments.text();
            self.answer.arguments(growing.index, &arguments);
        }
    }

    fn close(&mut self) {
        if let Some((index, _)) = self.open.take() {
            self.answer.close(index);
        }
    }

    /// Ends everything. If the answer was cut off (`cut`), a call that expects more pieces is
    /// incomplete, and so is a last call without arguments.
    pub(super) fn finish(mut self, cut: bool) -> Whole {
        self.close();
        let growing = self.growing.as_ref().map(|growing| growing.index);
        self.end_growing();
        match (growing, self.items.last()) {
            (Some(index), _) if cut => self.answer.truncate(index),
            (None, Some(Item::Call(..))) if cut => self.answer.cut_if_empty(),
            (Some(_) | None, _) => {}
        }
        let events = self.answer.take_events();
        let (content, calls) = self.answer.finish();
        Whole {
            events,
            items: self.items,
            content,
            calls,
        }
    }
}

/// The fields except the known ones.
fn without(fields: &Map<String, Value>, known: &[&str]) -> Map<String, Value> {
    let unknown = fields
        .iter()
        .filter(|(key, _)| !known.contains(&key.as_str()));
    unknown
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn under(key: &str, fields: Map<String, Value>) -> Map<String, Value> {
    if fields.is_empty() {
        return Map::new();
    }
    Map::from_iter([(key.to_owned(), Value::Object(fields))])
}

/// The model's media, if an answer can hold its type.
fn media(data: &Value) -> Option<AssistantContent> {
    let text = |key: &str| data.get(key)?.as_str();
    let mime_type = text("mimeType")?;
    let media = made(text("data")?, mime_type)?;
    match mime_type.split('/').next() {
        Some("image") => Some(AssistantContent::Image(media)),
        Some("audio") => Some(AssistantContent::Audio(media)),
        Some("video") => Some(AssistantContent::Video(media)),
        _ => None,
    }
}
