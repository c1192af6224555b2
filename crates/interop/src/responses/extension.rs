//! Items beyond the specification, for clients that request them (`include: ["loomline:items"]`).

use super::error::RequestError;
use super::fields::{Fields, invalid};
use super::output::child;
use super::slot::OutputStatus;
use crate::ids::STEP;
use crate::parts::{EventPart, ToolPart};
use serde_json::{Value, json};
use timeline::{MessagePartKind, part_kind};

/// The type of a content part that carries an extension part of a thread (EK §11) unchanged: `{"type":
/// "loomline:part", "part": …}`.
pub(super) const PART: &str = "loomline:part";

/// Whether a part of a thread is an extension.
fn is_extension(part: &Value) -> bool {
    let name = part.get("type").and_then(Value::as_str);
    let kind = name.and_then(part_kind);
    matches!(kind, Some(MessagePartKind::Extension(_)))
}

/// An extension part of a thread as a content part; `None` for other parts.
pub(super) fn shown_part(part: &Value) -> Option<Value> {
    is_extension(part).then(|| json!({"type": PART, "part": part}))
}

/// Reads the extension part that a content part carries.
pub(super) fn read_part(fields: &Fields<'_>) -> Result<Value, RequestError> {
    let part = fields.get("part").filter(|part| is_extension(part));
    let expected = "expected a part whose type has a namespace, such as \"app-note\"";
    part.cloned()
        .ok_or_else(|| invalid(fields.at("part"), expected))
}

/// A message of an agent with one extension part.
pub(super) fn part_message(id: &str, part: &Value, status: OutputStatus) -> String {
    let content = json!({"type": PART, "part": part});
    json!({
        "type": "message", "id": id, "status": status.name(), "role": "assistant", "content": [content],
    })
    .to_string()
}

/// The id of an extension's item: of a step, by its part.
pub(super) fn id(prefix: &str, step: &str, idx: u32) -> String {
    let step = child(STEP, step, idx);
    format!(
        "{prefix}_{}",
        step.strip_prefix(STEP.prefix()).unwrap_or(&step)
    )
}

/// A call that waits for an approval. The client answers with an input item
/// `{"type": "loomline:approval_response", "call_id", "approve", "reason"?}`.
pub(super) fn approval_request(id: &str, tool: &ToolPart, status: OutputStatus) -> String {
    json!({
        "type": "loomline:approval_request", "id": id, "status": status.name(),
        "call_id": tool.tool_call_id, "name": tool.tool_name(), "arguments": tool.arguments(),
    })
    .to_string()
}

/// An event that is not output of the model: a thread was started, an agent handed over.
pub(super) fn event(id: &str, event: &EventPart, status: OutputStatus) -> String {
    let name = event
        .part_type
        .strip_prefix("data-tp-")
        .unwrap_or(&event.part_type);
    json!({
        "type": "loomline:event", "id": id, "status": status.name(),
        "name": name, "data": event.data.value(),
    })
    .to_string()
}
