//! Errors of requests.

/// The class of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request is malformed, or requests something that this server does not support.
    Invalid,
    /// The named object does not exist.
    NotFound,
    /// The request does not fit the current state.
    Conflict,
    /// This server does not support the operation.
    NotAllowed,
}

impl ErrorKind {
    /// Stable, for programs.
    pub fn code(self) -> &'static str {
        match self {
            Self::Invalid => "invalid_field",
            Self::NotFound => "not_found",
            Self::Conflict => "conflict",
            Self::NotAllowed => "not_allowed",
        }
    }
}

/// A refusal. Nothing of the request was done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RequestError {
    /// The class of the error.
    pub kind: ErrorKind,
    /// The place in the body that is wrong, as a JSON pointer.
    pub pointer: Option<String>,
    /// The text for people.
    pub message: String,
}

impl RequestError {
    /// A refusal of no place.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            pointer: None,
            message: message.into(),
        }
    }

    /// An error about a value of the request. The message includes the pointer, because some clients
    /// show nothing else.
    pub fn at(pointer: impl Into<String>, what: impl std::fmt::Display) -> Self {
        let pointer = pointer.into();
        let place = crate::param(&pointer);
        let message = if place.is_empty() {
            what.to_string()
        } else {
            format!("{place}: {what}")
        };
        Self {
            kind: ErrorKind::Invalid,
            pointer: Some(pointer),
            message,
        }
    }

    /// A conflict: the member of the body at `pointer` does not fit the current state.
    pub fn conflict(pointer: impl Into<String>, what: impl std::fmt::Display) -> Self {
        Self {
            kind: ErrorKind::Conflict,
            ..Self::at(pointer, what)
        }
    }

    /// There is no such thread.
    pub fn no_thread(id: &str) -> Self {
        Self::new(ErrorKind::NotFound, format!("Thread {id:?} not found"))
    }

    /// There is no such run.
    pub fn no_run(id: &str) -> Self {
        Self::new(ErrorKind::NotFound, format!("Run {id:?} not found"))
    }

    /// There is no such agent.
    pub fn no_agent(id: &str) -> Self {
        Self::new(ErrorKind::NotFound, format!("Assistant {id:?} not found"))
    }

    /// No call is pending under this id.
    pub fn no_interrupt(id: &str) -> Self {
        Self {
            pointer: Some("/command/resume".to_owned()),
            ..Self::new(ErrorKind::NotFound, format!("Interrupt {id:?} not found"))
        }
    }

    /// There is no such state.
    pub fn no_checkpoint(id: &str) -> Self {
        Self::new(ErrorKind::NotFound, format!("Checkpoint {id:?} not found"))
    }
}
