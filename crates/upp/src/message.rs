//! Messages (UPP §5): immutable, cheap to share.

mod access;
mod decode;
mod id;
mod instant;

pub use crate::messages::Messages;
pub use crate::metadata::Metadata;
pub use access::{MessageRole, Speaker};
pub(crate) use decode::or_default;
pub use id::MessageId;

use crate::content::{AssistantContent, UserContent};
use crate::tool::{ToolCall, ToolResult};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Optional values for a new message; absent ones are generated.
#[derive(Clone, Debug, Default)]
pub struct MessageOptions {
    /// The id.
    pub id: Option<MessageId>,
    /// The instant of creation.
    pub timestamp: Option<jiff::Timestamp>,
    /// Provider-namespaced extras.
    pub metadata: Option<Metadata>,
}

macro_rules! message {
    ($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident : $ty:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            /// The message's id.
            pub id: MessageId,
            $($(#[$fdoc])* pub $field: $ty,)*
            /// Provider-namespaced extras.
            #[serde(
                default,
                skip_serializing_if = "Metadata::is_empty",
                deserialize_with = "or_default"
            )]
            pub metadata: Metadata,
            /// When it was made.
            #[serde(serialize_with = "instant::write")]
            pub timestamp: jiff::Timestamp,
        }
    };
}

message! {
    /// A message of the user, or of the application on the user's behalf.
    UserMessage {
        /// The content, in order.
        content: Vec<UserContent>,
    }
}

message! {
    /// A message of the model.
    AssistantMessage {
        /// The content, in the order in which the model wrote it.
        content: Vec<AssistantContent>,
        /// The model's tool calls.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall>,
    }
}

message! {
    /// The answers to the tool calls of the assistant message before.
    ToolResultMessage {
        /// Always empty; the JSON form has it (UPP §8.4).
        #[serde(default)]
        content: Vec<UserContent>,
        /// One result a call.
        results: Vec<ToolResult>,
    }
}

fn parts_of(options: MessageOptions) -> (MessageId, Metadata, jiff::Timestamp) {
    (
        options.id.unwrap_or_else(MessageId::random),
        options.metadata.unwrap_or_default(),
        options.timestamp.unwrap_or_else(crate::clock::now),
    )
}

impl UserMessage {
    /// A message of these blocks.
    pub fn new(content: Vec<UserContent>, options: MessageOptions) -> Self {
        let (id, metadata, timestamp) = parts_of(options);
        Self {
            id,
            content,
            metadata,
            timestamp,
        }
    }

    /// A message of one text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(
            vec![UserContent::Text { text: text.into() }],
            MessageOptions::default(),
        )
    }
}

impl AssistantMessage {
    /// A message of these blocks and calls.
    pub fn new(
        content: Vec<AssistantContent>,
        tool_calls: Vec<ToolCall>,
        options: MessageOptions,
    ) -> Self {
        let (id, metadata, timestamp) = parts_of(options);
        Self {
            id,
            content,
            tool_calls,
            metadata,
            timestamp,
        }
    }

    /// A message of one text block.
    pub fn text(text: impl Into<String>) -> Self {
        let block = AssistantContent::Text { text: text.into() };
        Self::new(vec![block], Vec::new(), MessageOptions::default())
    }
}

impl ToolResultMessage {
    /// A message of these results.
    pub fn new(results: Vec<ToolResult>, options: MessageOptions) -> Self {
        let (id, metadata, timestamp) = parts_of(options);
        Self {
            id,
            content: Vec::new(),
            results,
            metadata,
            timestamp,
        }
    }
}

/// One message of a conversation; cloning shares it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Message {
    /// From the user.
    User(Arc<UserMessage>),
    /// From the model.
    Assistant(Arc<AssistantMessage>),
    /// From tools.
    ToolResult(Arc<ToolResultMessage>),
}

macro_rules! from_text {
    ($message:ident) => {
        impl From<&str> for $message {
            fn from(text: &str) -> Self {
                Self::text(text)
            }
        }

        impl From<String> for $message {
            fn from(text: String) -> Self {
                Self::text(text)
            }
        }
    };
}

from_text!(UserMessage);
from_text!(AssistantMessage);

impl From<Vec<UserContent>> for UserMessage {
    fn from(content: Vec<UserContent>) -> Self {
        Self::new(content, MessageOptions::default())
    }
}

impl From<Vec<AssistantContent>> for AssistantMessage {
    fn from(content: Vec<AssistantContent>) -> Self {
        Self::new(content, Vec::new(), MessageOptions::default())
    }
}

impl From<&str> for Message {
    fn from(text: &str) -> Self {
        Self::User(Arc::new(UserMessage::text(text)))
    }
}

impl From<String> for Message {
    fn from(text: String) -> Self {
        Self::User(Arc::new(UserMessage::text(text)))
    }
}

impl From<UserContent> for Message {
    fn from(block: UserContent) -> Self {
        UserMessage::new(vec![block], MessageOptions::default()).into()
    }
}

impl From<UserMessage> for Message {
    fn from(message: UserMessage) -> Self {
        Self::User(Arc::new(message))
    }
}

impl From<AssistantMessage> for Message {
    fn from(message: AssistantMessage) -> Self {
        Self::Assistant(Arc::new(message))
    }
}

impl From<ToolResultMessage> for Message {
    fn from(message: ToolResultMessage) -> Self {
        Self::ToolResult(Arc::new(message))
    }
}

#[cfg(test)]
mod tests;
