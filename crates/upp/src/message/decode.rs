//! Reads messages without buffering them.
//!
//! A derived internally tagged enum buffers all fields until it has seen the tag, and the exact text of
//! tool arguments would be lost. Here each field is read directly. Only content that comes before the
//! type is buffered until the type is known.

use super::instant::Instant;
use super::{
    AssistantMessage, Message, MessageId, MessageRole, Metadata, ToolResultMessage, UserMessage,
};
use crate::content::{AssistantContent, Block, Push, UserContent};
use crate::tool::{ToolCall, ToolResult};
use serde::de::{DeserializeOwned, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::marker::PhantomData;
use std::sync::Arc;

/// The fields of all kinds.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum Field {
    Type,
    Id,
    Content,
    ToolCalls,
    Results,
    Metadata,
    Timestamp,
    #[serde(other)]
    Unknown,
}

/// A [`MessageRole`], read as the text it is: an enum of serde may have content.
#[derive(Deserialize)]
#[serde(variant_identifier, rename_all = "snake_case")]
enum Kind {
    User,
    Assistant,
    ToolResult,
}

impl From<Kind> for MessageRole {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::User => Self::User,
            Kind::Assistant => Self::Assistant,
            Kind::ToolResult => Self::ToolResult,
        }
    }
}

/// The fields read so far.
#[derive(Default)]
struct Read {
    kind: Option<MessageRole>,
    id: Option<MessageId>,
    content: Content,
    tool_calls: Option<Vec<ToolCall>>,
    results: Option<Vec<ToolResult>>,
    metadata: Option<Metadata>,
    timestamp: Option<jiff::Timestamp>,
}

/// The content, in the form that the type determines.
#[derive(Default)]
enum Content {
    #[default]
    Absent,
    User(Vec<UserContent>),
    Assistant(Vec<AssistantContent>),
    /// The type was not known yet.
    Unread(Vec<Value>),
}

impl Content {
    fn read<'de, A: MapAccess<'de>>(
        kind: Option<MessageRole>,
        map: &mut A,
    ) -> Result<Self, A::Error> {
        let content = match kind {
            Some(MessageRole::User | MessageRole::ToolResult) => {
                let blocks: Option<Blocks<UserContent>> = map.next_value()?;
                blocks.map(|blocks| Self::User(blocks.0))
            }
            Some(MessageRole::Assistant) => {
                let blocks: Option<Blocks<AssistantContent>> = map.next_value()?;
                blocks.map(|blocks| Self::Assistant(blocks.0))
            }
            None => map.next_value::<Option<_>>()?.map(Self::Unread),
        };
        Ok(content.unwrap_or_default())
    }

    fn or_empty(self) -> Self {
        if matches!(self, Self::Absent) {
            return Self::User(Vec::new());
        }
        self
    }

    fn user<E: Error>(self) -> Result<Vec<UserContent>, E> {
        match self {
            Self::User(blocks) => Ok(blocks),
            Self::Unread(blocks) => known(blocks),
            Self::Assistant(_) | Self::Absent => Err(E::missing_field("content")),
        }
    }

    fn assistant<E: Error>(self) -> Result<Vec<AssistantContent>, E> {
        match self {
            Self::Assistant(blocks) => Ok(blocks),
            Self::Unread(blocks) => known(blocks),
            Self::User(_) | Self::Absent => Err(E::missing_field("content")),
        }
    }
}

/// The blocks of a message; an error names the block.
struct Blocks<T>(Vec<T>);

impl<'de, T: Block<'de>> Deserialize<'de> for Blocks<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(BlocksVisitor(PhantomData))
    }
}

struct BlocksVisitor<T>(PhantomData<T>);

impl<'de, T: Block<'de>> Visitor<'de> for BlocksVisitor<T> {
    type Value = Blocks<T>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list of content blocks")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Blocks<T>, A::Error> {
        let mut blocks = Vec::new();
        loop {
            let at = blocks.len();
            let block = seq.next_element_seed(Push(&mut blocks));
            if block.map_err(|error| in_block(at, &error))?.is_none() {
                return Ok(Blocks(blocks));
            }
        }
    }
}

fn in_block<E: Error>(at: usize, error: &impl std::fmt::Display) -> E {
    E::custom(format_args!("content[{at}]: {error}"))
}

/// Blocks that were read before their kind was known.
fn known<T: DeserializeOwned, E: Error>(blocks: Vec<Value>) -> Result<Vec<T>, E> {
    let blocks = blocks.into_iter().enumerate();
    let blocks = blocks.map(|(at, block)| T::deserialize(block).map_err(|it| in_block(at, &it)));
    blocks.collect()
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MessageVisitor)
    }
}

struct MessageVisitor;

impl<'de> Visitor<'de> for MessageVisitor {
    type Value = Message;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Message, A::Error> {
        let mut read = Read::default();
        while let Some(field) = map.next_key()? {
            read.field(&field, &mut map)?;
        }
        read.message()
    }
}

/// Stores a field; fails if it is already set.
fn once<T, E: Error>(place: &mut Option<T>, name: &'static str, value: T) -> Result<(), E> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(E::duplicate_field(name)),
    }
}

impl Read {
    fn field<'de, A: MapAccess<'de>>(
        &mut self,
        field: &Field,
        map: &mut A,
    ) -> Result<(), A::Error> {
        match field {
            Field::Type => once(&mut self.kind, "type", map.next_value::<Kind>()?.into()),
            Field::Id => once(&mut self.id, "id", map.next_value()?),
            Field::Content => match self.content {
                Content::Absent => {
                    self.content = Content::read(self.kind, map)?;
                    Ok(())
                }
                Content::User(_) | Content::Assistant(_) | Content::Unread(_) => {
                    Err(A::Error::duplicate_field("content"))
                }
            },
            Field::ToolCalls => {
                let calls: Option<_> = map.next_value()?;
                once(&mut self.tool_calls, "toolCalls", calls.unwrap_or_default())
            }
            // Null is as good as absent, here and in the fields above.
            Field::Results => match map.next_value::<Option<_>>()? {
                Some(results) => once(&mut self.results, "results", results),
                None => Ok(()),
            },
            Field::Metadata => {
                let metadata: Option<_> = map.next_value()?;
                once(&mut self.metadata, "metadata", metadata.unwrap_or_default())
            }
            Field::Timestamp => {
                let Instant(timestamp) = map.next_value()?;
                once(&mut self.timestamp, "timestamp", timestamp)
            }
            Field::Unknown => map.next_value::<serde::de::IgnoredAny>().map(drop),
        }
    }

    fn message<E: Error>(self) -> Result<Message, E> {
        let missing = E::missing_field;
        let kind = self.kind.ok_or_else(|| missing("type"))?;
        let id = self.id.ok_or_else(|| missing("id"))?;
        let timestamp = self.timestamp.ok_or_else(|| missing("timestamp"))?;
        let metadata = self.metadata.unwrap_or_default();
        Ok(match kind {
            MessageRole::User => Message::User(Arc::new(UserMessage {
                id,
                content: self.content.user()?,
                metadata,
                timestamp,
            })),
            MessageRole::Assistant => Message::Assistant(Arc::new(AssistantMessage {
                id,
                content: self.content.assistant()?,
                tool_calls: self.tool_calls.unwrap_or_default(),
                metadata,
                timestamp,
            })),
            MessageRole::ToolResult => Message::ToolResult(Arc::new(ToolResultMessage {
                id,
                content: self.content.or_empty().user()?,
                results: self.results.ok_or_else(|| missing("results"))?,
                metadata,
                timestamp,
            })),
        })
    }
}

/// An optional field may be null (UPP §14).
pub(crate) fn or_default<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}
