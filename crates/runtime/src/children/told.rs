//! What the records of a child are to those who watch its parent (UAP §8.7).

use super::host::UAP_CHUNK;
use agents::{AgentStreamEvent, UapEvent, UapEventType};
use interop::model;
use interop::parts::ToolPart;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use timeline::{Event, Payload, Record, chunk_type};
use upp::StreamEvent;

/// What one reader has seen of a child.
pub(super) struct Told {
    agent_id: Arc<str>,
    step: u64,
    calls: Vec<Value>,
    names: BTreeMap<String, String>,
}

impl Told {
    pub(super) fn new(agent_id: &str) -> Self {
        Self {
            agent_id: agent_id.into(),
            step: 0,
            calls: Vec::new(),
            names: BTreeMap::new(),
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

    /// The events that one record is: steps, what the model says, its calls and their results.
    pub(super) fn events(&mut self, record: &Record) -> Vec<AgentStreamEvent> {
        match &record.event {
            Event::StepCreated { step } => {
                self.step = u64::from(step.iteration).saturating_add(1);
                self.calls.clear();
                vec![self.own(UapEventType::StepStart, Map::new())]
            }
            Event::StepStatusChanged { .. } => vec![self.own(UapEventType::StepEnd, Map::new())],
            Event::PartCreated { idx, part, .. } | Event::PartUpdated { idx, part, .. } => {
                self.part(*idx, part, record.at.as_millisecond())
            }
            Event::ChunkEmitted {
                chunk_type, data, ..
            } => self.chunk(chunk_type, data.as_ref()),
            Event::ContextCreated { .. }
            | Event::ContextResolved { .. }
            | Event::ContextStatusChanged { .. }
            | Event::ThreadCreated { .. }
            | Event::ThreadResolved { .. }
            | Event::ThreadStatusChanged { .. }
            | Event::ExecutionCreated { .. }
            | Event::ExecutionStatusChanged { .. }
            | Event::ItemCreated { .. }
            | Event::ItemStatusChanged { .. }
            | Event::ThreadFinished { .. } => Vec::new(),
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

    fn part(&mut self, index: u32, part: &Payload, timestamp: i64) -> Vec<AgentStreamEvent> {
        let Some(tool) = ToolPart::read(part) else {
            return Vec::new();
        };
        let Some(result) = model::result_of(&tool) else {
            let arguments: Value =
                serde_json::from_str(tool.arguments()).unwrap_or_else(|_| tool.arguments().into());
            self.calls.push(json!({
                "toolCallId": tool.tool_call_id,
                "toolName": tool.tool_name(),
                "arguments": arguments,
            }));
            return Vec::new();
        };
        let end = StreamEvent::ToolExecutionEnd {
            index,
            tool_call_id: result.tool_call_id,
            tool_name: tool.tool_name().into(),
            result: result.result,
            is_error: result.is_error,
            timestamp,
        };
        vec![end.into()]
    }

    fn chunk(&mut self, kind: &str, data: Option<&Payload>) -> Vec<AgentStreamEvent> {
        if kind == chunk_type::STEP_RESPONSE {
            let calls = std::mem::take(&mut self.calls);
            if calls.is_empty() {
                return Vec::new();
            }
            let data = Map::from_iter([("toolCalls".to_owned(), Value::Array(calls))]);
            return vec![self.own(UapEventType::Action, data)];
        }
        let Some(Value::Object(fields)) = data.map(Payload::value) else {
            return Vec::new();
        };
        if kind == UAP_CHUNK {
            let inner = fields.get("data").cloned().unwrap_or_default();
            let inner: Option<UapEvent> = serde_json::from_value(inner).ok();
            return inner.map(AgentStreamEvent::from).into_iter().collect();
        }
        let text = |key: &str| fields.get(key).and_then(Value::as_str).unwrap_or_default();
        let id = text("toolCallId");
        let event = match kind {
            "text-delta" => StreamEvent::TextDelta {
                index: index_of(text("id")),
                text: text("delta").to_owned(),
            },
            "reasoning-delta" => StreamEvent::ReasoningDelta {
                index: index_of(text("id")),
                text: text("delta").to_owned(),
            },
            "tool-input-start" => {
                self.names
                    .insert(id.to_owned(), text("toolName").to_owned());
                return Vec::new();
            }
            "tool-input-delta" => StreamEvent::ToolCallDelta {
                index: 0,
                tool_call_id: id.into(),
                tool_name: self.names.get(id).cloned().unwrap_or_default().into(),
                arguments_json: text("inputTextDelta").to_owned(),
            },
            _ => return Vec::new(),
        };
        vec![event.into()]
    }
}

/// The place of a block in its message, which ends its id.
fn index_of(id: &str) -> u32 {
    let place = id.rsplit_once('-').map(|(_, place)| place);
    place.and_then(|place| place.parse().ok()).unwrap_or(0)
}
