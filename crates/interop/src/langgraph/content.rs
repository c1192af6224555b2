//! The content of messages: converts parts of the log to `LangChain`'s content blocks, and back.

use super::error::RequestError;
use super::fields::{Fields, MAX_ID};
use crate::fields::check_length;
use crate::parts::OUTPUT_FILE;
use crate::request::{file, inline, is_base64, is_image, is_inline, is_web};
use serde_json::{Value, json};
use timeline::{MessagePartKind, part_kind};

/// The most blocks of a message.
pub(super) const MAX_BLOCKS: usize = 256;
/// The most bytes of a text.
pub(super) const MAX_TEXT: usize = 1 << 20;
/// The types of blocks.
const KINDS: [&str; 6] = ["text", "image_url", "image", "file", "audio", "video"];

/// Reads content: a text, or a list of texts and blocks; null is an empty text. Texts become parts of
/// the type `text_type`.
pub(super) fn read(
    content: Option<&Value>,
    pointer: &str,
    text_type: &str,
) -> Result<Vec<Value>, RequestError> {
    let text = |text: &str, pointer: &str| {
        check_length(pointer, text, MAX_TEXT)?;
        Ok(json!({"type": text_type, "text": text}))
    };
    match content {
        Some(Value::String(said)) => Ok(vec![text(said, pointer)?]),
        Some(Value::Null) => Ok(vec![text("", pointer)?]),
        Some(Value::Array(blocks)) if blocks.len() <= MAX_BLOCKS => {
            let blocks = blocks.iter().enumerate();
            let parts = blocks.map(|(place, block)| {
                let pointer = format!("{pointer}/{place}");
                match block.as_str() {
                    Some(said) => text(said, &pointer),
                    None => read_block(block, &pointer, text_type),
                }
            });
            parts.collect()
        }
        Some(Value::Array(_)) => {
            let what = format!("expected at most {MAX_BLOCKS} blocks");
            Err(RequestError::at(pointer, what))
        }
        None | Some(Value::Bool(_) | Value::Number(_) | Value::Object(_)) => Err(RequestError::at(
            pointer,
            "expected a string, or a list of content blocks",
        )),
    }
}

fn read_block(block: &Value, pointer: &str, text_type: &str) -> Result<Value, RequestError> {
    let fields = Fields::of(block, pointer)?;
    match fields.text("type", MAX_ID)? {
        Some("text") => {
            let text = fields.required("text", MAX_TEXT)?;
            Ok(json!({"type": text_type, "text": text}))
        }
        Some("image_url") => {
            let wanted = "expected an http: or https: URL, or a data: URL in base64";
            let url = match fields.get("image_url") {
                Some(given) => given.get("url").unwrap_or(given).as_str(),
                None => None,
            };
            let url = url.filter(|url| is_web(url) || is_inline(url));
            let url = url.ok_or_else(|| fields.wrong("image_url", wanted))?;
            Ok(json!({"type": "input_image", "image_url": url}))
        }
        Some(kind) if KINDS.contains(&kind) => media(&fields, kind),
        Some(_) | None => {
            let what = super::fields::expected(KINDS.into_iter());
            Err(fields.wrong("type", what))
        }
    }
}

/// Reads a file of any kind: by its URL, or as base64 with its media type. `LangChain` has had several
/// spellings.
fn media(fields: &Fields<'_>, kind: &str) -> Result<Value, RequestError> {
    let either = |one: &str, other: &str, max| match fields.text(one, max)? {
        Some(text) => Ok(Some(text)),
        None => fields.text(other, max),
    };
    let media_type = either("mime_type", "mimeType", MAX_ID)?;
    let data = either("base64", "data", usize::MAX)?;
    let url = match (fields.text("url", MAX_TEXT)?, data) {
        (Some(url), None) if is_web(url) => url.to_owned(),
        (None, Some(data)) if is_base64(data) => {
            let missing = || fields.wrong("mime_type", "expected a media type");
            format!("data:{};base64,{data}", media_type.ok_or_else(missing)?)
        }
        _ => {
            let what = "expected an http: or https: address as url, or base64 as base64 or data";
            return Err(RequestError::at(fields.pointer(), what));
        }
    };
    let is_image = kind == "image" || media_type.is_some_and(is_image);
    let mut part = file(&url, is_image, media_type);
    let noted = fields.get("metadata").and_then(Value::as_object);
    let noted = |key: &str| noted.and_then(|it| it.get(key)).and_then(Value::as_str);
    let name = match fields.text("filename", MAX_ID)? {
        Some(name) => Some(name),
        None => noted("filename").or_else(|| noted("name")),
    };
    if let Some(name) = name.filter(|name| name.len() <= MAX_ID) {
        part["filename"] = name.into();
    }
    Ok(part)
}

/// A part of the log's as a block; none of what this protocol has no word for.
pub(super) fn block(part: &Value) -> Option<Value> {
    let text = |key: &str| part.get(key).and_then(Value::as_str);
    let mut shown = match part_kind(text("type")?)? {
        MessagePartKind::InputText | MessagePartKind::OutputText => text_block(text("text")?),
        MessagePartKind::Refusal => text_block(text("refusal")?),
        MessagePartKind::Reasoning => {
            return text("text")
                .filter(|it| !it.is_empty())
                .map(reasoning_block);
        }
        MessagePartKind::InputImage => {
            json!({"type": "image_url", "image_url": {"url": text("image_url")?}})
        }
        MessagePartKind::InputFile | MessagePartKind::Extension(OUTPUT_FILE) => file_block(
            text("file_data").or_else(|| text("file_url"))?,
            text("media_type"),
        ),
        MessagePartKind::Tool(_) | MessagePartKind::Extension(_) => return None,
    };
    if let Some(name) = text("filename") {
        shown["filename"] = name.into();
    }
    Some(shown)
}

pub(super) fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

pub(super) fn reasoning_block(text: &str) -> Value {
    json!({"type": "reasoning", "reasoning": text})
}

/// A file, by what it is or where it is.
pub(super) fn file_block(url: &str, media_type: Option<&str>) -> Value {
    let (data, media_type) = inline(url, media_type);
    let mut block = data.map_or_else(|| json!({"url": url}), |data| json!({"base64": data}));
    let kind = match media_type.and_then(|kind| kind.split_once('/')) {
        Some((kind @ ("image" | "audio" | "video"), _)) => kind,
        Some(_) | None => "file",
    };
    block["type"] = kind.into();
    if let Some(media_type) = media_type {
        block["mime_type"] = media_type.into();
    }
    block
}

/// Blocks as content: one text alone is a string.
pub(super) fn content(mut blocks: Vec<Value>) -> Value {
    match blocks.as_mut_slice() {
        [] => "".into(),
        [only] if only["type"] == "text" => only["text"].take(),
        _ => Value::Array(blocks),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content_view(content_of: &Value) -> Value {
        let parts = read(Some(content_of), "/content", "input_text").unwrap();
        content(parts.iter().filter_map(block).collect())
    }

    #[test]
    fn what_was_said_is_shown_again() {
        for said in [
            json!("hello"),
            json!(""),
            json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
            json!([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}]),
            json!([{"type": "file", "base64": "aGk=", "mime_type": "application/pdf", "filename": "a.pdf"}]),
            json!([{"type": "audio", "url": "https://a.example/b", "mime_type": "audio/wav"}]),
        ] {
            assert_eq!(content_view(&said), said);
        }
        let old = json!([{"type": "image", "source_type": "base64", "data": "aGk=", "mime_type": "image/png"}]);
        let url =
            json!([{"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}]);
        assert_eq!(content_view(&old), url);
    }

    #[test]
    fn a_block_that_no_model_could_be_shown_is_refused_with_its_place() {
        for (said, place) in [
            (json!(7), "/content"),
            (json!({"text": "x"}), "/content"),
            (json!([{"type": "tool_use"}]), "/content/0/type"),
            (json!(["a", {"type": "text"}]), "/content/1/text"),
            (
                json!([{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]),
                "/content/0/image_url",
            ),
            (
                json!([{"type": "file", "data": "%%", "mime_type": "a/b"}]),
                "/content/0",
            ),
            (
                json!([{"type": "file", "data": "aGk="}]),
                "/content/0/mime_type",
            ),
            (json!(vec!["x"; MAX_BLOCKS + 1]), "/content"),
        ] {
            let error = read(Some(&said), "/content", "input_text").unwrap_err();
            assert_eq!(error.pointer.as_deref(), Some(place), "{said}");
        }
    }
}
