//! The content of messages: read from requests, and shown from parts.

use super::error::RequestError;
use super::fields::{Fields, MAX_ID, wrong};
use crate::Losses;
use crate::document::data_url;
use crate::fields::{check_count, check_length};
use crate::parts::OUTPUT_FILE;
use crate::request::{is_inline, is_web};
use serde::Serialize;
use serde_json::{Value, json};
use timeline::{MessagePartKind, Payload, Role, part_kind};

/// The most characters of one text.
const MAX_TEXT: usize = 256_000;
/// The most characters of an image's address: 4 MB inline.
const MAX_URL: usize = 4 << 20;
/// The most parts of one message.
const MAX_PARTS: usize = 256;

const KINDS: &[&str] = &["text", "image_url", "image_file"];
const DETAILS: &[&str] = &["auto", "low", "high"];

/// A part of a message, as clients are shown it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Content {
    /// A text.
    Text {
        /// The text.
        text: Annotated,
    },
    /// An image at an address.
    ImageUrl {
        /// The image.
        image_url: Image,
    },
    /// An image that was uploaded.
    ImageFile {
        /// The image.
        image_file: ImageFile,
    },
    /// The text with which a model refuses to answer.
    Refusal {
        /// The text.
        refusal: String,
    },
}

/// A text and what it cites.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Annotated {
    /// The text.
    pub value: String,
    /// `file_citation`s and `file_path`s.
    pub annotations: Vec<Value>,
}

/// An image at an address.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Image {
    /// `https:`, `http:` or `data:`.
    pub url: String,
    /// `auto`, `low` or `high`.
    pub detail: String,
}

/// An image that was uploaded.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ImageFile {
    /// The file.
    pub file_id: String,
    /// `auto`, `low` or `high`.
    pub detail: String,
}

impl Content {
    /// A text that cites nothing.
    pub fn text(value: impl Into<String>) -> Self {
        Self::Text {
            text: Annotated {
                value: value.into(),
                annotations: Vec::new(),
            },
        }
    }
}

/// Reads the content of a message that is to be made, as parts of the log. AITP's messages may be
/// lists of strings.
pub(super) fn read_content(
    value: &Value,
    pointer: &str,
    role: Role,
) -> Result<Vec<Value>, RequestError> {
    let empty = |pointer: &str| RequestError::EmptyContent {
        pointer: pointer.to_owned(),
    };
    let kind = match role {
        Role::Assistant => "output_text",
        Role::User | Role::System | Role::Developer => "input_text",
    };
    let text = |text: &str, pointer: &str| {
        check_length(pointer, text, MAX_TEXT)?;
        if text.is_empty() {
            return Err(empty(pointer));
        }
        Ok(json!({"type": kind, "text": text}))
    };
    let parts = match value {
        Value::String(said) => return Ok(vec![text(said, pointer)?]),
        Value::Array(parts) => parts,
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) => {
            return Err(wrong(pointer.to_owned(), "a string or an array", other));
        }
    };
    if parts.is_empty() {
        return Err(empty(pointer));
    }
    check_count(pointer, parts.len(), MAX_PARTS)?;
    let parts = parts.iter().enumerate().map(|(place, part)| {
        let pointer = format!("{pointer}/{place}");
        if let Value::String(said) = part {
            return text(said, &pointer);
        }
        let part = Fields::of(part, pointer)?;
        match part.kind(KINDS)? {
            "text" => text(part.required("text", MAX_TEXT)?, &part.at("text")),
            "image_url" => image_url(&part),
            _ => image_file(&part),
        }
    });
    parts.collect()
}

fn image_url(part: &Fields<'_>) -> Result<Value, RequestError> {
    let image = part.inner("image_url")?;
    let url = image.required("url", MAX_URL)?;
    if !is_web(url) && !is_inline(url) {
        let pointer = image.at("url");
        let expected = "an https: or http: URL, or a data: URL in base64";
        return Err(RequestError::Outside { pointer, expected });
    }
    let detail = image.word("detail", DETAILS)?.unwrap_or("auto");
    Ok(json!({"type": "input_image", "image_url": url, "detail": detail}))
}

fn image_file(part: &Fields<'_>) -> Result<Value, RequestError> {
    let image = part.inner("image_file")?;
    let id = image.required("file_id", MAX_ID)?;
    let detail = image.word("detail", DETAILS)?.unwrap_or("auto");
    Ok(json!({"type": "input_image", "file_id": id, "detail": detail}))
}

/// Converts a part of the log to a content block. A part that has no block is reported as a loss.
pub(super) fn content_view(part: &Payload, at: &str, losses: &mut Losses) -> Option<Content> {
    let value = part.value();
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let owned = |key: &str| text(key).map(str::to_owned);
    let detail = || owned("detail").unwrap_or_else(|| "auto".to_owned());
    let content = match text("type").and_then(part_kind) {
        Some(MessagePartKind::InputText | MessagePartKind::OutputText) => {
            owned("text").map(|said| {
                let annotations = annotations(value.get("annotations"), at, losses);
                let value = said;
                Content::Text {
                    text: Annotated { value, annotations },
                }
            })
        }
        Some(MessagePartKind::Refusal) => {
            owned("refusal").map(|refusal| Content::Refusal { refusal })
        }
        Some(MessagePartKind::InputImage) => image(owned("image_url"), owned("file_id"), detail()),
        Some(MessagePartKind::Extension(OUTPUT_FILE)) => {
            let url = owned("file_data").or_else(|| owned("file_url"));
            let found = url.as_deref().and_then(data_url).map(|(found, _)| found);
            let kind = text("media_type").or(found).unwrap_or_default();
            let is_image = kind.starts_with("image/");
            url.filter(|_| is_image)
                .and_then(|url| image(Some(url), None, detail()))
        }
        Some(
            MessagePartKind::Reasoning
            | MessagePartKind::InputFile
            | MessagePartKind::Tool(_)
            | MessagePartKind::Extension(_),
        )
        | None => None,
    };
    if content.is_none() {
        let kind = text("type").unwrap_or("unknown");
        losses.push(at, format!("a part of type {kind}"));
    }
    content
}

fn image(url: Option<String>, file_id: Option<String>, detail: String) -> Option<Content> {
    match (url, file_id) {
        // An uploaded one has its content beside it, for models and other protocols.
        (_, Some(file_id)) => {
            let image_file = ImageFile { file_id, detail };
            Some(Content::ImageFile { image_file })
        }
        (Some(url), None) => {
            let image_url = Image { url, detail };
            Some(Content::ImageUrl { image_url })
        }
        (None, None) => None,
    }
}

/// The annotations of a text that this API has a place for: those that cite files.
fn annotations(value: Option<&Value>, at: &str, losses: &mut Losses) -> Vec<Value> {
    let Some(Value::Array(all)) = value else {
        return Vec::new();
    };
    let mut kept = Vec::new();
    for (place, annotation) in all.iter().enumerate() {
        let is_whole = |kind: &str| {
            annotation.get(kind).is_some_and(Value::is_object)
                && annotation.get("text").is_some_and(Value::is_string)
                && annotation.get("start_index").is_some_and(Value::is_u64)
                && annotation.get("end_index").is_some_and(Value::is_u64)
        };
        match annotation.get("type").and_then(Value::as_str) {
            Some(kind @ ("file_citation" | "file_path")) if is_whole(kind) => {
                kept.push(annotation.clone());
            }
            kind => {
                let what = format!("an annotation of type {}", kind.unwrap_or("unknown"));
                losses.push(format!("{at}/annotations/{place}"), what);
            }
        }
    }
    kept
}
