//! Pending calls of sub-agents, as clients of the parent thread see them.
//!
//! An AI SDK client can answer a question only at a part of a message in its own chat. The server
//! therefore appends each question of a sub-agent as a tool call whose id names the sub-agent's
//! thread. A client sends its answers once every call of the last step has one, and ignores earlier
//! steps. The server therefore repeats the thread's own open questions in that step too.

use super::{Major, Reducer};
use crate::parts::ToolPart;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use thread::Json;
use timeline::{OpenCall, OpenKind};

/// A growing text is shown again when it has this many new bytes and…
const MIN_GROWTH: usize = 64;
/// …this fraction of the bytes that were shown.
const GROWTH: usize = 8;

/// Prefix of the id of a sub-agent's call.
const PREFIX: &str = "subagent:";
/// Separator between the key of the sub-agent's thread and the call's own id.
const MARK: char = '#';
/// The first major version of the AI SDK whose clients can answer approvals.
const ASKS: u8 = 6;

/// The id of a sub-agent's call for clients of the parent thread; `None` if it could not be parsed
/// back.
pub(crate) fn call_of(thread_key: &str, tool_call_id: &str) -> Option<String> {
    (!tool_call_id.contains(MARK)).then(|| format!("{PREFIX}{thread_key}{MARK}{tool_call_id}"))
}

/// The key of the sub-agent's thread and the call there, if the id is one of a sub-agent's call.
pub fn read_call(id: &str) -> Option<(&str, &str)> {
    id.strip_prefix(PREFIX)?.rsplit_once(MARK)
}

/// A pending call that the client can answer at the end of a message.
#[derive(Clone, Copy, Debug)]
pub struct SubagentQuestion<'a> {
    /// The key of the thread that has the call.
    pub thread_key: &'a str,
    /// The call.
    pub call: &'a OpenCall,
    /// Whether the call belongs to the client's own thread. Its approval id is then that of the
    /// original part, so one answer settles both.
    pub is_own: bool,
}

/// The chunks that ask the client about pending calls, as a separate step at the end of the message.
/// The step is complete when all its questions are answered. Empty if a client of this major version
/// can answer none.
pub fn questions<'a>(
    asked: impl IntoIterator<Item = SubagentQuestion<'a>>,
    major: u8,
) -> Vec<Value> {
    let mut chunks = Vec::new();
    for question in asked {
        let open = question.call;
        let id = call_of(question.thread_key, &open.tool_call_id);
        let (Some(id), Some(tool)) = (id, ToolPart::read(&open.part)) else {
            continue;
        };
        let is_shown = match open.kind {
            OpenKind::Approval => major >= ASKS,
            OpenKind::External => true,
            OpenKind::Others | OpenKind::Child => false,
        };
        if !is_shown {
            continue;
        }
        let input = serde_json::from_str(tool.arguments()).unwrap_or(Value::Object(Map::new()));
        chunks.push(json!({
            "type": "tool-input-available", "toolCallId": id, "toolName": tool.tool_name(),
            "input": input,
        }));
        if open.kind == OpenKind::Approval {
            let own = tool.approval.as_ref().filter(|_| question.is_own);
            let approval = own.map_or(id.as_str(), |approval| approval.id.as_str());
            chunks.push(json!({
                "type": "tool-approval-request", "approvalId": approval, "toolCallId": id,
            }));
        }
    }
    if chunks.is_empty() {
        return chunks;
    }
    chunks.insert(0, json!({"type": "start-step"}));
    chunks.push(json!({"type": "finish-step"}));
    chunks
}

/// Appends questions to the last message, as a client has them that read the chunks.
pub fn ask(messages: &mut [Value], questions: Vec<Value>) {
    let Some(last) = messages.last_mut() else {
        return;
    };
    let mut reducer = Reducer::new(Major::NEWEST, Some(Json::from(last.clone())));
    for chunk in questions {
        if reducer.push(&Json::from(chunk)).is_err() {
            return;
        }
    }
    let asked = reducer.finish().message.and_then(|it| it.to_value().ok());
    if let Some(asked) = asked.filter(|_| last["role"] == "assistant") {
        *last = asked;
    }
}

/// Renames a chunk that ends a sub-agent's call to the call id that the parent's client has. `None` if
/// the chunk ends no call, or if the client does not have the call.
pub fn outcome(thread_key: &str, chunk: &Value, calls: &BTreeSet<String>) -> Option<Value> {
    let kind = chunk.get("type").and_then(Value::as_str)?;
    let is_end = matches!(
        kind,
        "tool-output-available" | "tool-output-error" | "tool-output-denied"
    );
    if !is_end || chunk.get("preliminary").is_some() {
        return None;
    }
    let id = call_of(thread_key, chunk.get("toolCallId")?.as_str()?)?;
    let mut told = chunk.clone();
    told["toolCallId"] = id.as_str().into();
    calls.contains(&id).then_some(told)
}

/// Whether a chunk is about a call that a client has under the name of a thread.
pub fn is_of_call(chunk: &Value) -> bool {
    let id = chunk.get("toolCallId").and_then(Value::as_str);
    id.is_some_and(|id| read_call(id).is_some())
}

/// The last text of a sub-agent. While it grows, it is shown as the preliminary output of the
/// sub-agent's call.
///
/// A text is shown again when it is at least 64 bytes and an eighth longer than before. The bytes sent
/// are therefore linear in its length.
#[derive(Debug, Default)]
pub struct PreliminaryText {
    text: String,
    n_shown: usize,
}

impl PreliminaryText {
    /// Reads a chunk of the sub-agent's own stream. True when the text is to be shown now.
    pub fn read(&mut self, chunk: &Value) -> bool {
        match chunk.get("type").and_then(Value::as_str) {
            Some("text-start") => {
                *self = Self::default();
                false
            }
            Some("text-delta") => {
                let delta = chunk.get("delta").and_then(Value::as_str);
                self.text.push_str(delta.unwrap_or_default());
                let n_new = self.text.len() - self.n_shown;
                self.n_shown == 0 || n_new >= MIN_GROWTH.max(self.n_shown / GROWTH)
            }
            Some("text-end") => self.text.len() > self.n_shown,
            _ => false,
        }
    }

    /// The text so far, which counts as shown.
    pub fn show(&mut self) -> &str {
        self.n_shown = self.text.len();
        &self.text
    }
}
