//! Converts a server's answer to the result that the model reads.

use super::text::clipped;
use crate::schema::Schema;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};
use std::io;
use upp::{ToolFailure, ToolOutput};

/// Maximum length of an error text that the model reads, in bytes.
const ERROR_BYTES: usize = 16 << 10;

/// Reads the answer to a call of `tool`.
pub(super) fn read(
    tool: &str,
    answer: CallToolResult,
    output: Option<&Schema>,
    max_bytes: usize,
) -> ToolOutput {
    if answer.is_error == Some(true) {
        return Err(failure(tool, &answer.content, max_bytes));
    }
    if let Some(schema) = output {
        check(tool, answer.structured_content.as_ref(), schema)?;
    }
    let value = value(answer.content, answer.structured_content)
        .map_err(|cause| ToolFailure::new(format!("The tool '{tool}' gave no JSON: {cause}")))?;
    let n_bytes = length(&value);
    if n_bytes > max_bytes {
        return Err(ToolFailure::new(format!(
            "The result of the tool '{tool}' is {n_bytes} bytes long; at most {max_bytes} are taken. \
             The tool has run. Ask it for less."
        )));
    }
    Ok(value)
}

fn value(content: Vec<ContentBlock>, structured: Option<Value>) -> serde_json::Result<Value> {
    if let Some(text) = joined(&content) {
        return Ok(structured.unwrap_or(Value::String(text)));
    }
    let blocks = content
        .into_iter()
        .map(block)
        .collect::<Result<Vec<_>, _>>()?;
    Ok(match structured {
        Some(value) => json!({"content": blocks, "structuredContent": value}),
        None => json!({ "content": blocks }),
    })
}

/// The text of blocks that are all text.
fn joined(content: &[ContentBlock]) -> Option<String> {
    let texts: Option<Vec<&str>> = content.iter().map(text).collect();
    Some(texts?.join("\n"))
}

fn text(block: &ContentBlock) -> Option<&str> {
    if let ContentBlock::Text(text) = block {
        Some(text.text.as_str())
    } else {
        None
    }
}

/// A content block in the protocol's form, without its fields for clients.
fn block(block: ContentBlock) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(block)?;
    if let Some(fields) = value.as_object_mut() {
        fields.shift_remove("_meta");
        if let Some(resource) = fields.get_mut("resource").and_then(Value::as_object_mut) {
            resource.shift_remove("_meta");
        }
    }
    Ok(value)
}

fn failure(tool: &str, content: &[ContentBlock], max_bytes: usize) -> ToolFailure {
    let texts: Vec<&str> = content.iter().filter_map(text).collect();
    let said = texts.join("\n");
    if said.trim().is_empty() {
        return ToolFailure::new(format!("The tool '{tool}' failed and does not say why."));
    }
    ToolFailure::new(clipped(&said, max_bytes.min(ERROR_BYTES)))
}

fn check(tool: &str, value: Option<&Value>, schema: &Schema) -> Result<(), ToolFailure> {
    let Some(value) = value else {
        return Err(ToolFailure::new(format!(
            "The tool '{tool}' has run, but gave no structured result, which its output schema asks for."
        )));
    };
    let Some(mismatches) = schema.mismatches(value) else {
        return Ok(());
    };
    let text = format!(
        "The tool '{tool}' has run, but its result does not match its output schema:{mismatches}"
    );
    Err(ToolFailure::new(clipped(&text, ERROR_BYTES)))
}

/// The size of a value as JSON, in bytes.
pub(super) fn length(value: &impl serde::Serialize) -> usize {
    let mut counter = Counter(0);
    // JSON can always be written, and counting never fails.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}

struct Counter(usize);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
