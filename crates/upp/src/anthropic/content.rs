//! User content and tool results in the Messages format.

use crate::codec::{made, tool_result_text};
use crate::content::{Media, UserContent};
use crate::tool::ToolResult;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

/// A block of a user message; fails with the name of a type that the format does not support.
pub(super) fn user_block(block: &UserContent) -> Result<Value, &'static str> {
    match block {
        UserContent::Text { text } => Ok(json!({"type": "text", "text": text})),
        UserContent::Image(media) => {
            let source = address_or_bytes(media).ok_or("an image as text")?;
            Ok(json!({"type": "image", "source": source}))
        }
        UserContent::Document(media) => document(media),
        UserContent::Audio(_) => Err("audio"),
        UserContent::Video(_) => Err("video"),
        UserContent::Binary(_) => Err("binary content"),
    }
}

fn address_or_bytes(media: &Media) -> Option<Value> {
    if let Some(url) = media.url() {
        return Some(json!({"type": "url", "url": url}));
    }
    let data = media.base64()?;
    Some(json!({"type": "base64", "media_type": media.mime_type, "data": data}))
}

/// A document block. The format accepts a PDF as bytes, but text only as text.
fn document(media: &Media) -> Result<Value, &'static str> {
    let plain = |text: &str| json!({"type": "text", "media_type": "text/plain", "data": text});
    let source = match (media.text(), media.base64()) {
        (Some(text), _) => plain(text),
        (None, Some(data)) if media.mime_type.starts_with("text/") => {
            let bytes = STANDARD.decode(&*data).ok();
            let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
            plain(&text.ok_or("a text document that is not UTF-8 in base64")?)
        }
        (None, _) => address_or_bytes(media).ok_or("a document without content")?,
    };
    let mut block = Map::new();
    block.insert("type".into(), json!("document"));
    block.insert("source".into(), source);
    if let Some(title) = &media.title {
        block.insert("title".into(), json!(title));
    }
    Ok(Value::Object(block))
}

/// The `content` of a `tool_result`; `None` if the result is empty.
///
/// A result in MCP's form, with pictures or documents in its `content`, becomes blocks. Any other result
/// becomes text. A failure becomes text too, because the vendor accepts no other block in it.
pub(super) fn tool_result_content(result: &ToolResult) -> Option<Value> {
    if let Some(blocks) = media_blocks(&result.result).filter(|_| !result.is_error) {
        return Some(Value::Array(blocks));
    }
    match tool_result_text(result) {
        // The vendor takes no failure without a text.
        text if text.is_empty() => result.is_error.then(|| json!("error")),
        text => Some(json!(text)),
    }
}

fn media_blocks(result: &Value) -> Option<Vec<Value>> {
    let fields = result.as_object()?;
    let parts = fields.get("content")?.as_array()?;
    let media: Vec<Option<Value>> = parts.iter().map(media_part).collect();
    media.iter().find(|part| part.is_some())?;
    let mut blocks = Vec::with_capacity(parts.len());
    for (part, media) in parts.iter().zip(media) {
        let text = match part.get("text").and_then(Value::as_str) {
            Some(text) if part.get("type") == Some(&json!("text")) => text.to_owned(),
            Some(_) | None => part.to_string(),
        };
        blocks.extend(media.or_else(|| text_block(&text)));
    }
    let known = ["content", "isError", "_meta"];
    let rest = fields
        .iter()
        .filter(|(key, _)| !known.contains(&key.as_str()));
    let rest: Map<String, Value> = rest.map(|(k, v)| (k.clone(), v.clone())).collect();
    if !rest.is_empty() {
        blocks.extend(text_block(&Value::Object(rest).to_string()));
    }
    Some(blocks)
}

fn text_block(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text}))
}

/// The picture types that the vendor accepts.
const PICTURES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// A picture, or a resource that is a PDF; `None` for anything that the vendor would refuse. One refused
/// block would make every later request of the conversation fail.
fn media_part(part: &Value) -> Option<Value> {
    let word = |pointer: &str| part.pointer(pointer).and_then(Value::as_str);
    let source =
        |mime: &str, data: &str| json!({"type": "base64", "media_type": mime, "data": data});
    match word("/type")? {
        "image" => {
            let mime_type = word("/mimeType").filter(|mime| PICTURES.contains(mime))?;
            let source = source(mime_type, word("/data").filter(|data| is_base64(data))?);
            Some(json!({"type": "image", "source": source}))
        }
        "resource" if word("/resource/mimeType") == Some("application/pdf") => {
            let source = source(
                "application/pdf",
                word("/resource/blob").filter(|data| is_base64(data))?,
            );
            Some(json!({"type": "document", "source": source}))
        }
        _ => None,
    }
}

fn is_base64(data: &str) -> bool {
    !data.is_empty() && made(data, "").is_some()
}
