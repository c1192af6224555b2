//! The calls of a run's tools.

use super::{Channel, ProtocolRun};
use crate::langgraph::message::arguments;
use crate::parts::{ToolPart, ToolState};
use serde_json::{Value, json};
use timeline::Payload;

impl ProtocolRun {
    /// The tools at work will have no results.
    pub(super) fn fail_tools(&mut self, why: &str) {
        for call in std::mem::take(&mut self.at_work) {
            let data = || json!({"event": "tool-error", "tool_call_id": call, "message": why});
            self.push(Channel::Tools, "tools", data);
        }
    }

    /// Handles a stored call. At this point it is unknown whether the call waits for an answer. So its
    /// tool starts when the log marks that, or else when there is a result.
    pub(super) fn tool(&mut self, tool: &ToolPart) {
        let approval = tool.approval.as_ref();
        let is_denied = approval.is_some_and(|it| it.approved == Some(false));
        match tool.state {
            ToolState::InputAvailable
            | ToolState::ApprovalRequested
            | ToolState::ApprovalResponded => {
                self.calls.insert(tool.tool_call_id.clone(), tool.clone());
            }
            ToolState::OutputAvailable | ToolState::OutputError if is_denied => {}
            ToolState::OutputAvailable | ToolState::OutputError => self.tool_ended(tool),
        }
    }

    /// Handles the marker that the tool of a call starts. The log has it only where a crash would
    /// leave the outcome unknown.
    pub(super) fn tool_marked(&mut self, call: &str) {
        if let Some(tool) = self.calls.remove(call) {
            self.tool_started(&tool);
        }
    }

    fn tool_started(&mut self, tool: &ToolPart) {
        let call = tool.tool_call_id.as_str();
        if self.at_work.insert(call.to_owned()) {
            let input = arguments(tool.arguments()).map(Value::Object);
            let input = input.unwrap_or_else(|| tool.arguments().into());
            let name = tool.tool_name();
            let data = || json!({"event": "tool-started", "tool_call_id": call, "tool_name": name, "input": input});
            self.push(Channel::Tools, "tools", data);
        }
    }

    fn tool_ended(&mut self, tool: &ToolPart) {
        self.tool_started(tool);
        let call = tool.tool_call_id.as_str();
        self.at_work.remove(call);
        let data = if tool.state == ToolState::OutputError {
            let text = tool.result_text().unwrap_or_default();
            let mut data = json!({"event": "tool-error", "tool_call_id": call, "message": text});
            if let Some(outcome) = &tool.outcome {
                data["code"] = outcome.as_str().into();
            }
            data
        } else {
            let output = tool.output.as_ref().map(Payload::value);
            json!({"event": "tool-finished", "tool_call_id": call, "output": output})
        };
        self.push(Channel::Tools, "tools", || data);
    }
}
