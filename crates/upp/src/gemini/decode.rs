//! Answers of Gemini.

use super::encode::{CALL, NO_ID, PART};
use super::{PROVIDER, failure};
use crate::codec::items::{self, Item};
use crate::codec::{self, AnswerBuilder, Progress, made, native_metadata};
use crate::content::AssistantContent;
use crate::error::{Code, Error};
use crate::event::StreamEvent;
use crate::message::{AssistantMessage, MessageId, MessageOptions};
use crate::model::{Response, StopReason};
use crate::usage::CycleUsage;
use serde_json::{Map, Value};

/// Reads the chunks of one answer.
#[derive(Debug)]
pub(super) struct Decoder {
    requested: String,
    model_id: String,
    structured: bool,
    answer: AnswerBuilder,
    items: Vec<Item>,
    /// The block that grows, and whether it is a thought.
    open: Option<(u32, bool)>,
    started: bool,
    /// The prompt itself was refused.
    blocked: bool,
    finish_reason: Option<String>,
    response_id: Option<String>,
    usage: Map<String, Value>,
    fields: Map<String, Value>,
}

/// The fields of a candidate that stay with the message.
const KEPT: [&str; 5] = [
    "safetyRatings",
    "citationMetadata",
    "groundingMetadata",
    "urlContextMetadata",
    "finishMessage",
];

impl Decoder {
    pub(super) fn new(model_id: &str, structured: bool) -> Self {
        Self {
            requested: model_id.to_owned(),
            model_id: model_id.to_owned(),
            structured,
            answer: AnswerBuilder::default(),
            items: Vec::new(),
            open: None,
            started: false,
            blocked: false,
            finish_reason: None,
            response_id: None,
            usage: Map::new(),
            fields: Map::new(),
        }
    }

    fn chunk(&mut self, text: &str) -> Result<Vec<StreamEvent>, Error> {
        let chunk: Value = serde_json::from_str(text)
            .map_err(|cause| invalid("a chunk is not JSON").caused_by(cause))?;
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            return Err(failure::in_stream(&chunk));
        }
        if !chunk.is_object() {
            return Err(invalid("a chunk is no JSON object"));
        }
        self.started = true;
        self.answer.start();
        self.describe(&chunk);
        let candidates = chunk.get("candidates").and_then(Value::as_array);
        let first = candidates
            .into_iter()
            .flatten()
            .find(|candidate| candidate.get("index").and_then(Value::as_u64).unwrap_or(0) == 0);
        if let Some(candidate) = first {
            self.candidate(candidate);
        }
        Ok(self.answer.take_events())
    }

    fn describe(&mut self, chunk: &Value) {
        let text = |key: &str| chunk.get(key).and_then(Value::as_str);
        if let Some(model) = text("modelVersion") {
            model.clone_into(&mut self.model_id);
            self.fields.insert("model".to_owned(), Value::from(model));
        }
        if let Some(id) = text("responseId") {
            self.response_id = Some(id.to_owned());
        }
        // Each chunk tells all it knows so far.
        if let Some(usage) = chunk.get("usageMetadata").and_then(Value::as_object) {
            self.usage.extend(usage.clone());
        }
        if let Some(feedback) = chunk.get("promptFeedback") {
            self.fields
                .insert("promptFeedback".to_owned(), feedback.clone());
            if let Some(reason) = feedback.get("blockReason").and_then(Value::as_str) {
                self.blocked = true;
                self.finish_reason.get_or_insert_with(|| reason.to_owned());
            }
        }
    }

    fn candidate(&mut self, candidate: &Value) {
        let parts = candidate
            .pointer("/content/parts")
            .and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            self.part(part);
        }
        for key in KEPT {
            if let Some(value) = candidate.get(key) {
                self.fields.insert(key.to_owned(), value.clone());
            }
        }
        if let Some(reason) = candidate.get("finishReason").and_then(Value::as_str) {
            self.finish_reason = Some(reason.to_owned());
        }
    }

    fn part(&mut self, part: &Value) {
        let Some(fields) = part.as_object() else {
            return;
        };
        let without = |known: &[&str]| -> Map<String, Value> {
            let unknown = fields
                .iter()
                .filter(|(key, _)| !known.contains(&key.as_str()));
            unknown
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect()
        };
        let thought = fields.get("thought").and_then(Value::as_bool) == Some(true);
        if let Some(text) = fields.get("text").and_then(Value::as_str) {
            let signature = fields.get("thoughtSignature").and_then(Value::as_str);
            let known: &[&str] = if thought {
                &["text", "thought", "thoughtSignature"]
            } else {
                &["text"]
            };
            self.text(text, thought, signature, without(known), part);
        } else if let Some(call) = fields.get("functionCall").and_then(Value::as_object) {
            self.call(call, without(&["functionCall"]));
        } else if let Some(data) = fields.get("inlineData")
            && let Some(block) = media(data)
        {
            self.close();
            let index = self.answer.open(block);
            self.answer.close(index);
            self.content(index, without(&["inlineData"]));
        } else {
            self.close();
            self.items.push(Item::Native(part.clone()));
        }
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

    fn call(&mut self, call: &Map<String, Value>, part: Map<String, Value>) {
        self.close();
        let id = call
            .get("id")
            .and_then(Value::as_str)
            .filter(|id| !id.is_empty());
        let name = call.get("name").and_then(Value::as_str).unwrap_or_default();
        let told = id.map_or_else(
            || format!("call_{}", MessageId::random().as_str()),
            str::to_owned,
        );
        let index = self.answer.call(told.as_str(), name);
        let arguments = call
            .get("args")
            .map_or_else(|| "{}".to_owned(), Value::to_string);
        self.answer.arguments(index, &arguments);
        let more = call
            .iter()
            .filter(|(key, _)| !["id", "name", "args"].contains(&key.as_str()))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let mut with = under(PART, part);
        with.extend(under(CALL, more));
        if id.is_none() {
            with.insert(NO_ID.to_owned(), Value::Bool(true));
        }
        let at = usize::try_from(index).unwrap_or(usize::MAX);
        self.items.push(Item::Call(at, with));
    }

    fn close(&mut self) {
        if let Some((index, _)) = self.open.take() {
            self.answer.close(index);
        }
    }

    fn count(&self) -> CycleUsage {
        let of = |key: &str| {
            self.usage
                .get(key)
                .and_then(Value::as_u64)
                .unwrap_or_default()
        };
        CycleUsage {
            input_tokens: of("promptTokenCount").saturating_add(of("toolUsePromptTokenCount")),
            output_tokens: of("candidatesTokenCount").saturating_add(of("thoughtsTokenCount")),
            cache_read_tokens: of("cachedContentTokenCount"),
            reasoning_tokens: of("thoughtsTokenCount"),
            raw: (!self.usage.is_empty()).then(|| Value::Object(self.usage.clone())),
            ..CycleUsage::default()
        }
    }

    fn data(&self, message: &AssistantMessage, stop: &StopReason) -> Result<Option<Value>, Error> {
        let whole = *stop == StopReason::EndTurn && message.tool_calls.is_empty();
        if !self.structured || !whole {
            return Ok(None);
        }
        let texts = message.content.iter().filter_map(|block| match block {
            AssistantContent::Text { text } => Some(text.as_str()),
            AssistantContent::Reasoning { .. }
            | AssistantContent::Image(_)
            | AssistantContent::Audio(_)
            | AssistantContent::Video(_) => None,
        });
        serde_json::from_str(&texts.collect::<String>())
            .map(Some)
            .map_err(|cause| invalid("the structured answer is not JSON").caused_by(cause))
    }
}

fn under(key: &str, fields: Map<String, Value>) -> Map<String, Value> {
    if fields.is_empty() {
        return Map::new();
    }
    Map::from_iter([(key.to_owned(), Value::Object(fields))])
}

/// What the model made, where its type is one that an answer can hold.
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

impl codec::Decoder for Decoder {
    fn push(&mut self, frame: &str) -> Result<Vec<StreamEvent>, Error> {
        self.chunk(frame)
    }

    fn whole(&mut self, body: &str) -> Result<Vec<StreamEvent>, Error> {
        self.chunk(body)
    }

    fn progress(&self) -> Progress {
        match self.finish_reason {
            Some(_) => Progress::Answered,
            None => Progress::Open,
        }
    }

    fn finish(mut self: Box<Self>) -> Result<(Vec<StreamEvent>, Response), Error> {
        let Some(reason) = self.finish_reason.take() else {
            return Err(if self.started {
                let text = "the stream ended before the answer did";
                Error::new(Code::NetworkError, PROVIDER, text)
            } else {
                invalid("the stream held no chunk")
            });
        };
        self.close();
        let mut events = self.answer.take_events();
        events.push(StreamEvent::MessageStop);
        let stop_reason = if self.blocked {
            StopReason::ContentFilter
        } else {
            stop_reason(&reason, self.answer.has_calls())
        };
        let usage = self.count();
        self.fields
            .insert("finishReason".to_owned(), Value::String(reason));
        items::write(&self.items, &mut self.fields);
        let (content, calls) = std::mem::take(&mut self.answer).finish();
        let fields = std::mem::take(&mut self.fields);
        let options = MessageOptions {
            metadata: Some(native_metadata(PROVIDER, &self.requested, fields)),
            ..MessageOptions::default()
        };
        let message = AssistantMessage::new(content, calls, options);
        let data = self.data(&message, &stop_reason)?;
        let response = Response {
            message,
            usage,
            stop_reason,
            data,
            model_id: self.model_id,
            provider: PROVIDER.to_owned(),
            response_id: self.response_id,
            request: None,
        };
        Ok((events, response))
    }
}

fn stop_reason(reason: &str, calls: bool) -> StopReason {
    match reason {
        "STOP" if calls => StopReason::ToolUse,
        "STOP" => StopReason::EndTurn,
        "MAX_TOKENS" => StopReason::MaxTokens,
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "IMAGE_SAFETY" => {
            StopReason::ContentFilter
        }
        other => StopReason::Other(other.to_owned()),
    }
}

fn invalid(text: &str) -> Error {
    Error::new(Code::InvalidResponse, PROVIDER, text)
}
