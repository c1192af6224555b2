//! Frames: an event's name and its data. Deltas are written without a tree of values.

use crate::json_text::{escaped, quoted};
use crate::sse;
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// An object under its event's name.
pub(super) fn event<T: Serialize>(name: &str, data: &T, out: &mut String) {
    // These objects have string keys alone, so they have a JSON form.
    if let Ok(text) = serde_json::to_string(data) {
        sse::write_named(name, text, out);
    }
}

/// The last frame.
pub(super) fn done(out: &mut String) {
    sse::write_named("done", sse::DONE, out);
}

/// The error that ends a stream. The published schema has its members at the top level, but clients
/// look for them under `error`. The event has both.
pub(super) fn failure(message: &str, out: &mut String) {
    let error = json!({"message": message, "type": "server_error", "param": null, "code": null});
    let mut data = error.clone();
    if let Value::Object(data) = &mut data {
        data.insert("error".to_owned(), error);
    }
    event("error", &data, out);
}

/// More of a text; `id` is a JSON string.
pub(super) fn text_delta(id: &str, index: usize, is_first: bool, delta: &str, out: &mut String) {
    out.reserve(id.len() + delta.len() + 192);
    sse::begin("thread.message.delta", out);
    out.push_str("{\"id\":");
    out.push_str(id);
    out.push_str(",\"object\":\"thread.message.delta\",\"delta\":{\"content\":[{\"index\":");
    let _ = write!(out, "{index}");
    out.push_str(",\"type\":\"text\",\"text\":{\"value\":\"");
    out.push_str(&escaped(delta));
    out.push_str(if is_first {
        "\",\"annotations\":[]}}]}}\n\n"
    } else {
        "\"}}]}}\n\n"
    });
}

/// A part of a message that was not streamed is sent whole.
pub(super) fn content_delta(id: &str, index: usize, content: &impl Serialize, out: &mut String) {
    let Ok(Value::Object(mut part)) = serde_json::to_value(content) else {
        return;
    };
    part.insert("index".to_owned(), index.into());
    let part = Value::Object(part);
    let data = format_args!(
        "{{\"id\":{id},\"object\":\"thread.message.delta\",\"delta\":{{\"content\":[{part}]}}}}"
    );
    sse::write_named("thread.message.delta", data, out);
}

fn calls_delta(id: &str, index: usize, out: &mut String) {
    sse::begin("thread.run.step.delta", out);
    out.push_str("{\"id\":");
    out.push_str(id);
    out.push_str(",\"object\":\"thread.run.step.delta\",\"delta\":{\"step_details\":{\"type\":\"tool_calls\",\"tool_calls\":[{\"index\":");
    let _ = write!(out, "{index}");
}

/// A call starts; `id` is a JSON string.
pub(super) fn call_begins(
    id: &str,
    index: usize,
    call: &str,
    name: &str,
    delta: &str,
    out: &mut String,
) {
    calls_delta(id, index, out);
    let (call, name, delta) = (quoted(call), quoted(name), escaped(delta));
    let _ = write!(
        out,
        ",\"id\":{call},\"type\":\"function\",\"function\":{{\"name\":{name},\"arguments\":\"{delta}\",\"output\":null}}}}]}}}}}}\n\n"
    );
}

/// More of a call's arguments; `id` is a JSON string.
pub(super) fn call_delta(id: &str, index: usize, delta: &str, out: &mut String) {
    out.reserve(id.len() + delta.len() + 192);
    calls_delta(id, index, out);
    out.push_str(",\"type\":\"function\",\"function\":{\"arguments\":\"");
    out.push_str(&escaped(delta));
    out.push_str("\"}}]}}}\n\n");
}
