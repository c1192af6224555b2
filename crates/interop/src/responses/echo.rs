//! The fields of a request that its response repeats.

use crate::options::RunOptions;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use timeline::Execution;

/// The name of this view in [`RunOptions::echo`] and in the metadata of imported items.
pub(super) const VIEW: &str = "responses";

/// The members of a response that repeat the request. [`otherwise`] has their defaults.
const SAID: [&str; 21] = [
    "previous_response_id",
    "instructions",
    "tools",
    "tool_choice",
    "truncation",
    "parallel_tool_calls",
    "text",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "top_logprobs",
    "temperature",
    "reasoning",
    "max_output_tokens",
    "max_tool_calls",
    "store",
    "background",
    "service_tier",
    "metadata",
    "safety_identifier",
    "prompt_cache_key",
];
/// Members that are present only if the request had them.
const SAID_IF_GIVEN: [&str; 2] = ["user", "prompt_cache_retention"];

/// The fields of a request that its response repeats, and the client's wishes for its form. Stored
/// with the execution as `params.echo.responses`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a wish of its own, as the request had it"
)]
pub struct Echo {
    /// The model that the request names, or else the agent that answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Members of the response, as they stand there.
    #[serde(rename = "said", skip_serializing_if = "Map::is_empty")]
    pub members: Map<String, Value>,
    /// Whether the response names its conversation.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub conversation: bool,
    /// The conversation's id in the request, if the response runs on another thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    /// Whether reasoning appears as a summary instead of text.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub summary: bool,
    /// Whether reasoning includes the encrypted content that its provider needs to accept it as
    /// input.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub encrypted_reasoning: bool,
    /// Whether items beyond the specification are included.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub extensions: bool,
}

/// The value in a response of a member that the request did not have.
fn otherwise(member: &str) -> Value {
    match member {
        "tools" => json!([]),
        "tool_choice" => "auto".into(),
        "truncation" => "disabled".into(),
        "parallel_tool_calls" | "store" => true.into(),
        "background" => false.into(),
        "text" => json!({"format": {"type": "text"}}),
        "top_p" | "temperature" => json!(1.0),
        "presence_penalty" | "frequency_penalty" => json!(0.0),
        "top_logprobs" => 0.into(),
        "service_tier" => "default".into(),
        "metadata" => json!({}),
        _ => Value::Null,
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RunParams {
    agent: Option<String>,
    params: Option<RunOptions>,
}

impl Echo {
    /// The fields that the execution's request had. An execution of another protocol has only
    /// `model`.
    pub fn of(execution: &Execution) -> Self {
        let run: RunParams = execution
            .run
            .as_ref()
            .and_then(|run| run.read().ok())
            .unwrap_or_default();
        let options = run.params.unwrap_or_default();
        let echo = options.echo.get(VIEW).cloned();
        let known: Option<Self> = echo.and_then(|echo| serde_json::from_value(echo).ok());
        let known = known.unwrap_or_else(|| Self {
            model: options.model,
            ..Self::default()
        });
        // The name of an agent is as good as a model's.
        let model = known.model.or(run.agent);
        Self { model, ..known }
    }

    pub(super) fn set(&mut self, member: &str, value: impl Into<Value>) {
        self.members.insert(member.to_owned(), value.into());
    }

    /// Stores it for [`Echo::of`].
    pub(super) fn keep(&self, options: &mut RunOptions) {
        if let Ok(echo) = serde_json::to_value(self) {
            options.echo.insert(VIEW.to_owned(), echo);
        }
    }

    /// The members of a response, each with a comma before it.
    pub(super) fn members(&self) -> String {
        let mut out = String::new();
        for member in SAID {
            let value = self.members.get(member).cloned();
            push(
                &mut out,
                member,
                &value.unwrap_or_else(|| otherwise(member)),
            );
        }
        for member in SAID_IF_GIVEN {
            if let Some(value) = self.members.get(member) {
                push(&mut out, member, value);
            }
        }
        out
    }
}

fn push(out: &mut String, member: &str, value: &Value) {
    out.push_str(",\"");
    out.push_str(member);
    out.push_str("\":");
    out.push_str(&value.to_string());
}
