//! The answer of a worker, with the fields of EK §6.

use interop::model;
use interop::parts::{StepResponse, ToolPart};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use timeline::Payload;
use upp::{CycleUsage, Response};

/// Maximum number of tool calls of an answer.
const MAX_CALLS: usize = 128;
/// Maximum number of parts of an answer, and of messages for the model.
const MAX_PARTS: usize = 10_000;
/// Maximum length of a name or an id, in bytes.
const MAX_NAME: usize = 256;

/// The answer of a worker to a step: what a reactor returns (EK §6).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExternalAnswer {
    /// The item of the assistant: a message with its content. The server sets the id and the time.
    pub assistant_event: Value,
    /// The tool calls.
    #[serde(default)]
    pub tool_calls: Vec<AnsweredCall>,
    /// The messages that the worker sent to its model. If absent, they are those of the leased step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages_for_model: Option<Vec<Value>>,
    /// The usage metadata.
    #[serde(default)]
    pub usage: StepUsage,
    /// Why the model stopped: `end_turn`, `tool_use`, `max_tokens`, `content_filter`, or another word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
}

/// A tool call of an answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AnsweredCall {
    /// The id of the call, unique in the answer.
    pub tool_call_id: String,
    /// The name of the tool.
    pub tool_name: String,
    /// The arguments.
    #[serde(default)]
    pub input: Map<String, Value>,
}

/// The usage metadata of an answer.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct StepUsage {
    /// The provider of the model.
    pub provider: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// Tokens of the prompt.
    pub input_tokens: u64,
    /// Tokens of the answer.
    pub output_tokens: u64,
    /// Tokens of the prompt that came from a cache.
    pub cache_read_tokens: u64,
    /// Tokens of the prompt that were written to a cache.
    pub cache_write_tokens: u64,
    /// Tokens of the answer that are reasoning.
    pub reasoning_tokens: u64,
    /// The duration of the model call in milliseconds. If absent, the server stores the time since the
    /// lease.
    pub latency_ms: Option<u64>,
}

/// A piece of text that a worker streams.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum StepDelta {
    /// Text of the answer.
    OutputText {
        /// The position of the part in the content of the answer.
        index: u32,
        /// The next piece.
        delta: String,
    },
    /// Reasoning.
    Reasoning {
        /// The position of the part in the content of the answer.
        index: u32,
        /// The next piece.
        delta: String,
    },
}

impl StepDelta {
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::OutputText { delta, .. } | Self::Reasoning { delta, .. } => delta,
        }
    }
}

/// Why an answer is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct RefusedAnswer {
    /// The JSON pointer of the error in the answer.
    pub pointer: String,
    /// The error and the expected value.
    pub what: String,
}

fn refused<T>(pointer: impl Into<String>, what: impl Into<String>) -> Result<T, RefusedAnswer> {
    let (pointer, what) = (pointer.into(), what.into());
    Err(RefusedAnswer { pointer, what })
}

impl ExternalAnswer {
    /// The answer as a model's response.
    ///
    /// # Errors
    ///
    /// [`RefusedAnswer`] if a field has a wrong value, or more than the limits allow.
    pub fn response(&self, agent: &str, at: Timestamp) -> Result<Response, RefusedAnswer> {
        let mut parts = self.content()?;
        let n_content = parts.len();
        self.check_calls()?;
        self.check_words()?;
        for call in &self.tool_calls {
            let input = Value::Object(call.input.clone()).to_string();
            let part = ToolPart::call(&call.tool_name, &call.tool_call_id, &input).write();
            parts.extend(part.ok());
        }
        let usual = if self.tool_calls.is_empty() {
            "end_turn"
        } else {
            "tool_use"
        };
        let usage = &self.usage;
        let tokens = CycleUsage {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cache_read_tokens: usage.cache_read_tokens,
            cache_write_tokens: usage.cache_write_tokens,
            reasoning_tokens: usage.reasoning_tokens,
            raw: serde_json::to_value(usage).ok().map(Into::into),
        };
        let about = StepResponse {
            provider: Some(usage.provider.clone().unwrap_or_else(|| "external".into())),
            model: Some(usage.model.clone().unwrap_or_else(|| agent.to_owned())),
            stop_reason: Some(self.stop_reason.clone().unwrap_or_else(|| usual.into())),
            usage: Payload::write(&tokens).ok(),
            ..StepResponse::default()
        };
        let about = Payload::write(&about).unwrap_or_else(|_| json!({}).into());
        let response = model::recorded(&parts, &about, at);
        if response.message.content.len() != n_content {
            let what = "a part has an unknown type or lacks a field; expected output_text, reasoning, refusal or output_file";
            return refused("/assistantEvent/content", what);
        }
        Ok(response)
    }

    fn content(&self) -> Result<Vec<Payload>, RefusedAnswer> {
        let item = &self.assistant_event;
        let field = |name| item.get(name).and_then(Value::as_str);
        if field("type") != Some("message") {
            return refused("/assistantEvent/type", "expected \"message\"");
        }
        if field("role").is_some_and(|role| role != "assistant") {
            return refused("/assistantEvent/role", "expected \"assistant\"");
        }
        let Some(content) = item.get("content").and_then(Value::as_array) else {
            return refused("/assistantEvent/content", "expected a list of parts");
        };
        if content.len() > MAX_PARTS {
            let what = format!("expected at most {MAX_PARTS} parts");
            return refused("/assistantEvent/content", what);
        }
        for (n, part) in content.iter().enumerate() {
            let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
            if !matches!(
                kind,
                "output_text" | "reasoning" | "refusal" | "output_file"
            ) {
                let pointer = format!("/assistantEvent/content/{n}/type");
                return refused(
                    pointer,
                    "expected output_text, reasoning, refusal or output_file; calls are in toolCalls",
                );
            }
        }
        Ok(content.iter().cloned().map(Into::into).collect())
    }

    fn check_calls(&self) -> Result<(), RefusedAnswer> {
        if self.tool_calls.len() > MAX_CALLS {
            return refused("/toolCalls", format!("expected at most {MAX_CALLS} calls"));
        }
        let mut ids = BTreeSet::new();
        for (n, call) in self.tool_calls.iter().enumerate() {
            let names = [
                ("toolCallId", &call.tool_call_id),
                ("toolName", &call.tool_name),
            ];
            for (field, name) in names {
                if name.is_empty() || name.len() > MAX_NAME {
                    let what = format!("expected 1 to {MAX_NAME} bytes");
                    return refused(format!("/toolCalls/{n}/{field}"), what);
                }
            }
            if !ids.insert(&call.tool_call_id) {
                let pointer = format!("/toolCalls/{n}/toolCallId");
                return refused(pointer, "another call has this id");
            }
        }
        Ok(())
    }

    fn check_words(&self) -> Result<(), RefusedAnswer> {
        let words = [
            ("/usage/provider", &self.usage.provider),
            ("/usage/model", &self.usage.model),
            ("/stopReason", &self.stop_reason),
        ];
        for (pointer, word) in words {
            if word.as_ref().is_some_and(|it| it.len() > MAX_NAME) {
                return refused(pointer, format!("expected at most {MAX_NAME} bytes"));
            }
        }
        let messages = self.messages_for_model.as_ref();
        if messages.is_some_and(|messages| messages.len() > MAX_PARTS) {
            let what = format!("expected at most {MAX_PARTS} messages");
            return refused("/messagesForModel", what);
        }
        Ok(())
    }
}
