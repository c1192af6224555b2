//! The objects of the protocol, as far as they are read.

use serde_json::Value;

/// Why what an agent says can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// It refuses the call.
    #[error("it refuses: {message} ({code})")]
    Refused {
        /// The code of JSON-RPC, or A2A's.
        code: i64,
        /// What it says.
        message: String,
    },
    /// It is not what the protocol says.
    #[error("{0}")]
    Malformed(&'static str),
}

/// What a JSON-RPC answer has.
///
/// # Errors
///
/// See [`ObjectError`].
pub fn result(answer: &Value) -> Result<&Value, ObjectError> {
    if let Some(error) = answer.get("error").filter(|error| !error.is_null()) {
        let message = error.get("message").and_then(Value::as_str);
        return Err(ObjectError::Refused {
            code: error
                .get("code")
                .and_then(Value::as_i64)
                .unwrap_or_default(),
            message: message.unwrap_or_default().chars().take(500).collect(),
        });
    }
    let what = "the answer is no JSON-RPC response";
    answer.get("result").ok_or(ObjectError::Malformed(what))
}

/// The name of an artifact.
pub(super) fn named(artifact: &Value) -> String {
    let id = artifact.get("artifactId").and_then(Value::as_str);
    format!("artifact {}", id.unwrap_or_default())
}

/// What the data of a message has under a name.
pub(super) fn named_in<'a>(message: Option<&'a Value>, name: &str) -> Vec<&'a Value> {
    let parts = message.and_then(|message| message.get("parts")?.as_array());
    let parts = parts.into_iter().flatten();
    let named = parts.filter_map(|part| part.get("data")?.get(name)?.as_array());
    named.flatten().collect()
}

/// The name of a message.
pub(super) fn name_of(message: &Value) -> String {
    let id = message.get("messageId").and_then(Value::as_str);
    format!("message {}", id.unwrap_or_default())
}

/// The texts of something with parts; data as its JSON, on a line of its own.
pub(super) fn words(of: &Value) -> String {
    let parts = of.get("parts").and_then(Value::as_array);
    let mut words = String::new();
    for part in parts.into_iter().flatten() {
        if let Some(text) = part.get("text").and_then(Value::as_str) {
            words.push_str(text);
        } else if let Some(data) = part.get("data") {
            if !words.is_empty() && !words.ends_with('\n') {
                words.push('\n');
            }
            words.push_str(&data.to_string());
        }
    }
    words
}
