//! Results of tools: parts of the log ⇄ text for the model.

use crate::parts::{ToolPart, ToolState};
use serde_json::Value;
use timeline::Payload;
use upp::{ToolExecution, ToolResult};

/// The result text for the model of a call whose outcome was lost in a crash.
pub(super) const UNKNOWN: &str = "The tool was interrupted before its outcome was recorded. It may or may not have taken \
                       effect. Check before calling it again.";

/// The call's part with the result of its tool.
pub fn with_result(
    part: &Payload,
    execution: &ToolExecution,
) -> Result<Payload, serde_json::Error> {
    let Some(mut tool) = ToolPart::read(part) else {
        return Ok(part.clone());
    };
    tool.duration_ms = Some(execution.duration);
    if execution.is_error {
        tool.state = ToolState::OutputError;
        tool.error_text = Some(result_text(&execution.result));
        if execution.approved == Some(false) {
            tool.outcome = Some("denied".into());
        }
    } else {
        tool.state = ToolState::OutputAvailable;
        tool.output = Some(Payload::write(&execution.result)?);
    }
    tool.write()
}

/// The part of a call whose outcome is unknown.
pub fn with_unknown_outcome(part: &Payload) -> Result<Payload, serde_json::Error> {
    let Some(mut tool) = ToolPart::read(part) else {
        return Ok(part.clone());
    };
    tool.state = ToolState::OutputError;
    tool.outcome = Some("interrupted".into());
    tool.error_text = Some(UNKNOWN.into());
    tool.write()
}

/// A result as text for the model: a string unchanged, anything else as JSON.
fn result_text(result: &Value) -> String {
    match result {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            result.to_string()
        }
    }
}

/// The result in a call's part, if it has one.
pub fn result_of(tool: &ToolPart) -> Option<ToolResult> {
    let (result, is_error) = match tool.state {
        ToolState::InputAvailable | ToolState::ApprovalRequested | ToolState::ApprovalResponded => {
            return None;
        }
        ToolState::OutputAvailable => (
            tool.output.as_ref().map_or(Value::Null, Payload::value),
            false,
        ),
        ToolState::OutputError => {
            let text = tool.error_text.clone().map(Value::String);
            (
                text.or_else(|| tool.output.as_ref().map(Payload::value))
                    .unwrap_or_default(),
                true,
            )
        }
    };
    Some(ToolResult {
        tool_call_id: tool.tool_call_id.as_str().into(),
        result: result.into(),
        is_error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effect_whose_outcome_is_unknown_is_answered_as_interrupted() {
        let part = ToolPart::call("pay", "call_1", "{}").write().unwrap();
        let tool = ToolPart::read(&with_unknown_outcome(&part).unwrap()).unwrap();
        assert_eq!(tool.outcome.as_deref(), Some("interrupted"));
        assert!(result_of(&tool).unwrap().is_error);
    }
}
