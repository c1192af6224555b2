//! The input of a run: new messages, and results of client tools.

use super::content::{self, MAX_TEXT};
use super::error::RequestError;
use super::fields::{Fields, MAX_ID, choose};
use super::resent;
use serde_json::{Map, Value, json};
use timeline::{ItemType, NewItem, Payload, Role};

/// The most messages of a request.
pub(super) const MAX_MESSAGES: usize = 1_000;
/// The member of an item's metadata that stores a message's fields other than its content.
pub const MESSAGE_METADATA: &str = "langgraph";
/// The fields of a message that are stored in addition to its content.
const KEPT: [&str; 3] = ["name", "additional_kwargs", "metadata"];
/// The classes of `LangChain`'s messages, and their types. A class for chunks of a message ends in
/// `Chunk`.
const CLASSES: [(&str, &str); 4] = [
    ("HumanMessage", "human"),
    ("AIMessage", "ai"),
    ("SystemMessage", "system"),
    ("ToolMessage", "tool"),
];
/// The most names in the path of a class.
const MAX_PATH: usize = 16;
const KNOWN: [&str; 16] = [
    "type",
    "role",
    "content",
    "id",
    "name",
    "additional_kwargs",
    "response_metadata",
    "metadata",
    "example",
    "tool_calls",
    "invalid_tool_calls",
    "usage_metadata",
    "tool_call_id",
    "status",
    "artifact",
    "tool_call_chunks",
];

/// A message to post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputMessage {
    /// The client's id of it, if it gave one.
    pub id: Option<String>,
    /// The author's role.
    pub role: Role,
    /// Its parts.
    pub content: Payload,
    /// The message's `name`, `additional_kwargs` and `metadata`, under [`MESSAGE_METADATA`].
    pub metadata: Option<Payload>,
    /// JSON pointer to the content in the request.
    pub pointer: String,
    /// Whether the content is a list of parts there; else it is a text.
    pub has_parts: bool,
    /// Where calls stand that it makes. Only a message that the thread has already may make some.
    pub(super) calls: Option<String>,
}

impl InputMessage {
    /// The item that it becomes; `id` where the client gave none.
    pub fn item(self, id: impl FnOnce() -> String) -> NewItem {
        NewItem {
            id: self.id.unwrap_or_else(id).into(),
            item_type: ItemType::Message,
            role: Some(self.role),
            channel: None,
            content: Some(self.content),
            metadata: self.metadata,
        }
    }
}

/// A result of a tool that the client executes.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientToolResult {
    /// The client's id of the message, if it gave one.
    pub id: Option<String>,
    /// The call.
    pub tool_call_id: String,
    /// The result's text, or the error's.
    pub text: String,
    /// Whether it went wrong.
    pub is_error: bool,
    /// JSON pointer to the result in the request.
    pub pointer: String,
}

/// The input of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Input {
    /// The new messages, in order.
    pub messages: Vec<InputMessage>,
    /// The results of client tools.
    pub results: Vec<ClientToolResult>,
}

impl Input {
    /// Whether there are no messages and no results. The agent then continues with the existing
    /// thread.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.results.is_empty()
    }

    /// The ids of the messages, as far as they have some.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        let said = self.messages.iter().map(|it| it.id.as_deref());
        let results = self.results.iter().map(|it| it.id.as_deref());
        said.chain(results).flatten()
    }

    /// Removes the messages that the thread already has. Clients that hold the whole state send all of
    /// it again. `known` are the thread's messages; it is empty for a new thread.
    ///
    /// # Errors
    ///
    /// A known message has another text, or a new one makes calls.
    pub fn leave_out(&mut self, known: &[Value]) -> Result<(), RequestError> {
        resent::leave_out(self, known)
    }

    /// The messages, for a request that can't contain results of calls.
    ///
    /// # Errors
    ///
    /// The input has a result of a call.
    pub fn messages_only(self) -> Result<Vec<InputMessage>, RequestError> {
        match self.results.first() {
            None => Ok(self.messages),
            Some(result) => {
                let what =
                    "a call is answered by a run: give its result as the run's input or command";
                Err(RequestError::at(&*result.pointer, what))
            }
        }
    }

    /// Reads `{"messages": …}`.
    pub(super) fn read(input: &Value, pointer: &str) -> Result<Self, RequestError> {
        let fields = Fields::closed(input, pointer, &["messages"])?;
        let mut read = Self::default();
        if let Some(messages) = fields.get("messages") {
            read.messages(messages, &fields.at("messages"))?;
        }
        Ok(read)
    }

    /// Reads a message, or a list of them.
    pub(super) fn messages(&mut self, messages: &Value, pointer: &str) -> Result<(), RequestError> {
        let Value::Array(list) = messages else {
            return self.message(messages, pointer);
        };
        if list.len() > MAX_MESSAGES {
            let what = format!("expected at most {MAX_MESSAGES} messages");
            return Err(RequestError::at(pointer, what));
        }
        // A role and a text is one message, and a list of two texts are two.
        let mut messages = list.iter().enumerate();
        messages
            .try_for_each(|(place, message)| self.message(message, &format!("{pointer}/{place}")))
    }

    fn message(&mut self, message: &Value, pointer: &str) -> Result<(), RequestError> {
        if message.get("lc").is_some() {
            let whole = constructed(message, pointer)?;
            return self.message(&whole, &format!("{pointer}/kwargs"));
        }
        let whole = match message {
            Value::String(_) => json!({"role": "user", "content": message}),
            Value::Array(pair) => {
                let [role @ Value::String(_), content] = pair.as_slice() else {
                    let what = "expected a message: an object, a text, or a role and a text";
                    return Err(RequestError::at(pointer, what));
                };
                json!({"role": role, "content": content})
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => message.clone(),
        };
        let fields = Fields::closed(&whole, pointer, &KNOWN)?;
        let named = if fields.get("role").is_some() {
            "role"
        } else {
            "type"
        };
        let role = fields.text(named, MAX_ID)?;
        let role = match role {
            Some("user" | "human") => Role::User,
            Some("assistant" | "ai") => Role::Assistant,
            Some("system") => Role::System,
            Some("developer") => Role::Developer,
            Some("tool") => return self.result(&fields),
            Some(_) | None => {
                let what = "expected \"user\", \"assistant\", \"system\" or \"tool\", or LangChain's \"human\" or \"ai\"";
                return Err(fields.wrong(named, what));
            }
        };
        let id = fields.text("id", MAX_ID)?.filter(|id| !id.is_empty());
        let mut calls = None;
        for key in ["tool_calls", "invalid_tool_calls"] {
            match fields.refuse(key, resent::NO_CALLS) {
                Err(_) if id.is_some() => calls = Some(fields.at(key)),
                asked => asked?,
            }
        }
        let text_type = if role == Role::Assistant {
            "output_text"
        } else {
            "input_text"
        };
        let content = fields.present("content");
        let parts = content::read(content, &fields.at("content"), text_type)?;
        let at = match message {
            Value::String(_) => pointer.to_owned(),
            Value::Array(_) => format!("{pointer}/1"),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
                fields.at("content")
            }
        };
        self.messages.push(InputMessage {
            id: id.map(str::to_owned),
            calls,
            role,
            content: Value::Array(parts).into(),
            metadata: kept(&fields)?,
            pointer: at,
            has_parts: content.is_some_and(Value::is_array),
        });
        Ok(())
    }

    fn result(&mut self, fields: &Fields<'_>) -> Result<(), RequestError> {
        let call = fields.text("tool_call_id", MAX_ID)?;
        let missing = || fields.wrong("tool_call_id", "expected the id of a call");
        let status = [("success", false), ("error", true)];
        let is_error = fields.word("status", &status)?.unwrap_or_default();
        let pointer = fields.at("content");
        let parts = content::read(fields.present("content"), &pointer, "input_text")?;
        let texts: Option<Vec<&str>> = parts.iter().map(|part| part["text"].as_str()).collect();
        let text = texts.map(|texts| texts.concat());
        let text = text.filter(|text| text.len() <= MAX_TEXT);
        let text =
            text.ok_or_else(|| RequestError::at(pointer, "expected a text as a tool's result"))?;
        let id = fields.text("id", MAX_ID)?.filter(|id| !id.is_empty());
        self.results.push(ClientToolResult {
            id: id.map(str::to_owned),
            tool_call_id: call.ok_or_else(missing)?.to_owned(),
            text,
            is_error,
            pointer: fields.pointer().to_owned(),
        });
        Ok(())
    }
}

/// Reads a message as `LangChain` serialises it, with a class and its arguments. Returns it as a plain
/// object.
fn constructed(message: &Value, pointer: &str) -> Result<Value, RequestError> {
    let fields = Fields::closed(message, pointer, &["lc", "type", "id", "kwargs"])?;
    fields.word("type", &[("constructor", ())])?;
    let path = fields.texts("id", MAX_PATH)?;
    let class = path.last().map_or("", String::as_str);
    let class = class.strip_suffix("Chunk").unwrap_or(class);
    let kind = choose(Some(class), &CLASSES, || fields.at("id"))?;
    let made = Fields::of(
        fields.get("kwargs").unwrap_or(&Value::Null),
        fields.at("kwargs"),
    )?;
    if made.present("lc").is_some() {
        return Err(made.wrong("lc", "expected what the message is made with"));
    }
    let mut whole = made.map().clone();
    whole.remove("role");
    whole.insert("type".to_owned(), kind.into());
    Ok(Value::Object(whole))
}

/// Reads the fields in [`KEPT`] and wraps them under [`MESSAGE_METADATA`]; `None` if all are empty.
fn kept(fields: &Fields<'_>) -> Result<Option<Payload>, RequestError> {
    let mut kept = Map::new();
    for key in KEPT {
        let asks = fields
            .get(key)
            .filter(|it| it.as_object().is_none_or(|map| !map.is_empty()));
        if let Some(value) = asks {
            if key == "name" {
                fields.text(key, MAX_ID)?;
            } else {
                fields.noted(key)?;
            }
            kept.insert(key.to_owned(), value.clone());
        }
    }
    let kept = Some(kept).filter(|kept| !kept.is_empty());
    Ok(kept.map(|kept| json!({ MESSAGE_METADATA: kept }).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(messages: &Value) -> Result<Input, RequestError> {
        Input::read(&json!({"messages": messages}), "/input")
    }

    #[test]
    fn a_message_may_be_spelled_in_all_ways_of_langchain() {
        for said in [
            json!("Hi"),
            json!(["Hi"]),
            json!([["user", "Hi"]]),
            json!([{"role": "user", "content": "Hi"}]),
            json!({"type": "human", "content": "Hi"}),
            json!([{"type": "human", "content": [{"type": "text", "text": "Hi"}], "additional_kwargs": {}}]),
        ] {
            let input = read(&said).unwrap();
            let [message] = input.messages.as_slice() else {
                panic!("{said}");
            };
            assert_eq!(message.role, Role::User);
            let parts = json!([{"type": "input_text", "text": "Hi"}]);
            assert_eq!(message.content.value(), parts, "{said}");
            assert_eq!(message.metadata, None);
        }
    }

    #[test]
    fn a_message_may_be_as_langchain_serialises_it() {
        let object = |class: &str, kwargs: Value| {
            let id = ["langchain_core", "messages", class];
            json!([{"lc": 1, "type": "constructor", "id": id, "kwargs": kwargs}])
        };
        for (class, role) in [
            ("HumanMessage", Role::User),
            ("HumanMessageChunk", Role::User),
            ("AIMessage", Role::Assistant),
            ("AIMessageChunk", Role::Assistant),
            ("SystemMessage", Role::System),
        ] {
            let kwargs = json!({"content": "Hi", "type": "human", "additional_kwargs": {}});
            let input = read(&object(class, kwargs)).unwrap();
            assert_eq!(input.messages[0].role, role, "{class}");
            assert_eq!(
                input.messages[0].pointer,
                "/input/messages/0/kwargs/content"
            );
        }
        let kwargs = json!({"content": "green", "tool_call_id": "c", "status": "success"});
        let input = read(&object("ToolMessage", kwargs.clone())).unwrap();
        assert_eq!(input.results[0].text, "green");
        for (said, place) in [
            (object("RemoveMessage", kwargs.clone()), "/id"),
            (object("HumanMessage", json!("Hi")), "/kwargs"),
            (object("HumanMessage", json!({"lc": 1})), "/kwargs/lc"),
            (
                object("HumanMessage", json!({"content": 7})),
                "/kwargs/content",
            ),
            (json!([{"lc": 1, "type": "secret", "id": ["KEY"]}]), "/type"),
        ] {
            let error = read(&said).unwrap_err();
            let place = format!("/input/messages/0{place}");
            assert_eq!(error.pointer, Some(place), "{said}");
        }
    }

    #[test]
    fn content_that_is_null_is_empty() {
        let input = read(&json!([{"role": "assistant", "content": null}])).unwrap();
        let parts = json!([{"type": "output_text", "text": ""}]);
        assert_eq!(input.messages[0].content.value(), parts);
    }

    #[test]
    fn a_tools_message_is_a_result() {
        let message =
            json!([{"type": "tool", "content": "green", "tool_call_id": "c", "status": "error"}]);
        let input = read(&message).unwrap();
        let [result] = input.results.as_slice() else {
            panic!("{input:?}");
        };
        assert_eq!((result.tool_call_id.as_str(), result.is_error), ("c", true));
        assert!(input.messages.is_empty() && !input.is_empty());
    }

    #[test]
    fn what_can_not_be_said_is_refused_with_its_place() {
        for (said, place) in [
            (json!(7), "/input/messages"),
            (json!([["user"]]), "/input/messages/0"),
            (
                json!([{"role": "robot", "content": "x"}]),
                "/input/messages/0/role",
            ),
            (json!([{"content": "x"}]), "/input/messages/0/type"),
            (json!([{"role": "user"}]), "/input/messages/0/content"),
            (
                json!([{"role": "ai", "content": "", "tool_calls": [{}]}]),
                "/input/messages/0/tool_calls",
            ),
            (
                json!([{"role": "user", "content": "x", "colour": 1}]),
                "/input/messages/0/colour",
            ),
            (
                json!([{"role": "tool", "content": "x"}]),
                "/input/messages/0/tool_call_id",
            ),
            (
                json!([{"role": "user", "content": "x", "name": 7}]),
                "/input/messages/0/name",
            ),
        ] {
            let error = read(&said).unwrap_err();
            assert_eq!(error.pointer.as_deref(), Some(place), "{said}");
        }
        let other = Input::read(&json!({"todo": []}), "/input").unwrap_err();
        assert_eq!(other.pointer.as_deref(), Some("/input/todo"));
    }
}
