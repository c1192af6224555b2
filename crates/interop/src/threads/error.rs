//! Why a request is refused, in the words that clients of this API know.

use super::object::RunStatus;
use crate::request::param;
use serde_json::{Value, json};

/// The class of an error, which decides the HTTP status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request is refused (400). This includes requests for a busy thread, because clients retry a
    /// 409.
    InvalidRequest,
    /// There is no such thing (404).
    NotFound,
}

/// A kind of object that a request can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the words of the protocol")]
pub enum ObjectKind {
    Assistant,
    Thread,
    Message,
    Run,
    RunStep,
    File,
}

impl std::fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Assistant => "assistant",
            Self::Thread => "thread",
            Self::Message => "message",
            Self::Run => "run",
            Self::RunStep => "run step",
            Self::File => "file",
        })
    }
}

/// The reason for refusing a request. The client receives the text; `pointer` is a JSON pointer into
/// the body.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// A required member is absent.
    #[error("Missing required parameter: '{}'.", param(pointer))]
    Missing {
        /// JSON pointer to the member.
        pointer: String,
    },
    /// A member is of another type.
    #[error(
        "Invalid type for '{}': expected {expected}, but got {got} instead.",
        param(pointer)
    )]
    Type {
        /// JSON pointer to the member.
        pointer: String,
        /// The expected type.
        expected: &'static str,
        /// The type found.
        got: &'static str,
    },
    /// A word that is none of those there are.
    #[error("Invalid value: '{value}'. Supported values are: {}.", words(allowed))]
    Value {
        /// JSON pointer to the member.
        pointer: String,
        /// The word.
        value: String,
        /// Those there are.
        allowed: &'static [&'static str],
    },
    /// A text is longer than it may be, in characters.
    #[error(
        "Invalid '{}': string too long. Expected a string with maximum length {max}, but got a string with length {len} instead.",
        param(pointer)
    )]
    TooLong {
        /// JSON pointer to the member.
        pointer: String,
        /// The maximum length.
        max: usize,
        /// The length found.
        len: usize,
    },
    /// A list or an object has more members than it may have.
    #[error(
        "Invalid '{}': expected at most {max} entries, but got {len}.",
        param(pointer)
    )]
    TooMany {
        /// JSON pointer to the member.
        pointer: String,
        /// The maximum number.
        max: usize,
        /// The number found.
        len: usize,
    },
    /// A value is outside of what is allowed.
    #[error("Invalid '{}': expected {expected}.", param(pointer))]
    Outside {
        /// JSON pointer to the member.
        pointer: String,
        /// The expected range.
        expected: &'static str,
    },
    /// A message is empty.
    #[error("Message content must be non-empty.")]
    EmptyContent {
        /// JSON pointer to the content.
        pointer: String,
    },
    /// This server does not support the value.
    #[error(
        "Unsupported value for '{}': {what} is not available on this server.",
        param(pointer)
    )]
    Unsupported {
        /// JSON pointer to the member.
        pointer: String,
        /// The unsupported feature.
        what: &'static str,
    },
    /// There is no such thing.
    #[error("No {what} found with id '{id}'.")]
    NotFound {
        /// The kind of object.
        what: ObjectKind,
        /// The id, in the client's spelling.
        id: String,
    },
    /// A run locks the thread against messages.
    #[error("Can't add messages to {thread} while a run {run} is active.")]
    ThreadLocked {
        /// The thread's id.
        thread: String,
        /// The run's id.
        run: String,
    },
    /// A run locks the thread against runs.
    #[error("Thread {thread} already has an active run {run}.")]
    ActiveRun {
        /// The thread's id.
        thread: String,
        /// The run's id.
        run: String,
    },
    /// A run locks the thread against its deletion.
    #[error("Can't delete {thread} while a run {run} is active.")]
    DeletionLocked {
        /// The thread's id.
        thread: String,
        /// The run's id.
        run: String,
    },
    /// The run does not wait for outputs.
    #[error("Runs in status \"{status}\" do not accept tool outputs.")]
    NotWaiting {
        /// The run's status.
        status: RunStatus,
    },
    /// The outputs do not match the pending calls.
    #[error(
        "Expected tool outputs for call_ids {}, got {}",
        listed(expected),
        listed(got)
    )]
    Outputs {
        /// The pending calls.
        expected: Vec<String>,
        /// The calls that outputs were sent for.
        got: Vec<String>,
    },
    /// A run is over.
    #[error("Cannot cancel run with status '{status}'.")]
    NotCancellable {
        /// The run's status.
        status: RunStatus,
    },
}

impl RequestError {
    /// The class of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound { .. } => ErrorKind::NotFound,
            Self::Missing { .. }
            | Self::Type { .. }
            | Self::Value { .. }
            | Self::TooLong { .. }
            | Self::TooMany { .. }
            | Self::Outside { .. }
            | Self::EmptyContent { .. }
            | Self::Unsupported { .. }
            | Self::ThreadLocked { .. }
            | Self::ActiveRun { .. }
            | Self::DeletionLocked { .. }
            | Self::NotWaiting { .. }
            | Self::Outputs { .. }
            | Self::NotCancellable { .. } => ErrorKind::InvalidRequest,
        }
    }

    /// JSON pointer into the body; `None` if the error is not about the body.
    pub fn pointer(&self) -> Option<&str> {
        match self {
            Self::Missing { pointer }
            | Self::Type { pointer, .. }
            | Self::Value { pointer, .. }
            | Self::TooLong { pointer, .. }
            | Self::TooMany { pointer, .. }
            | Self::Outside { pointer, .. }
            | Self::EmptyContent { pointer }
            | Self::Unsupported { pointer, .. } => Some(pointer),
            Self::NotFound { .. }
            | Self::ThreadLocked { .. }
            | Self::ActiveRun { .. }
            | Self::DeletionLocked { .. }
            | Self::NotWaiting { .. }
            | Self::Outputs { .. }
            | Self::NotCancellable { .. } => None,
        }
    }

    /// The protocol's word for it, if it has one.
    pub fn code(&self) -> Option<&'static str> {
        match self {
            Self::Missing { .. } => Some("missing_required_parameter"),
            Self::Type { .. } => Some("invalid_type"),
            Self::Value { .. } | Self::Outside { .. } => Some("invalid_value"),
            Self::TooLong { .. } => Some("string_above_max_length"),
            Self::TooMany { .. } => Some("array_above_max_length"),
            Self::Unsupported { .. } => Some("unsupported_value"),
            Self::EmptyContent { .. }
            | Self::NotFound { .. }
            | Self::ThreadLocked { .. }
            | Self::ActiveRun { .. }
            | Self::DeletionLocked { .. }
            | Self::NotWaiting { .. }
            | Self::Outputs { .. }
            | Self::NotCancellable { .. } => None,
        }
    }

    /// The body of the answer: `{"error": {"message", "type", "param", "code"}}`.
    pub fn body(&self) -> Value {
        let param = self.pointer().map(param).filter(|param| !param.is_empty());
        json!({"error": {
            "message": self.to_string(), "type": "invalid_request_error",
            "param": param, "code": self.code(),
        }})
    }
}

/// A list of ids, as `OpenAI`'s server spells one.
fn listed(ids: &[String]) -> String {
    let quoted: Vec<String> = ids.iter().map(|id| format!("'{id}'")).collect();
    format!("[{}]", quoted.join(", "))
}

fn words(allowed: &[&str]) -> String {
    let quoted: Vec<String> = allowed.iter().map(|word| format!("'{word}'")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        Some((last, _)) => last.clone(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_told_in_the_words_they_match_on() {
        let thread = || "thread_x".to_owned();
        let run = || "run_y".to_owned();
        let locked = RequestError::ThreadLocked {
            thread: thread(),
            run: run(),
        };
        let expected = json!({"error": {
            "message": "Can't add messages to thread_x while a run run_y is active.",
            "type": "invalid_request_error", "param": null, "code": null,
        }});
        assert_eq!(locked.body(), expected);
        assert_eq!(locked.kind(), ErrorKind::InvalidRequest);
        let active = RequestError::ActiveRun {
            thread: thread(),
            run: run(),
        };
        assert_eq!(
            active.to_string(),
            "Thread thread_x already has an active run run_y."
        );
        let deleted = RequestError::DeletionLocked {
            thread: thread(),
            run: run(),
        };
        assert_eq!(
            deleted.to_string(),
            "Can't delete thread_x while a run run_y is active."
        );
        let outputs = RequestError::Outputs {
            expected: vec!["call_a".to_owned(), "call_b".to_owned()],
            got: Vec::new(),
        };
        assert_eq!(
            outputs.to_string(),
            "Expected tool outputs for call_ids ['call_a', 'call_b'], got []"
        );
        let id = "x".to_owned();
        let what = ObjectKind::Thread;
        let missing = RequestError::NotFound { what, id };
        assert_eq!(missing.to_string(), "No thread found with id 'x'.");
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_place_in_the_body_is_said_as_clients_write_it() {
        let pointer = "/messages/0/metadata/a~1b".to_owned();
        let error = RequestError::Missing { pointer };
        assert_eq!(error.body()["error"]["param"], "messages[0].metadata.a/b");
        let value = RequestError::Value {
            pointer: "/role".into(),
            value: "system".into(),
            allowed: &["user", "assistant"],
        };
        assert_eq!(
            value.to_string(),
            "Invalid value: 'system'. Supported values are: 'user' and 'assistant'."
        );
    }
}
