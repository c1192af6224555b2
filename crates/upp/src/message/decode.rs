//! Reads messages without buffering them.
//!
//! A derived internally tagged enum holds all fields in a buffer until it has seen the tag, and
//! the text of tool arguments does not survive that. Here each field is read where it stands.

use super::{
    AssistantMessage, Message, MessageId, MessageRole, Metadata, ToolResultMessage, UserMessage,
};
use crate::tool::{ToolCall, ToolResult};
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::sync::Arc;

/// The fields of all kinds.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fields {
    #[serde(rename = "type")]
    kind: MessageRole,
    id: MessageId,
    content: Option<Vec<Value>>,
    #[serde(default, deserialize_with = "or_default")]
    tool_calls: Vec<ToolCall>,
    results: Option<Vec<ToolResult>>,
    #[serde(default, deserialize_with = "or_default")]
    metadata: Metadata,
    #[serde(deserialize_with = "instant")]
    timestamp: jiff::Timestamp,
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Fields::deserialize(deserializer)?;
        let (id, metadata, timestamp) = (fields.id, fields.metadata, fields.timestamp);
        Ok(match fields.kind {
            MessageRole::User => Self::User(Arc::new(UserMessage {
                id,
                content: present(fields.content)?,
                metadata,
                timestamp,
            })),
            MessageRole::Assistant => Self::Assistant(Arc::new(AssistantMessage {
                id,
                content: present(fields.content)?,
                tool_calls: fields.tool_calls,
                metadata,
                timestamp,
            })),
            MessageRole::ToolResult => Self::ToolResult(Arc::new(ToolResultMessage {
                id,
                content: present(Some(fields.content.unwrap_or_default()))?,
                results: fields
                    .results
                    .ok_or_else(|| D::Error::missing_field("results"))?,
                metadata,
                timestamp,
            })),
        })
    }
}

/// The blocks of a message; an error names the block.
fn present<T: DeserializeOwned, E: Error>(content: Option<Vec<Value>>) -> Result<Vec<T>, E> {
    let content = content.ok_or_else(|| E::missing_field("content"))?;
    let blocks = content.into_iter().enumerate().map(|(at, block)| {
        T::deserialize(block).map_err(|error| E::custom(format_args!("content[{at}]: {error}")))
    });
    blocks.collect()
}

/// An optional field may be null (UPP §14).
pub(crate) fn or_default<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Reads an instant; its error says what is expected.
fn instant<'de, D: Deserializer<'de>>(deserializer: D) -> Result<jiff::Timestamp, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|error| {
        D::Error::custom(format_args!(
            "timestamp is not an ISO 8601 instant: {error}"
        ))
    })
}
