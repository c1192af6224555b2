//! Errors in the forms of `LangGraph` (`{"detail"}`) and of the Agent Protocol (`{"code", "message",
//! "metadata"}`). Their members do not overlap, so every error has both forms at once.

use super::{ApiError, Failure};
use http::StatusCode;
use interop::langgraph::{ErrorKind, RequestError};
use serde_json::{Value, json};

impl From<RequestError> for ApiError {
    fn from(error: RequestError) -> Self {
        Self::LangGraph(Box::new(error))
    }
}

/// The status of an error kind.
pub(super) fn status(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::Conflict => StatusCode::CONFLICT,
        ErrorKind::NotAllowed => StatusCode::METHOD_NOT_ALLOWED,
    }
}

/// The body of a failure.
pub(crate) fn body(failure: &Failure) -> Value {
    let mut metadata = json!({});
    if let Some(pointer) = &failure.pointer {
        metadata["pointer"] = pointer.as_str().into();
    }
    if let Some(details) = &failure.details {
        metadata["details"] = details.clone();
    }
    json!({
        "detail": failure.message, "code": failure.code, "message": failure.message, "metadata": metadata,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_read_by_both_protocols() {
        let error = ApiError::from(RequestError::at("/input/messages/0", "expected a message"));
        let told = body(&error.failure());
        assert_eq!(told["detail"], "input.messages[0]: expected a message");
        assert_eq!(
            (&told["message"], &told["code"]),
            (&told["detail"], &json!("invalid_field"))
        );
        assert_eq!(told["metadata"]["pointer"], "/input/messages/0");
        let error = ApiError::from(RequestError::no_thread("t"));
        assert_eq!(
            (
                error.verdict().status,
                body(&error.failure())["code"].as_str()
            ),
            (StatusCode::NOT_FOUND, Some("not_found"))
        );
    }
}
