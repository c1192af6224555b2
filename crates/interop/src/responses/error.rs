//! The errors of requests that are refused.

use crate::request::param;
use serde_json::{Value, json};

/// The kind of an error; the server maps it to a status of its transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorKind {
    /// The request is wrong.
    InvalidRequest,
    /// The named resource does not exist.
    NotFound,
    /// A conflict, such as a busy conversation.
    Conflict,
    /// A rate limit is exceeded.
    TooManyRequests,
    /// The model failed.
    ModelError,
    /// The server failed.
    ServerError,
}

impl ErrorKind {
    /// The protocol's name, for `error.type`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::InvalidRequest | Self::Conflict => "invalid_request_error",
            Self::NotFound => "not_found",
            Self::TooManyRequests => "too_many_requests",
            Self::ModelError => "model_error",
            Self::ServerError => "server_error",
        }
    }
}

/// An error in the protocol's form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RequestError {
    /// The kind of the error.
    pub kind: ErrorKind,
    /// The protocol's code: `invalid_value`, `previous_response_not_found`, …
    pub code: &'static str,
    /// The JSON Pointer in the request; `None` if the error has no single position.
    pub pointer: Option<String>,
    /// The error message: what is wrong, and what was expected.
    pub message: String,
}

impl RequestError {
    /// An error of the request's content at a place.
    pub fn at(pointer: impl Into<String>, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            kind: ErrorKind::InvalidRequest,
            code,
            pointer: Some(pointer.into()),
            message: message.into(),
        }
    }

    fn of(kind: ErrorKind, code: &'static str, pointer: &str, message: String) -> Self {
        let pointer = (!pointer.is_empty()).then(|| pointer.to_owned());
        Self {
            kind,
            code,
            pointer,
            message,
        }
    }

    /// The response to continue is not there.
    pub fn previous_response_not_found(id: &str) -> Self {
        let message = format!("Previous response with id '{id}' not found.");
        let (kind, code) = (ErrorKind::InvalidRequest, "previous_response_not_found");
        Self::of(kind, code, "/previous_response_id", message)
    }

    /// No response has this id.
    pub fn response_not_found(id: &str) -> Self {
        let message = format!("Response with id '{id}' not found.");
        Self::of(ErrorKind::NotFound, "response_not_found", "", message)
    }

    /// No conversation has this id.
    pub fn conversation_not_found(id: &str) -> Self {
        let message = format!("Conversation with id '{id}' not found.");
        Self::of(ErrorKind::NotFound, "conversation_not_found", "", message)
    }

    /// No item has this id; `pointer` is its position in the request.
    pub fn item_not_found(id: &str, pointer: &str) -> Self {
        let message = format!("Item with id '{id}' not found.");
        Self::of(ErrorKind::NotFound, "item_not_found", pointer, message)
    }

    /// Another response is being made in this conversation.
    pub fn conversation_locked(id: &str) -> Self {
        let message = format!(
            "Another response is being generated in '{id}'. Wait for it to end or cancel it."
        );
        Self::of(ErrorKind::Conflict, "conversation_locked", "", message)
    }

    /// The conversation can't be deleted, because other conversations continue it.
    pub fn has_forks(id: &str) -> Self {
        let message = format!("'{id}' can't be deleted while other conversations continue it.");
        Self::of(ErrorKind::Conflict, "conversation_has_forks", "", message)
    }

    /// An item can't be deleted now, because later items depend on it.
    pub fn not_removable(id: &str, why: &str) -> Self {
        let message = format!("Item with id '{id}' can't be deleted: {why}.");
        Self::of(ErrorKind::Conflict, "not_removable", "", message)
    }

    /// The conversation is closed and accepts no new items.
    pub fn conversation_closed(id: &str) -> Self {
        let message = format!("The conversation of '{id}' is closed.");
        Self::of(ErrorKind::Conflict, "conversation_closed", "", message)
    }

    /// A result for a call that is not pending.
    pub fn no_such_call(call_id: &str) -> Self {
        Self::no_such_call_at(call_id, "/input")
    }

    /// A result for a call that is not pending, with a pointer to the result.
    pub fn no_such_call_at(call_id: &str, pointer: &str) -> Self {
        let message =
            format!("No tool call found for function call output with call_id {call_id}.");
        Self::of(ErrorKind::InvalidRequest, "invalid_value", pointer, message)
    }

    /// A client stores a result for a call that is still pending.
    pub fn call_waits(call_id: &str, pointer: &str) -> Self {
        let message = format!(
            "The function call {call_id} waits for its output. Send it as input of a response in this \
             conversation, which goes on with it."
        );
        Self::of(ErrorKind::InvalidRequest, "invalid_value", pointer, message)
    }

    /// No model or agent has this name.
    pub fn model_not_found(model: &str) -> Self {
        let message = format!("The requested model '{model}' does not exist.");
        Self::of(
            ErrorKind::InvalidRequest,
            "model_not_found",
            "/model",
            message,
        )
    }

    /// A call is pending, and the request continues without its result.
    pub fn unanswered(call_id: &str) -> Self {
        let message = format!("No tool output found for function call {call_id}.");
        Self::of(
            ErrorKind::InvalidRequest,
            "invalid_value",
            "/input",
            message,
        )
    }

    /// The model went wrong.
    pub fn model_error(message: impl Into<String>) -> Self {
        Self::of(ErrorKind::ModelError, "model_error", "", message.into())
    }

    /// Something at the server went wrong.
    pub fn server_error(message: impl Into<String>) -> Self {
        Self::of(ErrorKind::ServerError, "server_error", "", message.into())
    }

    /// The position in the request, in the protocol's notation: `input[0].content`.
    pub fn param(&self) -> Option<String> {
        let pointer = self
            .pointer
            .as_deref()
            .filter(|pointer| !pointer.is_empty())?;
        Some(param(pointer))
    }

    fn payload(&self) -> Value {
        json!({
            "message": self.message, "type": self.kind.name(),
            "param": self.param(), "code": self.code,
        })
    }

    /// The body of an answer over HTTP.
    pub fn body(&self) -> Value {
        json!({"error": self.payload()})
    }

    /// The message over a WebSocket. `status` is the status that HTTP would have had; it is a
    /// member of the message.
    pub fn socket_frame(&self, status: u16) -> String {
        socket_frame(status, &self.payload())
    }
}

/// An error as a WebSocket message. `error` is the object under `error` of an HTTP body.
pub fn socket_frame(status: u16, error: &Value) -> String {
    json!({"type": "error", "status": status, "error": error}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_spelled_as_the_protocol_spells_it() {
        let param = |pointer: &str| RequestError::at(pointer, "c", "m").param();
        assert_eq!(
            param("/input/0/content/12/text").as_deref(),
            Some("input[0].content[12].text")
        );
        assert_eq!(param("/a~1b").as_deref(), Some("a/b"));
        assert_eq!(param(""), None);
    }

    #[test]
    fn a_frame_has_a_status_and_no_sequence_number() {
        let frame = RequestError::previous_response_not_found("resp_1").socket_frame(400);
        let frame: Value = serde_json::from_str(&frame).unwrap();
        assert_eq!(frame["status"], 400);
        assert_eq!(frame["error"]["code"], "previous_response_not_found");
        assert_eq!(frame["error"]["param"], "previous_response_id");
        assert_eq!(frame.get("sequence_number"), None);
    }
}
