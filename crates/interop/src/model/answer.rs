//! Models' answers: as the parts of a step, and back as messages.

use super::user::{media_kind, source_of};
use crate::parts::{OUTPUT_FILE, ReasoningPart, StepResponse, TextPart, ToolPart};
use jiff::Timestamp;
use serde_json::{Value, json};
use timeline::{MessagePartKind, Payload, part_kind};
use upp::{
    Arguments, AssistantContent, AssistantMessage, Media, MediaSource, MessageOptions, Response,
    StopReason, ToolCall,
};

/// The parts of a model's answer in its order, calls last, and the answer's metadata.
pub fn answer(response: &Response) -> Result<(Vec<Payload>, Payload), serde_json::Error> {
    let message = &response.message;
    let mut parts = Vec::with_capacity(message.content.len() + message.tool_calls.len());
    for block in &message.content {
        parts.push(block_part(block, &response.provider)?);
    }
    for call in &message.tool_calls {
        let id = call.tool_call_id.as_str();
        let mut part = ToolPart::call(&call.tool_name, id, call.arguments.text());
        part.after = call.after.iter().map(ToString::to_string).collect();
        parts.push(part.write()?);
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
        provider: Some(response.provider.to_string()),
        model: Some(response.model_id.to_string()),
        response_id: response.response_id.as_deref().map(str::to_owned),
        message_id: Some(message.id.as_str().to_owned()),
        stop_reason,
        usage: Some(Payload::write(&response.usage)?),
        metadata,
        request: response
            .request
            .as_ref()
            .map(|sent| Payload::write(&sent.report))
            .transpose()?,
        ..StepResponse::default()
    };
    Ok((parts, Payload::write(&said)?))
}

fn block_part(block: &AssistantContent, provider: &str) -> Result<Payload, serde_json::Error> {
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
        AssistantContent::Image(media) => Ok(media_part(media, "image")),
        AssistantContent::Audio(media) => Ok(media_part(media, "audio")),
        AssistantContent::Video(media) => Ok(media_part(media, "video")),
    }
}

/// A file from the model. The part has a kind only if the media type does not show it.
fn media_part(media: &Media, kind: &str) -> Payload {
    let (field, text) = match &media.source {
        MediaSource::Base64 { .. } | MediaSource::Bytes { .. } => {
            ("file_data", media.data_url().unwrap_or_default())
        }
        MediaSource::Url { url } => ("file_url", url.clone()),
        MediaSource::Text { data } => ("file_data", data.clone()),
    };
    let mut part = json!({"type": OUTPUT_FILE, field: text, "media_type": media.mime_type});
    if media_kind(&media.mime_type) != kind
        && let Value::Object(part) = &mut part
    {
        part.insert("kind".to_owned(), kind.into());
    }
    part.into()
}

/// The block of a file that a model made.
fn media_block(part: &Value) -> Option<AssistantContent> {
    let text = |field: &str| part.get(field).and_then(Value::as_str);
    let (source, found) = match (text("file_data"), text("file_url")) {
        (Some(data), _) => source_of(data).unwrap_or_else(|| {
            let data = data.to_owned();
            (MediaSource::Text { data }, None)
        }),
        (None, url) => (
            MediaSource::Url {
                url: url?.to_owned(),
            },
            None,
        ),
    };
    let source = match source {
        // Bytes are written as a data URL, so what is none is text.
        MediaSource::Base64 { data } if found.is_none() => MediaSource::Text { data },
        other @ (MediaSource::Base64 { .. }
        | MediaSource::Url { .. }
        | MediaSource::Text { .. }
        | MediaSource::Bytes { .. }) => other,
    };
    let mime_type = text("media_type").map(str::to_owned).or(found)?;
    let kind = text("kind").unwrap_or_else(|| media_kind(&mime_type));
    let block = match kind {
        "audio" => AssistantContent::Audio,
        "video" => AssistantContent::Video,
        _ => AssistantContent::Image,
    };
    Some(block(Media::new(source, mime_type)))
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
                tool_name: tool.tool_name().into(),
                arguments: Arguments::from_text(tool.arguments()),
                after: tool.after.iter().map(|id| id.as_str().into()).collect(),
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
        MessagePartKind::OutputText | MessagePartKind::InputText => {
            let text: TextPart = part.read().ok()?;
            Some(AssistantContent::Text { text: text.text })
        }
        MessagePartKind::Refusal => Some(AssistantContent::Text {
            text: value.get("refusal")?.as_str()?.to_owned(),
        }),
        MessagePartKind::Reasoning => {
            let reasoning: ReasoningPart = part.read().ok()?;
            Some(AssistantContent::Reasoning {
                text: reasoning.text,
                signature: reasoning.signature,
            })
        }
        MessagePartKind::Extension(OUTPUT_FILE) => media_block(&value),
        MessagePartKind::InputImage
        | MessagePartKind::InputFile
        | MessagePartKind::Tool(_)
        | MessagePartKind::Extension(_) => None,
    }
}

/// The response of a step whose model had answered, restored from the log. The request and the data
/// of a structured answer are not stored; the data is in the text.
pub fn recorded(parts: &[Payload], response: &Payload, at: Timestamp) -> Response {
    let said: StepResponse = response.read().unwrap_or_default();
    let message = assistant_message(parts, response, at);
    let stop_reason = said
        .stop_reason
        .and_then(|word| serde_json::from_value(Value::String(word)).ok());
    let usage = said.usage.as_ref().and_then(|usage| usage.read().ok());
    Response {
        stop_reason: stop_reason.unwrap_or(StopReason::EndTurn),
        usage: usage.unwrap_or_default(),
        data: None,
        model_id: said.model.unwrap_or_default().into(),
        provider: said.provider.unwrap_or_default().into(),
        response_id: said.response_id.map(Into::into),
        request: None,
        message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_keep_the_models_text_through_the_log() {
        for text in [r#"{"b": 1.0,  "a":2}"#, r#"{"cut": "of"#, "", " {} ", "[1]"] {
            let part = ToolPart::call("add", "call_1", text).write().unwrap();
            assert_eq!(ToolPart::read(&part).unwrap().arguments(), text);
        }
    }

    #[test]
    fn an_answer_comes_back_with_its_files_and_the_order_of_its_calls() {
        let media = |source, mime: &str| Media::new(source, mime);
        let bytes = MediaSource::Base64 {
            data: "AAAA".into(),
        };
        let url = MediaSource::Url {
            url: "https://a.b/c".into(),
        };
        let text = MediaSource::Text {
            data: "plain".into(),
        };
        let content = vec![
            AssistantContent::Text { text: "a".into() },
            AssistantContent::Image(media(bytes.clone(), "image/png")),
            AssistantContent::Audio(media(url, "application/ogg")),
            AssistantContent::Video(media(bytes, "video/mp4")),
            AssistantContent::Image(media(text, "image/svg+xml")),
            AssistantContent::Text { text: "b".into() },
        ];
        let call = |id: &str, after: &[&str]| ToolCall {
            tool_call_id: id.into(),
            tool_name: "t".into(),
            arguments: Arguments::from_text("{}"),
            after: after.iter().map(|id| (*id).into()).collect(),
        };
        let calls = vec![call("1", &[]), call("2", &["1"])];
        let message = AssistantMessage::new(content, calls, MessageOptions::default());
        let response = Response {
            message: message.clone(),
            usage: upp::CycleUsage {
                input_tokens: 7,
                ..Default::default()
            },
            stop_reason: StopReason::Other("odd".into()),
            data: None,
            model_id: "m".into(),
            provider: "p".into(),
            response_id: Some("r".into()),
            request: None,
        };
        let (parts, said) = answer(&response).unwrap();
        assert_eq!(recorded(&parts, &said, message.timestamp), response);
    }

    #[test]
    fn what_was_sent_for_an_answer_is_kept_with_it() {
        let report = upp::RequestReport {
            bytes: 900,
            common_prefix_bytes: Some(700),
            ..upp::RequestReport::default()
        };
        let response = Response {
            message: AssistantMessage::text("hi"),
            usage: upp::CycleUsage::default(),
            stop_reason: StopReason::EndTurn,
            data: None,
            model_id: "m".into(),
            provider: "p".into(),
            response_id: None,
            request: Some(upp::Sent {
                report,
                prefix: std::sync::Arc::default(),
            }),
        };
        let (_, said) = answer(&response).unwrap();
        let said = said.value();
        let kept = json!({"bytes": 900, "commonPrefixBytes": 700});
        assert_eq!(said["request"], kept);
    }
}
