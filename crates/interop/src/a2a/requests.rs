//! What a task asks by AITP, and the answers.
//!
//! Such a request holds up nothing: the run that has asked is over, and others may talk on the thread. What
//! answers it within its task is a message that says which task it goes on with, under an id that follows from
//! the task's: so the messages of a task are found one after the other, however far apart they stand.

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

/// Under which name the protocol's metadata of an item has the task that it goes on with.
const GOES_ON_WITH: &str = "goesOnWith";

/// A request of AITP that waits for an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingRequestView {
    /// What it is answered under.
    id: String,
    /// What is asked, for people.
    words: String,
    data: Value,
    /// After this instant an answer is late.
    pub expires_at: Option<Timestamp>,
}

impl PendingRequestView {
    /// What it is answered under.
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

/// The parts of the message that says what is asked: in words, and as data.
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

/// A part of a message to a task that has asked something by AITP.
#[derive(Clone, Debug, PartialEq)]
pub enum RequestReply {
    /// What was filled in as the answer to a request.
    Value {
        /// Where the value stands.
        pointer: String,
        /// The request.
        request_id: String,
        /// What was filled in.
        value: Value,
    },
    /// A request that nobody will answer.
    Declined {
        /// Where that is said.
        pointer: String,
        /// The request.
        request_id: String,
        /// Why, for people.
        reason: Option<String>,
    },
    /// Something else: a capability message, or what is said beside an answer. A part of the log's.
    Text(Value),
}

impl RequestReply {
    /// Reads a message to a task that waits for answers to requests. One is a data part with a `requestId`, or the
    /// capability message itself, or a text that is such an object. What a request is answered with is never
    /// guessed from words.
    ///
    /// # Errors
    ///
    /// No answer, or one that is none, with its place and what was expected.
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

/// The id of the message that goes on with a task: the first one is number 1.
pub fn goes_on_id(task: &ItemId, n: usize) -> ItemId {
    let name = format!("urn:loomline:a2a:{task}:{n}");
    let id = Uuid::new_v5(&Uuid::NAMESPACE_URL, name.as_bytes());
    id.to_string().into()
}

/// The metadata of a message that goes on with a task.
pub fn with_task(mut metadata: Value, task: &ItemId) -> Value {
    metadata[MESSAGE_METADATA][GOES_ON_WITH] = task.as_str().into();
    metadata
}

/// The task that a message goes on with, if it begins none.
pub(super) fn goes_on_with(item: &Item) -> Option<ItemId> {
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

/// Whether a part of what an agent says may be a capability message.
pub(super) fn may_ask(part: &Payload) -> bool {
    let text = part.str_field("text");
    text.is_some_and(|text| text.trim_start().starts_with('{'))
}
