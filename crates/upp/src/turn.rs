//! The result of one inference, tool rounds included (UPP §7).

mod json;

use crate::message::{AssistantMessage, Message};
use crate::model::StopReason;
use crate::prefix::RequestReport;
use crate::tool::ToolExecution;
use crate::usage::TokenUsage;
use serde_json::Value;
use std::sync::Arc;

/// One inference: everything said after the history that was given.
///
/// As JSON (`TurnJSON`, UPP §14) it has no `response`: when it is read, that is the last assistant
/// message again. JSON without any is refused.
#[derive(Clone, Debug, PartialEq)]
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
    pub data: Option<Value>,
    /// Why the last model call stopped; UPP has no such field.
    pub stop_reason: StopReason,
    /// What was sent for each model call, where anything was.
    pub requests: Vec<RequestReport>,
}

impl Turn {
    /// Whether the last answer asks for tools that did not run.
    pub fn has_tool_calls(&self) -> bool {
        self.response.has_tool_calls()
    }
}

#[cfg(test)]
mod tests;
