//! The span of a tool execution.

use super::operation::Operation;
use super::{TARGET, captures_content, code_name, error_type, names};
use crate::error::Code;
use crate::execute::ExecuteError;
use crate::tool::{Tool, ToolCall, ToolExecution};
use std::future::Future;
use tracing::field::Empty;
use tracing::{Instrument, Span};

/// A span named `execute_tool {tool}`, a child of the current one.
pub(crate) fn tool_span(call: &ToolCall, tool: Option<&Tool>) -> Span {
    tracing::info_span!(
        target: TARGET,
        "execute_tool",
        { names::OTEL_NAME } = %format_args!("execute_tool {}", call.tool_name),
        { names::OTEL_KIND } = "internal",
        { names::OTEL_STATUS_CODE } = Empty,
        { names::ERROR_TYPE } = Empty,
        { names::OPERATION_NAME } = "execute_tool",
        { names::TOOL_NAME } = &*call.tool_name,
        { names::TOOL_CALL_ID } = call.tool_call_id.as_str(),
        { names::TOOL_TYPE } = "function",
        { names::TOOL_DESCRIPTION } = tool.map(|tool| tool.description.as_str()),
        { names::TOOL_CALL_ARGUMENTS } = Empty,
        { names::TOOL_CALL_RESULT } = Empty,
    )
}

/// Runs `run` in its span, and records its outcome. `may_run`: the call's arguments were accepted.
pub(crate) async fn in_tool_span(
    span: Span,
    call: &ToolCall,
    tool: Option<&Tool>,
    may_run: bool,
    run: impl Future<Output = Result<ToolExecution, ExecuteError>>,
) -> Result<ToolExecution, ExecuteError> {
    if captures_content() {
        span.record(names::TOOL_CALL_ARGUMENTS, call.arguments.text());
    }
    let operation = Operation::new(span.clone());
    let outcome = run.instrument(span).await;
    match &outcome {
        Ok(execution) => {
            if captures_content() {
                let result = execution.result.to_string();
                let span = operation.span();
                span.record(names::TOOL_CALL_RESULT, result.as_str());
            }
            if !execution.is_error {
                operation.succeed();
            } else if tool.is_none() {
                operation.fail(error_type::TOOL_NOT_FOUND);
            } else if may_run {
                operation.fail(error_type::TOOL_ERROR);
            } else {
                operation.fail(error_type::TOOL_NOT_RUN);
            }
        }
        Err(ExecuteError::Cancelled) => operation.fail(code_name(Code::Cancelled)),
        Err(ExecuteError::Approval { .. }) => operation.fail(error_type::APPROVAL_FAILED),
    }
    outcome
}
