//! Answers of Gemini.

mod partial;
mod parts;

use super::{PROVIDER, failure};
use crate::codec::{self, CodecProgress, ended_early, is_truncated, items, native_metadata};
use crate::error::Error;
use crate::event::StreamEvent;
use crate::message::{AssistantMessage, MessageOptions};
use crate::model::{Response, StopReason};
use crate::usage::CycleUsage;
use parts::Parts;
use serde_json::{Map, Value};

/// Reads the chunks of one answer.
#[derive(Debug)]
pub(super) struct Decoder {
    requested: String,
    model_id: String,
    structured: bool,
    parts: Parts,
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
            parts: Parts::default(),
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
        self.parts.start();
        self.describe(&chunk);
        let candidates = chunk.get("candidates").and_then(Value::as_array);
        let first = candidates
            .into_iter()
            .flatten()
            .find(|candidate| candidate.get("index").and_then(Value::as_u64).unwrap_or(0) == 0);
        if let Some(candidate) = first {
            self.candidate(candidate)?;
        }
        Ok(self.parts.take_events())
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

    fn candidate(&mut self, candidate: &Value) -> Result<(), Error> {
        let parts = candidate
            .pointer("/content/parts")
            .and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            self.parts.push(part)?;
        }
        for key in KEPT {
            if let Some(value) = candidate.get(key) {
                self.fields.insert(key.to_owned(), value.clone());
            }
        }
        if let Some(reason) = candidate.get("finishReason").and_then(Value::as_str) {
            self.finish_reason = Some(reason.to_owned());
        }
        Ok(())
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
            raw: (!self.usage.is_empty()).then(|| Value::Object(self.usage.clone()).into()),
            ..CycleUsage::default()
        }
    }
}

impl codec::Decoder for Decoder {
    fn push(&mut self, frame: &str) -> Result<Vec<StreamEvent>, Error> {
        self.chunk(frame)
    }

    fn whole(&mut self, body: &str) -> Result<Vec<StreamEvent>, Error> {
        self.chunk(body)
    }

    fn progress(&self) -> CodecProgress {
        match self.finish_reason {
            Some(_) => CodecProgress::Answered,
            None => CodecProgress::Open,
        }
    }

    fn finish(mut self: Box<Self>) -> Result<(Vec<StreamEvent>, Response), Error> {
        let Some(reason) = self.finish_reason.take() else {
            return Err(if self.started {
                ended_early(PROVIDER)
            } else {
                invalid("the stream held no chunk")
            });
        };
        let stop_reason = if self.blocked {
            StopReason::ContentFilter
        } else {
            stop_reason(&reason, self.parts.has_calls())
        };
        let usage = self.count();
        self.fields
            .insert("finishReason".to_owned(), Value::String(reason));
        let whole = std::mem::take(&mut self.parts).finish(is_truncated(&stop_reason));
        items::write(&whole.items, &mut self.fields);
        let mut events = whole.events;
        events.push(StreamEvent::MessageStop);
        let fields = std::mem::take(&mut self.fields);
        let options = MessageOptions {
            metadata: Some(native_metadata(PROVIDER, &self.requested, fields)),
            ..MessageOptions::default()
        };
        let message = AssistantMessage::new(whole.content, whole.calls, options);
        let data = codec::data(PROVIDER, self.structured, &message, &stop_reason)?;
        let response = Response {
            message,
            usage,
            stop_reason,
            data,
            model_id: self.model_id.into(),
            provider: PROVIDER.into(),
            response_id: self.response_id.map(Into::into),
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
    codec::invalid(PROVIDER, text)
}
