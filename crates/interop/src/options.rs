//! The options that one request may set for one run, with the same names in every protocol.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Minimum output tokens to request of a model; providers refuse smaller limits. A run ends when
/// fewer of its [`RunOptions::max_run_output_tokens`] remain.
pub const MIN_ANSWER_TOKENS: u64 = 16;

/// The options of one run that differ from its agent's configuration. They are stored with the
/// execution (`run.params`), so a run continues with them after a crash.
///
/// Every member is absent unless the request set it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunOptions {
    /// The model's name, of the models that are configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Replaces the agent's system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Appended to the system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_instructions: Option<String>,
    /// Tools that the client executes: a call of one ends the run until the client has answered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ClientTool>,
    /// Whether only `tools` are offered, without the agent's own tools.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub only_these_tools: bool,
    /// Whether the model must call a tool; holds for the first model call of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<RunToolChoice>,
    /// Whether the model may call several tools at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// Maximum number of server-side tool calls in the run. Further calls get an error as their
    /// result. Calls of the client's own tools do not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tool_calls: Option<u64>,
    /// 0 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// -2 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<f64>,
    /// -2 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f64>,
    /// Maximum number of tokens of each answer of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// Maximum number of tokens of all answers of the run together. The run ends when too few
    /// remain for another answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_run_output_tokens: Option<u64>,
    /// Whether a run that answers pending calls of an earlier run starts a new token count. If not,
    /// it continues the count of the earlier run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tokens_begin_here: bool,
    /// The reasoning effort, as providers name it: `none`, `low`, `medium`, `high`, `xhigh`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
    /// Whether reasoning is summarised: `auto`, `concise`, `detailed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_summary: Option<String>,
    /// The format of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<AnswerFormat>,
    /// Whether the run calls no model. The input is stored, and the run ends once the calls that it
    /// answers, if any, have run. Middleware does not apply.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub without_model: bool,
    /// Fields that the run's view must repeat in its responses, by the name of the view:
    /// `responses`, `threads`, `langgraph`. The runtime never interprets them.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub echo: Map<String, Value>,
}

impl RunOptions {
    /// Converts these options, as JSON, to those of a run that answers the run's pending calls. It
    /// removes `withoutModel`, so that the model is called once the answers are in.
    pub fn keep_for_continuation(options: &mut Value) {
        if let Value::Object(options) = options {
            options.remove("withoutModel");
        }
    }

    /// Converts the options for a run that another user's answer continues. It removes the token
    /// limit, which applied to one request only.
    pub fn go_on_for_others(options: &mut Value) {
        Self::keep_for_continuation(options);
        if let Value::Object(options) = options
            && options.remove("tokensBeginHere").is_some()
        {
            options.remove("maxRunOutputTokens");
        }
    }

    /// Whether these options, as JSON, contain only the view's own data. Most do, and need not be
    /// read.
    pub fn asks_nothing(options: &Value) -> bool {
        let is_views = |name: &String| name == "echo";
        options
            .as_object()
            .is_some_and(|options| options.keys().all(is_views))
    }
}

/// A tool that the client executes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientTool {
    /// `[a-zA-Z0-9_-]`, at most 64 bytes.
    pub name: String,
    /// The description of the tool, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of its arguments; any object when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Value>,
    /// Whether the arguments must keep to the schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
}

/// The format of a tool's name, for error messages.
pub(crate) const TOOL_NAME: &str = "1 to 64 letters, digits, underscores and hyphens";

/// Whether a tool may have this name. All providers accept 1 to 64 bytes of `[a-zA-Z0-9_-]`.
pub(crate) fn is_tool_name(name: &str) -> bool {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=64).contains(&name.len()) && name.bytes().all(is_safe)
}

/// The index of the first tool with the name of an earlier one. Calls identify tools by name only.
pub(crate) fn repeated(tools: &[ClientTool]) -> Option<usize> {
    let mut names = BTreeSet::new();
    tools
        .iter()
        .position(|tool| !names.insert(tool.name.as_str()))
}

/// Checks a JSON Schema in a request against the limits of `upp::schema`. The error has the JSON
/// Pointer into the request, and the expected value.
#[cfg(feature = "model")]
pub(crate) fn check_schema(schema: &Value, pointer: &str) -> Result<(), (String, &'static str)> {
    let checked = upp::schema::check(schema);
    checked.map(|_| ()).map_err(|refused| {
        let pointer = format!("{pointer}{}", refused.pointer);
        (pointer, refused.fault.expected())
    })
}

/// Accepts every JSON Schema: without the feature `model` nothing runs, so no schema is used.
#[cfg(not(feature = "model"))]
#[expect(
    clippy::unnecessary_wraps,
    reason = "the check of the feature `model` can refuse"
)]
pub(crate) fn check_schema(_: &Value, _: &str) -> Result<(), (String, &'static str)> {
    Ok(())
}

/// Whether the model must call a tool, and which it may.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub enum RunToolChoice {
    /// The model decides.
    Auto,
    /// The model must not call tools.
    None,
    /// The model must call a tool.
    Required,
    /// The model must call this tool.
    Function {
        /// The tool.
        name: String,
    },
    /// The model may call only these tools; other calls get an error as their result.
    Allowed {
        /// The tools.
        names: Vec<String>,
        /// Whether it must.
        required: bool,
    },
}

/// The format of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AnswerFormat {
    /// Any JSON object.
    JsonObject,
    /// JSON of this schema.
    JsonSchema {
        /// The schema.
        schema: Value,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn options_that_only_a_view_keeps_ask_nothing() {
        let mut options = RunOptions::default();
        let json = |options: &RunOptions| serde_json::to_value(options).unwrap();
        assert!(RunOptions::asks_nothing(&json(&options)));
        options
            .echo
            .insert("responses".into(), json!({"model": "m"}));
        assert!(RunOptions::asks_nothing(&json(&options)));
        options.temperature = Some(0.0);
        assert!(!RunOptions::asks_nothing(&json(&options)));
    }
}
