//! The result of one inference, tool rounds included (UPP §7).

use crate::message::{AssistantMessage, Message};
use crate::model::StopReason;
use crate::prefix::RequestReport;
use crate::tool::ToolExecution;
use crate::usage::TokenUsage;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// One inference: everything said after the history that was given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Turn {
    /// New input, answers and tool results, in order. The history is not repeated.
    pub messages: Vec<Message>,
    /// The last answer.
    pub response: Arc<AssistantMessage>,
    /// The runs of tools, in the order they ended.
    pub tool_executions: Vec<ToolExecution>,
    /// What all model calls used.
    pub usage: TokenUsage,
    /// How many model calls there were.
    pub cycles: u32,
    /// The parsed answer, when a structure was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// Why the last model call stopped.
    #[serde(default = "end_turn")]
    pub stop_reason: StopReason,
    /// What was sent for each model call, where anything was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RequestReport>,
}

fn end_turn() -> StopReason {
    StopReason::EndTurn
}
