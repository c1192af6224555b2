//! The chunks of a stored part.

use super::StreamView;
use crate::parts::{EventPart, ToolPart, ToolState};
use crate::run::RunPart;
use serde_json::{Value, json};
use timeline::Payload;

/// The first major version of the AI SDK whose clients can answer approvals.
const ASKS: u8 = 6;
/// The first major version whose clients get the answers that others gave.
const TELLS_ANSWERS: u8 = 7;

/// The error of arguments that are no JSON object.
const MALFORMED: &str = "the arguments are no JSON object";

impl StreamView {
    /// A part was stored. `is_known`: clients already have the call that the part belongs to.
    pub(super) fn part(&mut self, part: RunPart, is_new: bool, is_known: bool) {
        match part {
            RunPart::Tool(tool) => {
                if is_new && !is_known {
                    self.called(&tool);
                } else if is_new && tool.is_answered() {
                    self.approval_answered(&tool);
                }
                self.returned(&tool, is_known);
            }
            RunPart::Event(event) if is_new => self.event(&event),
            RunPart::File { url, media_type } if is_new => {
                self.push(json!({"type": "file", "url": url, "mediaType": media_type}));
            }
            RunPart::Event(_) | RunPart::File { .. } | RunPart::Content => {}
        }
    }

    fn event(&mut self, event: &EventPart) {
        let data = event.data.value();
        self.push(json!({"type": event.part_type, "id": event.id, "data": data}));
    }

    fn called(&mut self, tool: &ToolPart) {
        let (id, name) = (tool.tool_call_id.as_str(), tool.tool_name());
        self.push(match tool.input_object() {
            Some(input) => json!({
                "type": "tool-input-available", "toolCallId": id, "toolName": name, "input": input,
            }),
            None => json!({
                "type": "tool-input-error", "toolCallId": id, "toolName": name,
                "input": tool.arguments(), "errorText": MALFORMED,
            }),
        });
    }

    fn returned(&mut self, tool: &ToolPart, is_known: bool) {
        let id = tool.tool_call_id.as_str();
        match tool.state {
            ToolState::InputAvailable => {}
            ToolState::ApprovalRequested => self.approval_requested(tool),
            ToolState::ApprovalResponded => self.approval_given(tool, is_known),
            ToolState::OutputAvailable => {
                let output = tool.output.as_ref().map(Payload::value);
                self.push(json!({
                    "type": "tool-output-available", "toolCallId": id, "output": output,
                }));
            }
            ToolState::OutputError if tool.is_denied() && self.major >= ASKS => {
                self.push(json!({"type": "tool-output-denied", "toolCallId": id}));
            }
            ToolState::OutputError => {
                let text = tool.result_text().unwrap_or_default();
                self.push(json!({
                    "type": "tool-output-error", "toolCallId": id, "errorText": text,
                }));
            }
        }
    }

    fn approval_requested(&mut self, tool: &ToolPart) {
        if let Some(approval) = tool.approval.as_ref().filter(|_| self.major >= ASKS) {
            self.push(json!({
                "type": "tool-approval-request",
                "approvalId": approval.id, "toolCallId": tool.tool_call_id,
            }));
        }
    }

    /// A call was approved or denied. The client of a continued message already has the question. If
    /// it came again, clients of `ai` 6 would drop the answer.
    fn approval_given(&mut self, tool: &ToolPart, is_known: bool) {
        if !is_known {
            self.approval_requested(tool);
        }
        self.approval_answered(tool);
    }

    /// The answer to an approval that the client already has.
    fn approval_answered(&mut self, tool: &ToolPart) {
        let answered = tool
            .approval
            .as_ref()
            .filter(|it| self.major >= TELLS_ANSWERS && it.approved.is_some());
        if let Some(approval) = answered {
            let mut chunk = json!({
                "type": "tool-approval-response",
                "approvalId": approval.id, "approved": approval.approved,
            });
            if let (Value::Object(chunk), Some(reason)) = (&mut chunk, &approval.reason) {
                chunk.insert("reason".to_owned(), reason.as_str().into());
            }
            self.push(chunk);
        }
    }
}
