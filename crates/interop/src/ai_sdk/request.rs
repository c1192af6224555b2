//! The request body that `useChat` posts (`DefaultChatTransport`).

mod message;

pub use message::{ChatAnswer, SentMessage, SentRole, UserMessage};

use crate::fields::{Fields, Refusal, Wrong, check_count};
use serde_json::Value;

/// The most messages a request may have.
const MAX_MESSAGES: usize = 10_000;
/// The most parts of a message that a user has written.
const MAX_PARTS: usize = 256;
/// The most bytes of an id.
const MAX_ID_BYTES: usize = 256;
/// The most bytes of text in one part.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// The reason for the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChatTrigger {
    /// The client submits a message or answers.
    SubmitMessage,
    /// The client wants another answer to an earlier message.
    RegenerateMessage,
}

/// A request for an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatRequest {
    /// The chat: a thread's key.
    pub chat_id: String,
    /// The reason for the request.
    pub trigger: ChatTrigger,
    /// The message that the client edits, regenerates or continues.
    pub message_id: Option<String>,
    /// The client's copy of the history. The server owns the history, so these must equal the stored
    /// messages.
    pub messages: Vec<SentMessage>,
}

impl ChatRequest {
    /// The message in which the client answers the agent's questions: the named one, or the last one.
    /// `None` if that is a user's message.
    pub fn answering(&self) -> Option<&SentMessage> {
        if self.trigger == ChatTrigger::RegenerateMessage {
            return None;
        }
        let named = self.message_id.as_ref();
        let named = named.and_then(|id| self.messages.iter().rfind(|message| message.id == *id));
        let message = named.or(self.messages.last())?;
        (message.role == SentRole::Assistant).then_some(message)
    }

    /// The agent's last message, if a new user message follows it. The client may have answered the
    /// agent's questions in it.
    pub fn answered_before(&self) -> Option<&SentMessage> {
        let is_said = self.trigger == ChatTrigger::SubmitMessage && !self.is_edit();
        let last = self.messages.last()?;
        let agents = |message: &&SentMessage| message.role == SentRole::Assistant;
        let found = self.messages.iter().rfind(agents)?;
        (is_said && last.role == SentRole::User).then_some(found)
    }

    /// Whether the last message replaces an earlier user message.
    pub fn is_edit(&self) -> bool {
        let is_named = |last: &SentMessage| {
            last.role == SentRole::User && self.message_id.as_ref() == Some(&last.id)
        };
        self.trigger == ChatTrigger::SubmitMessage && self.messages.last().is_some_and(is_named)
    }
}

/// Why a body is no request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChatRequestError {
    /// A member is missing or of another type.
    #[error("{pointer}: expected {expected}")]
    Expected {
        /// JSON pointer to the value.
        pointer: String,
        /// The expected value.
        expected: &'static str,
    },
    /// A chat's id can't be a segment of a path.
    #[error("/id: {id:?} can't be the id of a chat")]
    ChatId {
        /// The id.
        id: String,
    },
    /// Something is larger than allowed.
    #[error("{pointer}: at most {limit} are allowed")]
    TooLarge {
        /// JSON pointer to the value.
        pointer: String,
        /// How much is allowed: elements or bytes.
        limit: usize,
    },
    /// A user's message can't contain this part.
    #[error("{pointer}: a user's message can't have a part of type {kind:?}")]
    Part {
        /// JSON pointer to the part.
        pointer: String,
        /// The type.
        kind: String,
    },
    /// The id is reserved for the server.
    #[error("{pointer}: {id:?} reads as a changed message of another one; take another id")]
    Reserved {
        /// JSON pointer to the value.
        pointer: String,
        /// The id.
        id: String,
    },
    /// A file is at an address that is not fetched.
    #[error("{pointer}: a file is a data:, http: or https: URL")]
    Url {
        /// JSON pointer to the value.
        pointer: String,
    },
}

fn expected(pointer: impl Into<String>, expected: &'static str) -> ChatRequestError {
    let pointer = pointer.into();
    ChatRequestError::Expected { pointer, expected }
}

/// Reads the body of a request. Unknown members are ignored. The messages are checked for their form only.
pub fn from_chat_request(mut body: Value) -> Result<ChatRequest, ChatRequestError> {
    let fields = Fields::of(&body, "")?;
    let chat_id = fields.id("id", MAX_ID_BYTES)?;
    if matches!(chat_id.as_str(), "." | "..") || chat_id.contains(['/', '\0']) {
        return Err(ChatRequestError::ChatId { id: chat_id });
    }
    let trigger = match fields.present("trigger").map(Value::as_str) {
        None | Some(Some("submit-message")) => ChatTrigger::SubmitMessage,
        Some(Some("regenerate-message")) => ChatTrigger::RegenerateMessage,
        Some(_) => {
            let words = "\"submit-message\" or \"regenerate-message\"";
            return Err(expected("/trigger", words));
        }
    };
    let short = |id: &Value| {
        id.as_str()
            .filter(|id| id.len() <= MAX_ID_BYTES)
            .map(str::to_owned)
    };
    let message_id = fields.read("messageId", "a string of tolerable length", short)?;
    let Some(Value::Array(messages)) = body.get_mut("messages").map(Value::take) else {
        return Err(expected("/messages", "an array"));
    };
    check_count("/messages", messages.len(), MAX_MESSAGES)?;
    let messages = messages.into_iter().enumerate();
    let messages = messages.map(|(place, message)| SentMessage::read(message, place));
    Ok(ChatRequest {
        chat_id,
        trigger,
        message_id,
        messages: messages.collect::<Result<_, _>>()?,
    })
}

impl Refusal for ChatRequestError {
    fn refuse(pointer: String, wrong: Wrong<'_>) -> Self {
        match wrong {
            Wrong::Missing(what) | Wrong::Kind(what, _) => expected(pointer, what),
            Wrong::Long(_, limit) | Wrong::Many(_, limit) => Self::TooLarge { pointer, limit },
        }
    }
}
