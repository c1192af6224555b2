//! Parts of messages, converted between A2A and the log.

use super::error::{ErrorKind, RequestError};
use super::fields::{Fields, MAX_ID};
use crate::parts::OUTPUT_FILE;
use crate::request::{MediaKind, file, inline, is_image, is_inline, is_web};
use serde_json::{Value, json};
use timeline::{MessagePartKind, part_kind};

/// The most bytes of a text.
const MAX_TEXT: usize = 1 << 20;
/// The media type of a text that is a JSON data part.
const JSON: &str = "application/json";
/// The media type of a file that names none.
const BYTES: &str = "application/octet-stream";

/// A part of a message, as a part of the log's. Data becomes a text, for models read texts, and is
/// shown as data again.
pub(super) fn read(part: &Value, pointer: &str) -> Result<Value, RequestError> {
    let fields = Fields::of(part, pointer)?;
    let given = ["text", "raw", "url", "data"].map(|key| fields.present(key));
    let n_given = given.iter().flatten().count();
    if n_given != 1 {
        let what = "expected exactly one of text, raw, url and data";
        return Err(RequestError::param(pointer, what));
    }
    let media_type = fields.bounded_text("mediaType", MAX_ID)?;
    let is_file = given[1].is_some() || given[2].is_some();
    if is_file && MediaKind::of(media_type.unwrap_or(BYTES)).is_none() {
        return Err(RequestError {
            kind: ErrorKind::ContentTypeNotSupported,
            ..RequestError::param(
                fields.at("mediaType"),
                format!("expected one of {:?}", MediaKind::READ),
            )
        });
    }
    let mut said = if let [Some(_), ..] = given {
        let text = fields.bounded_text("text", MAX_TEXT)?.unwrap_or_default();
        let mut said = json!({"type": "input_text", "text": text});
        // A text that says it is JSON would be taken for data.
        if let Some(kind) = media_type.filter(|kind| *kind != JSON) {
            said["media_type"] = kind.into();
        }
        said
    } else if let [.., Some(data)] = given {
        json!({"type": "input_text", "text": data.to_string(), "media_type": JSON})
    } else if given[1].is_some() {
        let raw = fields.bounded_text("raw", usize::MAX)?;
        let raw = raw.ok_or_else(|| RequestError::param(fields.at("raw"), "expected base64"))?;
        // Both alphabets of base64 are allowed here, and one there.
        let raw = raw.replace('-', "+").replace('_', "/");
        let media_type = media_type.unwrap_or(BYTES);
        let url = format!("data:{media_type};base64,{raw}");
        if !is_inline(&url) {
            return Err(RequestError::param(fields.at("raw"), "expected base64"));
        }
        file(&url, is_image(media_type), Some(media_type))
    } else {
        let url = fields.bounded_text("url", MAX_TEXT)?.unwrap_or_default();
        if !is_web(url) {
            return Err(RequestError {
                kind: ErrorKind::ContentTypeNotSupported,
                ..RequestError::param(fields.at("url"), "expected an http: or https: URL")
            });
        }
        file(url, media_type.is_some_and(is_image), media_type)
    };
    if let Some(name) = fields.bounded_text("filename", MAX_ID)? {
        said["filename"] = name.into();
    }
    if let Some(metadata) = fields.get("metadata") {
        said["metadata"] = metadata.clone();
    }
    Ok(said)
}

/// Converts a part of the log. `None` if the protocol has no such part: calls, reasoning, and
/// additions of other protocols.
pub(super) fn show(part: &Value) -> Option<Value> {
    let text = |key: &str| part.get(key).and_then(Value::as_str);
    let media_type = text("media_type");
    let mut shown = match part_kind(text("type")?)? {
        MessagePartKind::InputText | MessagePartKind::OutputText => {
            let said = text("text")?;
            let data = media_type.filter(|kind| *kind == JSON);
            let data = data.and_then(|_| serde_json::from_str::<Value>(said).ok());
            let mut shown =
                data.map_or_else(|| json!({"text": said}), |data| json!({"data": data}));
            if let Some(kind) = media_type.filter(|kind| *kind != JSON) {
                shown["mediaType"] = kind.into();
            }
            shown
        }
        MessagePartKind::Refusal => json!({"text": text("refusal")?}),
        MessagePartKind::InputImage => shown_file(text("image_url")?, media_type),
        MessagePartKind::InputFile | MessagePartKind::Extension(OUTPUT_FILE) => {
            shown_file(text("file_data").or_else(|| text("file_url"))?, media_type)
        }
        MessagePartKind::Reasoning | MessagePartKind::Tool(_) | MessagePartKind::Extension(_) => {
            return None;
        }
    };
    if let Some(name) = text("filename") {
        shown["filename"] = name.into();
    }
    if let Some(metadata) = part.get("metadata").filter(|it| it.is_object()) {
        shown["metadata"] = metadata.clone();
    }
    Some(shown)
}

/// A file, by what it is or where it is.
pub(super) fn shown_file(url: &str, media_type: Option<&str>) -> Value {
    let (data, kind) = inline(url, media_type);
    let mut shown = data.map_or_else(|| json!({"url": url}), |data| json!({"raw": data}));
    if let Some(kind) = kind {
        shown["mediaType"] = kind.into();
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_is_shown_again_as_it_was() {
        for part in [
            json!({"text": "hello"}),
            json!({"text": ""}),
            json!({"text": "# hello", "mediaType": "text/markdown"}),
            json!({"data": {"a": [1, null]}}),
            json!({"data": null}),
            json!({"raw": "aGk=", "mediaType": "image/png", "filename": "a.png"}),
            json!({"raw": "aGk=", "mediaType": "application/pdf"}),
            json!({"url": "https://a.example/b", "mediaType": "text/csv", "metadata": {"k": 1}}),
            json!({"url": "https://a.example/b", "mediaType": "Text/Plain; charset=utf-8"}),
        ] {
            assert_eq!(show(&read(&part, "/parts/0").unwrap()), Some(part));
        }
    }

    #[test]
    fn a_part_says_one_thing_and_nothing_that_can_not_be_fetched() {
        for (part, kind) in [
            (json!({}), ErrorKind::InvalidParams),
            (json!("hello"), ErrorKind::InvalidParams),
            (json!({"text": "a", "data": 1}), ErrorKind::InvalidParams),
            (json!({"text": 7}), ErrorKind::InvalidParams),
            (
                json!({"raw": "", "mediaType": "image/png"}),
                ErrorKind::InvalidParams,
            ),
            (
                json!({"raw": "no base64!", "mediaType": "image/png"}),
                ErrorKind::InvalidParams,
            ),
            (
                json!({"raw": "%%", "mediaType": "image/png"}),
                ErrorKind::InvalidParams,
            ),
            (
                json!({"raw": "aGk=", "mediaType": "application/x-tar"}),
                ErrorKind::ContentTypeNotSupported,
            ),
            (
                json!({"url": "https://a.example/b", "mediaType": "image/"}),
                ErrorKind::ContentTypeNotSupported,
            ),
            (
                json!({"url": "file:///etc/passwd", "mediaType": "text/plain"}),
                ErrorKind::ContentTypeNotSupported,
            ),
            // Nobody knows what it is.
            (json!({"raw": "aGk="}), ErrorKind::ContentTypeNotSupported),
            (
                json!({"url": "https://a.example/b"}),
                ErrorKind::ContentTypeNotSupported,
            ),
        ] {
            let error = read(&part, "/parts/0").unwrap_err();
            assert_eq!(error.kind, kind, "{part}");
            assert!(error.pointer.unwrap().starts_with("/parts/0"));
        }
    }
}
