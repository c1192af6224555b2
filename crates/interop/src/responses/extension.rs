//! Items beyond the specification, for clients that request them (`include: ["loomline:items"]`).

use super::output::child;
use super::slot::OutputStatus;
use crate::ids::STEP;
use crate::parts::{EventPart, ToolPart};
use serde_json::json;

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
