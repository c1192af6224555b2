//! A conversation that grows turn by turn (`Thread`, UPP §8).

use crate::message::{AssistantMessage, Message, MessageId, MessageRole, Messages, UserMessage};
use crate::turn::Turn;
use serde::{Deserialize, Serialize};

/// A conversation with an id and two instants. This crate does not store it.
///
/// As JSON (`ThreadJSON`, UPP §14): `{id, messages, createdAt, updatedAt}`; reading returns an equal
/// thread. Cloning shares the messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Thread {
    id: String,
    #[serde(with = "list")]
    messages: Messages,
    created_at: jiff::Timestamp,
    updated_at: jiff::Timestamp,
}

/// The messages as a list.
mod list {
    use crate::message::{Message, Messages};
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        messages: &Messages,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(messages)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Messages, D::Error> {
        Vec::<Message>::deserialize(deserializer).map(|all| all.into_iter().collect())
    }
}

impl Thread {
    /// An empty thread with a random id.
    pub fn new() -> Self {
        Self::of(Messages::new())
    }

    /// A thread of these messages with a random id.
    pub fn of(messages: Messages) -> Self {
        let now = crate::clock::now();
        Self {
            id: MessageId::random().as_str().to_owned(),
            messages,
            created_at: now,
            updated_at: now,
        }
    }

    /// The id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// When it was made.
    pub fn created_at(&self) -> jiff::Timestamp {
        self.created_at
    }

    /// When it was changed last.
    pub fn updated_at(&self) -> jiff::Timestamp {
        self.updated_at
    }

    /// The messages; cloning them is cheap.
    pub fn messages(&self) -> &Messages {
        &self.messages
    }

    /// How many messages there are.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether the thread has no messages.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// The messages, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Message> + ExactSizeIterator {
        self.messages.iter()
    }

    fn touch(&mut self) -> &mut Self {
        self.updated_at = crate::clock::now();
        self
    }

    /// Adds a turn's messages.
    pub fn append(&mut self, turn: &Turn) -> &mut Self {
        self.push(turn.messages.iter().cloned())
    }

    /// Adds messages.
    pub fn push(&mut self, messages: impl IntoIterator<Item = impl Into<Message>>) -> &mut Self {
        for message in messages {
            self.messages.push_back_mut(message.into());
        }
        self.touch()
    }

    /// Adds a user message: a text, or blocks.
    pub fn user(&mut self, content: impl Into<UserMessage>) -> &mut Self {
        self.push([content.into()])
    }

    /// Adds an assistant message: a text, or blocks.
    pub fn assistant(&mut self, content: impl Into<AssistantMessage>) -> &mut Self {
        self.push([content.into()])
    }

    /// Removes all messages.
    pub fn clear(&mut self) -> &mut Self {
        self.messages = Messages::new();
        self.touch()
    }

    /// The messages of one role, in order.
    pub fn filter(&self, role: MessageRole) -> Vec<Message> {
        let found = self.iter().filter(|message| message.role() == role);
        found.cloned().collect()
    }

    /// The last `count` messages, or all, if there are fewer.
    pub fn tail(&self, count: usize) -> Vec<Message> {
        let skipped = self.len().saturating_sub(count);
        self.iter().skip(skipped).cloned().collect()
    }

    /// The messages as a list.
    pub fn to_messages(&self) -> Vec<Message> {
        self.iter().cloned().collect()
    }

    /// A new thread, with its own id, of the messages from `start` to before `end`. Without `start`, it
    /// begins with the first message; without `end`, it ends with the last. A negative index counts from
    /// the end. An index beyond the thread means its end.
    #[must_use]
    pub fn slice(&self, start: impl Into<Option<i64>>, end: impl Into<Option<i64>>) -> Self {
        let start = start.into().map_or(0, |at| self.position(at));
        let end = end.into().map_or(self.len(), |at| self.position(at));
        let count = end.saturating_sub(start);
        Self::of(self.iter().skip(start).take(count).cloned().collect())
    }

    fn position(&self, index: i64) -> usize {
        let distance = usize::try_from(index.unsigned_abs()).unwrap_or(usize::MAX);
        if index < 0 {
            self.len().saturating_sub(distance)
        } else {
            distance.min(self.len())
        }
    }

    /// Writes the thread as JSON (`ThreadJSON`, UPP §14).
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    /// Reads what [`Thread::to_json`] writes. A message of unknown type is an error.
    pub fn from_json(json: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json)
    }
}

impl Default for Thread {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a> IntoIterator for &'a Thread {
    type Item = &'a Message;
    type IntoIter = Box<dyn Iterator<Item = &'a Message> + 'a>;

    fn into_iter(self) -> Self::IntoIter {
        Box::new(self.iter())
    }
}

/// A possible history of a turn (UPP §2): a thread, or messages.
pub trait History {
    /// The messages, oldest first.
    fn into_messages(self) -> Messages;
}

impl History for Messages {
    fn into_messages(self) -> Messages {
        self
    }
}

impl History for &Messages {
    fn into_messages(self) -> Messages {
        self.clone()
    }
}

impl History for Thread {
    fn into_messages(self) -> Messages {
        self.messages
    }
}

impl History for &Thread {
    fn into_messages(self) -> Messages {
        self.messages.clone()
    }
}

impl History for Vec<Message> {
    fn into_messages(self) -> Messages {
        self.into_iter().collect()
    }
}

impl History for &[Message] {
    fn into_messages(self) -> Messages {
        self.iter().cloned().collect()
    }
}

impl<const N: usize> History for [Message; N] {
    fn into_messages(self) -> Messages {
        self.into_iter().collect()
    }
}

#[cfg(test)]
mod tests;
