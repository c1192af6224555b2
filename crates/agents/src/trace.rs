//! The trace of a sub-agent, in its parent's state (UAP §8.8).

use crate::depth;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One run of a tool inside a sub-agent (UAP §8.8).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolExecutionTrace {
    /// The tool's name.
    pub tool_name: String,
    /// The call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<upp::ToolCallId>,
    /// The arguments the tool got.
    pub arguments: Map<String, Value>,
    /// The result: a string unchanged, any other value as JSON.
    pub result: String,
    /// Whether it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// The duration of the run, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<u64>,
}

/// One run of a sub-agent (UAP §8.8).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubagentExecutionTrace {
    /// The sub-agent instance.
    pub subagent_id: String,
    /// Its type or name.
    pub subagent_type: String,
    /// The call that spawned it.
    pub parent_tool_call_id: upp::ToolCallId,
    /// The sub-agent's task.
    pub prompt: String,
    /// When it started, in milliseconds since the epoch.
    pub start_time: i64,
    /// When it ended, in milliseconds since the epoch.
    pub end_time: i64,
    /// Whether it succeeded.
    pub success: bool,
    /// Its answer, when it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// The error message, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Every tool it used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_executions: Option<Vec<ToolExecutionTrace>>,
    /// The tokens it used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<upp::TokenUsage>,
}

impl From<&upp::ToolExecution> for ToolExecutionTrace {
    /// Builds the trace without loss. Arguments that are no object, or that are nested too deeply
    /// to be read again, are stored under the key `arguments`, as the model's text.
    fn from(execution: &upp::ToolExecution) -> Self {
        let given = &execution.arguments;
        let is_deep = depth::is_too_deep(given);
        let arguments = given.as_object().filter(|_| !is_deep).cloned();
        let arguments = arguments.unwrap_or_else(|| {
            let given = if is_deep {
                Value::String(given.to_string())
            } else {
                given.value().clone()
            };
            Map::from_iter([("arguments".to_owned(), given)])
        });
        let text = execution.result.as_str().map(str::to_owned);
        let result = text.unwrap_or_else(|| execution.result.to_string());
        Self {
            tool_name: execution.tool_name.to_string(),
            tool_call_id: Some(execution.tool_call_id.clone()),
            arguments,
            result,
            is_error: Some(execution.is_error),
            duration: Some(execution.duration),
        }
    }
}
