//! Answers in the Messages format: events in, events and a response out.

use super::blocks::{Blocks, Whole};
use super::{ANSWER_TOOL, StructureForm, failure};
use crate::codec::{self, CodecProgress, ended_early, is_truncated, items, structured, text};
use crate::error::Error;
use crate::event::StreamEvent;
use crate::message::{AssistantMessage, MessageId, MessageOptions};
use crate::model::{Response, StopReason};
use crate::usage::CycleUsage;
use serde_json::{Map, Value};

/// Hosts whose ids are shorter than this repeat them; such a message gets an id of ours.
const UNIQUE_ID: usize = 16;

/// Folds the events of one stream into ours and, at the end, the response.
#[derive(Debug)]
pub(super) struct Decoder {
    provider: String,
    /// The requested model.
    requested: String,
    /// How the request demanded a structure, if it did.
    structure: Option<StructureForm>,
    stage: Stage,
    blocks: Blocks,
    response_id: Option<String>,
    /// The answer's fields other than its content.
    fields: Map<String, Value>,
    /// Events that are not known.
    unknown: Vec<Value>,
    usage: Map<String, Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Nothing,
    Started,
    /// The vendor has ended the stream.
    Stopped,
}

impl Decoder {
    pub(super) fn new(provider: &str, model_id: &str, structure: Option<StructureForm>) -> Self {
        let forced = structure == Some(StructureForm::ForcedTool);
        Self {
            provider: provider.to_owned(),
            requested: model_id.to_owned(),
            structure,
            stage: Stage::Nothing,
            blocks: Blocks::new(forced.then_some(ANSWER_TOOL)),
            response_id: None,
            fields: Map::new(),
            unknown: Vec::new(),
            usage: Map::new(),
        }
    }

    fn object(&self, text: &str) -> Result<Map<String, Value>, Error> {
        match serde_json::from_str(text) {
            Ok(Value::Object(object)) => Ok(object),
            Ok(_) => Err(self.invalid("an event is not a JSON object")),
            Err(cause) => Err(self.invalid("an event is not JSON").caused_by(cause)),
        }
    }

    fn event(&mut self, event: &Map<String, Value>) -> Result<(), Error> {
        if let Some(error) = event.get("error").filter(|error| !error.is_null()) {
            return Err(failure::in_stream(&self.provider, error));
        }
        let index = event.get("index").and_then(Value::as_u64);
        let field = |key: &str| event.get(key).and_then(Value::as_object);
        match event.get("type").and_then(Value::as_str) {
            Some("message_start") => match field("message") {
                Some(message) => self.message(message),
                None => return Err(self.invalid("message_start has no message")),
            },
            Some("content_block_start") => match field("content_block") {
                Some(block) => {
                    self.begin();
                    self.blocks.start(index, block);
                }
                None => return Err(self.invalid("content_block_start has no block")),
            },
            Some("content_block_delta") => {
                let known = field("delta").is_some_and(|delta| self.blocks.delta(index, delta));
                if !known {
                    return Err(self.invalid("a delta is of no block that has begun"));
                }
            }
            Some("content_block_stop") => self.blocks.stop(index),
            Some("message_delta") => {
                self.begin();
                self.describe(event);
                if let Some(delta) = field("delta") {
                    self.describe(delta);
                }
            }
            Some("message_stop") => self.stage = Stage::Stopped,
            // An event that says no more than its type keeps the connection alive.
            Some(_) if event.len() == 1 => {}
            Some(_) => self.unknown.push(Value::Object(event.clone())),
            None => return Err(self.invalid("an event has no type")),
        }
        Ok(())
    }

    fn begin(&mut self) {
        if self.stage == Stage::Nothing {
            self.stage = Stage::Started;
            self.blocks.begin();
        }
    }

    /// Processes a message object: without content at the start of a stream, complete without streaming.
    fn message(&mut self, message: &Map<String, Value>) {
        self.begin();
        if let Some(id) = message.get("id").and_then(Value::as_str) {
            self.response_id = Some(id.to_owned());
        }
        self.describe(message);
        let content = message.get("content").and_then(Value::as_array);
        for block in content.into_iter().flatten().filter_map(Value::as_object) {
            self.blocks.start(None, block);
            self.blocks.stop(None);
        }
    }

    /// Stores the fields of a message or of a `message_delta`, except its content.
    fn describe(&mut self, fields: &Map<String, Value>) {
        for (key, value) in fields {
            match (key.as_str(), value) {
                (_, Value::Null)
                | ("id" | "type" | "role" | "content" | "delta" | "items" | "events", _) => {}
                // The counts of a later event are of the whole answer so far.
                ("usage", Value::Object(usage)) => {
                    let told = usage.iter().filter(|(_, value)| !value.is_null());
                    let told = told.map(|(key, value)| (key.clone(), value.clone()));
                    self.usage.extend(told);
                }
                (_, value) => drop(self.fields.insert(key.clone(), value.clone())),
            }
        }
    }

    fn text_member(&self, key: &str) -> Option<&str> {
        self.fields.get(key)?.as_str()
    }

    fn end(mut self) -> Result<(Vec<StreamEvent>, Response), Error> {
        let Some(word) = self.text_member("stop_reason").map(str::to_owned) else {
            return Err(match self.stage {
                Stage::Nothing => self.invalid("the stream held no message"),
                Stage::Started => ended_early(&self.provider),
                Stage::Stopped => self.invalid("the answer ended without a stop reason"),
            });
        };
        let answer_tool = Blocks::new(None);
        let blocks = std::mem::replace(&mut self.blocks, answer_tool);
        let mut whole = blocks.finish(is_truncated(&plain_stop_reason(&word)));
        let stop_reason = stop_reason(&word, &whole);
        let data = self.data(&word, &whole)?;
        let mut fields = std::mem::take(&mut self.fields);
        let model_id = match fields.get("model").and_then(Value::as_str) {
            Some(model) => model.to_owned(),
            None => self.requested.clone(),
        };
        items::write(&whole.items, &mut fields);
        if !self.unknown.is_empty() {
            fields.insert("events".to_owned(), Value::Array(self.unknown));
        }
        let id = self.response_id.as_deref();
        let options = MessageOptions {
            id: id.filter(|id| id.len() >= UNIQUE_ID).map(MessageId::from),
            timestamp: None,
            metadata: Some(codec::native_metadata(
                &self.provider,
                &self.requested,
                fields,
            )),
        };
        whole.events.push(StreamEvent::MessageStop);
        let response = Response {
            message: AssistantMessage::new(whole.content, whole.calls, options),
            usage: usage(self.usage),
            stop_reason,
            data,
            model_id: model_id.into(),
            provider: self.provider.into(),
            response_id: self.response_id.map(Into::into),
            request: None,
        };
        Ok((whole.events, response))
    }

    /// The structured answer, if the request demanded one and the model finished it.
    fn data(&self, word: &str, whole: &Whole) -> Result<Option<Value>, Error> {
        let done = matches!(
            (word, whole.answer),
            ("end_turn", _) | ("tool_use", Some(_))
        );
        if self.structure.is_none() || !done || !whole.calls.is_empty() {
            return Ok(None);
        }
        let texts: Vec<&str> = whole.content.iter().filter_map(text).collect();
        let answer = whole.answer.and_then(|at| text(whole.content.get(at)?));
        // The vendor cuts one text into blocks; with server tools, others stand before it.
        let all = answer.map_or_else(|| texts.concat(), str::to_owned);
        let last = texts.last().copied().unwrap_or_default();
        structured(&self.provider, &all)
            .or_else(|error| structured(&self.provider, last).map_err(|_| error))
            .map(Some)
    }

    fn invalid(&self, message: &str) -> Error {
        codec::invalid(&self.provider, message)
    }
}

impl codec::Decoder for Decoder {
    fn push(&mut self, frame: &str) -> Result<Vec<StreamEvent>, Error> {
        // Not of this format, but what some hosts end every stream with.
        if frame == "[DONE]" {
            self.stage = Stage::Stopped;
            return Ok(Vec::new());
        }
        let event = self.object(frame)?;
        self.event(&event)?;
        Ok(self.blocks.take_events())
    }

    fn whole(&mut self, body: &str) -> Result<Vec<StreamEvent>, Error> {
        let message = self.object(body)?;
        if message.get("type").and_then(Value::as_str) == Some("message") {
            self.message(&message);
        } else {
            self.event(&message)?;
        }
        self.stage = Stage::Stopped;
        Ok(self.blocks.take_events())
    }

    fn progress(&self) -> CodecProgress {
        match (self.stage, self.text_member("stop_reason")) {
            (Stage::Stopped, _) => CodecProgress::Closed,
            (Stage::Nothing | Stage::Started, Some(_)) => CodecProgress::Answered,
            (Stage::Nothing | Stage::Started, None) => CodecProgress::Open,
        }
    }

    fn finish(self: Box<Self>) -> Result<(Vec<StreamEvent>, Response), Error> {
        self.end()
    }
}

fn stop_reason(word: &str, whole: &Whole) -> StopReason {
    match word {
        // Some hosts say that they are done although they call.
        "end_turn" if !whole.calls.is_empty() => StopReason::ToolUse,
        // The answer tool is no tool of the caller's.
        "tool_use" if whole.answer.is_some() && whole.calls.is_empty() => StopReason::EndTurn,
        word => plain_stop_reason(word),
    }
}

/// Maps Anthropic's stop reason, independently of the answer's content.
fn plain_stop_reason(word: &str) -> StopReason {
    match word {
        "end_turn" | "stop_sequence" => StopReason::EndTurn,
        "max_tokens" | "model_context_window_exceeded" => StopReason::MaxTokens,
        "tool_use" => StopReason::ToolUse,
        "refusal" => StopReason::ContentFilter,
        other => StopReason::Other(other.to_owned()),
    }
}

/// The vendor's `input_tokens` are those that no cache had to do with.
fn usage(raw: Map<String, Value>) -> CycleUsage {
    let count = |key: &str| raw.get(key).and_then(Value::as_u64).unwrap_or(0);
    let read = count("cache_read_input_tokens");
    let written = count("cache_creation_input_tokens");
    let input = count("input_tokens");
    let details = raw.get("output_tokens_details");
    let thought = details.and_then(|details| details.get("thinking_tokens")?.as_u64());
    CycleUsage {
        input_tokens: input.saturating_add(read).saturating_add(written),
        output_tokens: count("output_tokens"),
        cache_read_tokens: read,
        cache_write_tokens: written,
        reasoning_tokens: thought.unwrap_or(0),
        raw: (!raw.is_empty()).then(|| Value::Object(raw).into()),
    }
}
