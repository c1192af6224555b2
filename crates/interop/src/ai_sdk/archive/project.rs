//! Converts runs of other formats to UI messages.
//!
//! A run becomes the user's messages before the first response, and one assistant message. That
//! message has a `step-start` before each response. A tool's result is part of its call, wherever in
//! the archive it was.

mod answers;
mod call;
mod part;
mod prompt;

use super::model::USAGE;
use super::{instant, named};
use crate::Losses;
use crate::archive::{Archive, Format};
use crate::runs::{ModelMessage, ModelRun, model_runs_of};
use answers::{Answers, PartAddress};
use std::collections::BTreeMap;
use thread::{Json, Object};

/// A message of a run, and the first of the records that it shows.
pub(super) struct Projected {
    pub(super) message: Json,
    pub(super) record: usize,
}

/// The messages of the runs of other formats, by run; each of them has one at least.
pub(super) fn projected(archive: &Archive, losses: &mut Losses) -> BTreeMap<usize, Vec<Projected>> {
    let mut read: Vec<(usize, ModelRun)> = Vec::new();
    let mut messages: BTreeMap<usize, Vec<Projected>> = BTreeMap::new();
    for (place, run) in archive.runs.iter().enumerate() {
        if matches!(run.format, Format::PydanticAi | Format::Thread) {
            let of_run = model_runs_of(run, &format!("/runs/{place}"));
            losses.extend(of_run.losses);
            read.extend(of_run.value.into_iter().map(|run| (place, run)));
            messages.insert(place, Vec::new());
        }
    }
    let answers = Answers::of(&read, losses);
    let thread_id = archive.thread_id().unwrap_or_default();
    for (at, (place, run)) in read.iter().enumerate() {
        let mut writer = Writer {
            answers: &answers,
            losses,
            said: Vec::new(),
            parts: Vec::new(),
        };
        let written = writer.run(run, at, &format!("{thread_id}/{place}/{at}"));
        if let Some(messages) = messages.get_mut(place) {
            messages.extend(written);
        }
    }
    for (place, messages) in &mut messages {
        if messages.is_empty() {
            let name = format!("{thread_id}/{place}");
            messages.push(Projected {
                message: nothing(named(&name), None),
                record: 0,
            });
        }
    }
    messages
}

/// A message for a run of which nothing can be shown: clients want a part.
fn nothing(id: String, metadata: Option<Object>) -> Json {
    let start = Object::new().with("type", "step-start");
    assistant(id, metadata, vec![start.into()])
}

fn assistant(id: String, metadata: Option<Object>, parts: Vec<Json>) -> Json {
    let message = Object::new()
        .with("id", id)
        .with("role", "assistant")
        .with_some("metadata", metadata.filter(|metadata| !metadata.is_empty()))
        .with("parts", Json::Array(parts));
    message.into()
}

struct Writer<'a, 'b> {
    answers: &'a Answers<'a>,
    losses: &'b mut Losses,
    /// The parts of the user's messages before the first response.
    said: Vec<Json>,
    /// The parts of the answer.
    parts: Vec<Json>,
}

impl Writer<'_, '_> {
    fn lost(&mut self, pointer: impl Into<String>, what: impl Into<String>) {
        self.losses.push(pointer, what);
    }

    /// Names the members of an object that are not carried.
    fn lose_rest(&mut self, object: &Object, carried: &[&str], pointer: &str, of: &str) {
        for (key, value) in object {
            if !carried.contains(&key) && !is_nothing(value) {
                let pointer = super::member(pointer, key);
                self.lost(pointer, format!("`{key}` of {of}"));
            }
        }
    }

    fn run(&mut self, run: &ModelRun, at: usize, name: &str) -> Vec<Projected> {
        let is_response = |message: &ModelMessage| text(&message.json, "kind") == "response";
        let first = run.messages.iter().position(is_response);
        let first = first.unwrap_or(run.messages.len());
        let leading = run.messages.get(..first).unwrap_or_default();
        let prompts = leading
            .iter()
            .rposition(|message| prompt::prompts(&message.json));
        let asked = prompts.map_or(0, |last| last + 1);
        let mut metadata = Object::new();
        for (message, json) in run.messages.iter().enumerate() {
            let place = PartAddress {
                run: at,
                message,
                part: 0,
            };
            match text(&json.json, "kind") {
                "response" => self.response(json, place, &mut metadata),
                "request" => self.request(json, message < asked),
                _ => self.event(json),
            }
        }
        if let Some(why) = &run.interruption {
            let pointer = run.messages.last().map(|last| last.pointer.clone());
            let what = format!("that the run was interrupted: {}", why.reason);
            self.lost(pointer.unwrap_or_default(), what);
        }
        let mut written = Vec::new();
        let (mut said, parts) = (
            std::mem::take(&mut self.said),
            std::mem::take(&mut self.parts),
        );
        if said.is_empty() {
            said.push(Object::new().with("type", "text").with("text", "").into());
        }
        let record = |message: Option<&ModelMessage>| message.map_or(0, record_of);
        let asking = run.messages.get(..asked).unwrap_or_default();
        let answering = run.messages.get(asked..).unwrap_or_default();
        if let Some(last) = asking.last() {
            let metadata = created(&last.json);
            let message = Object::new()
                .with(
                    "id",
                    id_of(asking).unwrap_or_else(|| named(&format!("{name}/user"))),
                )
                .with("role", "user")
                .with_some("metadata", metadata)
                .with("parts", Json::Array(said));
            written.push(Projected {
                message: message.into(),
                record: record(asking.first()),
            });
        }
        let id = || id_of(answering).unwrap_or_else(|| named(&format!("{name}/assistant")));
        if !parts.is_empty() {
            written.push(Projected {
                message: assistant(id(), Some(metadata), parts),
                record: record(answering.first()),
            });
        } else if written.is_empty() {
            written.push(Projected {
                message: nothing(id(), Some(metadata)),
                record: record(run.messages.first()),
            });
        }
        written
    }

    fn response(&mut self, message: &ModelMessage, at: PartAddress, metadata: &mut Object) {
        const CARRIED: [&str; 6] = [
            "parts",
            "kind",
            "timestamp",
            "model_name",
            "usage",
            "finish_reason",
        ];
        self.parts
            .push(Object::new().with("type", "step-start").into());
        let Some(object) = message.json.as_object() else {
            return;
        };
        self.lose_rest(object, &CARRIED, &message.pointer, "a response");
        note(metadata, object);
        let parts = object.get("parts").and_then(Json::as_array);
        for (place, part) in parts.unwrap_or_default().iter().enumerate() {
            let pointer = format!("{}/parts/{place}", message.pointer);
            self.part(part, PartAddress { part: place, ..at }, &pointer);
        }
    }

    fn event(&mut self, message: &ModelMessage) {
        const CARRIED: [&str; 5] = [
            "message_type",
            "event_type",
            "event_data",
            "timestamp",
            "id",
        ];
        let Some(object) = message.json.as_object() else {
            return;
        };
        let name = object.get_str("event_type").unwrap_or_default();
        self.lose_rest(object, &CARRIED, &message.pointer, "a system message");
        let data = object.get("event_data").cloned().unwrap_or_default();
        let source = match name {
            "source.url" => Some("source-url"),
            "source.document" => Some("source-document"),
            _ => None,
        };
        if let (Some(kind), Json::Object(members)) = (source, &data) {
            let mut part = Object::new().with("type", kind);
            for (key, value) in members {
                part.insert(key, value.clone());
            }
            self.parts.push(part.into());
            return;
        }
        let kind = if name.starts_with("data-") {
            name.to_owned()
        } else {
            self.lost(
                message.pointer.clone(),
                format!("that {name:?} is no data-* event"),
            );
            format!("data-{name}")
        };
        let part = Object::new()
            .with("type", kind)
            .with_some(
                "id",
                object.get("id").filter(|id| id.as_str().is_some()).cloned(),
            )
            .with("data", data);
        self.parts.push(part.into());
    }
}

/// Whether a value is empty.
fn is_nothing(value: &Json) -> bool {
    match value {
        Json::Null => true,
        Json::Array(items) => items.is_empty(),
        Json::Object(members) => members.is_empty(),
        Json::Bool(_) | Json::Number(_) | Json::String(_) => false,
    }
}

fn text<'a>(json: &'a Json, key: &str) -> &'a str {
    super::text_of(json, key)
}

/// The metadata with the instant of a message, if it has one.
fn created(message: &Json) -> Option<Object> {
    let at = message.get("timestamp");
    let told = Object::new().with_some("createdAt", at.cloned());
    instant(Some(&told.clone().into()))
        .is_some()
        .then_some(told)
}

/// Adds the model, the usage and the finish reason of a response to the metadata. Usage is summed.
fn note(metadata: &mut Object, response: &Object) {
    if !metadata.contains_key("createdAt")
        && let Some(created) = created(&response.clone().into())
    {
        for (key, value) in &created {
            metadata.insert(key, value.clone());
        }
    }
    if let Some(model) = response.get_str("model_name") {
        metadata.insert("model", model);
    }
    if let Some(usage) = response.get("usage").and_then(Json::as_object) {
        let known = metadata.get("usage").and_then(Json::as_object);
        let mut sum = known.cloned().unwrap_or_default();
        for (ours, theirs) in USAGE {
            let count = usage.get(theirs).and_then(Json::as_u64).unwrap_or_default();
            let before = sum.get(ours).and_then(Json::as_u64).unwrap_or_default();
            if count > 0 || before > 0 {
                sum.insert(ours, before.saturating_add(count));
            }
        }
        if !sum.is_empty() {
            metadata.insert("usage", sum);
        }
    }
    let reason = match response.get_str("finish_reason") {
        Some("content_filter") => Some("content-filter"),
        Some("tool_call") => Some("tool-calls"),
        other => other,
    };
    match reason {
        Some(reason) => {
            metadata.insert("finishReason", reason);
        }
        None => {
            metadata.remove("finishReason");
        }
    }
}

/// The id of the UI message that Pydantic AI loaded these from.
fn id_of(messages: &[ModelMessage]) -> Option<String> {
    let id = messages.iter().find_map(|message| {
        message
            .json
            .pointer("/metadata/__pydantic_ai__/ui_message_id")
    });
    id.and_then(Json::as_str).map(str::to_owned)
}

/// The number of the record that contains a message: `N` of `/runs/R/records/N…`.
fn record_of(message: &ModelMessage) -> usize {
    let place = message.pointer.split('/').nth(4);
    place
        .and_then(|place| place.parse().ok())
        .unwrap_or_default()
}
