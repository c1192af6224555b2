//! What clients are told of requests that can't be followed.

use crate::request::param;
use serde_json::{Value, json};

/// What kind of error it is; the server maps it to a status of its transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorKind {
    /// The request is wrong.
    InvalidRequest,
    /// What it names is not there.
    NotFound,
    /// It can't be followed now: the conversation is busy.
    Conflict,
    /// Too much is asked.
    TooManyRequests,
    /// The model failed.
    ModelError,
    /// The server failed.
    ServerError,
}

impl ErrorKind {
    /// The protocol's word for it, as `error.type`.
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

/// An error in the protocol's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RequestError {
    /// What kind it is.
    pub kind: ErrorKind,
    /// The protocol's code: `invalid_value`, `previous_response_not_found`, …
    pub code: &'static str,
    /// Where in the request: a JSON pointer; absent where it is no matter of one place.
    pub pointer: Option<String>,
    /// What is wrong, and what was expected.
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

    /// There is no response of this id.
    pub fn response_not_found(id: &str) -> Self {
        let message = format!("Response with id '{id}' not found.");
        Self::of(ErrorKind::NotFound, "response_not_found", "", message)
    }

    /// There is no conversation of this id.
    pub fn conversation_not_found(id: &str) -> Self {
        let message = format!("Conversation with id '{id}' not found.");
        Self::of(ErrorKind::NotFound, "conversation_not_found", "", message)
    }

    /// There is no item of this id; `pointer` says where the request names it.
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

    /// It can't be deleted, for others have been made from it.
    pub fn has_forks(id: &str) -> Self {
        let message =
            format!("'{id}' can't be deleted while conversations exist that go on from it.");
        Self::of(ErrorKind::Conflict, "conversation_has_forks", "", message)
    }

    /// An item can't be deleted now, for what is still to come needs it.
    pub fn not_removable(id: &str, why: &str) -> Self {
        let message = format!("Item with id '{id}' can't be deleted: {why}.");
        Self::of(ErrorKind::Conflict, "not_removable", "", message)
    }

    /// Nothing is said in this conversation any more.
    pub fn conversation_closed(id: &str) -> Self {
        let message = format!("The conversation of '{id}' is closed.");
        Self::of(ErrorKind::Conflict, "conversation_closed", "", message)
    }

    /// A result for a call that does not wait for one.
    pub fn no_such_call(call_id: &str) -> Self {
        Self::no_such_call_at(call_id, "/input")
    }

    /// A result for a call that waits for none, with a pointer to the result.
    pub fn no_such_call_at(call_id: &str, pointer: &str) -> Self {
        let message =
            format!("No tool call found for function call output with call_id {call_id}.");
        Self::of(ErrorKind::InvalidRequest, "invalid_value", pointer, message)
    }

    /// A result is to be kept for a call that waits for it.
    pub fn call_waits(call_id: &str, pointer: &str) -> Self {
        let message = format!(
            "The function call {call_id} waits for its output. Send it as input of a response in this \
             conversation, which goes on with it."
        );
        Self::of(ErrorKind::InvalidRequest, "invalid_value", pointer, message)
    }

    /// No model and no agent has this name.
    pub fn model_not_found(model: &str) -> Self {
        let message = format!("The requested model '{model}' does not exist.");
        Self::of(
            ErrorKind::InvalidRequest,
            "model_not_found",
            "/model",
            message,
        )
    }

    /// A call waits for its result, and the request goes on without it.
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

    /// Where in the request, as the protocol spells it: `input[0].content`.
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

/// The message over a WebSocket that tells an error: the object that a body has as its `error`.
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
