//! How responses end, in the protocol's terms.

use super::error::ErrorKind;
use crate::truncate::Cut;
use serde_json::{Value, json};
use timeline::{ExecutionStatus, Interruption};

/// The status of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// The response has not started.
    Queued,
    /// The response is being generated.
    InProgress,
    /// The response ended normally; calls in it may wait for their client.
    Completed,
    /// Something went wrong.
    Failed,
    /// A limit was reached.
    Incomplete,
    /// The response was cancelled.
    Cancelled,
}

impl Status {
    /// The protocol's name of the status.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Incomplete => "incomplete",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The end of a response, in the protocol's terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ending {
    pub(crate) status: Status,
    pub(crate) incomplete: Option<String>,
    pub(crate) error: Option<Failure>,
}

/// The error of a failed response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: ErrorKind,
    /// The protocol's error code.
    pub(crate) code: String,
    /// An explanation for people.
    pub(crate) message: String,
}

impl Failure {
    /// The failure of an execution, from its interruption.
    fn of(reason: &str, why: Option<&Interruption>) -> Self {
        let (kind, code) = match reason {
            "rate_limited" | "quota_exceeded" => {
                (ErrorKind::TooManyRequests, "rate_limit_exceeded")
            }
            // What a record calls an error is one of the model's or the system's (TP 0.0.4), and an
            // agent's run has few of the latter. The official clients know no code of its own for it.
            "network_failure" | "error" => (ErrorKind::ModelError, "server_error"),
            _ => (ErrorKind::ServerError, "server_error"),
        };
        let detail = why.and_then(|why| why.detail.clone());
        Self {
            kind,
            code: code.to_owned(),
            message: detail.unwrap_or_else(|| reason.to_owned()),
        }
    }

    /// As the response has it.
    pub(crate) fn object(&self) -> Value {
        json!({"code": self.code, "message": self.message})
    }

    /// The error of an `error` event.
    pub(crate) fn event(&self) -> Value {
        json!({
            "type": self.kind.name(), "code": self.code,
            "message": self.message, "param": null,
        })
    }
}

impl Ending {
    pub(crate) const fn none(status: Status) -> Self {
        Self {
            status,
            incomplete: None,
            error: None,
        }
    }

    /// The execution failed.
    pub(crate) fn failed(failure: Failure) -> Self {
        Self {
            error: Some(failure),
            ..Self::none(Status::Failed)
        }
    }

    /// How an execution ended that was cut short so, if it was.
    pub(crate) fn of(
        status: ExecutionStatus,
        why: Option<&Interruption>,
        cut: Option<Cut>,
    ) -> Self {
        let incomplete = |reason: &str| Self {
            incomplete: Some(reason.to_owned()),
            ..Self::none(Status::Incomplete)
        };
        let why = match status {
            ExecutionStatus::Executing => return Self::none(Status::InProgress),
            ExecutionStatus::Completed => {
                return match cut {
                    Some(Cut::Tokens) => incomplete("max_output_tokens"),
                    Some(Cut::ContentFilter) => incomplete("content_filter"),
                    None => Self::none(Status::Completed),
                };
            }
            ExecutionStatus::Failed => why,
        };
        let reason = why.map_or("error", |why| why.reason.as_str());
        match reason {
            Interruption::USER_CANCELLED => Self::none(Status::Cancelled),
            "safety_halt" => incomplete("content_filter"),
            "max_steps" | "max_handoffs" | "timeout" => incomplete(reason),
            _ => Self::failed(Failure::of(reason, why)),
        }
    }
}
