//! A conversation as text, for a model that is to summarise it.

use std::fmt::Write;
use upp::{AssistantContent, Media, MediaSource, Message, UserContent};

/// Renders one paragraph for each block. Reasoning is omitted; media are named but not included.
pub(super) fn of<'a>(messages: impl Iterator<Item = &'a Message>) -> String {
    let mut text = String::new();
    for message in messages {
        match message {
            Message::User(message) => {
                for block in &message.content {
                    user(&mut text, block);
                }
            }
            Message::Assistant(message) => {
                for block in &message.content {
                    assistant(&mut text, block);
                }
                for call in &message.tool_calls {
                    let (id, name) = (&call.tool_call_id, &call.tool_name);
                    let arguments = call.arguments.text();
                    paragraph(
                        &mut text,
                        format_args!("Assistant calls {name}({arguments}) [{id}]"),
                    );
                }
            }
            Message::ToolResult(message) => {
                for result in &message.results {
                    let (id, value) = (&result.tool_call_id, &result.result);
                    let what = if result.is_error { "Error" } else { "Result" };
                    match value.as_str() {
                        Some(plain) => paragraph(&mut text, format_args!("{what} [{id}]: {plain}")),
                        None => paragraph(&mut text, format_args!("{what} [{id}]: {value}")),
                    }
                }
            }
        }
    }
    text
}

fn paragraph(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _infallible = write!(text, "{line}\n\n");
}

fn user(text: &mut String, block: &UserContent) {
    match block {
        UserContent::Text { text: said } => paragraph(text, format_args!("User: {said}")),
        UserContent::Image(media)
        | UserContent::Document(media)
        | UserContent::Audio(media)
        | UserContent::Video(media)
        | UserContent::Binary(media) => write_media(text, "User", media),
    }
}

fn assistant(text: &mut String, block: &AssistantContent) {
    match block {
        AssistantContent::Text { text: said } => {
            paragraph(text, format_args!("Assistant: {said}"));
        }
        AssistantContent::Reasoning { .. } => {}
        AssistantContent::Image(media)
        | AssistantContent::Audio(media)
        | AssistantContent::Video(media) => write_media(text, "Assistant", media),
    }
}

fn write_media(text: &mut String, who: &str, media: &Media) {
    let (kind, title) = (&media.mime_type, media.title.as_deref().unwrap_or_default());
    match &media.source {
        MediaSource::Text { data } => {
            paragraph(text, format_args!("{who} ({kind} {title}): {data}"));
        }
        MediaSource::Url { url } => paragraph(text, format_args!("{who}: [{kind} {title} {url}]")),
        MediaSource::Base64 { .. } | MediaSource::Bytes { .. } => {
            paragraph(text, format_args!("{who}: [{kind} {title}]"));
        }
    }
}
