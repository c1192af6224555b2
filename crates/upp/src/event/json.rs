//! The JSON of stream events: `{type, index, delta}` (UPP §9, §14).

use super::{StreamEvent, StreamEventType};
use crate::shared_json::SharedJson;
use crate::tool::ToolCallId;
use bytes::Bytes;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::sync::Arc;

#[derive(Serialize, Deserialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    kind: StreamEventType,
    #[serde(default)]
    index: u32,
    #[serde(default)]
    delta: Option<Delta<'a>>,
}

/// All fields that some delta has.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Delta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Base64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments_json: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<SharedJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_error: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<i64>,
}

#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct Base64(#[serde(with = "crate::content::bytes_json")] Bytes);

/// An id or a name; `None` if it is empty, which means that the provider did not repeat it.
fn named(text: &str) -> Option<Cow<'_, str>> {
    (!text.is_empty()).then_some(Cow::Borrowed(text))
}

impl<'a> From<&'a StreamEvent> for Delta<'a> {
    fn from(event: &'a StreamEvent) -> Self {
        let mut delta = Self::default();
        match event {
            StreamEvent::MessageStart
            | StreamEvent::MessageStop
            | StreamEvent::ContentBlockStart { .. }
            | StreamEvent::ContentBlockStop { .. } => {}
            StreamEvent::TextDelta { text, .. } | StreamEvent::ReasoningDelta { text, .. } => {
                delta.text = Some(text.into());
            }
            StreamEvent::ToolCallDelta {
                tool_call_id,
                tool_name,
                arguments_json,
                ..
            } => {
                delta.tool_call_id = named(tool_call_id.as_str());
                delta.tool_name = named(tool_name);
                delta.arguments_json = Some(arguments_json.into());
            }
            StreamEvent::ImageDelta {
                data, mime_type, ..
            }
            | StreamEvent::AudioDelta {
                data, mime_type, ..
            }
            | StreamEvent::VideoDelta {
                data, mime_type, ..
            } => {
                delta.data = Some(Base64(data.clone()));
                delta.mime_type = mime_type.as_deref().map(Into::into);
            }
            StreamEvent::ToolExecutionStart {
                tool_call_id,
                tool_name,
                timestamp,
                ..
            } => {
                delta.tool_call_id = Some(tool_call_id.as_str().into());
                delta.tool_name = Some(Cow::Borrowed(tool_name));
                delta.timestamp = Some(*timestamp);
            }
            StreamEvent::ToolExecutionEnd {
                tool_call_id,
                tool_name,
                result,
                is_error,
                timestamp,
                ..
            } => {
                delta.tool_call_id = Some(tool_call_id.as_str().into());
                delta.tool_name = Some(Cow::Borrowed(tool_name));
                delta.result = Some(result.clone());
                delta.is_error = Some(*is_error);
                delta.timestamp = Some(*timestamp);
            }
        }
        delta
    }
}

impl Serialize for StreamEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let event = Event {
            kind: self.event_type(),
            index: self.index(),
            delta: Some(self.into()),
        };
        event.serialize(serializer)
    }
}

fn needed<T, E: Error>(value: Option<T>, field: &'static str) -> Result<T, E> {
    value.ok_or_else(|| E::missing_field(field))
}

impl Delta<'_> {
    fn text<E: Error>(&mut self) -> Result<String, E> {
        needed(self.text.take(), "delta.text").map(Cow::into_owned)
    }

    fn data<E: Error>(&mut self) -> Result<(Bytes, Option<String>), E> {
        let data = needed(self.data.take(), "delta.data")?;
        Ok((data.0, self.mime_type.take().map(Cow::into_owned)))
    }

    fn call<E: Error>(&mut self) -> Result<(ToolCallId, Arc<str>, i64), E> {
        let id = needed(self.tool_call_id.take(), "delta.toolCallId")?;
        let name = needed(self.tool_name.take(), "delta.toolName")?;
        let timestamp = needed(self.timestamp, "delta.timestamp")?;
        Ok((ToolCallId::from(&*id), (&*name).into(), timestamp))
    }
}

impl<'de> Deserialize<'de> for StreamEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let event = Event::deserialize(deserializer)?;
        let index = event.index;
        let mut delta = event.delta.unwrap_or_default();
        Ok(match event.kind {
            StreamEventType::MessageStart => Self::MessageStart,
            StreamEventType::MessageStop => Self::MessageStop,
            StreamEventType::ContentBlockStart => Self::ContentBlockStart { index },
            StreamEventType::ContentBlockStop => Self::ContentBlockStop { index },
            StreamEventType::TextDelta => Self::TextDelta {
                index,
                text: delta.text()?,
            },
            StreamEventType::ReasoningDelta => Self::ReasoningDelta {
                index,
                text: delta.text()?,
            },
            StreamEventType::ToolCallDelta => Self::ToolCallDelta {
                index,
                tool_call_id: ToolCallId::from(&*delta.tool_call_id.unwrap_or_default()),
                tool_name: (&*delta.tool_name.unwrap_or_default()).into(),
                arguments_json: needed(delta.arguments_json, "delta.argumentsJson")?.into_owned(),
            },
            StreamEventType::ImageDelta => {
                let (data, mime_type) = delta.data()?;
                Self::ImageDelta {
                    index,
                    data,
                    mime_type,
                }
            }
            StreamEventType::AudioDelta => {
                let (data, mime_type) = delta.data()?;
                Self::AudioDelta {
                    index,
                    data,
                    mime_type,
                }
            }
            StreamEventType::VideoDelta => {
                let (data, mime_type) = delta.data()?;
                Self::VideoDelta {
                    index,
                    data,
                    mime_type,
                }
            }
            StreamEventType::ToolExecutionStart => {
                let (tool_call_id, tool_name, timestamp) = delta.call()?;
                Self::ToolExecutionStart {
                    index,
                    tool_call_id,
                    tool_name,
                    timestamp,
                }
            }
            StreamEventType::ToolExecutionEnd => {
                let (tool_call_id, tool_name, timestamp) = delta.call()?;
                Self::ToolExecutionEnd {
                    index,
                    tool_call_id,
                    tool_name,
                    result: delta.result.unwrap_or_default(),
                    is_error: delta.is_error.unwrap_or_default(),
                    timestamp,
                }
            }
        })
    }
}
