//! Answers in the Chat Completions format: chunks in, events and a response out.

use super::calls::Calls;
use super::details::Details;
use super::{Dialect, ReasoningForm};
use crate::codec::{self, Document, Json, Progress, made};
use crate::content::{AssistantContent, Media, MediaSource};
use crate::error::Error;
use crate::event::{Aggregate, StreamEvent};
use crate::failure;
use crate::message::{AssistantMessage, MessageId, MessageOptions};
use crate::model::{Response, StopReason};
use crate::usage::CycleUsage;
use serde_json::{Map, Value};

/// Providers whose ids are shorter than this repeat them; such a message gets an id of ours.
const UNIQUE_ID: usize = 16;

/// Folds the chunks of one stream into events and, at the end, the response.
///
/// Feed each event's data to [`Decoder::push`] and call [`Decoder::finish`] at the end of the
/// stream. The result does not depend on how the bytes were cut.
#[derive(Debug)]
pub(super) struct Decoder {
    provider: String,
    /// The model that was asked for.
    requested: String,
    /// The model that answers.
    model_id: String,
    structured: bool,
    /// Where reasoning comes in details.
    details: Option<Details>,
    images: Vec<Media>,
    aggregate: Aggregate,
    calls: Calls,
    stage: Stage,
    open: Option<(u32, Kind)>,
    blocks: u32,
    refused: bool,
    finish_reason: Option<String>,
    response_id: Option<String>,
    metadata: Map<String, Value>,
    usage: CycleUsage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Nothing,
    Started,
    /// The provider says that no more comes.
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Reasoning,
}

impl Decoder {
    /// A decoder for an answer of this provider and model; `structured` when a structure was asked
    /// for, so that the text is parsed into data.
    pub(super) fn new(dialect: &Dialect, model_id: impl Into<String>, structured: bool) -> Self {
        let model_id = model_id.into();
        Self {
            provider: dialect.provider.clone(),
            details: (dialect.reasoning == ReasoningForm::Details).then(Details::default),
            images: Vec::new(),
            requested: model_id.clone(),
            model_id,
            structured,
            aggregate: Aggregate::default(),
            calls: Calls::default(),
            stage: Stage::Nothing,
            open: None,
            blocks: 0,
            refused: false,
            finish_reason: None,
            response_id: None,
            metadata: Map::new(),
            usage: CycleUsage::default(),
        }
    }

    fn chunk(&mut self, data: &str) -> Result<Vec<StreamEvent>, Error> {
        let chunk = Document::parse(data)
            .map_err(|cause| self.invalid("a chunk is not JSON").caused_by(cause))?;
        let chunk = chunk.root();
        if let Some(error) = chunk.known("error") {
            return Err(failure::in_stream(&self.provider, &error.to_value()));
        }
        if !chunk.is_object() {
            return Err(self.invalid("a chunk is not a JSON object"));
        }
        self.describe(chunk);
        // As many as an answer with one text and one call has.
        let mut events = Vec::with_capacity(6);
        if self.stage == Stage::Nothing {
            self.stage = Stage::Started;
            events.push(StreamEvent::MessageStart);
        }
        let first = chunk
            .elements("choices")
            .find(|choice| choice.get("index").and_then(Json::as_u64).unwrap_or(0) == 0);
        if let Some(choice) = first {
            self.choice(choice, &mut events)?;
        }
        for event in &events {
            self.aggregate.push(event);
        }
        Ok(events)
    }

    fn end(mut self) -> Result<(Vec<StreamEvent>, Response), Error> {
        let Some(finish_reason) = self.finish_reason.take() else {
            return Err(match self.stage {
                Stage::Nothing => self.invalid("the stream held no chunk"),
                Stage::Started => codec::ended_early(&self.provider),
                Stage::Done => self.invalid("the answer ended without a finish reason"),
            });
        };
        let mut events = Vec::new();
        let ends_with_call = self.open.is_none();
        self.close(&mut events);
        self.calls.flush(&mut events);
        if ends_with_call && codec::is_cut(&stop_reason(&finish_reason)) {
            self.calls.cut(&mut events);
        }
        for event in &events {
            self.aggregate.push(event);
        }
        events.push(StreamEvent::MessageStop);
        let (mut content, calls) = std::mem::take(&mut self.aggregate).finish();
        content.extend(self.images.drain(..).map(AssistantContent::Image));
        if let Some(details) = self.details.take().and_then(Details::finish) {
            self.metadata.insert("reasoning_details".into(), details);
        }
        let stop_reason = match finish_reason.as_str() {
            _ if self.refused => StopReason::ContentFilter,
            _ if !calls.is_empty() && matches!(&*finish_reason, "stop" | "function_call") => {
                StopReason::ToolUse
            }
            other => stop_reason(other),
        };
        let id = self
            .response_id
            .as_deref()
            .filter(|id| id.len() >= UNIQUE_ID);
        self.metadata
            .insert("finish_reason".into(), Value::String(finish_reason));
        let fields = std::mem::take(&mut self.metadata);
        let metadata = codec::native_metadata(&self.provider, &self.requested, fields);
        let options = MessageOptions {
            id: id.map(MessageId::from),
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
            model_id: self.model_id,
            provider: self.provider,
            response_id: self.response_id,
            request: None,
        };
        Ok((events, response))
    }

    fn invalid(&self, message: &str) -> Error {
        codec::invalid(&self.provider, message)
    }

    fn describe(&mut self, chunk: Json<'_>) {
        if let Some(id) = chunk.text_at("id") {
            self.response_id.get_or_insert_with(|| id.to_owned());
        }
        if let Some(model) = chunk.text_at("model") {
            model.clone_into(&mut self.model_id);
        }
        for key in ["model", "system_fingerprint", "service_tier", "citations"] {
            if let Some(value) = chunk.known(key) {
                self.metadata.insert(key.to_owned(), value.to_value());
            }
        }
        let groq = chunk.get("x_groq").and_then(|groq| groq.get("usage"));
        let usage = chunk.get("usage").filter(|usage| usage.is_object());
        if let Some(usage) = usage.or(groq).filter(|usage| usage.is_object()) {
            self.usage = read_usage(usage);
        }
    }

    fn choice(&mut self, choice: Json<'_>, events: &mut Vec<StreamEvent>) -> Result<(), Error> {
        // Moonshot counts here.
        if let Some(usage) = choice.get("usage").filter(|usage| usage.is_object())
            && self.usage.raw.is_none()
        {
            self.usage = read_usage(usage);
        }
        if let Some(error) = choice.known("error") {
            return Err(failure::in_stream(&self.provider, &error.to_value()));
        }
        // A provider that does not stream sends the whole message.
        let delta = choice.get("delta").filter(|delta| delta.is_object());
        if let Some(delta) = delta.or_else(|| choice.get("message")) {
            self.delta(delta, events);
        }
        if let Some(reason) = choice.text_at("finish_reason") {
            self.finish_reason = Some(reason.to_owned());
        }
        Ok(())
    }

    fn delta(&mut self, delta: Json<'_>, events: &mut Vec<StreamEvent>) {
        let mut reasoning = delta
            .text_at("reasoning_content")
            .or_else(|| delta.text_at("reasoning"))
            .map(str::to_owned);
        if let Some(details) = &mut self.details {
            let fragments = delta.elements("reasoning_details");
            let fragments: Vec<Value> = fragments.map(Json::to_value).collect();
            let shown: String = fragments.iter().filter_map(|it| details.push(it)).collect();
            reasoning = reasoning.or(Some(shown).filter(|text| !text.is_empty()));
        }
        if let Some(text) = reasoning {
            self.text(Kind::Reasoning, &text, events);
        }
        self.images
            .extend(delta.elements("images").filter_map(image));
        if delta.get("annotations").is_some_and(Json::is_array) {
            self.collect("annotations", delta.elements("annotations"));
        }
        if let Some(text) = delta.text_at("content") {
            self.text(Kind::Text, text, events);
        }
        self.parts(delta.elements("content"), events);
        if let Some(text) = delta.text_at("refusal") {
            self.refused = true;
            self.text(Kind::Text, text, events);
        }
        for call in delta.elements("tool_calls") {
            self.close(events);
            self.calls.push(call, events);
        }
    }

    /// Appends to a list of the metadata.
    fn collect<'a>(&mut self, key: &str, more: impl Iterator<Item = Json<'a>>) {
        let list = self
            .metadata
            .entry(key)
            .or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(list) = list {
            list.extend(more.map(Json::to_value));
        }
    }

    /// Content as a list of parts, as Mistral sends it.
    fn parts<'a>(&mut self, parts: impl Iterator<Item = Json<'a>>, events: &mut Vec<StreamEvent>) {
        for part in parts {
            if let Some(text) = part.text_at("text") {
                self.text(Kind::Text, text, events);
            }
            for thought in part.elements("thinking") {
                if let Some(text) = thought.text_at("text") {
                    self.text(Kind::Reasoning, text, events);
                }
            }
        }
    }

    fn text(&mut self, kind: Kind, text: &str, events: &mut Vec<StreamEvent>) {
        let index = match self.open {
            Some((index, open)) if open == kind => index,
            Some(_) | None => {
                self.close(events);
                let index = self.blocks;
                self.blocks += 1;
                self.open = Some((index, kind));
                events.push(StreamEvent::ContentBlockStart { index });
                index
            }
        };
        let text = text.to_owned();
        events.push(match kind {
            Kind::Text => StreamEvent::TextDelta { index, text },
            Kind::Reasoning => StreamEvent::ReasoningDelta { index, text },
        });
    }

    fn close(&mut self, events: &mut Vec<StreamEvent>) {
        if let Some((index, _)) = self.open.take() {
            events.push(StreamEvent::ContentBlockStop { index });
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

    fn progress(&self) -> Progress {
        match (self.stage, &self.finish_reason) {
            (Stage::Done, _) => Progress::Closed,
            (Stage::Nothing | Stage::Started, Some(_)) => Progress::Answered,
            (Stage::Nothing | Stage::Started, None) => Progress::Open,
        }
    }

    fn finish(self: Box<Self>) -> Result<(Vec<StreamEvent>, Response), Error> {
        self.end()
    }
}

/// A picture the model made, which comes as a `data:` URL.
fn image(part: Json<'_>) -> Option<Media> {
    let url = part.get("image_url")?.text_at("url")?;
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

/// A text that is there and not empty.
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

fn read_usage(usage: Json<'_>) -> CycleUsage {
    let count = |key: &str| usage.get(key).and_then(Json::as_u64);
    let detail = |of: &str, key: &str| usage.get(of)?.get(key)?.as_u64();
    let input = count("prompt_tokens").unwrap_or(0);
    let output = count("completion_tokens").unwrap_or(0);
    let reasoning = detail("completion_tokens_details", "reasoning_tokens").unwrap_or(0);
    // xAI counts reasoning apart from the rest of the output; the total tells.
    let whole = output.saturating_add(reasoning);
    let is_apart = count("total_tokens") == Some(input.saturating_add(whole));
    CycleUsage {
        input_tokens: input,
        output_tokens: if is_apart { whole } else { output },
        cache_read_tokens: detail("prompt_tokens_details", "cached_tokens")
            .or_else(|| count("prompt_cache_hit_tokens"))
            .or_else(|| count("cached_tokens"))
            .unwrap_or(0),
        cache_write_tokens: detail("prompt_tokens_details", "cache_write_tokens").unwrap_or(0),
        reasoning_tokens: reasoning,
        raw: Some(usage.to_value()),
    }
}
