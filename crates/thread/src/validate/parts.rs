//! Parts and users' content.

use super::fields::{self, Field, Need, Shape, expected, optional, required};
use super::{Report, Rule, base64, uri};
use crate::document::{Part, PartKind, Version, items};
use crate::json::{Json, Object};
use crate::path::Path;

/// The required members of a part without a kind.
pub(crate) const PART: &[Field] = &[required("part_kind", Shape::Text)];

pub(crate) const USER_PROMPT: &[Field] = &[required("content", Shape::TextOrArray)];

pub(crate) const TEXT: &[Field] = &[
    required("content", Shape::Text),
    optional("id", Shape::Text),
];

pub(crate) const THINKING: &[Field] = &[
    optional("content", Shape::Text),
    optional("signature", Shape::Text),
    optional("provider_name", Shape::Text),
    optional("thinking_id", Shape::Text),
];

pub(crate) const TOOL_CALL: &[Field] = &[
    required("tool_name", Shape::Text),
    required("tool_call_id", Shape::Text),
    expected("args", Shape::Any),
];

/// The outcomes of a tool.
pub(crate) const STATUS: Shape = Shape::OneOf(&["success", "error", "validation_error"]);

pub(crate) const TOOL_RETURN: &[Field] = &[
    required("tool_name", Shape::Text),
    required("tool_call_id", Shape::Text),
    expected("status", STATUS),
];

/// The members of a return before 0.0.3, when nothing could replace `content`.
pub(crate) const RETURNED: &[Field] = &[expected("content", Shape::Any)];

pub(crate) const RETRY_PROMPT: &[Field] = &[
    required("content", Shape::TextOrArray),
    optional("tool_name", Shape::Text),
    optional("tool_call_id", Shape::Text),
];

pub(crate) const FILE: &[Field] = &[
    required("content", Shape::Object),
    optional("id", Shape::Text),
];

pub(crate) const BINARY: &[Field] = &[
    required("data", Shape::Text),
    required("media_type", Shape::Text),
    expected("identifier", Shape::Text),
];

pub(crate) const URL: &[Field] = &[
    required("url", Shape::Text),
    expected("identifier", Shape::Text),
    optional("media_type", Shape::Text),
];

/// The required members of media without a kind.
pub(crate) const MEDIA: &[Field] = &[required("kind", Shape::Text)];

pub(crate) const ATTACHMENTS: &[Field] = &[optional("attachments", Shape::Array)];

pub(crate) const ATTACHMENT: &[Field] = &[
    optional("url", Shape::Text),
    optional("data", Shape::Text),
    optional("size_bytes", Shape::Count),
];

pub(crate) const CONTENT_REF: &[Field] = &[
    required("uri", Shape::Text),
    optional("size_bytes", Shape::Count),
    optional("hash", Shape::Text),
    optional("media_type", Shape::Text),
];

/// Checks the parts of a message or of a user's turn.
pub(super) fn check(report: &mut Report<'_>, path: Path<'_>, parts: &[Json]) {
    for (place, json) in parts.iter().enumerate() {
        let path = path.index(place);
        if let Some(object) = fields::object(report, path, json) {
            check_part(report, path, object, Part::new(json).kind());
        }
    }
}

fn check_part(report: &mut Report<'_>, path: Path<'_>, part: &Object, kind: PartKind<'_>) {
    match kind {
        PartKind::UserPrompt => {
            fields::check(report, path, part, USER_PROMPT);
            check_attachments(report, path, part, Need::Expected);
            check_user_content(report, path.key("content"), part);
        }
        PartKind::Text => fields::check(report, path, part, TEXT),
        PartKind::Thinking => {
            fields::check(report, path, part, THINKING);
            check_provider(report, path, part);
        }
        PartKind::ToolCall => fields::check(report, path, part, TOOL_CALL),
        PartKind::ToolReturn => check_tool_return(report, path, part),
        PartKind::RetryPrompt => fields::check(report, path, part, RETRY_PROMPT),
        PartKind::File => {
            fields::check(report, path, part, FILE);
            if let Some(content) = part.get("content").and_then(Json::as_object) {
                let path = path.key("content");
                fields::check(report, path, content, BINARY);
                base64::check(report, path, content, "data");
            }
        }
        PartKind::SystemPrompt => {
            let message = "system prompts belong into the configuration of the agent";
            report.add(Rule::SystemPrompt, path, message);
        }
        PartKind::Other(_) => {}
        PartKind::Missing => {
            fields::check(report, path, part, PART);
        }
    }
}

/// Reports a thought that does not name its provider.
pub(super) fn check_provider(report: &mut Report<'_>, path: Path<'_>, thought: &Object) {
    if thought.get("provider_name").is_none_or(Json::is_null) {
        let message = "the thought names no provider";
        report.add(Rule::ThinkingProviderName, path, message);
    }
}

/// Checks the attachments of a user (2.0.0 "Supporting Types"). Only 1.0.0 specifies where they
/// occur, so in other versions a missing member is a lesser breach.
pub(super) fn check_attachments(
    report: &mut Report<'_>,
    path: Path<'_>,
    holder: &Object,
    need: Need,
) {
    fields::check(report, path, holder, ATTACHMENTS);
    let path = path.key("attachments");
    for (place, attachment) in items(holder, "attachments").iter().enumerate() {
        let path = path.index(place);
        let Some(attachment) = fields::object(report, path, attachment) else {
            continue;
        };
        fields::check(report, path, attachment, &named(need));
        fields::check(report, path, attachment, ATTACHMENT);
        base64::check(report, path, attachment, "data");
        let present = |key: &str| attachment.get(key).is_some_and(|value| !value.is_null());
        if !present("url") && !present("data") {
            fields::missing(report, Rule::Expected, path, "url");
        }
    }
}

/// The members with an attachment's name and type.
pub(crate) fn named(need: Need) -> [Field; 2] {
    ["name", "media_type"].map(|name| fields::field(name, need, Shape::Text))
}

fn check_user_content(report: &mut Report<'_>, path: Path<'_>, part: &Object) {
    let items = part
        .get("content")
        .and_then(Json::as_array)
        .unwrap_or_default();
    for (place, item) in items.iter().enumerate() {
        let path = path.index(place);
        match item {
            Json::String(_) => {}
            Json::Object(object) => check_media(report, path, object),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::Array(_) => {
                fields::wrong(report, path, item, "a string or an object");
            }
        }
    }
}

fn check_media(report: &mut Report<'_>, path: Path<'_>, media: &Object) {
    match media.get_str("kind") {
        Some("image-url" | "audio-url" | "video-url" | "document-url") => {
            fields::check(report, path, media, URL);
        }
        Some("binary") => {
            fields::check(report, path, media, BINARY);
            base64::check(report, path, media, "data");
        }
        Some(_) => {}
        None => fields::check(report, path, media, MEDIA),
    }
}

fn check_tool_return(report: &mut Report<'_>, path: Path<'_>, part: &Object) {
    fields::check(report, path, part, TOOL_RETURN);
    let elsewhere = part.get("content_ref").filter(|value| !value.is_null());
    if report.version < Version::V0_0_3 {
        return fields::check(report, path, part, RETURNED);
    }
    let Some(elsewhere) = elsewhere else {
        if !part.contains_key("content") {
            let message = "the return has neither `content` nor `content_ref`";
            report.add(Rule::ToolReturnContent, path, message);
        }
        return;
    };
    if part.get("content").is_some_and(|value| !value.is_null()) {
        let message = "the return has its content elsewhere, and this one beside";
        report.add(Rule::ContentAndRef, path.key("content"), message);
    }
    check_reference(report, path.key("content_ref"), elsewhere);
}

fn check_reference(report: &mut Report<'_>, path: Path<'_>, elsewhere: &Json) {
    let Some(reference) = fields::object(report, path, elsewhere) else {
        return;
    };
    fields::check(report, path, reference, CONTENT_REF);
    if let Some(text) = reference.get_str("uri") {
        check_uri(report, path.key("uri"), text);
    }
    let hash = reference.get_str("hash").filter(|hash| !is_hash(hash));
    if let Some(hash) = hash {
        let message = format!("{hash:?} is not `sha256:` and 64 hexadecimal digits");
        report.add(Rule::ContentRefHash, path.key("hash"), message);
    }
}

fn check_uri(report: &mut Report<'_>, path: Path<'_>, text: &str) {
    match uri::scheme(text) {
        None => report.add(Rule::ContentRefUri, path, format!("{text:?} is no URI")),
        Some(scheme) => {
            let scheme = scheme.to_ascii_lowercase();
            if !uri::SCHEMES.contains(&scheme.as_str()) && !report.rules.schemes.contains(&scheme) {
                let message = format!("the scheme {scheme:?} is not recognised");
                report.add(Rule::ContentRefScheme, path, message);
            }
        }
    }
}

fn is_hash(text: &str) -> bool {
    let digits = text.strip_prefix("sha256:").unwrap_or_default();
    digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}
