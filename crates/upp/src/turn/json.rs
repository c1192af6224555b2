//! A turn as JSON (UPP §14).

use super::Turn;
use crate::message::{Message, or_default};
use crate::model::StopReason;
use crate::prefix::RequestReport;
use crate::tool::ToolExecution;
use crate::usage::TokenUsage;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::sync::Arc;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    messages: &'a [Message],
    tool_executions: &'a [ToolExecution],
    usage: &'a TokenUsage,
    cycles: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a Value>,
    stop_reason: &'a StopReason,
    #[serde(skip_serializing_if = "<[RequestReport]>::is_empty")]
    requests: &'a [RequestReport],
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Read {
    messages: Vec<Message>,
    #[serde(default, deserialize_with = "or_default")]
    tool_executions: Vec<ToolExecution>,
    usage: TokenUsage,
    cycles: u32,
    data: Option<Value>,
    stop_reason: Option<StopReason>,
    #[serde(default, deserialize_with = "or_default")]
    requests: Vec<RequestReport>,
}

impl Serialize for Turn {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let turn = Written {
            messages: &self.messages,
            tool_executions: &self.tool_executions,
            usage: &self.usage,
            cycles: self.cycles,
            data: self.data.as_ref(),
            stop_reason: &self.stop_reason,
            requests: &self.requests,
        };
        turn.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Turn {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = Read::deserialize(deserializer)?;
        let response = read
            .messages
            .iter()
            .rev()
            .find_map(|message| match message {
                Message::Assistant(message) => Some(Arc::clone(message)),
                Message::User(_) | Message::ToolResult(_) => None,
            });
        let response = response
            .ok_or_else(|| D::Error::custom("messages: a turn has an assistant message"))?;
        // Where the reason is missing, the answer itself tells.
        let stop_reason = read.stop_reason.unwrap_or(if response.has_tool_calls() {
            StopReason::ToolUse
        } else {
            StopReason::EndTurn
        });
        Ok(Self {
            messages: read.messages,
            response,
            tool_executions: read.tool_executions,
            usage: read.usage,
            cycles: read.cycles,
            data: read.data,
            stop_reason,
            requests: read.requests,
        })
    }
}
