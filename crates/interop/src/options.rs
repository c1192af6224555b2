//! What one request may ask of one run, in the same words whichever protocol it came through.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// An answer of fewer tokens is not asked for: providers refuse such limits. What is left of
/// [`RunOptions::max_run_output_tokens`] is none then.
pub const MIN_ANSWER_TOKENS: u64 = 16;

/// How one run differs from what its agent is configured to do. Kept with the execution
/// (`run.params`), so that a run goes on the same after a crash.
///
/// Every member is absent unless the request said something.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunOptions {
    /// The model's name, of the models that are configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Stands in place of the agent's system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Stands after the system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_instructions: Option<String>,
    /// Tools that the client executes: a call of one ends the run until the client has answered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ClientTool>,
    /// Whether only `tools` are offered, and none of the agent's own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub only_these_tools: bool,
    /// Whether the model must call a tool; holds for the first model call of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<RunToolChoice>,
    /// Whether the model may call several tools at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// At most so many calls in the run of tools that are executed here; those beyond are answered
    /// with an error. Calls of the client's own tools are the client's to count.
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
    /// How many tokens each answer of the model may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// How many tokens all answers of the run may have together. It ends when too few are left for
    /// another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_run_output_tokens: Option<u64>,
    /// Whether these tokens are counted from here on where the run answers calls that an earlier one has left.
    /// Else it goes on counting where that one was.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tokens_begin_here: bool,
    /// How much the model reasons, in the provider's word: `none`, `low`, `medium`, `high`, `xhigh`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
    /// Whether reasoning is summarised: `auto`, `concise`, `detailed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_summary: Option<String>,
    /// How the answer is to be formed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<AnswerFormat>,
    /// Whether no model is asked: what was said is kept, and the run is over when it has acted on the
    /// answers it was begun with, if it was begun with any. Middleware is not around such a run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub without_model: bool,
    /// What the view that made the run must say again of it, under the view's name: `responses`,
    /// `threads`, `langgraph`. Never interpreted by the runtime.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub echo: Map<String, Value>,
}

impl RunOptions {
    /// Makes these options, as JSON, those of the run that goes on where another one has left calls: once they are
    /// answered the model is asked.
    pub fn keep_for_continuation(options: &mut Value) {
        if let Value::Object(options) = options {
            options.remove("withoutModel");
        }
    }

    /// Options for a run that somebody else's answer continues. The token limit of one request does not apply.
    pub fn go_on_for_others(options: &mut Value) {
        Self::keep_for_continuation(options);
        if let Value::Object(options) = options
            && options.remove("tokensBeginHere").is_some()
        {
            options.remove("maxRunOutputTokens");
        }
    }

    /// Whether these options, as JSON, are only what a view keeps for itself. Most are, and need not be
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
    /// What it does, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of its arguments; any object when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Value>,
    /// Whether the arguments must keep to the schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
}

/// What a tool's name must be, for refusals.
pub(crate) const TOOL_NAME: &str = "1 to 64 letters, digits, underscores and hyphens";

/// Whether a tool may have this name: what every provider takes, 1 to 64 bytes of `[a-zA-Z0-9_-]`.
pub(crate) fn is_tool_name(name: &str) -> bool {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=64).contains(&name.len()) && name.bytes().all(is_safe)
}

/// The place of the first tool that has the name of one before it: calls name nothing else.
pub(crate) fn repeated(tools: &[ClientTool]) -> Option<usize> {
    let mut names = BTreeSet::new();
    tools
        .iter()
        .position(|tool| !names.insert(tool.name.as_str()))
}

/// Checks the JSON Schema at a place of a request against the limits of `upp::schema`. A refusal
/// has the JSON pointer into the request, and what is expected there.
#[cfg(feature = "model")]
pub(crate) fn check_schema(schema: &Value, pointer: &str) -> Result<(), (String, &'static str)> {
    let checked = upp::schema::check(schema);
    checked.map(|_| ()).map_err(|refused| {
        let pointer = format!("{pointer}{}", refused.pointer);
        (pointer, refused.fault.expected())
    })
}

/// Accepts every JSON Schema: without the feature `model` nothing is run, so no schema is used.
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
    /// It may not.
    None,
    /// It must call some tool.
    Required,
    /// It must call this one.
    Function {
        /// The tool.
        name: String,
    },
    /// It may call only these; a call of another is answered with an error.
    Allowed {
        /// The tools.
        names: Vec<String>,
        /// Whether it must.
        required: bool,
    },
}

/// How an answer is to be formed.
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
