//! The events of sub-agents as lines (UAP §8.7), indented by depth.

use super::shortened;
use runtime::{AgentStreamEvent, SubagentEvent};
use serde_json::Value;
use upp::StreamEvent;

/// The line of an event, if it is shown: a sub-agent's start, its end and its tools. The line of the end
/// has its text.
pub(super) fn line(event: &SubagentEvent) -> Option<String> {
    line_at(event, 1)
}

fn line_at(event: &SubagentEvent, depth: usize) -> Option<String> {
    let indented = |depth: usize, text: String| Some(format!("{}{text}", "  ".repeat(depth)));
    match event {
        SubagentEvent::Start(start) => {
            let (name, prompt) = (shortened(&start.subagent_type), shortened(&start.prompt));
            indented(depth, format!("┌ {name}: {prompt}"))
        }
        SubagentEvent::End(end) => {
            let name = shortened(&end.subagent_type);
            let came = match (&end.result, &end.error) {
                (Some(result), _) => shortened(result),
                (None, Some(error)) => format!("failed: {}", shortened(error)),
                (None, None) => String::new(),
            };
            indented(depth, format!("└ {name}: {came}"))
        }
        SubagentEvent::Forwarded(forwarded) => match &forwarded.inner_event {
            AgentStreamEvent::Uap { uap } => line_at(&uap.subagent()?, depth + 1),
            AgentStreamEvent::Upp { upp } => indented(depth + 1, tool(upp)?),
        },
    }
}

fn tool(event: &StreamEvent) -> Option<String> {
    match event {
        StreamEvent::ToolExecutionStart { tool_name, .. } => {
            Some(format!("→ {}", shortened(tool_name)))
        }
        StreamEvent::ToolExecutionEnd {
            tool_name,
            result,
            is_error,
            ..
        } => {
            let shown = match result.value() {
                Value::String(text) => shortened(text),
                other @ (Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::Array(_)
                | Value::Object(_)) => shortened(&other.to_string()),
            };
            let failed = if *is_error { "failed: " } else { "" };
            Some(format!("← {} {failed}{shown}", shortened(tool_name)))
        }
        StreamEvent::MessageStart
        | StreamEvent::MessageStop
        | StreamEvent::ContentBlockStart { .. }
        | StreamEvent::ContentBlockStop { .. }
        | StreamEvent::TextDelta { .. }
        | StreamEvent::ReasoningDelta { .. }
        | StreamEvent::ImageDelta { .. }
        | StreamEvent::AudioDelta { .. }
        | StreamEvent::VideoDelta { .. }
        | StreamEvent::ToolCallDelta { .. } => None,
    }
}
