//! Users' items as messages for the model.

use crate::request::{MediaKind, is_base64};
use serde_json::Value;
use timeline::{Item, MessagePartKind, Payload, Role, part_kind};
use upp::{Media, MediaSource, MessageOptions, Metadata, Speaker, UserContent, UserMessage};

/// A user's item as a message for the model. Text of a system or a developer stays marked as theirs
/// for models that accept it. Models receive no extension parts.
pub fn user_message(item: &Item) -> UserMessage {
    let content = item.content.as_ref().map(Payload::value);
    let blocks = match content {
        Some(Value::Array(parts)) => parts.iter().filter_map(user_block).collect(),
        Some(Value::String(text)) => vec![UserContent::Text { text }],
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
            Vec::new()
        }
    };
    let options = MessageOptions {
        id: Some(item.id.as_str().into()),
        timestamp: Some(item.created_at),
        metadata: Some(Metadata::new()),
    };
    let message = UserMessage::new(blocks, options);
    match item.role {
        Some(Role::System) => message.with_speaker(Speaker::System),
        Some(Role::Developer) => message.with_speaker(Speaker::Developer),
        Some(Role::User | Role::Assistant) | None => message,
    }
}

/// A user's message as the content of an item, from which [`user_message`] restores it. Text in
/// media is stored as a `data:` URL.
pub fn item_content(message: &UserMessage) -> Payload {
    let parts: Vec<Value> = message.content.iter().map(user_part).collect();
    Value::Array(parts).into()
}

fn user_part(block: &UserContent) -> Value {
    let file = |media: &Media| {
        let (field, text) = match &media.source {
            MediaSource::Url { url } => ("file_url", url.clone()),
            MediaSource::Base64 { .. } | MediaSource::Bytes { .. } | MediaSource::Text { .. } => {
                ("file_data", inline(media))
            }
        };
        let mut part = serde_json::json!({"type": "input_file", "media_type": media.mime_type});
        if let Value::Object(part) = &mut part {
            part.insert(field.to_owned(), text.into());
            part.extend(
                media
                    .title
                    .clone()
                    .map(|title| ("filename".to_owned(), title.into())),
            );
        }
        part
    };
    match block {
        UserContent::Text { text } => serde_json::json!({"type": "input_text", "text": text}),
        UserContent::Image(media)
        | UserContent::Document(media)
        | UserContent::Audio(media)
        | UserContent::Video(media)
        | UserContent::Binary(media) => file(media),
    }
}

/// The bytes of media as a `data:` URL.
fn inline(media: &Media) -> String {
    let of_text = || {
        let data = media.to_bytes().ok()?;
        Media::new(MediaSource::Bytes { data }, media.mime_type.as_str()).data_url()
    };
    media.data_url().or_else(of_text).unwrap_or_default()
}

fn user_block(part: &Value) -> Option<UserContent> {
    let text = |field: &str| part.get(field).and_then(Value::as_str).map(str::to_owned);
    let mime = |otherwise: &str| text("media_type").unwrap_or_else(|| otherwise.to_owned());
    match part_kind(part.get("type")?.as_str()?)? {
        MessagePartKind::InputText | MessagePartKind::OutputText => Some(UserContent::Text {
            text: text("text")?,
        }),
        MessagePartKind::InputImage => {
            let (source, found) = source_of(&text("image_url")?)?;
            let mime_type = found.unwrap_or_else(|| mime("image/png"));
            Some(UserContent::Image(Media::new(source, mime_type)))
        }
        MessagePartKind::InputFile => {
            let (source, found) = source_of(&text("file_data").or_else(|| text("file_url"))?)?;
            let mime_type = found.unwrap_or_else(|| mime("application/octet-stream"));
            let media = Media::new(source, mime_type).with_title(text("filename"));
            Some(match MediaKind::of(&media.mime_type) {
                Some(MediaKind::Audio) => UserContent::Audio(media),
                Some(MediaKind::Video) => UserContent::Video(media),
                Some(MediaKind::Image) => UserContent::Image(media),
                Some(MediaKind::Document) => UserContent::Document(media),
                None => UserContent::Binary(media),
            })
        }
        MessagePartKind::Reasoning
        | MessagePartKind::Refusal
        | MessagePartKind::Tool(_)
        | MessagePartKind::Extension(_) => None,
    }
}

/// The index of the first part that no model can read: a file that is neither an address nor
/// base64.
pub fn unreadable_part(parts: &[Value]) -> Option<usize> {
    parts.iter().position(|part| {
        let text = |field: &str| part.get(field).and_then(Value::as_str);
        let source = match text("type").and_then(part_kind) {
            Some(MessagePartKind::InputImage) => text("image_url"),
            Some(MessagePartKind::InputFile) => text("file_data").or_else(|| text("file_url")),
            Some(
                MessagePartKind::InputText
                | MessagePartKind::OutputText
                | MessagePartKind::Reasoning
                | MessagePartKind::Refusal
                | MessagePartKind::Tool(_)
                | MessagePartKind::Extension(_),
            )
            | None => None,
        };
        source.is_some_and(|source| source_of(source).is_none())
    })
}

/// The addresses of files in content, each with the index of its part. The index is 0 if the
/// content is a single part.
pub fn linked_files(content: &Payload) -> Vec<(usize, String)> {
    let parts = match content.value() {
        Value::Array(parts) => parts,
        part @ Value::Object(_) => vec![part],
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return Vec::new(),
    };
    let mut found = Vec::new();
    for (place, part) in parts.iter().enumerate() {
        for field in ["image_url", "file_url", "file_data"] {
            let text = part.get(field).and_then(Value::as_str).map(str::trim);
            let text = text.filter(|text| !text.starts_with("data:"));
            // Looser than what is read as an address: what is fetched may be read by others.
            let link = text.filter(|text| text.contains(":/") || text.contains(":\\"));
            found.extend(link.map(|link| (place, link.to_owned())));
        }
    }
    found
}

/// The index of the first part that a message to an agent can't contain: an agent's own text,
/// reasoning, refusal or call.
pub fn part_without_text(parts: &[Value]) -> Option<usize> {
    parts.iter().position(|part| {
        match part.get("type").and_then(Value::as_str).and_then(part_kind) {
            Some(
                MessagePartKind::OutputText
                | MessagePartKind::Reasoning
                | MessagePartKind::Refusal
                | MessagePartKind::Tool(_),
            ) => true,
            Some(
                MessagePartKind::InputText
                | MessagePartKind::InputImage
                | MessagePartKind::InputFile
                | MessagePartKind::Extension(_),
            )
            | None => false,
        }
    })
}

/// Reads `data:` URLs as bytes with their type, other URLs as addresses, and other texts as base64.
/// `None` if the text is none of these.
pub(super) fn source_of(text: &str) -> Option<(MediaSource, Option<String>)> {
    let base64 = |data: &str| {
        is_base64(data).then(|| MediaSource::Base64 {
            data: data.to_owned(),
        })
    };
    if let Some(inline) = text.strip_prefix("data:") {
        let (mime, data) = inline.split_once(";base64,")?;
        return Some((base64(data)?, Some(mime.to_owned())));
    }
    if text.contains("://") {
        let url = text.to_owned();
        return Some((MediaSource::Url { url }, None));
    }
    Some((base64(text)?, None))
}

/// The kind of media of this type: `audio`, `video`, or else `image`.
pub(super) fn media_kind(mime_type: &str) -> &str {
    match mime_type.split('/').next() {
        Some(kind @ ("audio" | "video")) => kind,
        Some(_) | None => "image",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use timeline::{ItemStatus, ItemType, Role};

    #[test]
    fn a_data_url_becomes_bytes_with_their_type() {
        let part = json!({"type": "input_image", "image_url": "data:image/gif;base64,AAAA"});
        let source = MediaSource::Base64 {
            data: "AAAA".into(),
        };
        let expected = Media::new(source, "image/gif");
        assert_eq!(user_block(&part), Some(UserContent::Image(expected)));
    }

    #[test]
    fn the_addresses_of_files_have_the_places_of_their_parts() {
        let content = json!([
            {"type": "input_text", "text": "https://a.example/in/a/text"},
            {"type": "input_image", "image_url": "https://a.example/b.png"},
            {"type": "input_image", "image_url": "data:image/png;base64,AA:/"},
            {"type": "input_file", "file_data": "AAAA"},
            {"type": "input_file", "file_url": "HTTP:/a.example", "file_data": "http:\\\\a.example"},
        ]);
        let found = [
            (1, "https://a.example/b.png"),
            (4, "HTTP:/a.example"),
            (4, "http:\\\\a.example"),
        ];
        let found = found.map(|(place, link)| (place, link.to_owned()));
        assert_eq!(linked_files(&content.into()), found);
        let part = json!({"type": "input_image", "image_url": "https://a.example"});
        assert_eq!(linked_files(&part.into()).len(), 1);
    }

    #[test]
    fn what_is_neither_an_address_nor_base64_is_no_file() {
        for (data, is_read) in [
            ("AAAA", true),
            ("AAA=", true),
            ("AAA", true),
            ("https://a.b/c.png", true),
            ("file_abc", false),
            ("A", false),
            ("AA=", false),
            ("data:text/plain,hello", false),
            ("data:image/png;base64,%%", false),
        ] {
            let part = json!({"type": "input_image", "image_url": data});
            assert_eq!(user_block(&part).is_some(), is_read, "{data}");
            let said = [json!({"type": "input_text", "text": "x"}), part];
            assert_eq!(unreadable_part(&said), (!is_read).then_some(1), "{data}");
        }
    }

    #[test]
    fn a_client_can_not_pass_a_message_off_as_a_prompt() {
        let prompt = json!({"type": "loomline-prompt", "kind": "reason", "text": "t", "id": "i"});
        let item = Item {
            id: "i".into(),
            item_type: ItemType::Message,
            role: Some(Role::User),
            created_at: jiff::Timestamp::UNIX_EPOCH,
            status: ItemStatus::Stored,
            channel: None,
            content: Some(json!([prompt, {"type": "input_text", "text": "x"}]).into()),
            execution_id: None,
            run: None,
            metadata: Some(json!({"uap": {"prompt": "reason", "step": 1}}).into()),
        };
        let message = user_message(&item);
        assert!(message.metadata.is_empty());
        assert_eq!(message.content, [UserContent::Text { text: "x".into() }]);
    }

    #[test]
    fn instructions_are_their_speakers_to_a_model() {
        for (role, speaker) in [
            (Some(Role::System), Speaker::System),
            (Some(Role::Developer), Speaker::Developer),
            (Some(Role::User), Speaker::User),
            (None, Speaker::User),
        ] {
            let item = Item {
                id: "i".into(),
                item_type: ItemType::Message,
                role,
                created_at: jiff::Timestamp::UNIX_EPOCH,
                status: ItemStatus::Stored,
                channel: None,
                content: Some(json!([{"type": "input_text", "text": "x"}]).into()),
                execution_id: None,
                run: None,
                metadata: None,
            };
            assert_eq!(user_message(&item).speaker(), speaker);
        }
    }

    #[test]
    fn a_users_message_comes_back_from_the_content_of_an_item() {
        let base64 = |data: &str| MediaSource::Base64 { data: data.into() };
        let url = MediaSource::Url {
            url: "https://example.org/a.pdf".into(),
        };
        let blocks = vec![
            UserContent::Text { text: "hi".into() },
            UserContent::Image(Media::new(base64("AAAA"), "image/gif")),
            UserContent::Audio(Media::new(base64("AAAA"), "audio/wav")),
            UserContent::Document(
                Media::new(url, "application/pdf").with_title(Some("a".to_owned())),
            ),
            UserContent::Binary(Media::new(base64("AAAA"), "application/zip")),
        ];
        let message = UserMessage::new(blocks.clone(), MessageOptions::default());
        let Value::Array(parts) = item_content(&message).value() else {
            unreachable!()
        };
        let back: Vec<UserContent> = parts.iter().filter_map(user_block).collect();
        assert_eq!(back, blocks);
    }
}
