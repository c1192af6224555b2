//! Spans of model calls and tool executions, with the names of OpenTelemetry's `GenAI` conventions.
//!
//! The spans are `tracing` spans of the target [`TARGET`]. Without a subscriber for that target no span
//! is made and none of its values is computed. `tracing-opentelemetry` reads the fields `otel.name`,
//! `otel.kind` and `otel.status_code` to set a span's name, kind and status.
//!
//! A span has the called model or tool, the outcome and the cost. It has the content of messages only
//! after [`capture_content`]. It never has error messages, because they may quote content; `error.type`
//! is the protocol's code ([`code_name`]), or one of the words in [`error_type`].

mod chat;
mod content;
pub mod names;
mod operation;
mod tool;

pub(crate) use chat::call_whole;
pub use chat::{call, complete};
pub use operation::Operation;
pub(crate) use tool::{in_tool_span, tool_span};

use crate::error::Code;
use std::sync::atomic::{AtomicBool, Ordering};

/// The target of all spans of the conventions.
pub const TARGET: &str = "gen_ai";

/// Values of `error.type` for errors without a code of the protocol.
pub mod error_type {
    /// The fallback of the conventions.
    pub const OTHER: &str = "_OTHER";
    /// A call names a tool that there is not.
    pub const TOOL_NOT_FOUND: &str = "tool_not_found";
    /// A call was refused before its tool started, for example because of its arguments.
    pub const TOOL_NOT_RUN: &str = "tool_not_run";
    /// A tool or one of its hooks failed, or an approval was denied; the model received the error.
    pub const TOOL_ERROR: &str = "tool_error";
    /// The approval handler failed, which ended the run.
    pub const APPROVAL_FAILED: &str = "approval_failed";
}

static CAPTURES_CONTENT: AtomicBool = AtomicBool::new(false);

/// Whether spans hold messages, system prompts, and the arguments and results of tools, for the
/// whole process; off unless this is called. All of it may be personal or secret.
pub fn capture_content(on: bool) {
    CAPTURES_CONTENT.store(on, Ordering::Relaxed);
}

/// Whether [`capture_content`] is on.
pub fn captures_content() -> bool {
    CAPTURES_CONTENT.load(Ordering::Relaxed)
}

/// The code as the protocol writes it (UPP §14), such as `RATE_LIMITED`.
pub fn code_name(code: Code) -> &'static str {
    match code {
        Code::AuthenticationFailed => "AUTHENTICATION_FAILED",
        Code::RateLimited => "RATE_LIMITED",
        Code::ContextLengthExceeded => "CONTEXT_LENGTH_EXCEEDED",
        Code::ModelNotFound => "MODEL_NOT_FOUND",
        Code::InvalidRequest => "INVALID_REQUEST",
        Code::InvalidResponse => "INVALID_RESPONSE",
        Code::ContentFiltered => "CONTENT_FILTERED",
        Code::QuotaExceeded => "QUOTA_EXCEEDED",
        Code::ProviderError => "PROVIDER_ERROR",
        Code::NetworkError => "NETWORK_ERROR",
        Code::Timeout => "TIMEOUT",
        Code::Cancelled => "CANCELLED",
    }
}

/// The provider's name in the conventions, if they define one.
pub fn provider_name(provider: &str) -> &str {
    match provider {
        "google" => "gcp.gemini",
        "xai" => "x_ai",
        other => other,
    }
}

/// A count as the signed number that attributes have.
pub fn count(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
