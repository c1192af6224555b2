//! `POST …/messages`, and the messages in requests that create threads and runs.

use crate::threads::content::read_content;
use crate::threads::error::RequestError;
use crate::threads::fields::{Fields, MAX_ID};
use crate::threads::metadata::{ACTOR, Carrier, Metadata, NAMESPACE};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use timeline::{ItemType, NewItem, Role};

const ROLES: &[&str] = &["user", "assistant"];
const TOOLS: &[&str] = &["code_interpreter", "file_search"];
const MAX_ATTACHMENTS: usize = 256;
/// The most messages in one request.
const MAX_MESSAGES: usize = 10_000;

/// A message that is to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateMessage {
    /// The author's role: a user or an assistant.
    pub role: Role,
    /// The content, as parts in the log's form. An attachment is an `input_file` with a `file_id`, at
    /// the end.
    pub content: Vec<Value>,
    /// The client's metadata, with AITP's `actor`.
    pub metadata: Metadata,
    attachments: Vec<Value>,
}

impl CreateMessage {
    /// Reads the body.
    pub fn read(body: &Value) -> Result<Self, RequestError> {
        Self::read_at(body, String::new())
    }

    /// Reads a message at a pointer. In AITP's lists, a plain string is a user's message.
    fn read_at(body: &Value, pointer: String) -> Result<Self, RequestError> {
        if let (Value::String(_), false) = (body, pointer.is_empty()) {
            return Ok(Self {
                role: Role::User,
                content: read_content(body, &pointer, Role::User)?,
                metadata: Metadata::default(),
                attachments: Vec::new(),
            });
        }
        let fields = Fields::of(body, pointer)?;
        let role = match fields.word("role", ROLES)? {
            Some("assistant") => Role::Assistant,
            Some(_) => Role::User,
            None => return Err(fields.missing("role")),
        };
        let content = fields.get("content");
        let content = content.ok_or_else(|| fields.missing("content"))?;
        let mut content = read_content(content, &fields.at("content"), role)?;
        let attachments = attachments(&fields)?;
        content.extend(attachments.iter().map(|file| {
            let id = file.get("file_id");
            json!({"type": "input_file", "file_id": id})
        }));
        Ok(Self {
            role,
            content,
            metadata: Metadata::read(&fields, Carrier::Message)?.unwrap_or_default(),
            attachments,
        })
    }

    /// Reads the member `key`: a list of messages.
    pub(super) fn list(fields: &Fields<'_>, key: &str) -> Result<Vec<Self>, RequestError> {
        let list = fields.placed(key, MAX_MESSAGES)?.unwrap_or_default();
        let messages = list.into_iter();
        messages
            .map(|(pointer, message)| Self::read_at(message, pointer))
            .collect()
    }

    /// The files that it names.
    pub fn file_ids(&self) -> BTreeSet<&str> {
        let ids = self.content.iter().filter_map(|part| part.get("file_id"));
        ids.filter_map(Value::as_str).collect()
    }

    /// The item that stores the message under our id `id`.
    pub fn item(self, id: &str) -> NewItem {
        let (mut own, mut kept) = (Map::new(), Map::new());
        // Who speaks is no note of this view's: every other one asks for it, too.
        let actor = self.metadata.0.get(ACTOR).filter(|actor| !actor.is_null());
        kept.extend(actor.map(|actor| (ACTOR.to_owned(), actor.clone())));
        if !self.metadata.is_empty() {
            own.insert("metadata".to_owned(), Value::Object(self.metadata.0));
        }
        if !self.attachments.is_empty() {
            own.insert("attachments".to_owned(), Value::Array(self.attachments));
        }
        if !own.is_empty() {
            kept.insert(NAMESPACE.to_owned(), Value::Object(own));
        }
        NewItem {
            id: id.into(),
            item_type: ItemType::Message,
            role: Some(self.role),
            channel: None,
            content: Some(Value::Array(self.content).into()),
            metadata: (!kept.is_empty()).then(|| Value::Object(kept).into()),
        }
    }
}

/// The files of a message, each with the tools it is meant for; AITP's have none.
fn attachments(fields: &Fields<'_>) -> Result<Vec<Value>, RequestError> {
    let list = fields.placed("attachments", MAX_ATTACHMENTS)?;
    let files = list.unwrap_or_default().into_iter();
    let files = files.map(|(pointer, file)| {
        let file = Fields::of(file, pointer)?;
        let id = file.required("file_id", MAX_ID)?;
        let mut tools = Vec::new();
        for (pointer, tool) in file.placed("tools", TOOLS.len())?.unwrap_or_default() {
            let tool = Fields::of(tool, pointer)?;
            tools.push(json!({"type": tool.kind(TOOLS)?}));
        }
        Ok(json!({"file_id": id, "tools": tools}))
    });
    files.collect()
}
