//! Sub-agents in the streams of the AI SDK.
//!
//! While a sub-agent runs, its call has preliminary outputs: the sub-agent's text so far, in the form of
//! the final result. Each chunk of the sub-agent's own stream is sent as transient data too, with the
//! path of calls to it. Clients can build complete messages from these chunks.

use interop::ai_sdk::{ChunkJson, StreamView, subagent};
use interop::parts::ToolPart;
use interop::run::RunSelector;
use runtime::Below;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use timeline::{Event, OpenCall, OpenKind, Record, ThreadId};

/// How much of sub-agents a stream shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum SubagentView {
    /// Preliminary outputs, and the sub-agents' chunks as data.
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
    /// The thread's calls with a preliminary output.
    preliminary: BTreeSet<String>,
    /// Calls of sub-agents that the client's message names, with their threads.
    calls: BTreeSet<String>,
}

/// A sub-agent, read up to the current record.
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

    /// Names calls of sub-agents that the client's message has, so that the stream reports their
    /// results.
    pub(super) fn with_calls(self, calls: impl IntoIterator<Item = String>) -> Self {
        let calls = calls.into_iter().collect();
        Self { calls, ..self }
    }

    /// Whether the stream shows sub-agents at all.
    pub(super) fn is_wanted(&self) -> bool {
        self.shown != SubagentView::None || !self.calls.is_empty()
    }

    /// The chunks for a sub-agent's record.
    pub(super) fn chunks(&mut self, below: &Below) -> Vec<Value> {
        let major = self.major;
        let child = self.children.entry(below.thread_id.clone());
        let child = child.or_insert_with(|| Child::new(major));
        let own = child.chunks(&below.followed.record, major);
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

    /// The chunk for the client's copy of a call, if this chunk of the thread with this key concerns
    /// one.
    pub(super) fn replayed(&self, key: &str, chunk: &Value) -> Option<Value> {
        subagent::outcome(key, chunk, &self.calls)
    }

    /// The chunks before those of a record of the thread itself. They remove the preliminary output of
    /// calls that remain pending, so that clients do not mistake it for the result.
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
