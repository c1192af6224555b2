//! Scripts: what the scripted model answers, call by call, from a JSON file.

use crate::error::Code;
use crate::usage::CycleUsage;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Why a script can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The text is not JSON, or not of the script's shape; the source names field, line and column.
    #[error("the script can't be read")]
    Malformed(#[source] serde_json::Error),
    /// A script needs at least one turn.
    #[error("the script has no turns")]
    Empty,
    /// A call names no tool.
    #[error("turns[{turn}].tool_calls[{call}].name is empty")]
    UnnamedCall {
        /// The turn, from 0.
        turn: usize,
        /// The call, from 0.
        call: usize,
    },
    /// A turn has no output.
    #[error("turns[{turn}] has none of text, reasoning, tool_calls and error")]
    EmptyTurn {
        /// The turn, from 0.
        turn: usize,
    },
}

/// The answers of a scripted model, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// One entry a model call.
    pub turns: Vec<ScriptTurn>,
    /// Whether the last turn answers every call after it; otherwise such a call is an error.
    #[serde(default)]
    pub repeat_last: bool,
    /// Whether each user message starts the script again (the default). When `false`, the script
    /// runs on through the thread; the model then counts the assistant messages of the whole
    /// history on each call.
    #[serde(default = "yes")]
    pub per_turn: bool,
}

fn yes() -> bool {
    true
}

/// One answer of a scripted model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScriptTurn {
    /// The text, streamed word by word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The reasoning before the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// The tools it calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ScriptCall>,
    /// The failure it ends in, after its deltas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ScriptFailure>,
    /// Milliseconds before each delta.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// The usage to report; counted from the words when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<CycleUsage>,
    /// The stop reason to report; `tool_use` or `end_turn` when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<crate::StopReason>,
}

/// A tool call of a script.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptCall {
    /// The tool.
    pub name: String,
    /// The arguments. A string is sent unchanged, so that a script can send text that is not JSON.
    #[serde(default)]
    pub arguments: Value,
    /// The call's id; derived when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The ids of the calls in the same turn that this one waits for (UAP §8.6).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
}

/// A failure of a script.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptFailure {
    /// The code.
    #[serde(default = "provider_error")]
    pub code: Code,
    /// The message.
    #[serde(default = "asked_to_fail")]
    pub message: String,
    /// The wait that the error requests of the caller, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

fn provider_error() -> Code {
    Code::ProviderError
}

fn asked_to_fail() -> String {
    "the script asks to fail".to_owned()
}

impl Script {
    /// A script of these turns that ends after the last.
    pub fn new(turns: Vec<ScriptTurn>) -> Self {
        Self {
            turns,
            repeat_last: false,
            per_turn: true,
        }
    }

    /// Reads a script and checks it.
    pub fn from_json(text: &str) -> Result<Self, ScriptError> {
        let script: Self = serde_json::from_str(text).map_err(ScriptError::Malformed)?;
        script.check()?;
        Ok(script)
    }

    fn check(&self) -> Result<(), ScriptError> {
        if self.turns.is_empty() {
            return Err(ScriptError::Empty);
        }
        for (turn, it) in self.turns.iter().enumerate() {
            if it.text.is_none()
                && it.reasoning.is_none()
                && it.tool_calls.is_empty()
                && it.error.is_none()
            {
                return Err(ScriptError::EmptyTurn { turn });
            }
            if let Some(call) = it.tool_calls.iter().position(|call| call.name.is_empty()) {
                return Err(ScriptError::UnnamedCall { turn, call });
            }
        }
        Ok(())
    }

    /// The turn that answers call number `index`, if there is one.
    pub(super) fn turn(&self, index: usize) -> Option<&ScriptTurn> {
        self.turns
            .get(index)
            .or_else(|| self.turns.last().filter(|_| self.repeat_last))
    }
}

impl ScriptTurn {
    /// A turn of this text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: Some(text.into()),
            ..Self::default()
        }
    }

    /// A turn that calls one tool.
    pub fn call(name: impl Into<String>, arguments: Value) -> Self {
        Self {
            tool_calls: vec![ScriptCall {
                name: name.into(),
                arguments,
                id: None,
                after: Vec::new(),
            }],
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    #[test]
    fn a_script_is_read_from_json() {
        let script = Script::from_json(
            r#"{"turns":[{"text":"hi","delay_ms":5},{"tool_calls":[{"name":"add","arguments":{"a":1}}]},
               {"error":{"code":"RATE_LIMITED"}}],"repeat_last":true}"#,
        )
        .unwrap();
        assert_eq!(script.turns.len(), 3);
        assert!(script.repeat_last && script.per_turn);
        assert_eq!(script.turn(9), script.turns.last());
    }

    #[test]
    fn a_misspelt_field_is_named_with_its_line() {
        let error = Script::from_json("{\"turns\":[\n{\"txt\":\"hi\"}]}").unwrap_err();
        let cause = error.source().unwrap().to_string();
        assert!(cause.contains("txt") && cause.contains("line 2"), "{cause}");
    }

    #[test]
    fn a_script_that_says_nothing_is_refused() {
        let said = |text: &str| Script::from_json(text).unwrap_err().to_string();
        assert_eq!(said(r#"{"turns":[]}"#), "the script has no turns");
        assert_eq!(
            said(r#"{"turns":[{}]}"#),
            "turns[0] has none of text, reasoning, tool_calls and error"
        );
        assert_eq!(
            said(r#"{"turns":[{"tool_calls":[{"name":""}]}]}"#),
            "turns[0].tool_calls[0].name is empty"
        );
    }
}
