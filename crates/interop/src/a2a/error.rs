//! Why something is refused, in the protocol's words.

use serde_json::{Value, json};

/// The kinds of errors: nine of A2A's own, five of JSON-RPC's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// There is no such task for this caller.
    TaskNotFound,
    /// The task has ended, or can't be stopped yet.
    TaskNotCancelable,
    /// There are no push notifications.
    PushNotificationNotSupported,
    /// The task, or this server, doesn't do that.
    UnsupportedOperation,
    /// A part is of a kind that no agent of this server reads.
    ContentTypeNotSupported,
    /// An agent answered what is no answer.
    InvalidAgentResponse,
    /// There is no extended card.
    ExtendedAgentCardNotConfigured,
    /// The client lacks an extension.
    ExtensionSupportRequired,
    /// The client requests another version of the protocol.
    VersionNotSupported,
    /// The body is no JSON.
    Parse,
    /// The body is no request.
    InvalidRequest,
    /// There is no such method.
    MethodNotFound,
    /// A parameter is missing or wrong.
    InvalidParams,
    /// The server failed.
    Internal,
}

impl ErrorKind {
    /// All kinds.
    pub const ALL: [Self; 14] = [
        Self::TaskNotFound,
        Self::TaskNotCancelable,
        Self::PushNotificationNotSupported,
        Self::UnsupportedOperation,
        Self::ContentTypeNotSupported,
        Self::InvalidAgentResponse,
        Self::ExtendedAgentCardNotConfigured,
        Self::ExtensionSupportRequired,
        Self::VersionNotSupported,
        Self::Parse,
        Self::InvalidRequest,
        Self::MethodNotFound,
        Self::InvalidParams,
        Self::Internal,
    ];

    /// JSON-RPC's code.
    pub const fn code(self) -> i32 {
        match self {
            Self::TaskNotFound => -32001,
            Self::TaskNotCancelable => -32002,
            Self::PushNotificationNotSupported => -32003,
            Self::UnsupportedOperation => -32004,
            Self::ContentTypeNotSupported => -32005,
            Self::InvalidAgentResponse => -32006,
            Self::ExtendedAgentCardNotConfigured => -32007,
            Self::ExtensionSupportRequired => -32008,
            Self::VersionNotSupported => -32009,
            Self::Parse => -32700,
            Self::InvalidRequest => -32600,
            Self::MethodNotFound => -32601,
            Self::InvalidParams => -32602,
            Self::Internal => -32603,
        }
    }

    /// The reason in `google.rpc.ErrorInfo`, by which clients distinguish errors.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::TaskNotFound => "TASK_NOT_FOUND",
            Self::TaskNotCancelable => "TASK_NOT_CANCELABLE",
            Self::PushNotificationNotSupported => "PUSH_NOTIFICATION_NOT_SUPPORTED",
            Self::UnsupportedOperation => "UNSUPPORTED_OPERATION",
            Self::ContentTypeNotSupported => "CONTENT_TYPE_NOT_SUPPORTED",
            Self::InvalidAgentResponse => "INVALID_AGENT_RESPONSE",
            Self::ExtendedAgentCardNotConfigured => "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
            Self::ExtensionSupportRequired => "EXTENSION_SUPPORT_REQUIRED",
            Self::VersionNotSupported => "VERSION_NOT_SUPPORTED",
            Self::Parse | Self::InvalidRequest => "INVALID_REQUEST",
            Self::MethodNotFound => "METHOD_NOT_FOUND",
            Self::InvalidParams => "INVALID_PARAMS",
            Self::Internal => "INTERNAL_ERROR",
        }
    }

    /// The status of `google.rpc.Code`.
    pub const fn status(self) -> &'static str {
        match self {
            Self::TaskNotFound | Self::MethodNotFound => "NOT_FOUND",
            Self::TaskNotCancelable
            | Self::PushNotificationNotSupported
            | Self::UnsupportedOperation
            | Self::ExtendedAgentCardNotConfigured
            | Self::ExtensionSupportRequired
            | Self::VersionNotSupported => "FAILED_PRECONDITION",
            Self::ContentTypeNotSupported
            | Self::Parse
            | Self::InvalidRequest
            | Self::InvalidParams => "INVALID_ARGUMENT",
            Self::InvalidAgentResponse | Self::Internal => "INTERNAL",
        }
    }
}

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RequestError {
    /// The kind of the error.
    pub kind: ErrorKind,
    /// The text for people.
    pub message: String,
    /// Where in the request, as a JSON pointer, if it is about a place.
    pub pointer: Option<String>,
}

impl RequestError {
    /// A refusal that is about no place in the request.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            pointer: None,
        }
    }

    /// A parameter that is not as it must be.
    pub fn param(pointer: impl Into<String>, what: impl std::fmt::Display) -> Self {
        let pointer = pointer.into();
        Self {
            kind: ErrorKind::InvalidParams,
            message: format!("{pointer}: {what}"),
            pointer: Some(pointer),
        }
    }

    /// There is no such task.
    pub fn no_task(id: &str) -> Self {
        let id: String = id.chars().take(100).collect();
        let message = format!("there is no task {id:?}");
        Self::new(ErrorKind::TaskNotFound, message)
    }

    /// Push notifications are not supported.
    pub fn no_push() -> Self {
        Self::new(
            ErrorKind::PushNotificationNotSupported,
            "this server sends no push notifications: stream, subscribe or ask for the task",
        )
    }

    /// The error details, which both HTTP bindings have.
    fn details(&self) -> Value {
        let mut details = vec![json!({
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": self.kind.reason(), "domain": "a2a-protocol.org",
        })];
        if let Some(pointer) = &self.pointer {
            details.push(json!({
                "@type": "type.googleapis.com/google.rpc.BadRequest",
                "fieldViolations": [{"field": pointer, "description": self.message}],
            }));
        }
        details.into()
    }

    /// JSON-RPC's error object.
    pub fn to_rpc(&self) -> Value {
        json!({"code": self.kind.code(), "message": self.message, "data": self.details()})
    }

    /// The body of the other HTTP binding, which repeats the HTTP status.
    pub fn to_rest(&self, http: u16) -> Value {
        json!({"error": {
            "code": http, "status": self.kind.status(),
            "message": self.message, "details": self.details(),
        }})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_kind_has_a_code_of_its_own_in_the_ranges_of_the_protocols() {
        let codes: BTreeSet<i32> = ErrorKind::ALL.iter().map(|kind| kind.code()).collect();
        assert_eq!(codes.len(), ErrorKind::ALL.len());
        assert_eq!(codes.range(-32009..=-32001).count(), 9);
        assert_eq!(codes.range(-32700..=-32600).count(), 5);
    }

    #[test]
    fn both_bindings_say_the_same_with_its_place() {
        let error = RequestError::param("/message/parts/0", "expected one of text, raw, url, data");
        let (rpc, rest) = (error.to_rpc(), error.to_rest(400));
        assert_eq!(rpc["code"], -32602);
        assert_eq!(rest["error"]["status"], "INVALID_ARGUMENT");
        assert_eq!(rest["error"]["code"], 400);
        assert_eq!(rpc["data"], rest["error"]["details"]);
        assert_eq!(rpc["data"][0]["reason"], "INVALID_PARAMS");
        assert_eq!(
            rpc["data"][1]["fieldViolations"][0]["field"],
            "/message/parts/0"
        );
    }
}
