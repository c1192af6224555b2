//! Reads messages without buffering them.
//!
//! A derived internally tagged enum holds all fields in a buffer until it has seen the tag, and
//! the text of tool arguments does not survive that. Here each field is read where it stands.

use super::{AssistantMessage, Message, MessageId, Metadata, ToolResultMessage, UserMessage};
use crate::tool::{ToolCall, ToolResult};
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::sync::Arc;

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    User,
    Assistant,
    ToolResult,
}

/// The fields of all kinds.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fields {
    #[serde(rename = "type")]
    kind: Kind,
    id: MessageId,
    content: Option<Value>,
    #[serde(default)]
    tool_calls: Vec<ToolCall>,
    results: Option<Vec<ToolResult>>,
    #[serde(default)]
    metadata: Metadata,
    timestamp: jiff::Timestamp,
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Fields::deserialize(deserializer)?;
        let (id, metadata, timestamp) = (fields.id, fields.metadata, fields.timestamp);
        Ok(match fields.kind {
            Kind::User => Self::User(Arc::new(UserMessage {
                id,
                content: present(fields.content)?,
                metadata,
                timestamp,
            })),
            Kind::Assistant => Self::Assistant(Arc::new(AssistantMessage {
                id,
                content: present(fields.content)?,
                tool_calls: fields.tool_calls,
                metadata,
                timestamp,
            })),
            Kind::ToolResult => Self::ToolResult(Arc::new(ToolResultMessage {
                id,
                content: match fields.content {
                    Some(content) => present(Some(content))?,
                    None => Vec::new(),
                },
                results: fields
                    .results
                    .ok_or_else(|| D::Error::missing_field("results"))?,
                metadata,
                timestamp,
            })),
        })
    }
}

fn present<T: DeserializeOwned, E: Error>(content: Option<Value>) -> Result<T, E> {
    let content = content.ok_or_else(|| E::missing_field("content"))?;
    T::deserialize(content).map_err(|error| E::custom(format_args!("content: {error}")))
}
