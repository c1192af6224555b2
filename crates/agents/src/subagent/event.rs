//! The sub-agent events in a parent's stream (UAP §8.7).

use super::Spawn;
use crate::event::{AgentStreamEvent, UapEvent, UapEventType};
use crate::trace::{SubagentExecutionTrace, ToolExecutionTrace};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use upp::{TokenUsage, ToolCallId};

/// The data of `subagent_start` (UAP §8.7).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubagentStart {
    /// The run of the sub-agent.
    pub subagent_id: String,
    /// Its type or name.
    pub subagent_type: String,
    /// The call that spawned it.
    pub parent_tool_call_id: ToolCallId,
    /// The sub-agent's task.
    pub prompt: String,
    /// When it started, in milliseconds since the epoch.
    pub timestamp: i64,
}

/// The data of `subagent_event`: an event of a sub-agent (UAP §8.7).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubagentForwarded {
    /// The run of the sub-agent.
    pub subagent_id: String,
    /// Its type or name.
    pub subagent_type: String,
    /// The call that spawned it.
    pub parent_tool_call_id: ToolCallId,
    /// The sub-agent's original event. If it is from a nested sub-agent, it is again one of these
    /// three.
    pub inner_event: AgentStreamEvent,
}

/// The data of `subagent_end` (UAP §8.7).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubagentEnd {
    /// The run of the sub-agent.
    pub subagent_id: String,
    /// Its type or name.
    pub subagent_type: String,
    /// The call that spawned it.
    pub parent_tool_call_id: ToolCallId,
    /// Whether it succeeded.
    pub success: bool,
    /// Its answer, when it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// The error message, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When it ended, in milliseconds since the epoch.
    pub timestamp: i64,
    /// Every tool it used, failed or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_executions: Option<Vec<ToolExecutionTrace>>,
    /// The tokens it used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
}

/// A parsed event of a sub-agent (UAP §8.7).
#[derive(Clone, Debug, PartialEq)]
pub enum SubagentEvent {
    /// It started.
    Start(SubagentStart),
    /// Something happened inside.
    Forwarded(SubagentForwarded),
    /// It ended.
    End(SubagentEnd),
}

impl SubagentEvent {
    /// The event in the parent's stream: with its step and its id, and this as the data.
    pub fn into_event(self, step: u64, agent_id: Arc<str>) -> AgentStreamEvent {
        let (kind, data) = match self {
            Self::Start(data) => (UapEventType::SubagentStart, map(&data)),
            Self::Forwarded(data) => (UapEventType::SubagentEvent, map(&data)),
            Self::End(data) => (UapEventType::SubagentEnd, map(&data)),
        };
        AgentStreamEvent::from(UapEvent {
            kind,
            step,
            agent_id,
            data: data.into(),
        })
    }
}

impl UapEvent {
    /// Parses the event as a sub-agent event. `None` if it is another event, or if its data does
    /// not match UAP §8.7.
    pub fn subagent(&self) -> Option<SubagentEvent> {
        let data = || Value::Object(Map::clone(&self.data));
        match self.kind {
            UapEventType::SubagentStart => serde_json::from_value(data())
                .ok()
                .map(SubagentEvent::Start),
            UapEventType::SubagentEvent => serde_json::from_value(data())
                .ok()
                .map(SubagentEvent::Forwarded),
            UapEventType::SubagentEnd => {
                serde_json::from_value(data()).ok().map(SubagentEvent::End)
            }
            UapEventType::StepStart
            | UapEventType::StepEnd
            | UapEventType::Reasoning
            | UapEventType::Action
            | UapEventType::Observation => None,
        }
    }
}

impl Spawn {
    /// The event before the run starts.
    pub fn started(&self, prompt: String, timestamp: i64) -> SubagentEvent {
        SubagentEvent::Start(SubagentStart {
            subagent_id: self.subagent_id.to_string(),
            subagent_type: self.subagent_type.to_string(),
            parent_tool_call_id: self.tool_call_id.clone(),
            prompt,
            timestamp,
        })
    }
}

impl SubagentExecutionTrace {
    /// The event after the run has ended.
    pub fn ended(&self) -> SubagentEvent {
        SubagentEvent::End(SubagentEnd {
            subagent_id: self.subagent_id.clone(),
            subagent_type: self.subagent_type.clone(),
            parent_tool_call_id: self.parent_tool_call_id.clone(),
            success: self.success,
            result: self.result.clone(),
            error: self.error.clone(),
            timestamp: self.end_time,
            tool_executions: self.tool_executions.clone(),
            usage: self.usage.clone(),
        })
    }
}

fn map(data: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(data) {
        Ok(Value::Object(map)) => map,
        Ok(_) | Err(_) => Map::new(),
    }
}
