//! A span that records its outcome.

use super::{code_name, error_type, names};
use crate::error::Code;
use tracing::Span;

/// A running operation with a span that has the fields `error.type` and `otel.status_code`. If it is
/// dropped before its end, it counts as cancelled.
#[derive(Debug)]
#[must_use = "dropped, the operation counts as cancelled"]
pub struct Operation {
    span: Span,
    has_ended: bool,
}

impl Operation {
    /// Starts an operation in this span.
    pub fn new(span: Span) -> Self {
        Self {
            span,
            has_ended: false,
        }
    }

    /// Its span, to run in and to record to.
    pub fn span(&self) -> &Span {
        &self.span
    }

    /// It ended well.
    pub fn succeed(mut self) {
        self.has_ended = true;
    }

    /// It failed; `error_type` is one of few values.
    pub fn fail(mut self, error_type: &str) {
        self.has_ended = true;
        self.record(error_type);
    }

    fn record(&self, error_type: &str) {
        self.span.record(names::ERROR_TYPE, error_type);
        self.span.record(names::OTEL_STATUS_CODE, "ERROR");
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        let panicked = std::thread::panicking();
        self.record(if panicked {
            error_type::OTHER
        } else {
            code_name(Code::Cancelled)
        });
    }
}
