//! The result of one inference, tool rounds included (UPP §7).

mod json;

use crate::message::{AssistantMessage, Message};
use crate::model::StopReason;
use crate::prefix::RequestReport;
use crate::tool::ToolExecution;
use crate::usage::TokenUsage;
use serde_json::Value;
use std::sync::Arc;

/// One inference: all messages after its history.
///
/// As JSON (`TurnJSON`, UPP §14) it has no `response`; reading sets it to the last assistant message.
/// JSON without an assistant message is refused.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// New input, answers and tool results, in order. The history is not repeated.
    pub messages: Vec<Message>,
    /// The last answer.
    pub response: Arc<AssistantMessage>,
    /// The runs of tools, in the order they ended.
    pub tool_executions: Vec<ToolExecution>,
    /// The usage of all model calls.
    pub usage: TokenUsage,
    /// How many model calls there were.
    pub cycles: u32,
    /// The parsed answer, if the request demanded a structure.
    pub data: Option<Value>,
    /// Why the last model call stopped; UPP has no such field.
    pub stop_reason: StopReason,
    /// A report for each model call that sent a request.
    pub requests: Vec<RequestReport>,
}

impl Turn {
    /// Whether the last answer has tool calls that did not run.
    pub fn has_tool_calls(&self) -> bool {
        self.response.has_tool_calls()
    }
}

#[cfg(test)]
mod tests;
