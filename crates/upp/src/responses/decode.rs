//! Answers in the Responses format: events in, events and a response out.

use super::encode::stores;
use super::output::{About, Finished, Output};
use super::{Responses, refusal, usage};
use crate::codec::fields::{self, Field, Fields};
use crate::codec::{self, AnswerBuilder, CodecProgress, ended_early, items, structured};
use crate::error::{Code, Error};
use crate::event::StreamEvent;
use crate::message::{AssistantMessage, MessageId, MessageOptions};
use crate::model::{Request, Response, StopReason};
use serde::de::MapAccess;
use serde_json::{Map, Value};

/// Hosts whose ids are shorter than this repeat them; such a message gets an id of ours.
const UNIQUE_ID: usize = 12;

/// The fields of the response that are stored in the message's metadata.
const KEPT: [&str; 6] = [
    "model",
    "status",
    "incomplete_details",
    "service_tier",
    "citations",
    "inline_citations",
];

/// Folds the events of one answer.
#[derive(Debug)]
pub(super) struct Decoder {
    provider: String,
    /// The requested model.
    requested: String,
    structured: bool,
    /// Whether the provider stores the answer, judged by the request.
    stored: bool,
    builder: AnswerBuilder,
    output: Output,
    stage: Stage,
    /// The fields of the response object so far.
    response: Map<String, Value>,
    usage: Option<Value>,
}

/// The fields of an event that adds a piece of a text.
#[derive(Debug, Default)]
struct Piece<'a> {
    kind: Field<'a>,
    delta: Field<'a>,
    about: About<'a>,
}

impl<'de> Fields<'de> for Piece<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "type" => fields::take(map, &mut self.kind),
            "delta" => fields::take(map, &mut self.delta),
            "output_index" => fields::take(map, &mut self.about.output_index),
            "item_id" => fields::take(map, &mut self.about.item_id),
            "content_index" => fields::take(map, &mut self.about.content_index),
            "summary_index" => fields::take(map, &mut self.about.summary_index),
            _ => fields::skip(map),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Nothing,
    Started,
    /// The answer is whole.
    Ended,
    /// The stream has ended, but the answer is incomplete.
    Abandoned,
}

impl Decoder {
    pub(super) fn new(codec: &Responses, request: &Request) -> Self {
        Self {
            provider: codec.provider.clone(),
            requested: codec.model_id.clone(),
            structured: request.structure.is_some(),
            stored: stores(&request.params),
            builder: AnswerBuilder::default(),
            output: Output::default(),
            stage: Stage::Nothing,
            response: Map::new(),
            usage: None,
        }
    }

    fn event(&mut self, event: &Value) -> Result<(), Error> {
        let Some(kind) = event.get("type").and_then(Value::as_str) else {
            return self.untyped(event);
        };
        let Self {
            output, builder, ..
        } = self;
        match kind {
            "error" | "response.error" => return Err(refusal::in_answer(&self.provider, event)),
            "response.completed" | "response.done" => return self.end(event, "completed"),
            "response.incomplete" => return self.end(event, "incomplete"),
            "response.failed" => return self.end(event, "failed"),
            "response.cancelled" => return self.end(event, "cancelled"),
            "response.created" | "response.queued" | "response.in_progress" => {
                self.describe(event.get("response").unwrap_or(&Value::Null));
                self.builder.start();
            }
            "response.output_item.added" => output.added(event, builder),
            "response.output_item.done" => output.done(event, builder),
            "response.content_part.added" => output.part(event, "content", false, builder),
            "response.content_part.done" => output.part(event, "content", true, builder),
            "response.reasoning_summary_part.added" => {
                output.part(event, "summary", false, builder);
            }
            "response.reasoning_summary_part.done" => {
                output.part(event, "summary", true, builder);
            }
            "response.output_text.done" => output.text_done(event, "output_text", builder),
            "response.output_text.annotation.added" => output.annotation(event),
            "response.refusal.done" => output.text_done(event, "refusal", builder),
            "response.reasoning_summary_text.done" | "response.reasoning_summary.done" => {
                output.text_done(event, "summary_text", builder);
            }
            "response.reasoning_text.done" | "response.reasoning.done" => {
                output.text_done(event, "reasoning_text", builder);
            }
            "response.function_call_arguments.done" | "response.custom_tool_call_input.done" => {
                output.arguments_done(event, builder);
            }
            // Progress of hosted tools, whose items come whole, and events of the future.
            _ => return Ok(()),
        }
        self.started();
        Ok(())
    }

    /// Adds a piece of a text or of arguments; returns whether the event was one.
    fn piece(&mut self, piece: &Piece<'_>) -> bool {
        let part = match piece.kind.as_str().unwrap_or_default() {
            "response.output_text.delta" | "response.content_part.delta" => Some("output_text"),
            "response.refusal.delta" => Some("refusal"),
            "response.reasoning_summary_text.delta" | "response.reasoning_summary.delta" => {
                Some("summary_text")
            }
            "response.reasoning_text.delta" | "response.reasoning.delta" => Some("reasoning_text"),
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                None
            }
            _ => return false,
        };
        if let Some(more) = piece.delta.text() {
            let more = (&piece.about, more);
            match part {
                Some(part) => self.output.text(more, part, &mut self.builder),
                None => self.output.arguments(more, &mut self.builder),
            }
        }
        self.started();
        true
    }

    /// An event without a type: an error, or the response itself.
    fn untyped(&mut self, event: &Value) -> Result<(), Error> {
        if event.get("error").is_some_and(|error| !error.is_null()) {
            return Err(refusal::in_answer(&self.provider, event));
        }
        if event.get("output").is_some_and(Value::is_array) {
            return self.end_with(event, "completed");
        }
        Ok(())
    }

    fn started(&mut self) {
        if self.stage == Stage::Nothing {
            self.stage = Stage::Started;
        }
    }

    fn end(&mut self, event: &Value, status: &str) -> Result<(), Error> {
        self.end_with(event.get("response").unwrap_or(&Value::Null), status)
    }

    /// Ends the answer; `status` is the default if the response has none.
    fn end_with(&mut self, response: &Value, status: &str) -> Result<(), Error> {
        self.describe(response);
        let said = response.get("status").and_then(Value::as_str);
        let status = said.unwrap_or(status);
        match status {
            "failed" => return Err(refusal::in_answer(&self.provider, response)),
            "cancelled" => {
                let text = "the response was cancelled at the provider";
                return Err(Error::new(Code::Cancelled, self.provider.as_str(), text));
            }
            "queued" | "in_progress" => {
                return Err(self.invalid("the answer ended before the response did"));
            }
            _ => {}
        }
        self.response
            .insert("status".to_owned(), Value::from(status));
        self.builder.start();
        if let Some(output) = response.get("output").and_then(Value::as_array) {
            self.output.complete(output, &mut self.builder);
        }
        self.stage = Stage::Ended;
        Ok(())
    }

    fn describe(&mut self, response: &Value) {
        let Some(fields) = response.as_object() else {
            return;
        };
        for key in KEPT.iter().chain(&["id", "store"]) {
            if let Some(value) = fields.get(*key).filter(|value| !value.is_null()) {
                self.response.insert((*key).to_owned(), value.clone());
            }
        }
        if let Some(usage) = fields.get("usage").filter(|usage| usage.is_object()) {
            match &mut self.usage {
                Some(Value::Object(known)) => {
                    let more = usage.as_object().cloned().unwrap_or_default();
                    known.extend(more);
                }
                Some(_) | None => self.usage = Some(usage.clone()),
            }
        }
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.response
            .get(key)?
            .as_str()
            .filter(|text| !text.is_empty())
    }

    fn invalid(&self, message: &str) -> Error {
        codec::invalid(&self.provider, message)
    }

    fn unfinished(&self) -> Error {
        match self.stage {
            Stage::Nothing => self.invalid("the answer is not in the Responses format"),
            Stage::Started => ended_early(&self.provider),
            Stage::Abandoned | Stage::Ended => {
                self.invalid("the stream is over, but the response is not complete")
            }
        }
    }

    fn stop_reason(&self, refused: bool) -> StopReason {
        let reason = self.response.get("incomplete_details");
        let reason = reason.and_then(|details| details.get("reason")?.as_str());
        match (self.text("status"), reason) {
            _ if refused => StopReason::ContentFilter,
            (Some("incomplete"), Some("max_output_tokens" | "max_tokens" | "length")) => {
                StopReason::MaxTokens
            }
            (Some("incomplete"), Some("content_filter")) => StopReason::ContentFilter,
            (Some("incomplete"), reason) => {
                StopReason::Other(reason.unwrap_or("incomplete").to_owned())
            }
            (_, _) if self.builder.has_calls() => StopReason::ToolUse,
            (Some("completed") | None, _) => StopReason::EndTurn,
            (Some(other), _) => StopReason::Other(other.to_owned()),
        }
    }

    /// The provider's fields of the message's metadata.
    fn metadata(&self, finished: &Finished) -> Map<String, Value> {
        let mut fields = Map::new();
        for key in KEPT {
            if let Some(value) = self.response.get(key) {
                fields.insert(key.to_owned(), value.clone());
            }
        }
        if let Some(id) = self.text("id") {
            fields.insert("response_id".to_owned(), Value::from(id));
        }
        let stored = self.response.get("store").and_then(Value::as_bool);
        if stored.unwrap_or(self.stored) {
            fields.insert("store".to_owned(), Value::Bool(true));
        }
        items::write(&finished.items, &mut fields);
        fields
    }

    fn data(&self, stop: &StopReason, text: &str) -> Result<Option<Value>, Error> {
        if !self.structured || *stop != StopReason::EndTurn {
            return Ok(None);
        }
        structured(&self.provider, text).map(Some)
    }

    fn response(mut self) -> Result<(Vec<StreamEvent>, Response), Error> {
        if self.stage != Stage::Ended {
            return Err(self.unfinished());
        }
        let cut = self.text("status") == Some("incomplete");
        let finished = std::mem::take(&mut self.output).finish(cut, &mut self.builder);
        let stop_reason = self.stop_reason(finished.refused);
        let data = self.data(&stop_reason, &finished.last_text)?;
        let fields = self.metadata(&finished);
        let mut events = self.builder.take_events();
        events.push(StreamEvent::MessageStop);
        let id = self.text("id").filter(|id| id.len() >= UNIQUE_ID);
        let options = MessageOptions {
            id: id.map(MessageId::from),
            timestamp: None,
            metadata: Some(codec::native_metadata(
                &self.provider,
                &self.requested,
                fields,
            )),
        };
        let model_id = self.text("model").unwrap_or(&self.requested).to_owned();
        let response_id = self.text("id").map(str::to_owned);
        let (content, calls) = std::mem::take(&mut self.builder).finish();
        let response = Response {
            message: AssistantMessage::new(content, calls, options),
            usage: self.usage.map(usage::counts).unwrap_or_default(),
            stop_reason,
            data,
            model_id: model_id.into(),
            provider: self.provider.into(),
            response_id: response_id.map(Into::into),
            request: None,
        };
        Ok((events, response))
    }

    fn no_json(&self, cause: serde_json::Error) -> Error {
        self.invalid("an event is not JSON").caused_by(cause)
    }

    fn object(&self, text: &str) -> Result<Value, Error> {
        let value: Value = serde_json::from_str(text).map_err(|cause| self.no_json(cause))?;
        if value.is_object() {
            Ok(value)
        } else {
            Err(self.invalid("an event is not a JSON object"))
        }
    }
}

impl codec::Decoder for Decoder {
    fn push(&mut self, frame: &str) -> Result<Vec<StreamEvent>, Error> {
        if frame == "[DONE]" {
            if self.stage != Stage::Ended {
                self.stage = Stage::Abandoned;
            }
            return Ok(Vec::new());
        }
        let piece: Option<Piece<'_>> = fields::read(frame).map_err(|cause| self.no_json(cause))?;
        if !piece.is_some_and(|piece| self.piece(&piece)) {
            let event = self.object(frame)?;
            self.event(&event)?;
        }
        Ok(self.builder.take_events())
    }

    fn whole(&mut self, body: &str) -> Result<Vec<StreamEvent>, Error> {
        let response = self.object(body)?;
        let failed = response.get("status").and_then(Value::as_str) == Some("failed");
        if failed || response.get("output").is_some_and(Value::is_array) {
            self.end_with(&response, "completed")?;
        } else {
            self.untyped(&response)?;
        }
        Ok(self.builder.take_events())
    }

    fn progress(&self) -> CodecProgress {
        match self.stage {
            Stage::Nothing | Stage::Started => CodecProgress::Open,
            Stage::Ended | Stage::Abandoned => CodecProgress::Closed,
        }
    }

    fn finish(self: Box<Self>) -> Result<(Vec<StreamEvent>, Response), Error> {
        self.response()
    }
}
