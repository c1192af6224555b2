//! Parts and users' content.

use super::context::Context;
use super::patterns;
use super::turns::dispatch;
use super::ty::{Type, member, object_or_null, texts, when};
use crate::document::Version;
use crate::json::Object;
use crate::validate::fields::{Field, Need};
use crate::validate::parts;

/// The kinds of parts that the protocol defines, by the name of their type.
const PARTS: [(&str, &str, &[Field]); 7] = [
    ("user-prompt", "UserPromptPart", parts::USER_PROMPT),
    ("text", "TextPart", parts::TEXT),
    ("thinking", "ThinkingPart", parts::THINKING),
    ("tool-call", "ToolCallPart", parts::TOOL_CALL),
    ("tool-return", "ToolReturnPart", parts::TOOL_RETURN),
    ("retry-prompt", "RetryPromptPart", parts::RETRY_PROMPT),
    ("file", "FilePart", parts::FILE),
];

/// The kinds of media with a URL.
const URLS: [(&str, &str); 4] = [
    ("image-url", "ImageUrl"),
    ("audio-url", "AudioUrl"),
    ("document-url", "DocumentUrl"),
    ("video-url", "VideoUrl"),
];

/// The types from the part down.
pub(super) fn types(context: Context<'_>) -> Vec<(&'static str, Object)> {
    let mut types = vec![part(context)];
    types.extend(PARTS.map(|(kind, name, fields)| known(context, kind, name, fields)));
    types.push(user_content(context));
    types.extend(URLS.map(|(kind, name)| {
        let url = Type::new(context, name).tagged("kind", &[kind]);
        url.fields(parts::URL).finish()
    }));
    types.push(
        Type::new(context, "BinaryContent")
            .fields(parts::BINARY)
            .finish(),
    );
    types.push(attachment(context, Need::Expected));
    if *context.version >= Version::V0_0_3 {
        types.push(content_ref(context));
    }
    types
}

fn part(context: Context<'_>) -> (&'static str, Object) {
    let kinds = PARTS
        .each_ref()
        .map(|(kind, name, _)| (std::slice::from_ref(kind), *name));
    let part = dispatch(context, "MessagePart", "part_kind", &kinds);
    if !context.is_strict() {
        return part.finish();
    }
    let prompt = Object::new().with("const", "system-prompt");
    part.keyword("part_kind", "not", prompt).finish()
}

fn known(
    context: Context<'_>,
    kind: &'static str,
    name: &'static str,
    fields: &[Field],
) -> (&'static str, Object) {
    let part = Type::new(context, name)
        .tagged("part_kind", &[kind])
        .fields(fields);
    match kind {
        "user-prompt" => part.items("content", "UserContent").attachments(),
        "file" => part.object("content", "BinaryContent"),
        "tool-return" if *context.version < Version::V0_0_3 => part.fields(parts::RETURNED),
        "tool-return" => part
            .optional("content", &Object::new())
            .optional("content_ref", &object_or_null("ContentRef")),
        _ => part,
    }
    .finish()
}

fn user_content(context: Context<'_>) -> (&'static str, Object) {
    let urls = URLS
        .each_ref()
        .map(|(kind, name)| (std::slice::from_ref(kind), *name));
    let binary: (&[&str], &str) = (&["binary"], "BinaryContent");
    let kinds: Vec<_> = urls.into_iter().chain([binary]).collect();
    let (name, mut ty) = dispatch(context, "UserContent", "kind", &kinds).finish();
    ty.insert("type", texts(&["string", "object"]));
    (name, ty)
}

/// The attachment of a user. `need` decides the severity of a missing member.
pub(super) fn attachment(context: Context<'_>, need: Need) -> (&'static str, Object) {
    let attachment = Type::new(context, "Attachment")
        .fields(&parts::named(need))
        .fields(parts::ATTACHMENT);
    if !context.is_strict() {
        return attachment.finish();
    }
    let there = Object::new().with("not", Object::new().with("type", "null"));
    let inline = member("data", there.clone()).with("required", texts(&["data"]));
    let behind = member("url", there).with("required", texts(&["url"]));
    let rule = Object::new().with("if", inline).with("else", behind);
    attachment.rule(rule).finish()
}

fn content_ref(context: Context<'_>) -> (&'static str, Object) {
    let named = when(
        Object::new().with("pattern", patterns::STORE),
        Object::new().with("pattern", patterns::AUTHORITY),
    );
    let mut uri = vec![named];
    let mut reference = Type::new(context, "ContentRef").fields(parts::CONTENT_REF);
    if context.is_strict() {
        uri.push(Object::new().with("pattern", patterns::recognised()));
        reference = reference.keyword("hash", "pattern", patterns::HASH);
    }
    reference
        .keyword("uri", "pattern", patterns::URI)
        .keyword("uri", "allOf", uri)
        .finish()
}
