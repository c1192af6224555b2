//! Abandoned calls: they have no result, and no client can send one any more.

use serde_json::Value;
use std::collections::BTreeSet;

/// The error text that a client receives for such a call.
pub(super) const LEFT: &str = "The call was left without a result.";

/// Marks abandoned calls: those that wait in the messages but are not in `open`. Linear in the
/// messages.
pub fn close_open_calls(messages: &mut [Value], open: &BTreeSet<String>) {
    let parts = messages.iter_mut().filter_map(|message| {
        let parts = message.get_mut("parts")?;
        parts.as_array_mut()
    });
    for part in parts.flatten() {
        let text = |key: &str| part.get(key).and_then(Value::as_str);
        let is_open = text("toolCallId").is_none_or(|id| open.contains(id));
        if is_open || !text("state").is_some_and(waits) {
            continue;
        }
        let Value::Object(part) = part else { continue };
        part.insert("state".to_owned(), "output-error".into());
        part.insert("errorText".to_owned(), LEFT.into());
        // A call that has ended was allowed, or says nothing of it.
        let is_allowed = |approval: &Value| approval["approved"] == true;
        if !part.get("approval").is_some_and(is_allowed) {
            part.remove("approval");
        }
    }
}

/// Whether a call in this state has no result yet and is complete.
pub(super) fn waits(state: &str) -> bool {
    matches!(
        state,
        "input-available" | "approval-requested" | "approval-responded"
    )
}
