//! Runs one tool call with its hooks (UPP §10).

use crate::shared_json::SharedJson;
use crate::strategy::{BeforeCall, ToolUseStrategy};
use crate::telemetry;
use crate::tool::{
    ArgumentsError, Tool, ToolCall, ToolContext, ToolExecution, ToolFailure, ToolResult,
};
use futures_util::FutureExt;
use serde_json::Value;
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use tokio::time::Instant;

/// Why the generation must end instead of showing the model a result.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    /// The call's signal was cancelled before it ended.
    #[error("the tool call was cancelled")]
    Cancelled,
    /// The approval handler failed; it is not known whether the call is allowed.
    #[error("the approval handler of tool '{tool}' failed")]
    Approval {
        /// The tool.
        tool: String,
        /// Why.
        #[source]
        source: ToolFailure,
    },
}

/// The arguments of a call as an object, or the error that the model reads.
pub fn arguments_of(call: &ToolCall) -> Result<Value, ToolFailure> {
    call.arguments.parse().map_err(|error| {
        let detail = match &error {
            ArgumentsError::NotJson(cause) => format!(": {cause}"),
            ArgumentsError::CutOff(_) => ". Call it again with less in them.".to_owned(),
            ArgumentsError::NotAnObject => String::new(),
        };
        ToolFailure::new(format!(
            "Tool '{}' was not run: {error}{detail}",
            call.tool_name
        ))
    })
}

/// Runs one call: `on_tool_call`, `on_before_call`, approval, the tool, `on_after_call`.
///
/// `tool` is the tool of that name, if it exists. `arguments` are the arguments that the caller accepts
/// ([`arguments_of`], perhaps checked against the tool's schema), or the error that the model reads
/// instead. A failed call, a panic included, returns a [`ToolExecution`] with `is_error` for the model.
/// An error of this function ends the generation.
///
/// A tool that requires an approval runs only if `context.approved` is true. A call of an external tool
/// returns an error result, because the client sends its result.
///
/// If `context.signal` is cancelled, a call that has not started does not run, and a running one is
/// dropped. Dropping the future has the same effect.
pub async fn execute(
    call: &ToolCall,
    tool: Option<&Tool>,
    arguments: Result<Value, ToolFailure>,
    strategy: &ToolUseStrategy,
    context: ToolContext,
) -> Result<ToolExecution, ExecuteError> {
    let span = telemetry::tool_span(call, tool);
    if span.is_disabled() {
        return run(call, tool, arguments, strategy, context).await;
    }
    let may_run = arguments.is_ok();
    let run = run(call, tool, arguments, strategy, context);
    // In a box, so that a call whose span nobody wants has no room for it.
    Box::pin(telemetry::in_tool_span(span, call, tool, may_run, run)).await
}

async fn run(
    call: &ToolCall,
    tool: Option<&Tool>,
    arguments: Result<Value, ToolFailure>,
    strategy: &ToolUseStrategy,
    context: ToolContext,
) -> Result<ToolExecution, ExecuteError> {
    let mut execution = ToolExecution {
        tool_name: call.tool_name.clone(),
        tool_call_id: call.tool_call_id.clone(),
        arguments: SharedJson::default(),
        result: SharedJson::default(),
        is_error: false,
        duration: 0,
        approved: None,
    };
    let as_written = || SharedJson::from(call.arguments.text());
    let Some(tool) = tool else {
        let text = format!("Tool '{}' not found", call.tool_name);
        execution.arguments = arguments.map_or_else(|_| as_written(), SharedJson::from);
        return Ok(failed(execution, text));
    };
    match arguments {
        Ok(arguments) => execution.arguments = arguments.into(),
        Err(failure) => {
            execution.arguments = as_written();
            return Ok(failed(execution, failure.message));
        }
    }
    let signal = context.signal.clone();
    if signal.is_cancelled() {
        return Err(ExecuteError::Cancelled);
    }
    let start = Instant::now();
    let outcome = {
        let steps = pin!(steps(tool, &mut execution, strategy, context));
        signal
            .run_until_cancelled(AssertUnwindSafe(steps).catch_unwind())
            .await
            .ok_or(ExecuteError::Cancelled)?
    };
    execution.duration = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
    let failure = match outcome {
        Ok(Ok(result)) => {
            execution.result = result.into();
            return Ok(execution);
        }
        Ok(Err(Stop::Refused(text))) => return Ok(failed(execution, text.to_owned())),
        Ok(Err(Stop::Approval(source))) => {
            let tool = tool.name.clone();
            return Err(ExecuteError::Approval { tool, source });
        }
        Ok(Err(Stop::Failed(failure))) => failure,
        Err(payload) => ToolFailure::new(format!(
            "Tool '{}' panicked: {}",
            tool.name,
            panic_text(payload.as_ref())
        )),
    };
    if let Some(hook) = &strategy.on_error {
        // The failure is told either way.
        let _ = std::panic::catch_unwind(AssertUnwindSafe(|| {
            hook(tool, &execution.arguments, &failure);
        }));
    }
    Ok(failed(execution, failure.message))
}

impl From<&ToolExecution> for ToolResult {
    fn from(execution: &ToolExecution) -> Self {
        Self {
            tool_call_id: execution.tool_call_id.clone(),
            result: execution.result.clone(),
            is_error: execution.is_error,
        }
    }
}

enum Stop {
    Refused(&'static str),
    Approval(ToolFailure),
    Failed(ToolFailure),
}

impl From<ToolFailure> for Stop {
    fn from(failure: ToolFailure) -> Self {
        Self::Failed(failure)
    }
}

async fn steps(
    tool: &Tool,
    execution: &mut ToolExecution,
    strategy: &ToolUseStrategy,
    context: ToolContext,
) -> Result<Value, Stop> {
    if let Some(hook) = &strategy.on_tool_call {
        hook(tool, &execution.arguments);
    }
    if let Some(hook) = &strategy.on_before_call {
        match hook(tool, &execution.arguments).await? {
            BeforeCall::Proceed => {}
            BeforeCall::Skip => return Err(Stop::Refused("Tool execution skipped")),
            BeforeCall::Transform(arguments) => execution.arguments = arguments.into(),
        }
    }
    if tool.requires_approval {
        if !context.approved {
            return Err(Stop::Refused("Tool execution needs an approval"));
        }
        execution.approved = Some(true);
    }
    if let Some(approve) = &tool.approval {
        let approved = approve(&execution.arguments)
            .await
            .map_err(Stop::Approval)?;
        execution.approved = Some(approved);
        if !approved {
            return Err(Stop::Refused("Tool execution denied by approval handler"));
        }
    }
    let result = tool
        .run
        .run(execution.arguments.value().clone(), context)
        .await?;
    if let Some(hook) = &strategy.on_after_call
        && let Some(other) = hook(tool, &execution.arguments, &result).await?
    {
        return Ok(other);
    }
    Ok(result)
}

fn failed(mut execution: ToolExecution, text: String) -> ToolExecution {
    execution.result = text.into();
    execution.is_error = true;
    execution
}

fn panic_text(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

#[cfg(test)]
mod tests;
