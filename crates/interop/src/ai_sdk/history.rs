//! Whether what a client says was said is what was said.
//!
//! The server owns the history, so nothing of it is taken from a client. But a client that shows
//! something else would go on from what nobody has said, and a forged result would pass unnoticed; so
//! what is sent is compared. What a client can rightly have otherwise passes:
//!
//! - less of an answer: a stream that was left or stopped early;
//! - a text twice, begun anew: a stream that was read again from its start;
//! - what the client itself has put in: metadata, the answer to a question, the result of its own tool;
//! - numbers as JavaScript has them, and what is no more than a hint: states of texts, step starts,
//!   metadata of providers, preliminary outputs.

mod same;
mod tool;

use super::messages::{MessageView, shown_messages};
use super::reduce::Reducer;
use super::request::{SentMessage, SentRole};
use super::stream::{ChunkJson, StreamView};
use super::{Major, subagent};
use crate::run::RunSelector;
use same::is_same;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use thread::Json;
use timeline::{ExecutionId, OpenCall, OpenKind, Reaction, Record, Transcript};

/// How often a client may have read a stream from its start again.
const MAX_REPLAYS: usize = 16;
/// The oldest major version; its clients keep what a dead attempt has said.
const OLDEST: u8 = 5;

/// Where and in what a message that was sent is not the stored one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Where in the request.
    pub pointer: String,
    /// What is wrong there, in words.
    pub what: String,
}

/// A message as it is stored, to be compared with what clients send.
#[derive(Clone, Debug)]
pub struct StoredMessage {
    message: Value,
    /// The calls that each of its steps has left open.
    left: Vec<Vec<OpenCall>>,
    execution: Option<ExecutionId>,
    /// Of the executions that write it after the first: whether each answers calls.
    goes_on: Vec<bool>,
}

/// A message with all that its streams have shown, be it taken back since.
pub struct Streamed {
    stored: StoredMessage,
    view: StreamView,
    reducer: Reducer,
}

/// The messages of a piece of a thread, the one that is being written among them.
pub fn stored_messages(transcript: &Transcript) -> Vec<StoredMessage> {
    let shown = shown_messages(transcript, true).value;
    shown.into_iter().map(StoredMessage::of).collect()
}

impl StoredMessage {
    fn of(shown: MessageView<'_>) -> Self {
        let steps = shown.chain.iter().flat_map(|reaction| &reaction.steps);
        let left = steps.map(|step| OpenCall::list(step.step.outcome.open_calls.as_ref()));
        let answers = |reaction: &&Reaction| {
            let mut said = reaction.steps.iter().filter_map(super::messages::response);
            said.next().is_some_and(|said| said.answers)
        };
        Self {
            left: left.collect(),
            execution: shown.chain.first().map(|first| first.execution.id.clone()),
            goes_on: shown.chain.iter().skip(1).map(answers).collect(),
            message: shown.message,
        }
    }

    /// Its id.
    pub fn id(&self) -> &str {
        self.message["id"].as_str().unwrap_or_default()
    }

    /// Whether an agent has said it.
    pub fn is_answer(&self) -> bool {
        self.message["role"] == SentRole::Assistant.name()
    }

    /// The calls that its steps have left open, step by step.
    pub fn left(&self) -> &[Vec<OpenCall>] {
        &self.left
    }

    /// Compares what a client has sent with it. Linear in both.
    pub fn compare(&self, sent: &SentMessage) -> Result<(), Difference> {
        if self.message["role"] != sent.role.name() {
            let what = format!(
                "the message {:?} is not the {}'s",
                sent.id,
                sent.role.name()
            );
            let pointer = format!("{}/role", sent.pointer());
            return Err(Difference { pointer, what });
        }
        match sent.role {
            SentRole::User | SentRole::System => self.compare_whole(sent),
            SentRole::Assistant => self.compare_answer(sent),
        }
    }

    /// The execution that has begun it; none of what nobody's execution has written.
    pub fn execution(&self) -> Option<&ExecutionId> {
        self.execution.as_ref()
    }

    fn parts(&self) -> &[Value] {
        let parts = self.message["parts"].as_array();
        parts.map(Vec::as_slice).unwrap_or_default()
    }

    /// What a user has said is there as a whole, or not at all.
    fn compare_whole(&self, sent: &SentMessage) -> Result<(), Difference> {
        let stored = self.parts();
        for (place, part) in sent.parts.iter().enumerate() {
            let is_there = stored
                .get(place)
                .is_some_and(|stored| is_same_message(stored, part));
            if !is_there {
                let pointer = format!("{}/parts/{place}", sent.pointer());
                let what = format!("the message {:?} says something else", sent.id);
                return Err(Difference { pointer, what });
            }
        }
        if stored.len() > sent.parts.len() {
            let pointer = format!("{}/parts", sent.pointer());
            let what = format!("the message {:?} says more", sent.id);
            return Err(Difference { pointer, what });
        }
        Ok(())
    }

    fn compare_answer(&self, sent: &SentMessage) -> Result<(), Difference> {
        let mut said = Said::of(self.parts());
        let left = self.left.iter().flatten();
        let external = left.filter(|open| open.kind == OpenKind::External);
        said.external = external.map(|open| open.tool_call_id.as_str()).collect();
        for (place, part) in sent.parts.iter().enumerate() {
            let checked = match text(part, "type").unwrap_or_default() {
                "step-start" => Ok(()),
                "text" | "reasoning" => said.says(part),
                _ if is_tool(part) => said.has_call(part),
                _ => said.has(part),
            };
            checked.map_err(|what| Difference {
                pointer: format!("{}/parts/{place}", sent.pointer()),
                what: format!("of the message {:?}, {what}", sent.id),
            })?;
        }
        Ok(())
    }
}

impl Streamed {
    /// To be told what the executions have written that write the message.
    pub fn of(stored: StoredMessage) -> Self {
        let goes_on = stored.goes_on.iter().copied();
        Self {
            view: StreamView::new(OLDEST, RunSelector::running(None).through(goes_on)),
            reducer: Reducer::new(Major::V5, None),
            stored,
        }
    }

    /// Takes the next record, from the first of the first execution on; says whether it was the last.
    pub fn see(&mut self, record: &Record) -> bool {
        let mut is_over = false;
        for chunk in self.view.chunks(record) {
            match chunk {
                // What no client can read, none has seen.
                ChunkJson::Chunk(chunk) => drop(self.reducer.push(&Json::from(chunk))),
                ChunkJson::Done => is_over = true,
            }
        }
        is_over
    }

    /// The message with what was streamed in the place of what is stored, but for calls.
    pub fn finish(self) -> StoredMessage {
        let mut stored = self.stored;
        let streamed = self.reducer.finish().message;
        let mut streamed = streamed
            .and_then(|it| it.to_value().ok())
            .unwrap_or_default();
        let mut parts = stored.parts().to_vec();
        parts.retain(is_tool);
        if let Some(Value::Array(streamed)) = streamed.get_mut("parts").map(Value::take) {
            parts.extend(streamed.into_iter().filter(|part| !is_tool(part)));
        }
        stored.message["parts"] = parts.into();
        stored
    }
}

/// What an answer has, to be looked up.
struct Said<'a> {
    /// Texts and reasoning, in order.
    spoken: Vec<(&'a str, &'a str)>,
    calls: BTreeMap<&'a str, &'a Value>,
    /// The calls that were left for somebody else to run.
    external: BTreeSet<&'a str>,
    others: Vec<&'a Value>,
    /// How much of what is spoken was found.
    at: usize,
    n_replays: usize,
}

impl<'a> Said<'a> {
    fn of(parts: &'a [Value]) -> Self {
        let mut said = Self {
            spoken: Vec::new(),
            calls: BTreeMap::new(),
            external: BTreeSet::new(),
            others: Vec::new(),
            at: 0,
            n_replays: 0,
        };
        for part in parts {
            match text(part, "type").unwrap_or_default() {
                kind @ ("text" | "reasoning") => {
                    said.spoken
                        .push((kind, text(part, "text").unwrap_or_default()));
                }
                _ if is_tool(part) => {
                    let id = text(part, "toolCallId").unwrap_or_default();
                    said.calls.insert(id, part);
                }
                _ => said.others.push(part),
            }
        }
        said
    }

    /// Finds a text, or the beginning of it, after those that were found.
    fn says(&mut self, part: &Value) -> Result<(), String> {
        let kind = text(part, "type").unwrap_or_default();
        let sent = text(part, "text").ok_or("a text has no text")?;
        if sent.is_empty() {
            return Ok(());
        }
        let begins = |(stored, whole): &(&str, &str)| *stored == kind && whole.starts_with(sent);
        let ahead = self.spoken.iter().skip(self.at).position(begins);
        if let Some(ahead) = ahead {
            self.at += ahead + 1;
            return Ok(());
        }
        if self.n_replays < MAX_REPLAYS
            && let Some(place) = self.spoken.iter().position(begins)
        {
            self.n_replays += 1;
            self.at = place + 1;
            return Ok(());
        }
        Err(format!("the agent has not said this {kind}"))
    }

    fn has_call(&self, part: &Value) -> Result<(), String> {
        let id = text(part, "toolCallId").unwrap_or_default();
        let Some(stored) = self.calls.get(id) else {
            // Whether a sub-agent asks so is for its thread to say, which takes the answer.
            return match subagent::read_call(id) {
                Some(_) => Ok(()),
                None => Err(format!("the agent has made no call {id:?}")),
            };
        };
        tool::compare(stored, part, self.external.contains(id))
    }

    fn has(&self, part: &Value) -> Result<(), String> {
        if self
            .others
            .iter()
            .any(|stored| is_same_message(stored, part))
        {
            return Ok(());
        }
        let kind = text(part, "type").unwrap_or_default();
        Err(format!("the server has no such part of type {kind:?}"))
    }
}

/// Whether two parts that are no calls say the same.
fn is_same_message(stored: &Value, sent: &Value) -> bool {
    let members: &[&str] = match text(stored, "type").unwrap_or_default() {
        "text" | "reasoning" => &["type", "text"],
        "file" => &["type", "url", "mediaType", "filename"],
        "source-url" => &["type", "sourceId", "url", "title"],
        "source-document" => &["type", "sourceId", "mediaType", "title", "filename"],
        kind if kind.starts_with("data-") => &["type", "id", "data"],
        _ => return false,
    };
    let null = &Value::Null;
    members.iter().all(|key| {
        let (stored, sent) = (stored.get(key), sent.get(key));
        is_same(stored.unwrap_or(null), sent.unwrap_or(null))
    })
}

fn is_tool(part: &Value) -> bool {
    let kind = text(part, "type").unwrap_or_default();
    kind == "dynamic-tool" || kind.starts_with("tool-")
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}
