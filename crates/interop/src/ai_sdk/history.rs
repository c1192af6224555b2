//! Comparison of the history that a client sends with the stored one.
//!
//! The server owns the history and takes nothing of it from a client. But a client with a different
//! history would continue from messages that do not exist, and could forge a tool result. So the
//! server compares each message that the client sends. These differences are allowed:
//!
//! - A part of an answer is missing, because the client left or stopped the stream early.
//! - A text occurs twice, because the client read the stream again from its start.
//! - The client added its own data: metadata, the answer to a question, the result of its own tool.
//! - Numbers differ as JavaScript rounds them, and hints differ: states of texts, step starts,
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
/// The oldest major version. Its clients retain the output of attempts that were reset.
const OLDEST: u8 = 5;

/// Where and in what a message that was sent is not the stored one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Where in the request.
    pub pointer: String,
    /// The difference, in words.
    pub what: String,
}

/// A message as it is stored, to be compared with what clients send.
#[derive(Clone, Debug)]
pub struct StoredMessage {
    message: Value,
    /// The calls that each step left open.
    left: Vec<Vec<OpenCall>>,
    execution: Option<ExecutionId>,
    /// Of the executions that write it after the first: whether each answers calls.
    goes_on: Vec<bool>,
}

/// A message with everything that its streams have shown, including parts that were voided later.
pub struct Streamed {
    stored: StoredMessage,
    view: StreamView,
    reducer: Reducer,
}

/// The messages of a part of a thread, including the one in progress.
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

    /// Whether an agent wrote it.
    pub fn is_answer(&self) -> bool {
        self.message["role"] == SentRole::Assistant.name()
    }

    /// The calls that each step left open, in the order of the steps.
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

    /// The execution that started the message; `None` for a message that no execution wrote.
    pub fn execution(&self) -> Option<&ExecutionId> {
        self.execution.as_ref()
    }

    fn parts(&self) -> &[Value] {
        let parts = self.message["parts"].as_array();
        parts.map(Vec::as_slice).unwrap_or_default()
    }

    /// Compares a user's message: every part must be equal, and none may be missing.
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
    /// A collector for the output of the executions that write the message.
    pub fn of(stored: StoredMessage) -> Self {
        let goes_on = stored.goes_on.iter().copied();
        Self {
            view: StreamView::new(OLDEST, RunSelector::running(None).through(goes_on)),
            reducer: Reducer::new(Major::V5, None),
            stored,
        }
    }

    /// Takes the next record, starting with the first record of the first execution. Returns whether
    /// it was the last.
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

/// An index over the parts of a stored answer.
struct Said<'a> {
    /// Texts and reasoning, in order.
    spoken: Vec<(&'a str, &'a str)>,
    calls: BTreeMap<&'a str, &'a Value>,
    /// The calls that the client or another party runs.
    external: BTreeSet<&'a str>,
    others: Vec<&'a Value>,
    /// The index in `spoken` up to which texts have been found.
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

/// Whether two parts other than calls are equal.
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
