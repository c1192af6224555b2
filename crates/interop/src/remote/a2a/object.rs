//! Reads the objects of A2A that the client needs.

use serde_json::Value;

/// Why a remote agent's response can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// The remote agent refused the call.
    #[error("it refuses: {message} ({code})")]
    Refused {
        /// The error code of JSON-RPC or A2A; 0 if the response has none.
        code: i64,
        /// The error message, cut to 500 characters.
        message: String,
    },
    /// The response does not conform to A2A 1.0.
    #[error("{0}")]
    Malformed(&'static str),
}

/// The result of a JSON-RPC response.
///
/// # Errors
///
/// [`ObjectError::Refused`] if the response has an error, [`ObjectError::Malformed`] if it has neither
/// a result nor an error.
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

/// The name under which the reader stores the text of an artifact.
pub(super) fn named(artifact: &Value) -> String {
    let id = artifact.get("artifactId").and_then(Value::as_str);
    format!("artifact {}", id.unwrap_or_default())
}

/// The elements of all arrays that the data parts of a message have under `name`.
pub(super) fn named_in<'a>(message: Option<&'a Value>, name: &str) -> Vec<&'a Value> {
    let parts = message.and_then(|message| message.get("parts")?.as_array());
    let parts = parts.into_iter().flatten();
    let named = parts.filter_map(|part| part.get("data")?.get(name)?.as_array());
    named.flatten().collect()
}

/// The name under which the reader stores the text of a message.
pub(super) fn name_of(message: &Value) -> String {
    let id = message.get("messageId").and_then(Value::as_str);
    format!("message {}", id.unwrap_or_default())
}

/// The joined text of an artifact or a message. A data part is written as JSON and begins a new line.
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
