//! One message of a request.

use super::{ChatRequestError, MAX_ID_BYTES, MAX_MESSAGES, MAX_PARTS, MAX_TEXT_BYTES, expected};
use crate::ai_sdk::messages::METADATA;
use crate::fields::{Fields, check_count, check_length};
use crate::request::{self, is_image, is_inline, is_web};
use crate::revision::is_free;
use serde_json::{Value, json};
use timeline::{ANSWER, Payload};

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentRole {
    /// A user.
    User,
    /// An agent.
    Assistant,
    /// Something that happened.
    System,
}

impl SentRole {
    /// As a client spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::System => "system",
        }
    }
}

/// A message as a client has sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentMessage {
    /// Its id.
    pub id: String,
    /// The author.
    pub role: SentRole,
    /// Which one of the request's messages it is, from 0.
    pub index: usize,
    /// The parts, not decoded.
    pub parts: Vec<Value>,
    metadata: Option<Value>,
}

/// A user's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserMessage {
    /// The client's id of it.
    pub id: String,
    /// The parts, in the log's shapes.
    pub content: Payload,
    /// The client's own metadata of the message, to store as the item's metadata. It is under a name
    /// of its own, so it can't be mistaken for other metadata.
    pub metadata: Option<Payload>,
}

/// An answer that a client has put into the part of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatAnswer {
    /// The call.
    pub tool_call_id: String,
    /// Whether it answers an approval. Otherwise it is a result.
    pub is_approval: bool,
    /// The answer, as a part of the log's ([`timeline::Answer`]).
    pub part: Value,
}

impl ChatAnswer {
    /// Readdresses the answer to the call `call`.
    #[must_use]
    pub fn to(&self, call: &str) -> Self {
        let mut part = self.part.clone();
        part["toolCallId"] = call.into();
        Self {
            tool_call_id: call.to_owned(),
            is_approval: self.is_approval,
            part,
        }
    }
}

impl SentMessage {
    pub(super) fn read(mut message: Value, place: usize) -> Result<Self, ChatRequestError> {
        let fields = Fields::of(&message, format!("/messages/{place}"))?;
        let id = fields.id("id", MAX_ID_BYTES)?;
        let role = |role: &Value| match role.as_str()? {
            "user" => Some(SentRole::User),
            "assistant" => Some(SentRole::Assistant),
            "system" => Some(SentRole::System),
            _ => None,
        };
        let words = "\"user\", \"assistant\" or \"system\"";
        let role = fields.expect("role", words, role)?;
        let parts_at = fields.at("parts");
        let mut take = |key: &str| message.get_mut(key).map(Value::take);
        let Some(Value::Array(parts)) = take("parts") else {
            return Err(expected(parts_at, "an array"));
        };
        check_count(&parts_at, parts.len(), MAX_MESSAGES)?;
        let metadata = take("metadata").filter(|noted| !noted.is_null());
        Ok(Self {
            id,
            role,
            index: place,
            parts,
            metadata,
        })
    }

    /// JSON pointer to the message in the request.
    pub fn pointer(&self) -> String {
        format!("/messages/{}", self.index)
    }

    /// The user's message in it.
    pub fn user_message(&self) -> Result<UserMessage, ChatRequestError> {
        let pointer = self.pointer();
        if !is_free(&self.id) {
            return Err(ChatRequestError::Reserved {
                pointer: format!("{pointer}/id"),
                id: self.id.clone(),
            });
        }
        let pointer = format!("{pointer}/parts");
        if self.parts.is_empty() {
            return Err(expected(pointer, "at least one part"));
        }
        check_count(&pointer, self.parts.len(), MAX_PARTS)?;
        let content = self
            .parts
            .iter()
            .enumerate()
            .map(|(place, part)| own_part(part, &format!("{pointer}/{place}")))
            .collect::<Result<Vec<Value>, _>>()?;
        let metadata = self.metadata.as_ref();
        Ok(UserMessage {
            id: self.id.clone(),
            content: Value::Array(content).into(),
            metadata: metadata.map(|noted| json!({ METADATA: noted }).into()),
        })
    }

    /// The answers in the parts of calls: to questions, and results of tools that the client ran.
    /// Whether such a call is pending is not checked.
    pub fn answers(&self) -> Vec<ChatAnswer> {
        self.parts.iter().filter_map(answer).collect()
    }
}

fn answer(part: &Value) -> Option<ChatAnswer> {
    let text = |key: &str| part.get(key).and_then(Value::as_str);
    let kind = text("type")?;
    if kind != "dynamic-tool" && !kind.starts_with("tool-") {
        return None;
    }
    let id = text("toolCallId")?;
    let mut answer = json!({"type": ANSWER, "toolCallId": id});
    let state = text("state")?;
    match state {
        "approval-responded" => {
            let approval = part.get("approval")?;
            let approved = approval.get("approved")?.as_bool()?;
            answer["approved"] = approved.into();
            let reason = approval.get("reason").and_then(Value::as_str);
            if let Some(reason) = reason.filter(|_| !approved) {
                answer["message"] = reason.into();
            }
        }
        "output-available" => answer["output"] = part.get("output").cloned().unwrap_or_default(),
        "output-error" => answer["errorText"] = text("errorText").unwrap_or_default().into(),
        _ => return None,
    }
    Some(ChatAnswer {
        tool_call_id: id.to_owned(),
        is_approval: state == "approval-responded",
        part: answer,
    })
}

fn own_part(part: &Value, pointer: &str) -> Result<Value, ChatRequestError> {
    let text = |key: &str| {
        let text = part.get(key).and_then(Value::as_str);
        text.ok_or_else(|| expected(format!("{pointer}/{key}"), "a string"))
    };
    let kind = text("type")?;
    match kind {
        "text" => {
            let said = text("text")?;
            check_length(&format!("{pointer}/text"), said, MAX_TEXT_BYTES)?;
            Ok(json!({"type": "input_text", "text": said}))
        }
        "file" => file(part, text("url")?, text("mediaType")?, pointer),
        _ if kind.len() > "data-".len() && kind.starts_with("data-") => Ok(part.clone()),
        _ => Err(ChatRequestError::Part {
            pointer: pointer.to_owned(),
            kind: kind.to_owned(),
        }),
    }
}

fn file(part: &Value, url: &str, mime: &str, pointer: &str) -> Result<Value, ChatRequestError> {
    if !is_inline(url) && !is_web(url) {
        let pointer = format!("{pointer}/url");
        return Err(ChatRequestError::Url { pointer });
    }
    let mut own = request::file(url, is_image(mime), Some(mime));
    if let Some(name) = part.get("filename").and_then(Value::as_str) {
        own["filename"] = name.into();
    }
    Ok(own)
}
