//! The chunks of a stored part.

use super::{Kind, StreamView, Then};
use crate::parts::{EventPart, OUTPUT_FILE, ToolPart, ToolState};
use serde_json::{Value, json};
use timeline::{PartKind, Payload, part_kind};

/// The first major version whose clients are asked for approvals.
const ASKS: u8 = 6;
/// The first major version whose clients are told how others have answered.
const TELLS_ANSWERS: u8 = 7;

/// What a client is told of arguments that are no JSON object.
const MALFORMED: &str = "the arguments are no JSON object";

impl StreamView {
    pub(in crate::ai_sdk) fn part_created(&mut self, idx: u32, part: &Payload) {
        if let Some(tool) = ToolPart::read(part) {
            if !self.answers {
                self.called(&tool);
            } else if tool.is_answered() {
                self.responded_to(&tool);
            }
            self.returned(&tool);
            return;
        }
        if let Some(event) = EventPart::read(part) {
            let (kind, data) = (event.part_type, event.data.value());
            if kind == EventPart::AGENT_HANDOFF {
                self.then = Then::GoesOn { answers: false };
            }
            self.push(json!({"type": kind, "id": event.id, "data": data}));
            return;
        }
        let part = part.value();
        let text = |key: &str| part.get(key).and_then(Value::as_str);
        match text("type").and_then(part_kind) {
            Some(PartKind::OutputText | PartKind::InputText) => {
                self.said(Kind::Text, idx, text("text").unwrap_or_default());
            }
            Some(PartKind::Refusal) => {
                self.said(Kind::Text, idx, text("refusal").unwrap_or_default());
            }
            Some(PartKind::Reasoning) => {
                self.said(Kind::Reasoning, idx, text("text").unwrap_or_default());
            }
            Some(PartKind::Extension(OUTPUT_FILE)) => {
                let url = text("file_data").or_else(|| text("file_url"));
                if let Some((url, media_type)) = url.zip(text("media_type")) {
                    self.push(json!({"type": "file", "url": url, "mediaType": media_type}));
                }
            }
            Some(
                PartKind::InputImage
                | PartKind::InputFile
                | PartKind::Tool(_)
                | PartKind::Extension(_),
            )
            | None => {}
        }
    }

    pub(in crate::ai_sdk) fn part_updated(&mut self, part: &Payload) {
        if let Some(tool) = ToolPart::read(part) {
            self.returned(&tool);
        }
    }

    /// Text that was not streamed is shown whole; a client has nothing to show of an empty one.
    fn said(&mut self, kind: Kind, idx: u32, text: &str) {
        if text.is_empty() {
            return;
        }
        if let Some((id, was_open)) = self.blocks.stored(kind, text) {
            if was_open {
                self.push(json!({"type": kind.end(), "id": id}));
            }
            return;
        }
        let letter = match kind {
            Kind::Text => 't',
            Kind::Reasoning => 'r',
        };
        let id = format!("{letter}{}-{idx}", self.iteration);
        self.push(json!({"type": kind.start(), "id": id}));
        self.push(json!({"type": kind.delta(), "id": id, "delta": text}));
        self.push(json!({"type": kind.end(), "id": id}));
    }

    fn called(&mut self, tool: &ToolPart) {
        let (id, name) = (tool.tool_call_id.as_str(), tool.tool_name());
        let arguments = tool.arguments();
        let input = if arguments.trim().is_empty() {
            Some(json!({}))
        } else {
            serde_json::from_str(arguments)
                .ok()
                .filter(Value::is_object)
        };
        self.push(match input {
            Some(input) => json!({
                "type": "tool-input-available", "toolCallId": id, "toolName": name, "input": input,
            }),
            None => json!({
                "type": "tool-input-error", "toolCallId": id, "toolName": name,
                "input": arguments, "errorText": MALFORMED,
            }),
        });
    }

    fn returned(&mut self, tool: &ToolPart) {
        let id = tool.tool_call_id.as_str();
        match tool.state {
            ToolState::InputAvailable => {}
            ToolState::ApprovalRequested => self.asked(tool),
            ToolState::ApprovalResponded => self.allowed(tool),
            ToolState::OutputAvailable => {
                let output = tool.output.as_ref().map(Payload::value);
                self.push(json!({
                    "type": "tool-output-available", "toolCallId": id, "output": output,
                }));
            }
            ToolState::OutputError
                if tool.outcome.as_deref() == Some("denied") && self.major >= ASKS =>
            {
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

    fn asked(&mut self, tool: &ToolPart) {
        if let Some(approval) = tool.approval.as_ref().filter(|_| self.major >= ASKS) {
            self.push(json!({
                "type": "tool-approval-request",
                "approvalId": approval.id, "toolCallId": tool.tool_call_id,
            }));
        }
    }

    /// Somebody has answered whether the call may run. A client of a message that goes on has the question; asked
    /// again, clients of `ai` 6 would forget the answer.
    fn allowed(&mut self, tool: &ToolPart) {
        if !self.answers {
            self.asked(tool);
        }
        self.responded_to(tool);
    }

    /// How somebody has answered whether the call may run; the client has the question.
    fn responded_to(&mut self, tool: &ToolPart) {
        let told = tool
            .approval
            .as_ref()
            .filter(|it| self.major >= TELLS_ANSWERS && it.approved.is_some());
        if let Some(approval) = told {
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
