//! The log's parts ⇄ what models read and write (`upp`).

use crate::parts::{ReasoningPart, StepResponse, TextPart, ToolPart, ToolState};
use jiff::Timestamp;
use serde_json::{Map, Value};
use timeline::{
    Entry, Item, ItemType, PartKind, Payload, Reaction, Role, StepId, StepRecord, Transcript,
    part_kind,
};
use upp::{
    Arguments, AssistantContent, AssistantMessage, Media, MediaSource, Message, MessageOptions,
    Response, ToolCall, ToolExecution, ToolResult, ToolResultMessage, UserContent, UserMessage,
};

/// The text a model is given for a call whose outcome a crash hid.
const UNKNOWN: &str = "The tool was interrupted before its outcome was recorded. It may or may not have taken \
                       effect. Check before calling it again.";

/// The message that a user's item is to a model. Extension parts are not shown to models.
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
        metadata: Some(Map::new()),
    };
    UserMessage::new(blocks, options)
}

/// What a user's message is as the content of an item, so that [`user_message`] gives it back. Text
/// in media is kept as a `data:` URL.
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
        PartKind::InputText | PartKind::OutputText => Some(UserContent::Text {
            text: text("text")?,
        }),
        PartKind::InputImage => {
            let (source, found) = source_of(&text("image_url")?);
            let mime_type = found.unwrap_or_else(|| mime("image/png"));
            Some(UserContent::Image(Media::new(source, mime_type)))
        }
        PartKind::InputFile => {
            let (source, found) = source_of(&text("file_data").or_else(|| text("file_url"))?);
            let mime_type = found.unwrap_or_else(|| mime("application/octet-stream"));
            let media = Media::new(source, mime_type).with_title(text("filename"));
            Some(match media.mime_type.split('/').next() {
                Some("audio") => UserContent::Audio(media),
                Some("video") => UserContent::Video(media),
                Some("image") => UserContent::Image(media),
                _ if media.mime_type == "application/pdf"
                    || media.mime_type.starts_with("text/") =>
                {
                    UserContent::Document(media)
                }
                _ => UserContent::Binary(media),
            })
        }
        PartKind::Reasoning | PartKind::Refusal | PartKind::Tool(_) | PartKind::Extension(_) => {
            None
        }
    }
}

/// Reads `data:` URLs as bytes with their type, other URLs as addresses, the rest as base64.
fn source_of(text: &str) -> (MediaSource, Option<String>) {
    if let Some((mime, data)) = text
        .strip_prefix("data:")
        .and_then(|rest| rest.split_once(";base64,"))
    {
        return (
            MediaSource::Base64 {
                data: data.to_owned(),
            },
            Some(mime.to_owned()),
        );
    }
    if text.contains("://") {
        return (
            MediaSource::Url {
                url: text.to_owned(),
            },
            None,
        );
    }
    (
        MediaSource::Base64 {
            data: text.to_owned(),
        },
        None,
    )
}

/// The parts of a model's answer in its order, calls last, and what it says of itself.
pub fn answer(response: &Response) -> Result<(Vec<Payload>, Payload), serde_json::Error> {
    let message = &response.message;
    let mut parts = Vec::with_capacity(message.content.len() + message.tool_calls.len());
    for block in &message.content {
        parts.push(block_part(block, &response.provider)?);
    }
    for call in &message.tool_calls {
        parts.push(
            ToolPart::call(
                &call.tool_name,
                call.tool_call_id.as_str(),
                call.arguments.text(),
            )
            .write()?,
        );
    }
    let metadata = (!message.metadata.is_empty())
        .then(|| Payload::write(&message.metadata))
        .transpose()?;
    let stop_reason = match serde_json::to_value(&response.stop_reason)? {
        Value::String(word) => Some(word),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            None
        }
    };
    let said = StepResponse {
        provider: Some(response.provider.clone()),
        model: Some(response.model_id.clone()),
        response_id: response.response_id.clone(),
        message_id: Some(message.id.as_str().to_owned()),
        stop_reason,
        usage: Some(Payload::write(&response.usage)?),
        metadata,
        timestamp: None,
        extra: None,
    };
    Ok((parts, Payload::write(&said)?))
}

fn block_part(block: &AssistantContent, provider: &str) -> Result<Payload, serde_json::Error> {
    let media = |media: &Media| {
        let (field, text) = match &media.source {
            MediaSource::Base64 { .. } | MediaSource::Bytes { .. } => {
                ("file_data", media.data_url().unwrap_or_default())
            }
            MediaSource::Url { url } => ("file_url", url.clone()),
            MediaSource::Text { data } => ("file_data", data.clone()),
        };
        Ok(serde_json::json!({"type": "loomline-output-file", field: text, "media_type": media.mime_type}).into())
    };
    match block {
        AssistantContent::Text { text } => Payload::write(&TextPart {
            part_type: "output_text".into(),
            text: text.clone(),
            extra: None,
        }),
        AssistantContent::Reasoning { text, signature } => Payload::write(&ReasoningPart {
            part_type: "reasoning".into(),
            text: text.clone(),
            signature: signature.clone(),
            provider: Some(provider.to_owned()),
            extra: None,
        }),
        AssistantContent::Image(m) | AssistantContent::Audio(m) | AssistantContent::Video(m) => {
            media(m)
        }
    }
}

/// The call's part with the result of its tool.
pub fn with_result(
    part: &Payload,
    execution: &ToolExecution,
) -> Result<Payload, serde_json::Error> {
    let Some(mut tool) = ToolPart::read(part) else {
        return Ok(part.clone());
    };
    tool.duration_ms = Some(execution.duration);
    if execution.is_error {
        tool.state = ToolState::OutputError;
        tool.error_text = Some(shown(&execution.result));
    } else {
        tool.state = ToolState::OutputAvailable;
        tool.output = Some(Payload::write(&execution.result)?);
    }
    tool.write()
}

/// The call's part when nobody knows what came of it.
pub fn with_unknown_outcome(part: &Payload) -> Result<Payload, serde_json::Error> {
    let Some(mut tool) = ToolPart::read(part) else {
        return Ok(part.clone());
    };
    tool.state = ToolState::OutputError;
    tool.outcome = Some("interrupted".into());
    tool.error_text = Some(UNKNOWN.into());
    tool.write()
}

/// What a model sees of a result: a string as it is, anything else as JSON.
fn shown(result: &Value) -> String {
    match result {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            result.to_string()
        }
    }
}

/// The result in a call's part, if it has one.
pub fn result_of(tool: &ToolPart) -> Option<ToolResult> {
    let (result, is_error) = match tool.state {
        ToolState::InputAvailable => return None,
        ToolState::OutputAvailable => (
            tool.output.as_ref().map_or(Value::Null, Payload::value),
            false,
        ),
        ToolState::OutputError => {
            let text = tool.error_text.clone().map(Value::String);
            (
                text.or_else(|| tool.output.as_ref().map(Payload::value))
                    .unwrap_or_default(),
                true,
            )
        }
    };
    Some(ToolResult {
        tool_call_id: tool.tool_call_id.as_str().into(),
        result,
        is_error,
    })
}

/// A step's answer as the message it was.
pub fn assistant_message(parts: &[Payload], response: &Payload, at: Timestamp) -> AssistantMessage {
    let said: StepResponse = response.read().unwrap_or_default();
    let mut content = Vec::new();
    let mut calls = Vec::new();
    for part in parts {
        if let Some(tool) = ToolPart::read(part) {
            calls.push(ToolCall {
                tool_call_id: tool.tool_call_id.as_str().into(),
                tool_name: tool.tool_name().to_owned(),
                arguments: Arguments::from_text(tool.arguments()),
                after: Vec::new(),
            });
        } else if let Some(block) = assistant_block(part) {
            content.push(block);
        }
    }
    let metadata = said
        .metadata
        .as_ref()
        .and_then(|metadata| metadata.read().ok());
    let options = MessageOptions {
        id: said.message_id.as_deref().map(Into::into),
        timestamp: Some(at),
        metadata: Some(metadata.unwrap_or_default()),
    };
    AssistantMessage::new(content, calls, options)
}

fn assistant_block(part: &Payload) -> Option<AssistantContent> {
    let value = part.value();
    match part_kind(value.get("type")?.as_str()?)? {
        PartKind::OutputText | PartKind::InputText => {
            let text: TextPart = part.read().ok()?;
            Some(AssistantContent::Text { text: text.text })
        }
        PartKind::Refusal => Some(AssistantContent::Text {
            text: value.get("refusal")?.as_str()?.to_owned(),
        }),
        PartKind::Reasoning => {
            let reasoning: ReasoningPart = part.read().ok()?;
            Some(AssistantContent::Reasoning {
                text: reasoning.text,
                signature: reasoning.signature,
            })
        }
        PartKind::InputImage | PartKind::InputFile | PartKind::Tool(_) | PartKind::Extension(_) => {
            None
        }
    }
}

/// The conversation as a model is to see it before `running`: every user's message that is
/// answered or being answered, and every complete cycle (ruling 15, policy *drop*).
///
/// It is linear in the transcript. Messages keep their ids, so it is the same each time.
pub fn history(transcript: &Transcript, running: Option<&StepId>) -> Vec<Message> {
    let mut messages = Vec::new();
    for entry in &transcript.entries {
        match entry {
            Entry::Item(item) if item.item_type != ItemType::Message || item.run.is_some() => {}
            Entry::Item(item) => match item.role {
                Some(Role::Assistant) => {
                    let parts: Vec<Payload> = item
                        .content
                        .as_ref()
                        .and_then(|content| content.read().ok())
                        .unwrap_or_default();
                    let none = Payload::from(Value::Object(Map::new()));
                    messages.push(assistant_message(&parts, &none, item.created_at).into());
                }
                Some(Role::User | Role::System | Role::Developer) | None => {
                    messages.push(user_message(item).into());
                }
            },
            Entry::Reaction(reaction) => push_reaction(&mut messages, reaction, running),
        }
    }
    messages
}

fn push_reaction(messages: &mut Vec<Message>, reaction: &Reaction, running: Option<&StepId>) {
    for step in &reaction.steps {
        if running == Some(&step.step.id) {
            continue;
        }
        let Some((response, at)) = &step.response else {
            continue;
        };
        let tools: Vec<ToolPart> = step
            .parts
            .iter()
            .filter_map(|part| ToolPart::read(&part.part))
            .collect();
        if !tools.iter().all(ToolPart::is_answered) {
            continue;
        }
        let parts: Vec<Payload> = step.parts.iter().map(|part| part.part.clone()).collect();
        messages.push(assistant_message(&parts, response, *at).into());
        if !tools.is_empty() {
            messages.push(results_message(step, &tools).into());
        }
    }
}

fn results_message(step: &StepRecord, tools: &[ToolPart]) -> ToolResultMessage {
    let id = format!("{}:results", step.step.id);
    let options = MessageOptions {
        id: Some(id.as_str().into()),
        timestamp: step.parts.iter().map(|part| part.updated_at).max(),
        metadata: Some(Map::new()),
    };
    ToolResultMessage::new(tools.iter().filter_map(result_of).collect(), options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn arguments_keep_the_models_text_through_the_log() {
        for text in [r#"{"b": 1.0,  "a":2}"#, r#"{"cut": "of"#, "", " {} ", "[1]"] {
            let part = ToolPart::call("add", "call_1", text).write().unwrap();
            assert_eq!(ToolPart::read(&part).unwrap().arguments(), text);
        }
    }

    #[test]
    fn an_effect_whose_outcome_is_unknown_is_answered_as_interrupted() {
        let part = ToolPart::call("pay", "call_1", "{}").write().unwrap();
        let tool = ToolPart::read(&with_unknown_outcome(&part).unwrap()).unwrap();
        assert_eq!(tool.outcome.as_deref(), Some("interrupted"));
        assert!(result_of(&tool).unwrap().is_error);
    }

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
