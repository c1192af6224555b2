//! Parts of messages and of results: as requests have them, as the log has them, as objects have them.

use super::error::RequestError;
use super::extension;
use super::fields::{Fields, invalid, unsupported, wrong};
use crate::document::data_url;
use crate::request::{is_base64, is_inline, is_web};
use serde_json::{Map, Value, json};

// The specification's limits. A body, which holds all parts of a request, may have another one, which whoever
// runs the server sets: a part that is longer than that is refused with its body.

/// The most characters of a text.
pub(crate) const MAX_TEXT: usize = 10_485_760;
/// The most characters of an image's address or data.
const MAX_IMAGE: usize = 20_971_520;
/// The most characters of a file's address or data, and of a video's.
const MAX_FILE: usize = 33_554_432;
/// The most parts of one message.
pub(crate) const MAX_PARTS: usize = 1_000;

/// The kind of author of the parts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// A user, a developer or the system.
    Input,
    /// The assistant.
    Output,
    /// A tool.
    Result,
}

/// The content of a message, a text or a list of parts, as parts of the log.
pub(super) fn content(
    fields: &Fields<'_>,
    key: &str,
    side: Side,
) -> Result<Vec<Value>, RequestError> {
    match fields.get(key) {
        None => Err(fields.missing(key)),
        Some(Value::String(text)) => {
            fields.text(key, MAX_TEXT)?;
            let kind = match side {
                Side::Input | Side::Result => "input_text",
                Side::Output => "output_text",
            };
            Ok(vec![json!({"type": kind, "text": text})])
        }
        Some(Value::Array(_)) => {
            let parts = fields.placed(key, MAX_PARTS)?.unwrap_or_default();
            let read = |(at, value): (String, &Value)| part(value, &at, side);
            parts.into_iter().map(read).collect()
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) => {
            Err(wrong(fields.at(key), "a string or an array of parts"))
        }
    }
}

fn part(value: &Value, pointer: &str, side: Side) -> Result<Value, RequestError> {
    let fields = Fields::of(value, pointer)?;
    let kind = fields.required("type", 256)?;
    match (kind, side) {
        // Clients also send texts of either kind for the other side.
        ("input_text", Side::Output) => {
            let text = fields.required("text", MAX_TEXT)?;
            Ok(json!({"type": "output_text", "text": text}))
        }
        ("input_text", Side::Input | Side::Result) | ("output_text", Side::Input) => {
            let text = fields.required("text", MAX_TEXT)?;
            Ok(json!({"type": "input_text", "text": text}))
        }
        ("output_text", Side::Output) => output_text(&fields),
        ("refusal", Side::Output) => {
            let refusal = fields.required("refusal", MAX_TEXT)?;
            Ok(json!({"type": "refusal", "refusal": refusal}))
        }
        (extension::PART, Side::Input | Side::Output) => extension::read_part(&fields),
        ("input_image", Side::Input | Side::Result) => image(&fields, "image_url"),
        ("input_file", Side::Input | Side::Result) => file(&fields),
        ("input_video", Side::Result) => {
            let url = fields.required("video_url", MAX_FILE)?;
            Ok(json!({"type": "input_video", "video_url": url}))
        }
        _ => Err(unsupported(
            format!("{pointer}/type"),
            &format!("a part of type {kind:?} can't stand here"),
        )),
    }
}

fn output_text(fields: &Fields<'_>) -> Result<Value, RequestError> {
    let text = fields.required("text", MAX_TEXT)?;
    let mut part = json!({"type": "output_text", "text": text});
    let known: Vec<Value> = fields
        .list("annotations", MAX_PARTS)?
        .unwrap_or_default()
        .iter()
        .filter_map(citation)
        .collect();
    if !known.is_empty() {
        part["annotations"] = Value::Array(known);
    }
    Ok(part)
}

/// An annotation that both published schemas know: a citation of an address.
pub(super) fn citation(annotation: &Value) -> Option<Value> {
    if annotation.get("type")?.as_str()? != "url_citation" {
        return None;
    }
    // Chat completions nest it.
    let fields = annotation.get("url_citation").unwrap_or(annotation);
    let url = fields.get("url")?.as_str()?;
    let title = fields.get("title").and_then(Value::as_str).unwrap_or(url);
    let start = fields.get("start_index")?.as_u64()?;
    let end = fields.get("end_index")?.as_u64()?;
    Some(json!({
        "type": "url_citation", "start_index": start, "end_index": end, "url": url, "title": title,
    }))
}

/// An image; the member `key` has its address or data.
pub(crate) fn image(fields: &Fields<'_>, key: &str) -> Result<Value, RequestError> {
    no_file_id(fields)?;
    let url = fields.required(key, MAX_IMAGE)?;
    if !is_web(url) && !is_inline(url) {
        let expected = "expected an http: or https: URL, or a data: URL in base64";
        return Err(invalid(fields.at(key), expected));
    }
    let mut part = json!({"type": "input_image", "image_url": url});
    if let Some(detail) = fields.word("detail", &["low", "high", "auto", "original"])? {
        part["detail"] = detail.into();
    }
    Ok(part)
}

/// A file: its data or its address, and an optional name.
pub(crate) fn file(fields: &Fields<'_>) -> Result<Value, RequestError> {
    no_file_id(fields)?;
    let name = fields.text("filename", 1_024)?;
    let mut part = Map::from_iter([("type".to_owned(), Value::from("input_file"))]);
    match (
        fields.text("file_data", MAX_FILE)?,
        fields.text("file_url", MAX_FILE)?,
    ) {
        (Some(data), _) => {
            if !is_inline(data) && !is_base64(data) {
                let expected = "expected base64, or a data: URL in base64";
                return Err(invalid(fields.at("file_data"), expected));
            }
            part.insert("file_data".to_owned(), data.into());
        }
        (None, Some(url)) => {
            if !is_web(url) {
                return Err(invalid(
                    fields.at("file_url"),
                    "expected an http: or https: URL",
                ));
            }
            part.insert("file_url".to_owned(), url.into());
        }
        (None, None) => return Err(fields.missing("file_data")),
    }
    if let Some(name) = name {
        part.insert("filename".to_owned(), name.into());
        if let Some(media_type) = media_type(name) {
            part.insert("media_type".to_owned(), media_type.into());
        }
    }
    Ok(Value::Object(part))
}

fn no_file_id(fields: &Fields<'_>) -> Result<(), RequestError> {
    match fields.get("file_id") {
        None => Ok(()),
        Some(_) => Err(unsupported(
            fields.at("file_id"),
            "files are sent as data or by their address; none are kept under an id",
        )),
    }
}

/// The media type of a file, from its name.
fn media_type(name: &str) -> Option<&'static str> {
    let (_, extension) = name.rsplit_once('.')?;
    Some(match extension.to_ascii_lowercase().as_str() {
        "pdf" => "application/pdf",
        "json" => "application/json",
        "txt" => "text/plain",
        "md" => "text/markdown",
        "csv" => "text/csv",
        "html" => "text/html",
        "xml" => "text/xml",
        _ => return None,
    })
}

/// A content part of a user or a tool, as response objects have it; `None` if they can't.
pub(super) fn shown_input(part: &Value) -> Option<Value> {
    let text = |key: &str| part.get(key).and_then(Value::as_str);
    match text("type")? {
        "input_text" | "output_text" => Some(json!({"type": "input_text", "text": text("text")?})),
        "input_image" => {
            let url = text("image_url")?;
            let detail = text("detail").unwrap_or("auto");
            Some(json!({"type": "input_image", "image_url": url, "detail": detail}))
        }
        "input_file" => {
            let mut file = Map::from_iter([("type".to_owned(), Value::from("input_file"))]);
            for key in ["filename", "file_url", "file_data"] {
                file.extend(text(key).map(|text| (key.to_owned(), text.into())));
            }
            // A file whose type only its part knows says it in its data.
            if let (Some(data), Some(media_type)) = (text("file_data"), text("media_type"))
                && data_url(data).is_none()
            {
                let data = format!("data:{media_type};base64,{data}");
                file.insert("file_data".to_owned(), data.into());
            }
            Some(Value::Object(file))
        }
        _ => None,
    }
}

/// A tool's result as the `output` of an item: a list of parts as parts, a text unchanged, and
/// anything else as JSON.
pub(super) fn shown_output(output: &Value) -> Value {
    match output {
        Value::String(_) => output.clone(),
        Value::Array(parts) if !parts.is_empty() => {
            let shown: Option<Vec<Value>> = parts
                .iter()
                .map(|part| {
                    let kind = part.get("type").and_then(Value::as_str)?;
                    if kind == "input_video" {
                        let url = part.get("video_url").and_then(Value::as_str)?;
                        return Some(json!({"type": "input_video", "video_url": url}));
                    }
                    shown_input(part).filter(|_| kind != "output_text")
                })
                .collect();
            shown.map_or_else(|| output.to_string().into(), Value::Array)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            output.to_string().into()
        }
    }
}
