//! The interrupts at the end of a run.

use crate::ag_ui::messages::arguments;
use crate::ai_sdk::subagent::call_of;
#[cfg(feature = "aitp")]
use crate::aitp::RequestQuestion;
use crate::parts::ToolPart;
use serde_json::{Value, json};
use timeline::{OpenCall, OpenKind};

/// The id of the interrupt for a call that waits for an approval.
pub fn interrupt_id(open: &OpenCall) -> Option<String> {
    let tool = ToolPart::read(&open.part).filter(|_| open.kind == OpenKind::Approval)?;
    Some(tool.approval?.id)
}

/// The interrupt for a call that waits for an approval; `None` for other calls.
pub(super) fn interrupt(open: &OpenCall) -> Option<Value> {
    let tool = ToolPart::read(&open.part).filter(|_| open.kind == OpenKind::Approval)?;
    Some(json!({
        "id": tool.approval?.id, "reason": "tool_call", "toolCallId": open.tool_call_id,
        "message": "May this tool run?", "responseSchema": approval_schema(),
    }))
}

/// The interrupt for an open call of a sub-agent. No message of the client has the call, so the
/// interrupt describes it.
pub(super) fn child_interrupt(thread_key: &str, own: &str, open: &OpenCall) -> Option<Value> {
    let tool = ToolPart::read(&open.part)?;
    let name = tool.tool_name();
    let (reason, message, schema) = match open.kind {
        OpenKind::Approval => {
            let message = format!("May {name} run for a sub-agent?");
            ("tool_call", message, approval_schema())
        }
        OpenKind::External => {
            let message = format!("What is the result of {name} for a sub-agent?");
            ("input_required", message, result_schema())
        }
        OpenKind::Others | OpenKind::Child => return None,
    };
    let input: Value = serde_json::from_str(arguments(&tool)).unwrap_or_default();
    Some(json!({
        "id": call_of(thread_key, &open.tool_call_id)?, "reason": reason, "toolCallId": own,
        "message": message, "responseSchema": schema,
        "metadata": {
            "threadKey": thread_key, "toolCallId": open.tool_call_id,
            "toolName": name, "input": input,
        },
    }))
}

fn result_schema() -> Value {
    json!({
        "type": "object",
        "properties": {"output": {}, "errorText": {"type": "string"}},
        "oneOf": [{"required": ["output"]}, {"required": ["errorText"]}],
    })
}

fn approval_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "approved": {"type": "boolean"},
            "editedArgs": {"type": "object"},
            "reason": {"type": "string"},
        },
        "required": ["approved"],
    })
}

/// A request of AITP, with the capability message that asks in its metadata.
#[cfg(feature = "aitp")]
pub(super) fn request(question: &RequestQuestion) -> Value {
    let ask = &question.ask;
    let mut interrupt = json!({
        "id": ask.key.text(), "reason": format!("aitp:{}", ask.message_type),
        "message": question.prompt(), "responseSchema": question.schema,
        "metadata": {"$schema": ask.schema, ask.message_type.as_str(): ask.payload},
    });
    if let Some(end) = question.expires_at {
        interrupt["expiresAt"] = end.to_string().into();
    }
    interrupt
}
