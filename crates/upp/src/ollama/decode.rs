//! Answers of Ollama.

use super::PROVIDER;
use crate::codec::{
    self, AnswerBuilder, CodecProgress, ended_early, is_truncated, native_metadata,
};
use crate::content::AssistantContent;
use crate::error::Error;
use crate::event::StreamEvent;
use crate::failure;
use crate::message::{AssistantMessage, MessageId, MessageOptions};
use crate::model::{Response, StopReason};
use crate::usage::CycleUsage;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Reads the lines of one answer.
#[derive(Debug)]
pub(super) struct Decoder {
    requested: String,
    model_id: String,
    structured: bool,
    answer: AnswerBuilder,
    /// The block that grows, and whether it is reasoning.
    open: Option<(u32, bool)>,
    done_reason: Option<String>,
    usage: CycleUsage,
    fields: Map<String, Value>,
}

/// The fields of a line that are read as text; the rest is read as values.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, default)]
    message: Option<Said<'a>>,
}

#[derive(Deserialize)]
struct Said<'a> {
    #[serde(borrow, default)]
    tool_calls: Vec<Call<'a>>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    after: Option<Value>,
    #[serde(borrow)]
    function: Function<'a>,
}

#[derive(Deserialize)]
struct Function<'a> {
    name: String,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

/// The fields of the last line that stay with the message.
const KEPT: [&str; 3] = ["model", "created_at", "done_reason"];

impl Decoder {
    pub(super) fn new(model_id: &str, structured: bool) -> Self {
        Self {
            requested: model_id.to_owned(),
            model_id: model_id.to_owned(),
            structured,
            answer: AnswerBuilder::default(),
            open: None,
            done_reason: None,
            usage: CycleUsage::default(),
            fields: Map::new(),
        }
    }

    fn line(&mut self, text: &str) -> Result<Vec<StreamEvent>, Error> {
        let malformed = |cause| invalid("a line is not the format").caused_by(cause);
        let value: Value = serde_json::from_str(text).map_err(malformed)?;
        if let Some(error) = value.get("error").filter(|error| !error.is_null()) {
            return Err(failure::in_stream(PROVIDER, error));
        }
        if !value.is_object() {
            return Err(invalid("a line is no JSON object"));
        }
        let line: Line<'_> = serde_json::from_str(text).map_err(malformed)?;
        self.answer.start();
        if let Some(model) = value.get("model").and_then(Value::as_str) {
            model.clone_into(&mut self.model_id);
        }
        let said = |key: &str| value.get("message")?.get(key)?.as_str();
        if let Some(text) = said("thinking") {
            self.append(text, true);
        }
        if let Some(text) = said("content") {
            self.append(text, false);
        }
        for call in line.message.into_iter().flat_map(|said| said.tool_calls) {
            self.close();
            let id = call
                .id
                .filter(|id| !id.is_empty())
                .unwrap_or_else(|| format!("call_{}", MessageId::random().as_str()));
            let index = self.answer.call(id.as_str(), &call.function.name);
            self.answer.order(index, call.after.as_ref());
            let arguments = call.function.arguments.map_or("{}", RawValue::get);
            self.answer.arguments(index, arguments);
        }
        if value.get("done").and_then(Value::as_bool) == Some(true) {
            self.finished(&value);
        }
        Ok(self.answer.take_events())
    }

    fn append(&mut self, text: &str, reasoning: bool) {
        if text.is_empty() {
            return;
        }
        let index = match self.open {
            Some((index, of)) if of == reasoning => index,
            Some(_) | None => {
                self.close();
                let block = if reasoning {
                    AssistantContent::Reasoning {
                        text: String::new(),
                        signature: None,
                    }
                } else {
                    AssistantContent::Text {
                        text: String::new(),
                    }
                };
                let index = self.answer.open(block);
                self.open = Some((index, reasoning));
                index
            }
        };
        self.answer.append(index, text);
    }

    fn close(&mut self) {
        if let Some((index, _)) = self.open.take() {
            self.answer.close(index);
        }
    }

    /// Reads the last line: the stop reason and the usage.
    fn finished(&mut self, line: &Value) {
        let reason = line.get("done_reason").and_then(Value::as_str);
        self.done_reason = Some(reason.unwrap_or("stop").to_owned());
        let count = |key: &str| line.get(key).and_then(Value::as_u64).unwrap_or_default();
        let counts = line.as_object().into_iter().flatten();
        let raw: Map<String, Value> = counts
            .filter(|(key, _)| key.ends_with("_count") || key.ends_with("_duration"))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        self.usage = CycleUsage {
            input_tokens: count("prompt_eval_count"),
            output_tokens: count("eval_count"),
            raw: Some(Value::Object(raw).into()),
            ..CycleUsage::default()
        };
        for key in KEPT {
            if let Some(value) = line.get(key) {
                self.fields.insert(key.to_owned(), value.clone());
            }
        }
    }
}

impl codec::Decoder for Decoder {
    fn push(&mut self, frame: &str) -> Result<Vec<StreamEvent>, Error> {
        self.line(frame)
    }

    fn whole(&mut self, body: &str) -> Result<Vec<StreamEvent>, Error> {
        self.line(body)
    }

    fn progress(&self) -> CodecProgress {
        match self.done_reason {
            Some(_) => CodecProgress::Closed,
            None => CodecProgress::Open,
        }
    }

    fn finish(mut self: Box<Self>) -> Result<(Vec<StreamEvent>, Response), Error> {
        let Some(reason) = self.done_reason.take() else {
            return Err(ended_early(PROVIDER));
        };
        let ends_with_call = self.open.is_none() && self.answer.has_calls();
        self.close();
        let stop_reason = match reason.as_str() {
            "stop" if self.answer.has_calls() => StopReason::ToolUse,
            "stop" => StopReason::EndTurn,
            "length" => StopReason::MaxTokens,
            other => StopReason::Other(other.to_owned()),
        };
        if ends_with_call && is_truncated(&stop_reason) {
            self.answer.cut_if_empty();
        }
        let mut events = self.answer.take_events();
        events.push(StreamEvent::MessageStop);
        let (content, calls) = std::mem::take(&mut self.answer).finish();
        let fields = std::mem::take(&mut self.fields);
        let options = MessageOptions {
            metadata: Some(native_metadata(PROVIDER, &self.requested, fields)),
            ..MessageOptions::default()
        };
        let message = AssistantMessage::new(content, calls, options);
        let data = codec::data(PROVIDER, self.structured, &message, &stop_reason)?;
        let response = Response {
            message,
            usage: self.usage,
            stop_reason,
            data,
            model_id: self.model_id.into(),
            provider: PROVIDER.into(),
            response_id: None,
            request: None,
        };
        Ok((events, response))
    }
}

fn invalid(text: &str) -> Error {
    codec::invalid(PROVIDER, text)
}
