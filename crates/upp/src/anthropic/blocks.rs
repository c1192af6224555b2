//! Puts the blocks of an answer together.

use crate::codec::AnswerBuilder;
use crate::codec::items::Item;
use crate::content::AssistantContent;
use crate::event::StreamEvent;
use crate::message::MessageId;
use crate::tool::ToolCall;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The blocks so far, in the order of their starts.
#[derive(Debug)]
pub(super) struct Blocks {
    answer: AnswerBuilder,
    all: Vec<Block>,
    /// The blocks that are not whole, by the vendor's index.
    open: BTreeMap<u64, usize>,
    /// The tool whose input is not a call but the answer itself.
    answer_tool: Option<&'static str>,
}

#[derive(Debug)]
struct Block {
    kind: Kind,
    /// The fields that content and calls can't hold; all fields of a block that is neither.
    with: Map<String, Value>,
    /// The text of the `input_json_delta` events, if it is stored nowhere else.
    input: String,
    /// The input at the block's start.
    first_input: Option<Value>,
    /// Whether the input of a call came as text, so that its end can be detected.
    streamed: bool,
}

/// The protocol's form of a block, with its index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text(u32),
    Thinking(u32),
    Call(u32),
    /// Text from the input of the answer tool.
    Answer(u32),
    Native,
}

/// All blocks after the end of the answer.
#[derive(Debug)]
pub(super) struct Whole {
    pub(super) events: Vec<StreamEvent>,
    pub(super) items: Vec<Item>,
    pub(super) content: Vec<AssistantContent>,
    pub(super) calls: Vec<ToolCall>,
    /// The content block from the input of the answer tool.
    pub(super) answer: Option<usize>,
}

impl Blocks {
    pub(super) fn new(answer_tool: Option<&'static str>) -> Self {
        Self {
            answer: AnswerBuilder::default(),
            all: Vec::new(),
            open: BTreeMap::new(),
            answer_tool,
        }
    }

    /// Starts the answer.
    pub(super) fn begin(&mut self) {
        self.answer.start();
    }

    /// The events since the last time.
    pub(super) fn take_events(&mut self) -> Vec<StreamEvent> {
        self.answer.take_events()
    }

    /// Starts a block with its initial content. Without an index it is the next one.
    pub(super) fn start(&mut self, index: Option<u64>, block: &Map<String, Value>) {
        let at = self.all.len();
        let index = index.unwrap_or_else(|| u64::try_from(at).unwrap_or(u64::MAX));
        if let Some(before) = self.open.insert(index, at) {
            self.close(before);
        }
        let block = self.opened(block.clone());
        self.all.push(block);
    }

    fn opened(&mut self, mut with: Map<String, Value>) -> Block {
        let mut first_input = None;
        let kind = match text_of(&with, "type") {
            Some("text") => {
                let text = take_text(&mut with, "text").unwrap_or_default();
                Kind::Text(self.answer.open(AssistantContent::Text { text }))
            }
            Some("thinking") => {
                let text = take_text(&mut with, "thinking").unwrap_or_default();
                let signature = take_text(&mut with, "signature");
                let block = AssistantContent::Reasoning { text, signature };
                Kind::Thinking(self.answer.open(block))
            }
            Some("tool_use") => {
                let name = take_text(&mut with, "name").unwrap_or_default();
                let id = take_text(&mut with, "id").filter(|id| !id.is_empty());
                first_input = with.shift_remove("input");
                if self.answer_tool == Some(name.as_str()) {
                    with.clear();
                    let text = String::new();
                    Kind::Answer(self.answer.open(AssistantContent::Text { text }))
                } else {
                    let id = id.unwrap_or_else(|| format!("call_{}", MessageId::random().as_str()));
                    let call = self.answer.call(id.as_str(), &name);
                    self.answer.order(call, with.get("after"));
                    Kind::Call(call)
                }
            }
            Some(_) | None => Kind::Native,
        };
        if kind != Kind::Native {
            with.shift_remove("type");
        }
        Block {
            kind,
            with,
            input: String::new(),
            first_input,
            streamed: false,
        }
    }

    /// Adds a delta to the block with this index, or to the last one without an index. Returns whether
    /// the block exists.
    pub(super) fn delta(&mut self, index: Option<u64>, delta: &Map<String, Value>) -> bool {
        let at = match index {
            Some(index) => self.open.get(&index).copied(),
            None => self.open.values().copied().max(),
        };
        let Some(at) = at else { return false };
        // Further fields of a delta that is known are about the stream, not of the block.
        match text_of(delta, "type") {
            Some("text_delta") => self.merge_only(at, "text", delta),
            Some("thinking_delta") => self.merge_only(at, "thinking", delta),
            Some("signature_delta") => self.merge_only(at, "signature", delta),
            Some("input_json_delta") => {
                self.input(at, text_of(delta, "partial_json").unwrap_or_default());
            }
            Some("citations_delta") => {
                if let Some(citation) = delta.get("citation") {
                    self.merge(at, "citations", &Value::Array(vec![citation.clone()]));
                }
            }
            Some(_) | None => {
                for (key, more) in delta.iter().filter(|(key, _)| *key != "type") {
                    self.merge(at, key, more);
                }
            }
        }
        true
    }

    fn merge_only(&mut self, at: usize, key: &str, delta: &Map<String, Value>) {
        if let Some(more) = delta.get(key) {
            self.merge(at, key, more);
        }
    }

    fn merge(&mut self, at: usize, key: &str, more: &Value) {
        let Some(block) = self.all.get_mut(at) else {
            return;
        };
        match (block.kind, key, more) {
            (Kind::Text(index), "text", Value::String(more))
            | (Kind::Thinking(index), "thinking", Value::String(more)) => {
                self.answer.append(index, more);
            }
            (Kind::Thinking(index), "signature", Value::String(more)) => {
                self.answer.sign(index, more);
            }
            (
                Kind::Text(_) | Kind::Thinking(_) | Kind::Call(_) | Kind::Answer(_) | Kind::Native,
                key,
                more,
            ) => match block.with.get_mut(key) {
                Some(slot) => merge(slot, more),
                None => drop(block.with.insert(key.to_owned(), more.clone())),
            },
        }
    }

    fn input(&mut self, at: usize, more: &str) {
        let Some(block) = self.all.get_mut(at) else {
            return;
        };
        match block.kind {
            Kind::Call(index) => {
                block.streamed |= !more.is_empty();
                self.answer.arguments(index, more);
            }
            Kind::Answer(index) => self.answer.append(index, more),
            Kind::Text(_) | Kind::Thinking(_) | Kind::Native => block.input.push_str(more),
        }
    }

    /// Completes the block with this index, or the last one without an index.
    pub(super) fn stop(&mut self, index: Option<u64>) {
        let last = || self.open.iter().max_by_key(|(_, at)| **at);
        let index = index.or_else(|| last().map(|(index, _)| *index));
        if let Some(at) = index.and_then(|index| self.open.remove(&index)) {
            self.close(at);
        }
    }

    fn close(&mut self, at: usize) {
        let Some(block) = self.all.get_mut(at) else {
            return;
        };
        // The input comes in deltas or, where nothing is streamed, with the block.
        let first = || block.first_input.as_ref().map(Value::to_string);
        match block.kind {
            Kind::Text(index) | Kind::Thinking(index) => self.answer.close(index),
            Kind::Call(index) => {
                if self.answer.arguments_of(index).is_empty() {
                    let input = first().unwrap_or_else(|| "{}".to_owned());
                    self.answer.arguments(index, &input);
                }
            }
            Kind::Answer(index) => {
                let empty = |block: &AssistantContent| match block {
                    AssistantContent::Text { text } => text.is_empty(),
                    AssistantContent::Reasoning { .. }
                    | AssistantContent::Image(_)
                    | AssistantContent::Audio(_)
                    | AssistantContent::Video(_) => false,
                };
                if self.answer.block(index).is_some_and(|block| empty(block)) {
                    self.answer.append(index, &first().unwrap_or_default());
                }
                self.answer.close(index);
            }
            Kind::Native => {
                // Input that was cut off is none that the vendor would take back.
                if let Ok(input) = serde_json::from_str::<Value>(&block.input) {
                    block.with.insert("input".to_owned(), input);
                }
            }
        }
    }

    /// Ends all blocks. If the answer was cut off (`cut`), the last call counts as complete only if its
    /// text is.
    pub(super) fn finish(mut self, cut: bool) -> Whole {
        for at in std::mem::take(&mut self.open).into_values() {
            self.close(at);
        }
        match self.all.last() {
            Some(Block {
                kind: Kind::Call(index),
                streamed,
                ..
            }) if cut => {
                if *streamed {
                    self.answer.cut_if_empty();
                } else {
                    self.answer.truncate(*index);
                }
            }
            Some(_) | None => {}
        }
        let place = |index: u32| usize::try_from(index).unwrap_or(usize::MAX);
        let mut answer = None;
        let items = self.all.into_iter().map(|block| match block.kind {
            Kind::Text(index) | Kind::Thinking(index) => Item::Content(place(index), block.with),
            Kind::Answer(index) => {
                answer = Some(place(index));
                Item::Content(place(index), block.with)
            }
            Kind::Call(index) => Item::Call(place(index), block.with),
            Kind::Native => Item::Native(Value::Object(block.with)),
        });
        let items = items.collect();
        let events = self.answer.take_events();
        let (content, calls) = self.answer.finish();
        Whole {
            events,
            items,
            content,
            calls,
            answer,
        }
    }
}

fn text_of<'a>(fields: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    fields.get(key)?.as_str()
}

/// Takes a text out of the fields; a value of another type stays.
fn take_text(fields: &mut Map<String, Value>, key: &str) -> Option<String> {
    match fields.get_mut(key)? {
        Value::String(text) => {
            let text = std::mem::take(text);
            fields.shift_remove(key);
            Some(text)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            None
        }
    }
}

/// Merges a later value: texts and lists are appended, objects are merged by key, `null` is ignored, and
/// anything else is replaced.
fn merge(slot: &mut Value, more: &Value) {
    match (slot, more) {
        (_, Value::Null) => {}
        (Value::String(text), Value::String(more)) => text.push_str(more),
        (Value::Array(list), Value::Array(more)) => list.extend(more.iter().cloned()),
        (Value::Object(fields), Value::Object(more)) => {
            for (key, more) in more {
                match fields.get_mut(key) {
                    Some(slot) => merge(slot, more),
                    None => drop(fields.insert(key.clone(), more.clone())),
                }
            }
        }
        (slot, more) => *slot = more.clone(),
    }
}
