//! Accessors of messages (UPP §5).

use super::{AssistantMessage, Message, MessageId, Metadata, ToolResultMessage, UserMessage};
use crate::content::{AssistantContent, Media, UserContent};
use crate::tool::ToolResult;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The role of a message's author: its `type` as JSON (UPP §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageRole {
    /// The user, or the application in the user's place.
    User,
    /// The model.
    Assistant,
    /// Tools.
    ToolResult,
}

/// The speaker of a user message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// The user's.
    #[default]
    User,
    /// The system's: instructions within the conversation.
    System,
    /// The developer, whom some providers distinguish from the system.
    Developer,
}

/// The metadata namespace for data that is not a provider's.
const NAMESPACE: &str = "upp";
/// The field that names the speaker.
const SPEAKER: &str = "speaker";

impl UserMessage {
    /// The speaker in the metadata: `{"upp": {"speaker": "system"}}`. Providers that have a role for it
    /// receive that role if the message is text only. Other providers receive a user message.
    pub fn speaker(&self) -> Speaker {
        let own = self.metadata.get(NAMESPACE);
        let speaker = own.and_then(|own| Speaker::deserialize(own.get(SPEAKER)?).ok());
        speaker.unwrap_or_default()
    }

    /// Marks the message as the words of a speaker.
    #[must_use]
    pub fn with_speaker(mut self, speaker: Speaker) -> Self {
        let own = self.metadata.entry(NAMESPACE.to_owned());
        let own = own.or_insert_with(|| serde_json::json!({}));
        if let Some(own) = own.as_object_mut() {
            match speaker {
                Speaker::User => own.remove(SPEAKER),
                Speaker::System => own.insert(SPEAKER.to_owned(), "system".into()),
                Speaker::Developer => own.insert(SPEAKER.to_owned(), "developer".into()),
            };
        }
        self
    }

    /// The speaker to send to a provider. Only a message that is text only can have another than the
    /// user.
    pub(crate) fn explicit_speaker(&self) -> Speaker {
        let is_text = |block: &UserContent| matches!(block, UserContent::Text { .. });
        if self.content.iter().all(is_text) {
            return self.speaker();
        }
        Speaker::User
    }
}

/// The separator between two texts of one message (UPP §5).
const BLANK_LINE: &str = "\n\n";

fn joined<'a>(texts: impl Iterator<Item = Cow<'a, str>>) -> String {
    let mut whole = String::new();
    for (at, text) in texts.enumerate() {
        if at > 0 {
            whole.push_str(BLANK_LINE);
        }
        whole.push_str(&text);
    }
    whole
}

macro_rules! blocks {
    ($content:ident { $($(#[$doc:meta])* $name:ident: $variant:ident,)* }) => {
        $(
            $(#[$doc])*
            pub fn $name(&self) -> impl Iterator<Item = &Media> {
                self.content.iter().filter_map(|block| match block {
                    $content::$variant(media) => Some(media),
                    _ => None,
                })
            }
        )*
    };
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "each accessor picks one kind of block; a new kind has its own"
)]
impl UserMessage {
    blocks!(UserContent {
        /// The images, in order.
        images: Image,
        /// The documents, in order.
        documents: Document,
        /// The audio, in order.
        audio: Audio,
        /// The videos, in order.
        video: Video,
        /// The other bytes, in order.
        binary: Binary,
    });

    /// All text blocks, joined by a blank line (UPP §5).
    pub fn joined_text(&self) -> String {
        joined(self.content.iter().filter_map(|block| match block {
            UserContent::Text { text } => Some(text.into()),
            _ => None,
        }))
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "each accessor picks one kind of block; a new kind has its own"
)]
impl AssistantMessage {
    blocks!(AssistantContent {
        /// The images, in order.
        images: Image,
        /// The audio, in order.
        audio: Audio,
        /// The videos, in order.
        video: Video,
    });

    /// The texts of the reasoning blocks, in order.
    pub fn reasoning(&self) -> impl Iterator<Item = &str> {
        self.content.iter().filter_map(|block| match block {
            AssistantContent::Reasoning { text, .. } => Some(text.as_str()),
            _ => None,
        })
    }

    /// All text blocks, joined by a blank line (UPP §5).
    pub fn joined_text(&self) -> String {
        joined(self.content.iter().filter_map(|block| match block {
            AssistantContent::Text { text } => Some(text.into()),
            _ => None,
        }))
    }

    /// Whether the message has tool calls.
    pub fn has_tool_calls(&self) -> bool {
        !self.tool_calls.is_empty()
    }
}

impl ToolResult {
    /// The result as the model reads it: a string unchanged, anything else as JSON (UPP §10).
    pub fn text(&self) -> Cow<'_, str> {
        match self.result.as_str() {
            Some(text) => text.into(),
            None => self.result.to_string().into(),
        }
    }
}

impl ToolResultMessage {
    /// All results as the model reads them, joined by a blank line.
    pub fn joined_text(&self) -> String {
        joined(self.results.iter().map(ToolResult::text))
    }
}

impl Message {
    /// The role of the message's author.
    pub fn role(&self) -> MessageRole {
        match self {
            Self::User(_) => MessageRole::User,
            Self::Assistant(_) => MessageRole::Assistant,
            Self::ToolResult(_) => MessageRole::ToolResult,
        }
    }

    /// The message's id.
    pub fn id(&self) -> &MessageId {
        match self {
            Self::User(m) => &m.id,
            Self::Assistant(m) => &m.id,
            Self::ToolResult(m) => &m.id,
        }
    }

    /// When it was made.
    pub fn timestamp(&self) -> jiff::Timestamp {
        match self {
            Self::User(m) => m.timestamp,
            Self::Assistant(m) => m.timestamp,
            Self::ToolResult(m) => m.timestamp,
        }
    }

    /// Provider-namespaced extras.
    pub fn metadata(&self) -> &Metadata {
        match self {
            Self::User(m) => &m.metadata,
            Self::Assistant(m) => &m.metadata,
            Self::ToolResult(m) => &m.metadata,
        }
    }

    /// The user's message, if it is one.
    pub fn as_user(&self) -> Option<&UserMessage> {
        match self {
            Self::User(message) => Some(message),
            Self::Assistant(_) | Self::ToolResult(_) => None,
        }
    }

    /// The model's message, if it is one.
    pub fn as_assistant(&self) -> Option<&AssistantMessage> {
        match self {
            Self::Assistant(message) => Some(message),
            Self::User(_) | Self::ToolResult(_) => None,
        }
    }

    /// The message of tool results, if it is one.
    pub fn as_tool_result(&self) -> Option<&ToolResultMessage> {
        match self {
            Self::ToolResult(message) => Some(message),
            Self::User(_) | Self::Assistant(_) => None,
        }
    }

    /// Its text, joined by blank lines (UPP §5): the text blocks, or the tools' results.
    pub fn joined_text(&self) -> String {
        match self {
            Self::User(m) => m.joined_text(),
            Self::Assistant(m) => m.joined_text(),
            Self::ToolResult(m) => m.joined_text(),
        }
    }

    /// Its images, in order.
    pub fn images(&self) -> Vec<&Media> {
        match self {
            Self::User(m) => m.images().collect(),
            Self::Assistant(m) => m.images().collect(),
            Self::ToolResult(_) => Vec::new(),
        }
    }

    /// Its documents, in order; only user messages have them.
    pub fn documents(&self) -> Vec<&Media> {
        self.as_user()
            .map(|m| m.documents().collect())
            .unwrap_or_default()
    }

    /// Its audio, in order.
    pub fn audio(&self) -> Vec<&Media> {
        match self {
            Self::User(m) => m.audio().collect(),
            Self::Assistant(m) => m.audio().collect(),
            Self::ToolResult(_) => Vec::new(),
        }
    }

    /// Its videos, in order.
    pub fn video(&self) -> Vec<&Media> {
        match self {
            Self::User(m) => m.video().collect(),
            Self::Assistant(m) => m.video().collect(),
            Self::ToolResult(_) => Vec::new(),
        }
    }

    /// The texts of its reasoning blocks, in order; only assistant messages have them.
    pub fn reasoning(&self) -> Vec<&str> {
        self.as_assistant()
            .map(|m| m.reasoning().collect())
            .unwrap_or_default()
    }
}
