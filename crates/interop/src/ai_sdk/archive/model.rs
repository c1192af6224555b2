//! UI messages and streams as model messages.
//!
//! A user's message is a request with a prompt. An assistant's message has one response per step. Each
//! response is followed by a request with the tools' results. Data and sources are system messages
//! (TP-7, TP-11). They come before the step's response if they precede the step's first part,
//! otherwise after it.

mod call;
mod step;
mod user;
mod vendor;

use super::{instant, member, parts_of, stream, text_of};
use crate::archive::{ArchivedRun, Format, SourceText};
use crate::runs::{ModelMessage, ModelRun, RunInterruption};
use crate::{Converted, Losses};
pub(super) use step::CUSTOM;
use step::Step;
use thread::{Json, Object};

/// The time of records without one, if the run has none either.
const UNKNOWN: &str = "1970-01-01T00:00:00Z";

/// One run of UI messages or of chunks.
pub(crate) fn model_runs(run: &ArchivedRun, pointer: &str) -> Converted<Vec<ModelRun>> {
    let mut reader = Reader {
        at: run.head.get_str("at").unwrap_or(UNKNOWN).to_owned(),
        systems: Vec::new(),
        messages: Vec::new(),
        losses: Losses::default(),
        is_cut: false,
    };
    let interruption = if run.format == Format::AiSdkStream {
        reader.stream(run, pointer)
    } else {
        for (place, record) in run.records.iter().enumerate() {
            reader.message(record, &format!("{pointer}/records/{place}"));
        }
        reader.interruption()
    };
    reader.flush_systems(pointer);
    reader.losses.with(vec![ModelRun {
        agent_id: run.agent_id.clone(),
        messages: reader.messages,
        interruption,
    }])
}

/// The counts of usage, as `ai` names them and as we do.
pub(super) const USAGE: [(&str, &str); 4] = [
    ("inputTokens", "input_tokens"),
    ("cachedInputTokens", "cache_read_tokens"),
    ("outputTokens", "output_tokens"),
    ("reasoningTokens", "output_reasoning_tokens"),
];

struct Reader {
    at: String,
    /// System prompts that no request has yet.
    systems: Vec<Json>,
    messages: Vec<ModelMessage>,
    losses: Losses,
    /// Whether a part was dropped that was not over.
    is_cut: bool,
}

impl Reader {
    fn lost(&mut self, pointer: impl Into<String>, what: impl Into<String>) {
        self.losses.push(pointer, what);
    }

    fn push(&mut self, message: impl Into<Json>, pointer: &str) {
        self.messages.push(ModelMessage {
            json: message.into(),
            pointer: pointer.to_owned(),
        });
    }

    fn message(&mut self, record: &SourceText, pointer: &str) {
        let message = record.json();
        let at = instant(message.get("metadata"))
            .unwrap_or(&self.at)
            .to_owned();
        match text_of(&message, "role") {
            "assistant" => {
                self.flush_systems(pointer);
                let before = self.messages.len();
                self.assistant(&message, parts_of(&message), &[], None, pointer);
                self.nothing_since(before, pointer);
            }
            "system" => {
                self.metadata(&message, pointer);
                for (place, part) in parts_of(&message).iter().enumerate() {
                    if text_of(part, "type") != "text" {
                        let what = "a part of a system message that is no text";
                        self.lost(format!("{pointer}/parts/{place}"), what);
                        continue;
                    }
                    let prompt = Object::new()
                        .with("content", text_of(part, "text"))
                        .with("timestamp", at.as_str())
                        .with("part_kind", "system-prompt");
                    self.systems.push(prompt.into());
                }
            }
            _ => self.user(&message, &at, pointer),
        }
    }

    fn user(&mut self, message: &Json, at: &str, pointer: &str) {
        let said = user::read_prompt(message, at, pointer, &mut self.losses);
        self.metadata(message, pointer);
        let mut parts = std::mem::take(&mut self.systems);
        parts.push(said.prompt);
        let request = Object::new()
            .with("parts", Json::Array(parts))
            .with("timestamp", at)
            .with("kind", "request")
            .with_some("metadata", named(message));
        self.push(request, pointer);
        for event in said.events {
            self.push(event, pointer);
        }
    }

    /// System prompts that no user's message followed.
    fn flush_systems(&mut self, pointer: &str) {
        let parts = std::mem::take(&mut self.systems);
        if !parts.is_empty() {
            let at = self.at.clone();
            let request = Object::new()
                .with("parts", Json::Array(parts))
                .with("timestamp", at)
                .with("kind", "request");
            self.push(request, pointer);
        }
    }

    fn stream(&mut self, run: &ArchivedRun, pointer: &str) -> Option<RunInterruption> {
        let told = stream::read_chunks(run, pointer, None, &mut self.losses);
        for chunk in &told.facts.transient {
            let what = format!("transient {:?}", text_of(chunk, "type"));
            self.lost(pointer, what);
        }
        let none = Json::Null;
        let message = told.message.as_ref().unwrap_or(&none);
        let before = run.head.get("continues");
        let before = before.filter(|before| before.get("id") == message.get("id"));
        let n_before = before.map_or(0, |before| parts_of(before).len());
        let (open, parts) = parts_of(message).split_at(n_before.min(parts_of(message).len()));
        self.answers(open, message, pointer);
        let errors: Vec<(usize, &str)> = told
            .facts
            .errors
            .iter()
            .map(|error| (error.index.saturating_sub(n_before), error.text.as_str()))
            .collect();
        let reason = told.facts.finish_reason.as_deref();
        self.assistant(message, parts, &errors, reason, pointer);
        if told.message.is_some() {
            self.nothing_since(0, pointer);
        }
        told.interruption().or_else(|| self.interruption())
    }

    /// That an answer ended in the middle of a part.
    fn interruption(&self) -> Option<RunInterruption> {
        self.is_cut.then(|| RunInterruption {
            reason: "interrupted".to_owned(),
            at: None,
        })
    }

    /// Reports an answer of which nothing was carried over.
    fn nothing_since(&mut self, before: usize, pointer: &str) {
        if self.messages.len() == before {
            self.lost(pointer, "an answer without a part that a model message has");
        }
    }

    /// Adds the answers in this run to calls of an earlier run.
    fn answers(&mut self, calls: &[Json], message: &Json, pointer: &str) {
        let at = instant(message.get("metadata"))
            .unwrap_or(&self.at)
            .to_owned();
        let mut returns = Vec::new();
        for part in calls {
            let Some(mut answer) = call::answer(part, &at) else {
                continue;
            };
            if answer.get_str("part_kind") == Some("builtin-tool-return") {
                self.lost(pointer, "that the provider executed a tool");
                answer.insert("part_kind", "tool-return");
            }
            returns.push(Json::from(answer));
        }
        if !returns.is_empty() {
            self.push(step::request(returns, &at), pointer);
        }
    }

    fn assistant(
        &mut self,
        message: &Json,
        parts: &[Json],
        errors: &[(usize, &str)],
        finish_reason: Option<&str>,
        pointer: &str,
    ) {
        let at = instant(message.get("metadata"))
            .unwrap_or(&self.at)
            .to_owned();
        let first = self.messages.len();
        let mut errors = errors.iter().peekable();
        let mut step = Step::new(&at);
        for (place, part) in parts.iter().enumerate() {
            while let Some((_, text)) = errors.next_if(|(before, _)| *before <= place) {
                step.error(text);
            }
            if text_of(part, "type") == "step-start" {
                let done = std::mem::replace(&mut step, Step::new(&at));
                self.step(done, pointer);
                continue;
            }
            let at = format!("{pointer}/parts/{place}");
            self.is_cut |= step.part(part, &at, &mut self.losses);
        }
        for (_, text) in errors {
            step.error(text);
        }
        self.step(step, pointer);
        self.finish_message(message, first, finish_reason, pointer);
        self.metadata(message, pointer);
    }

    fn step(&mut self, step: Step, pointer: &str) {
        for message in step.into_messages() {
            self.push(message, pointer);
        }
    }

    /// Adds the metadata of a message to its responses.
    fn finish_message(
        &mut self,
        message: &Json,
        first: usize,
        reason: Option<&str>,
        pointer: &str,
    ) {
        let metadata = message.get("metadata");
        let member = |key: &str| metadata.and_then(|metadata| metadata.get(key));
        let model = member("model").or_else(|| member("modelId"));
        let model = model.and_then(Json::as_str);
        let usage = member("usage").and_then(usage);
        let told = member("finishReason").and_then(Json::as_str);
        let reason = reason.or(told);
        let known = reason.and_then(finish_reason);
        if let Some(reason) = reason.filter(|_| known.is_none()) {
            self.lost(pointer, format!("the finish reason {reason:?}"));
        }
        let mut responses: Vec<&mut Object> = self
            .messages
            .iter_mut()
            .skip(first)
            .filter_map(|message| message.json.as_object_mut())
            .filter(|message| message.get_str("kind") == Some("response"))
            .collect();
        if let (Some(model), responses) = (model, &mut responses) {
            for response in responses.iter_mut() {
                response.insert("model_name", model);
            }
        }
        if let (Some(named), Some(first)) = (named(message), responses.first_mut()) {
            first.insert("metadata", named);
        }
        if let Some(last) = responses.last_mut() {
            if let Some(usage) = usage {
                last.insert("usage", usage);
            }
            if let Some(reason) = known {
                last.insert("finish_reason", reason);
            }
        }
    }

    /// Names what of a message's metadata has no place.
    fn metadata(&mut self, message: &Json, pointer: &str) {
        let at = format!("{pointer}/metadata");
        match message.get("metadata") {
            None | Some(Json::Null) => {}
            Some(Json::Object(metadata)) => {
                for (key, value) in metadata {
                    let is_known = is_carried(key, value);
                    if !is_known {
                        self.lost(member(&at, key), "a member of a message's metadata");
                    }
                }
            }
            Some(_) => self.lost(at, "a message's metadata"),
        }
    }
}

/// Whether the model messages hold all the data of a metadata member.
fn is_carried(key: &str, value: &Json) -> bool {
    let members = || value.as_object().into_iter().flatten();
    match key {
        "createdAt" | "timestamp" => {
            let alone = Object::new().with(key, value.clone()).into();
            instant(Some(&alone)).is_some()
        }
        "model" | "modelId" | "finishReason" => value.as_str().is_some(),
        "usage" => members().all(|(key, count)| {
            let named = USAGE.iter().any(|(theirs, _)| *theirs == key);
            (named || key == "totalTokens") && count.as_u64().is_some()
        }),
        "pydantic_ai" => members().all(|(key, _)| key == "timestamp"),
        _ => false,
    }
}

/// Where Pydantic AI keeps the id of a UI message.
fn named(message: &Json) -> Option<Object> {
    let id = text_of(message, "id");
    let named = || {
        let id = Object::new().with("ui_message_id", id);
        Object::new().with("__pydantic_ai__", id)
    };
    (!id.is_empty()).then(named)
}

fn finish_reason(reason: &str) -> Option<&'static str> {
    match reason {
        "stop" => Some("stop"),
        "length" => Some("length"),
        "content-filter" => Some("content_filter"),
        "tool-calls" => Some("tool_call"),
        "error" => Some("error"),
        _ => None,
    }
}

/// Usage as `ai` counts it.
fn usage(usage: &Json) -> Option<Object> {
    let mut counted = Object::new();
    for (theirs, ours) in USAGE {
        if let Some(count) = usage.get(theirs).and_then(Json::as_u64) {
            counted.insert(ours, count);
        }
    }
    (!counted.is_empty()).then_some(counted)
}
