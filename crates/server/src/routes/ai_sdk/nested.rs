//! What sub-agents do, for a client of the AI SDK.
//!
//! The call of a sub-agent has a preliminary output while it runs: what the sub-agent has said so
//! far, as the call's result will be what it says at last. And each chunk that the sub-agent's own
//! stream would have comes as transient data, with the calls that led there; a client that wants
//! more than the text builds a message of them.

use interop::ai_sdk::{ChunkJson, StreamView, subagent};
use interop::parts::ToolPart;
use interop::run::RunSelector;
use runtime::Below;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use timeline::{Event, OpenCall, OpenKind, Record, ThreadId};

/// What a stream shows of sub-agents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum SubagentView {
    /// Preliminary outputs, and their chunks as data.
    #[default]
    All,
    /// Preliminary outputs.
    Outputs,
    /// Nothing.
    None,
}

/// The sub-agents that a stream has seen.
pub(super) struct Nested {
    major: u8,
    shown: SubagentView,
    children: BTreeMap<ThreadId, Child>,
    /// The calls of the thread that have a preliminary output.
    preliminary: BTreeSet<String>,
    /// The calls that the client has in its message under the names of threads.
    calls: BTreeSet<String>,
}

/// A sub-agent as far as it is read.
struct Child {
    view: StreamView,
    is_done: bool,
    text: subagent::PreliminaryText,
}

impl Child {
    fn new(major: u8) -> Self {
        Self {
            view: StreamView::new(major, RunSelector::running(None)),
            is_done: false,
            text: subagent::PreliminaryText::default(),
        }
    }

    /// The chunks of the sub-agent's own stream.
    fn chunks(&mut self, record: &Record, major: u8) -> Vec<Value> {
        // It had waited: the message goes on.
        if self.is_done && matches!(record.event, Event::ExecutionCreated { .. }) {
            let message = self.view.message();
            self.view = StreamView::new(major, RunSelector::running(None)).continuing(message);
            self.is_done = false;
        }
        let mut own = Vec::new();
        for chunk in self.view.chunks(record) {
            match chunk {
                ChunkJson::Chunk(chunk) => own.push(chunk),
                ChunkJson::Done => self.is_done = true,
            }
        }
        own
    }
}

impl Nested {
    pub(super) fn new(major: u8, shown: SubagentView) -> Self {
        Self {
            major,
            shown,
            children: BTreeMap::new(),
            preliminary: BTreeSet::new(),
            calls: BTreeSet::new(),
        }
    }

    /// The client has these calls in its message under the names of threads, and is told what comes of them.
    pub(super) fn with_calls(self, calls: impl IntoIterator<Item = String>) -> Self {
        let calls = calls.into_iter().collect();
        Self { calls, ..self }
    }

    /// Whether anything of sub-agents is shown.
    pub(super) fn is_wanted(&self) -> bool {
        self.shown != SubagentView::None || !self.calls.is_empty()
    }

    /// The chunks that a record of a sub-agent is.
    pub(super) fn chunks(&mut self, below: &Below) -> Vec<Value> {
        let major = self.major;
        let child = self.children.entry(below.thread_id.clone());
        let child = child.or_insert_with(|| Child::new(major));
        let own = child.chunks(&below.logged.record, major);
        let calls: Vec<&str> = below
            .path
            .iter()
            .map(|it| it.tool_call_id.as_str())
            .collect();
        let mut shown = Vec::new();
        for chunk in own {
            let is_due = child.text.read(&chunk);
            if below.is_past {
                continue;
            }
            shown.extend(subagent::outcome(&below.key, &chunk, &self.calls));
            if self.shown == SubagentView::None {
                continue;
            }
            if is_due && let [call] = calls.as_slice() {
                self.preliminary.insert((*call).to_owned());
                shown.push(preliminary(call, child.text.show()));
            }
            if self.shown == SubagentView::All {
                let data = json!({"path": calls, "threadKey": below.key, "chunk": chunk});
                shown.push(json!({"type": "data-subagent", "data": data, "transient": true}));
            }
        }
        shown
    }

    /// What a chunk of the thread with this key itself tells of a call that the client has twice.
    pub(super) fn replayed(&self, key: &str, chunk: &Value) -> Option<Value> {
        subagent::outcome(key, chunk, &self.calls)
    }

    /// The chunks before those of a record of the thread itself: a call that is left open has no
    /// output, so that no client takes what it has for the last word.
    pub(super) fn taken_back(&mut self, record: &Record) -> Vec<Value> {
        let Event::StepStatusChanged { outcome, .. } = &record.event else {
            return Vec::new();
        };
        let preliminary = std::mem::take(&mut self.preliminary);
        let left = OpenCall::list(outcome.open_calls.as_ref());
        let waits = |open: &&OpenCall| {
            open.kind == OpenKind::Child && preliminary.contains(&open.tool_call_id)
        };
        left.iter().filter(waits).filter_map(asked_again).collect()
    }
}

fn preliminary(call: &str, text: &str) -> Value {
    json!({
        "type": "tool-output-available", "toolCallId": call, "output": text, "preliminary": true,
    })
}

fn asked_again(open: &OpenCall) -> Option<Value> {
    let tool = ToolPart::read(&open.part)?;
    let input = serde_json::from_str(tool.arguments()).unwrap_or(Value::Object(Map::new()));
    Some(json!({
        "type": "tool-input-available", "toolCallId": open.tool_call_id,
        "toolName": tool.tool_name(), "input": input,
    }))
}
