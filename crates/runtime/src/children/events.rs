//! The events of a child's run, for readers of its parent (UAP §8.7).

use super::host::UAP_CHUNK;
use agents::{AgentStreamEvent, UapEvent, UapEventType};
use interop::model;
use interop::parts::ToolPart;
use interop::run::{RunEvent, RunPart};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use timeline::{BlockKind, Chunk, Payload};
use upp::StreamEvent;

/// Converts the events of a child's run to agents' events.
pub(super) struct ChildEvents {
    agent_id: Arc<str>,
    step: u64,
    calls: Vec<Value>,
    tool_names: BTreeMap<String, String>,
}

impl ChildEvents {
    pub(super) fn new(agent_id: &str) -> Self {
        Self {
            agent_id: agent_id.into(),
            step: 0,
            calls: Vec::new(),
            tool_names: BTreeMap::new(),
        }
    }

    /// The number of the step that runs.
    pub(super) fn step(&self) -> u64 {
        self.step
    }

    /// The agent's id.
    pub(super) fn agent_id(&self) -> Arc<str> {
        Arc::clone(&self.agent_id)
    }

    /// The agent's event for a run's event at this time: steps, the model's stream, its calls and
    /// their results.
    pub(super) fn event(&mut self, event: RunEvent<'_>, at: Timestamp) -> Option<AgentStreamEvent> {
        match event {
            RunEvent::StepStarted { step } => {
                self.step = u64::from(step.iteration).saturating_add(1);
                self.calls.clear();
                Some(self.own(UapEventType::StepStart, Map::new()))
            }
            RunEvent::StepEnded { .. } => Some(self.own(UapEventType::StepEnd, Map::new())),
            RunEvent::Part {
                idx,
                part: RunPart::Tool(tool),
                ..
            } => self.tool(idx, &tool, at),
            RunEvent::Chunk(chunk) => self.chunk(chunk),
            RunEvent::Responded { .. } => {
                let calls = std::mem::take(&mut self.calls);
                let data = Map::from_iter([("toolCalls".to_owned(), Value::Array(calls))]);
                let has_calls = data.values().any(|calls| calls.get(0).is_some());
                has_calls.then(|| self.own(UapEventType::Action, data))
            }
            RunEvent::Started { .. }
            | RunEvent::Continued { .. }
            | RunEvent::StepReset { .. }
            | RunEvent::Part { .. }
            | RunEvent::ExecutionEnded { .. }
            | RunEvent::ContinuationPending
            | RunEvent::Ended
            | RunEvent::Abandoned
            | RunEvent::ItemAdded(_)
            | RunEvent::ThreadChanged(_) => None,
        }
    }

    fn own(&self, kind: UapEventType, data: Map<String, Value>) -> AgentStreamEvent {
        AgentStreamEvent::from(UapEvent {
            kind,
            step: self.step,
            agent_id: self.agent_id(),
            data: data.into(),
        })
    }

    fn tool(&mut self, index: u32, tool: &ToolPart, at: Timestamp) -> Option<AgentStreamEvent> {
        let Some(result) = model::result_of(tool) else {
            let arguments: Value =
                serde_json::from_str(tool.arguments()).unwrap_or_else(|_| tool.arguments().into());
            self.calls.push(json!({
                "toolCallId": tool.tool_call_id,
                "toolName": tool.tool_name(),
                "arguments": arguments,
            }));
            return None;
        };
        let end = StreamEvent::ToolExecutionEnd {
            index,
            tool_call_id: result.tool_call_id,
            tool_name: tool.tool_name().into(),
            result: result.result,
            is_error: result.is_error,
            timestamp: at.as_millisecond(),
        };
        Some(end.into())
    }

    fn chunk(&mut self, chunk: Chunk<'_>) -> Option<AgentStreamEvent> {
        let event = match chunk {
            Chunk::BlockDelta {
                kind, block, text, ..
            } => {
                let (index, text) = (block.index, text.into_owned());
                match kind {
                    BlockKind::Text => StreamEvent::TextDelta { index, text },
                    BlockKind::Reasoning => StreamEvent::ReasoningDelta { index, text },
                }
            }
            Chunk::ToolInputStart {
                tool_call_id,
                tool_name,
                ..
            } => {
                let (id, name) = (tool_call_id.into_owned(), tool_name.into_owned());
                self.tool_names.insert(id, name);
                return None;
            }
            Chunk::ToolInputDelta {
                tool_call_id, text, ..
            } => {
                let name = self.tool_names.get(tool_call_id.as_ref());
                StreamEvent::ToolCallDelta {
                    index: 0,
                    tool_name: name.cloned().unwrap_or_default().into(),
                    tool_call_id: tool_call_id.as_ref().into(),
                    arguments_json: text.into_owned(),
                }
            }
            Chunk::Data { chunk_type, data } if chunk_type == UAP_CHUNK => {
                return data.and_then(inner).map(AgentStreamEvent::from);
            }
            Chunk::BlockStart { .. }
            | Chunk::BlockEnd { .. }
            | Chunk::Source { .. }
            | Chunk::Marker(_)
            | Chunk::Runtime { .. }
            | Chunk::Data { .. }
            | Chunk::Other { .. } => return None,
        };
        Some(event.into())
    }
}

/// The event that a chunk of the child's own children carries.
fn inner(data: &Payload) -> Option<UapEvent> {
    let mut data = data.value();
    serde_json::from_value(data.get_mut("data")?.take()).ok()
}
