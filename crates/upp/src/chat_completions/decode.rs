//! Answers in the Chat Completions format: chunks in, events and a response out.

use super::calls::Calls;
use super::chunk::{self, Choice, Chunk, Delta};
use super::details::Details;
use super::facts::Facts;
use super::{Dialect, ReasoningForm};
use crate::codec::fields::{self, Object};
use crate::codec::{self, AnswerBuilder, CodecProgress, made};
use crate::content::{AssistantContent, Media, MediaSource};
use crate::error::Error;
use crate::event::StreamEvent;
use crate::failure;
use crate::message::{AssistantMessage, MessageId, MessageOptions};
use crate::metadata::Fact;
use crate::model::{Response, StopReason};
use crate::usage::CycleUsage;
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::Arc;

/// Providers whose ids are shorter than this repeat them; such a message gets an id of ours.
const UNIQUE_ID: usize = 16;

/// Folds the chunks of one stream into events and, at the end, the response.
///
/// Feed each event's data to [`Decoder::push`] and call [`Decoder::finish`] at the end of the
/// stream. The result does not depend on how the bytes were cut.
#[derive(Debug)]
pub(super) struct Decoder {
    provider: Arc<str>,
    /// The requested model.
    requested: Arc<str>,
    /// The model that answers, if the provider names it.
    model_id: Option<Arc<str>>,
    structured: bool,
    /// The details of reasoning, if the dialect has them.
    details: Option<Details>,
    /// They come at the end.
    images: Vec<Media>,
    answer: AnswerBuilder,
    calls: Calls,
    stage: Stage,
    /// The last block, as long as it is not whole.
    open: Option<(Kind, u32)>,
    refused: bool,
    finish_reason: Option<Fact>,
    response_id: Option<Arc<str>>,
    /// The answer's other fields.
    facts: Facts,
    usage: CycleUsage,
}

/// The usual words for why an answer ended.
const WORDS: [&str; 6] = [
    "stop",
    "length",
    "tool_calls",
    "function_call",
    "content_filter",
    "error",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Nothing,
    Started,
    /// The provider has ended the stream.
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Reasoning,
}

impl Kind {
    /// A block of this kind.
    fn block(self, text: String) -> AssistantContent {
        match self {
            Self::Text => AssistantContent::Text { text },
            Self::Reasoning => AssistantContent::Reasoning {
                text,
                signature: None,
            },
        }
    }
}

impl Decoder {
    /// A decoder for an answer of this provider and model. `structured`: the request demanded a
    /// structure, so the text is parsed into data.
    pub(super) fn new(dialect: &Dialect, model_id: Arc<str>, structured: bool) -> Self {
        Self {
            provider: Arc::clone(&dialect.provider),
            details: (dialect.reasoning == ReasoningForm::Details).then(Details::default),
            images: Vec::new(),
            requested: model_id,
            model_id: None,
            structured,
            answer: AnswerBuilder::default(),
            calls: Calls::default(),
            stage: Stage::Nothing,
            open: None,
            refused: false,
            finish_reason: None,
            response_id: None,
            facts: Facts::default(),
            usage: CycleUsage::default(),
        }
    }

    fn chunk(&mut self, data: &str) -> Result<Vec<StreamEvent>, Error> {
        let mut read: Object<Chunk<'_>> = Object(None);
        fields::read_into(data, &mut read).map_err(|cause| self.no_json(cause))?;
        let Some(chunk) = &read.0 else {
            return Err(self.invalid("a chunk is not a JSON object"));
        };
        if let Some(error) = chunk.error.to_value() {
            return Err(failure::in_stream(&self.provider, &error));
        }
        self.describe(chunk)?;
        // As many as an answer with one text and one call has, those of its end included.
        self.answer.expect(8);
        if self.stage == Stage::Nothing {
            self.stage = Stage::Started;
            self.answer.start();
        }
        if let Some(choice) = &chunk.choices.0.0 {
            self.choice(choice)?;
        }
        Ok(self.answer.take_events())
    }

    fn end(mut self: Box<Self>) -> Result<(Vec<StreamEvent>, Response), Error> {
        let Some(finish_reason) = self.finish_reason.take() else {
            return Err(match self.stage {
                Stage::Nothing => self.invalid("the stream held no chunk"),
                Stage::Started => codec::ended_early(&self.provider),
                Stage::Done => self.invalid("the answer ended without a finish reason"),
            });
        };
        self.answer.expect(2);
        let ends_with_call = self.open.is_none();
        self.close();
        self.calls.flush(&mut self.answer);
        let word = finish_reason.as_str().unwrap_or_default();
        if ends_with_call && codec::is_truncated(&stop_reason(word)) {
            self.calls.truncate(&mut self.answer);
        }
        for image in self.images.drain(..) {
            let index = self.answer.open(AssistantContent::Image(image));
            self.answer.close(index);
        }
        self.answer.emit(StreamEvent::MessageStop);
        let events = self.answer.take_events();
        let calls = std::mem::take(&mut self.calls).finish();
        let (content, _) = std::mem::take(&mut self.answer).finish();
        if let Some(details) = self.details.take().and_then(Details::finish) {
            self.facts
                .set("reasoning_details", Fact::Value(Box::new(details)));
        }
        let stop_reason = match finish_reason.as_str().unwrap_or_default() {
            _ if self.refused => StopReason::ContentFilter,
            "stop" | "function_call" if !calls.is_empty() => StopReason::ToolUse,
            other => stop_reason(other),
        };
        let id = self.response_id.clone();
        let id = id.filter(|id| id.len() >= UNIQUE_ID);
        self.facts.set("finish_reason", finish_reason);
        let Facts(fields) = std::mem::take(&mut self.facts);
        let metadata = codec::native_facts(&self.provider, &self.requested, fields);
        let options = MessageOptions {
            id: id.as_deref().map(MessageId::from),
            timestamp: None,
            metadata: Some(metadata),
        };
        let message = AssistantMessage::new(content, calls, options);
        let data = codec::data(&self.provider, self.structured, &message, &stop_reason)?;
        let response = Response {
            message,
            usage: self.usage,
            stop_reason,
            data,
            model_id: self.model_id.unwrap_or(self.requested),
            provider: self.provider,
            response_id: self.response_id,
            request: None,
        };
        Ok((events, response))
    }

    fn invalid(&self, message: &str) -> Error {
        codec::invalid(&self.provider, message)
    }

    fn no_json(&self, cause: serde_json::Error) -> Error {
        self.invalid("a chunk is not JSON").caused_by(cause)
    }

    /// Reads the first of these that is a usage object.
    fn count<'a>(
        &mut self,
        raw: impl IntoIterator<Item = Option<&'a RawValue>>,
    ) -> Result<(), Error> {
        for raw in raw.into_iter().flatten() {
            if let Some(usage) = chunk::usage(raw).map_err(|cause| self.no_json(cause))? {
                self.usage = usage;
                break;
            }
        }
        Ok(())
    }

    fn describe(&mut self, chunk: &Chunk<'_>) -> Result<(), Error> {
        if let Some(id) = chunk.id.text() {
            self.response_id.get_or_insert_with(|| id.into());
        }
        let asked = &self.requested;
        self.facts.note("model", &chunk.model, asked);
        if chunk.model.text().is_some()
            && let Some(Fact::Text(model)) = self.facts.get("model")
        {
            self.model_id = Some(Arc::clone(model));
        }
        let fingerprint = &chunk.system_fingerprint;
        self.facts.note("system_fingerprint", fingerprint, asked);
        self.facts.note("service_tier", &chunk.service_tier, asked);
        self.facts.note("citations", &chunk.citations, asked);
        let groq = chunk.x_groq.0.as_ref().and_then(|groq| groq.usage);
        self.count([chunk.usage, groq])
    }

    fn choice(&mut self, choice: &Choice<'_>) -> Result<(), Error> {
        // Moonshot counts here.
        if self.usage.raw.is_none() {
            self.count([choice.usage])?;
        }
        if let Some(error) = choice.error.to_value() {
            return Err(failure::in_stream(&self.provider, &error));
        }
        // A provider that does not stream sends the whole message.
        let Object(delta) = &choice.delta;
        if let Some(delta) = delta.as_ref().or(choice.message.0.as_ref()) {
            self.delta(delta);
        }
        if let Some(reason) = choice.finish_reason.text() {
            let word = WORDS.iter().find(|word| **word == reason);
            let fact = word.map_or_else(|| Fact::Text(reason.into()), |word| Fact::Word(word));
            self.finish_reason = Some(fact);
        }
        Ok(())
    }

    fn delta(&mut self, delta: &Delta<'_>) {
        let reasoning = delta.reasoning_content.text();
        let reasoning = reasoning.or_else(|| delta.reasoning.text());
        let mut shown = String::new();
        if let Some(details) = &mut self.details {
            let fragments = delta.reasoning_details.elements();
            shown.extend(fragments.iter().filter_map(|it| details.push(it)));
        }
        if let Some(text) = reasoning.or(Some(&*shown).filter(|text| !text.is_empty())) {
            self.text(Kind::Reasoning, text);
        }
        self.images
            .extend(delta.images.elements().iter().filter_map(image));
        if let Some(annotations) = delta.annotations.array() {
            self.facts.append("annotations", annotations);
        }
        if let Some(text) = delta.content.text() {
            self.text(Kind::Text, text);
        }
        self.parts(delta.content.elements());
        if let Some(text) = delta.refusal.text() {
            self.refused = true;
            self.text(Kind::Text, text);
        }
        for call in &delta.tool_calls.0 {
            self.close();
            self.calls.push(call, &mut self.answer);
        }
    }

    /// Content as a list of parts, as Mistral sends it.
    fn parts(&mut self, parts: &[Value]) {
        for part in parts {
            if let Some(text) = text_at(part, "text") {
                self.text(Kind::Text, text);
            }
            let thoughts = part.get("thinking").and_then(Value::as_array);
            for thought in thoughts.into_iter().flatten() {
                if let Some(text) = text_at(thought, "text") {
                    self.text(Kind::Reasoning, text);
                }
            }
        }
    }

    fn text(&mut self, kind: Kind, text: &str) {
        match self.open {
            Some((open, index)) if open == kind => self.answer.append(index, text),
            Some(_) | None => {
                self.close();
                let index = self.answer.open(kind.block(text.to_owned()));
                self.open = Some((kind, index));
            }
        }
    }

    fn close(&mut self) {
        if let Some((_, index)) = self.open.take() {
            self.answer.close(index);
        }
    }
}

impl codec::Decoder for Decoder {
    fn push(&mut self, frame: &str) -> Result<Vec<StreamEvent>, Error> {
        if frame == "[DONE]" {
            self.stage = Stage::Done;
            return Ok(Vec::new());
        }
        self.chunk(frame)
    }

    fn whole(&mut self, body: &str) -> Result<Vec<StreamEvent>, Error> {
        self.chunk(body)
    }

    fn progress(&self) -> CodecProgress {
        match (self.stage, &self.finish_reason) {
            (Stage::Done, _) => CodecProgress::Closed,
            (Stage::Nothing | Stage::Started, Some(_)) => CodecProgress::Answered,
            (Stage::Nothing | Stage::Started, None) => CodecProgress::Open,
        }
    }

    fn finish(self: Box<Self>) -> Result<(Vec<StreamEvent>, Response), Error> {
        self.end()
    }
}

/// The model's picture, from a `data:` URL.
fn image(part: &Value) -> Option<Media> {
    let url = text_at(part.get("image_url")?, "url")?;
    let data = url
        .strip_prefix("data:")
        .and_then(|rest| rest.split_once(";base64,"));
    match data {
        Some((mime_type, data)) => made(data, mime_type),
        None => Some(Media::new(
            MediaSource::Url { url: url.into() },
            "image/png",
        )),
    }
}

/// The text under this key, if it is not empty.
pub(super) fn text_at<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key)?.as_str().filter(|text| !text.is_empty())
}

fn stop_reason(finish_reason: &str) -> StopReason {
    match finish_reason {
        "stop" => StopReason::EndTurn,
        "length" => StopReason::MaxTokens,
        "tool_calls" | "function_call" => StopReason::ToolUse,
        "content_filter" => StopReason::ContentFilter,
        "error" => StopReason::Error,
        other => StopReason::Other(other.to_owned()),
    }
}
