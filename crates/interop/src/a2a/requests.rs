//! AITP requests of a task, and their answers.
//!
//! Such a request blocks nothing: the run that made it has ended, and others may post to the thread. A
//! message of the task that answers it names the task in its metadata. The message's id is derived
//! from the task's id and a number. So the server finds the messages of a task one by one, however far
//! apart they are in the log.

use super::error::RequestError;
use super::message::{Incoming, MESSAGE_METADATA};
use super::part;
use super::reply::object;
#[cfg(feature = "aitp")]
use crate::aitp::RequestQuestion;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use timeline::{Item, ItemId, ItemType, Payload};
use uuid::Uuid;

/// The metadata member that names the task which a message continues.
const GOES_ON_WITH: &str = "goesOnWith";

/// An open AITP request.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingRequestView {
    /// The id that an answer refers to.
    id: String,
    /// The request as text for people.
    words: String,
    data: Value,
    /// After this instant an answer is late.
    pub expires_at: Option<Timestamp>,
}

impl PendingRequestView {
    /// The id that an answer refers to.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// A question.
    #[cfg(feature = "aitp")]
    pub fn of(question: &RequestQuestion) -> Self {
        let ask = &question.ask;
        let id = ask.key.text();
        let mut data = json!({
            "requestId": id, "asks": ask.message_type, "answerSchema": question.schema,
            "request": {"$schema": ask.schema, ask.message_type.as_str(): ask.payload},
        });
        if let Some(end) = question.expires_at {
            data["expiresAt"] = end.to_string().into();
        }
        Self {
            id,
            words: question.prompt(),
            data,
            expires_at: question.expires_at,
        }
    }
}

/// The parts of the status message that lists the open requests: one text and one data part.
pub(super) fn question_parts(asked: &[PendingRequestView]) -> Vec<Value> {
    let texts = asked.iter().map(|request| {
        let PendingRequestView { id, words, .. } = request;
        format!(
            "{words}\nAnswer with the data {{\"requestId\": {id:?}, \"value\": …}}, as its answerSchema has it, or \"declined\": true."
        )
    });
    let requests: Vec<&Value> = asked.iter().map(|request| &request.data).collect();
    vec![
        json!({ "text": texts.collect::<Vec<_>>().join("\n\n") }),
        json!({"data": {"requests": requests}, "mediaType": "application/json"}),
    ]
}

/// A part of a message to a task with open AITP requests.
#[derive(Clone, Debug, PartialEq)]
pub enum RequestReply {
    /// A value that answers a request.
    Value {
        /// JSON pointer to the value.
        pointer: String,
        /// The request.
        request_id: String,
        /// The value.
        value: Value,
    },
    /// The client declines a request.
    Declined {
        /// JSON pointer to the object that declines the request.
        pointer: String,
        /// The request.
        request_id: String,
        /// The reason, for people.
        reason: Option<String>,
    },
    /// Any other part, in the log's form: a capability message, or text that accompanies an answer.
    Text(Value),
}

impl RequestReply {
    /// Reads a message to a task with open requests. An answer is a data part with a `requestId`, a
    /// text that is such an object, or a capability message. Plain words are never taken as an answer.
    ///
    /// # Errors
    ///
    /// The message has no answer, or a part is malformed. The error names the place and the expected
    /// form.
    pub fn read(message: &Incoming) -> Result<Vec<Self>, RequestError> {
        let mut is_answer = false;
        let mut replies = Vec::new();
        for (pointer, said) in message.placed() {
            let fields = object(said);
            let has = |key: &str| fields.as_ref().is_some_and(|it| it.contains_key(key));
            is_answer |= has("requestId") || has("$schema");
            replies.push(match fields {
                Some(fields) if fields.contains_key("requestId") => {
                    let member = if said.get("data").is_some() {
                        "data"
                    } else {
                        "text"
                    };
                    reply(fields, format!("{pointer}/{member}"))?
                }
                _ => Self::Text(part::read(said, &pointer)?),
            });
        }
        if is_answer {
            return Ok(replies);
        }
        Err(message.wrong_parts(
            "the task waits for answers: expected a data part {\"requestId\": …} with \"value\" or \"declined\", or a capability message",
        ))
    }
}

fn reply(mut fields: Map<String, Value>, pointer: String) -> Result<RequestReply, RequestError> {
    let wrong =
        |member: &str, what: &str| Err(RequestError::param(format!("{pointer}/{member}"), what));
    let Some(Value::String(request_id)) = fields.remove("requestId") else {
        return wrong("requestId", "expected a string");
    };
    let reason = match fields.remove("reason") {
        None | Some(Value::Null) => None,
        Some(Value::String(reason)) => Some(reason),
        Some(_) => return wrong("reason", "expected a string"),
    };
    match (fields.remove("value"), fields.remove("declined")) {
        (Some(value), None | Some(Value::Bool(false))) => Ok(RequestReply::Value {
            pointer: format!("{pointer}/value"),
            request_id,
            value,
        }),
        (None, Some(Value::Bool(true))) => Ok(RequestReply::Declined {
            pointer,
            request_id,
            reason,
        }),
        _ => {
            let what = "expected either \"value\" or \"declined\": true";
            Err(RequestError::param(pointer, what))
        }
    }
}

/// The id of the `n`th message that continues a task, counted from 1.
pub fn continuation_id(task: &ItemId, n: usize) -> ItemId {
    let name = format!("urn:loomline:a2a:{task}:{n}");
    let id = Uuid::new_v5(&Uuid::NAMESPACE_URL, name.as_bytes());
    id.to_string().into()
}

/// Adds the task that a message continues to the message's metadata.
pub fn with_task(mut metadata: Value, task: &ItemId) -> Value {
    metadata[MESSAGE_METADATA][GOES_ON_WITH] = task.as_str().into();
    metadata
}

/// The task that a message continues; `None` if the message starts a task.
pub(super) fn continued_task(item: &Item) -> Option<ItemId> {
    let metadata = item.metadata.as_ref()?;
    // Most say nothing of it, and are not read.
    let says = metadata.text().contains(GOES_ON_WITH);
    if !says || item.item_type != ItemType::Message {
        return None;
    }
    let metadata = metadata.value();
    let task = metadata.get(MESSAGE_METADATA)?.get(GOES_ON_WITH)?;
    task.as_str().map(ItemId::from)
}

/// Whether a part of an agent's output may be a capability message.
pub(super) fn may_ask(part: &Payload) -> bool {
    let text = part.str_field("text");
    text.is_some_and(|text| text.trim_start().starts_with('{'))
}
