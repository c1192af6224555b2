//! Errors in the form of the Model Context Protocol: JSON-RPC's error objects, and results of failed
//! tools.

use super::{ApiError, Failure, is_fault};
use http::StatusCode;
use rmcp::model::{CallToolResult, ContentBlock, ErrorCode, ErrorData, MetaObject};
use serde_json::{Value, json};

/// The member of a failed tool's result that contains the error for programs.
const META: &str = "loomline/error";

/// The body for a request that is not a valid call and so has no id.
pub(crate) fn body(status: StatusCode, failure: &Failure) -> Value {
    json!({"jsonrpc": "2.0", "error": data(status, failure)})
}

/// The JSON-RPC error object of a failed call. Errors of the server are logged, as for responses with a
/// status.
pub(crate) fn error(error: &ApiError) -> ErrorData {
    let (status, failure) = failure_of(error);
    data(status, &failure)
}

/// An error as the result of a tool, which the model reads to correct its call.
pub(crate) fn tool_error(error: &ApiError) -> CallToolResult {
    let (_, failure) = failure_of(error);
    let place = failure.pointer.as_deref().filter(|it| !it.is_empty());
    let place = place.map(|pointer| format!(" (at {pointer})"));
    let text = format!(
        "{}: {}{}",
        failure.code,
        failure.message,
        place.unwrap_or_default()
    );
    let mut meta = MetaObject::new();
    meta.0.insert(META.to_owned(), details(&failure));
    CallToolResult::error(vec![ContentBlock::text(text)]).with_meta(Some(meta))
}

fn failure_of(error: &ApiError) -> (StatusCode, Failure) {
    let verdict = error.verdict();
    let status = verdict.status;
    error.log(&verdict);
    (status, error.failure_of(verdict))
}

fn data(status: StatusCode, failure: &Failure) -> ErrorData {
    let code = match (failure.code, status) {
        ("malformed_json", _) => ErrorCode::PARSE_ERROR,
        ("thread_not_found", _) => ErrorCode::RESOURCE_NOT_FOUND,
        ("invalid_field" | "invalid_query", _) => ErrorCode::INVALID_PARAMS,
        (_, status) if is_fault(status) => ErrorCode::INTERNAL_ERROR,
        _ => ErrorCode::INVALID_REQUEST,
    };
    ErrorData::new(code, failure.message.clone(), Some(details(failure)))
}

fn details(failure: &Failure) -> Value {
    let mut details = json!({"code": failure.code, "message": failure.message});
    if let Some(pointer) = &failure.pointer {
        details["pointer"] = pointer.as_str().into();
    }
    if let Some(more) = &failure.details {
        details["details"] = more.clone();
    }
    details
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Scope;

    #[test]
    fn a_failed_tool_says_in_words_and_for_programs_what_failed_and_where() {
        let result = tool_error(&ApiError::field("/content", "expected a text"));
        let result = serde_json::to_value(result).unwrap();
        assert_eq!(result["isError"], true);
        assert_eq!(
            result["content"][0]["text"],
            "invalid_field: expected a text (at /content)"
        );
        assert_eq!(
            result["_meta"][META],
            json!({"code": "invalid_field", "message": "expected a text", "pointer": "/content"})
        );
    }

    #[test]
    fn what_is_no_call_has_an_error_without_an_id() {
        let error = ApiError::MissingScope {
            needed: Scope::Read,
        };
        let told = body(StatusCode::FORBIDDEN, &error.failure());
        assert_eq!(told["jsonrpc"], "2.0");
        assert_eq!(told.get("id"), None);
        assert_eq!(told["error"]["code"], -32600);
        assert_eq!(told["error"]["data"]["code"], "missing_scope");
    }
}
