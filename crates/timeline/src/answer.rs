//! Answers to pending calls: the content of an item of type `action_result`.

use crate::command::NewItem;
use crate::content::{ContentError, check_content};
use crate::entity::{Item, ItemType, OpenKind, Role};
use crate::ids::ItemId;
use crate::payload::Payload;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// The type of an answer's part.
pub const ANSWER: &str = "loomline-answer";
/// The type of a part with a message that is sent together with answers:
/// `{"type": "loomline-said", "role": …, "content": […], "metadata"?: {…}}`. The message follows
/// the results of the answered calls.
pub const ATTACHED_MESSAGE: &str = "loomline-said";

/// An answer to one pending call:
/// `{"type": "loomline-answer", "toolCallId": …, "approved": true, "arguments"?: {…}}`, or with
/// `"approved": false, "message"?: …`, or with `"output": …`, or with `"errorText": …`. Only the
/// runtime writes `"resumed": true`, for a call whose sub-agent continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The call.
    pub tool_call_id: String,
    /// The decision or the result.
    pub content: AnswerContent,
}

/// The content of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerContent {
    /// The tool may run, with these arguments in place of the model's if there are any.
    Approved {
        /// A JSON object.
        arguments: Option<Payload>,
    },
    /// The tool may not run.
    Denied {
        /// The message for the model.
        message: Option<String>,
    },
    /// The result of a call that the client ran.
    Output(Payload),
    /// The error of a call that the client ran.
    Failure(String),
    /// The sub-agent that the call waits for continues. Only the runtime writes this answer.
    Resumed,
}

impl Answer {
    /// Reads the content of an item of answers: a list of parts, each for another call. The list
    /// may also contain [attached messages](messages_with_answers).
    pub fn read(content: Option<&Payload>) -> Result<Vec<Self>, ContentError> {
        let parts: Vec<Payload> = content
            .and_then(|content| content.read().ok())
            .ok_or(ContentError::NotAList)?;
        let mut known = BTreeSet::new();
        let mut answers = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            let pointer = format!("/{index}");
            if is_attached_message(part) {
                read_attached_message(part, &pointer)?;
                continue;
            }
            let answer = read(part, &pointer)?;
            if !known.insert(answer.tool_call_id.clone()) {
                return Err(wrong(&pointer, "toolCallId", "one answer a call"));
            }
            answers.push(answer);
        }
        if answers.is_empty() {
            return Err(wrong("", "content", "at least one answer"));
        }
        Ok(answers)
    }

    /// The kind of calls it can answer.
    pub fn kind(&self) -> OpenKind {
        match self.content {
            AnswerContent::Approved { .. } | AnswerContent::Denied { .. } => OpenKind::Approval,
            AnswerContent::Output(_) | AnswerContent::Failure(_) => OpenKind::External,
            AnswerContent::Resumed => OpenKind::Child,
        }
    }
}

/// The messages attached to an item of answers, in order. The id of each is the item's id plus its
/// index. Items of other types have none.
pub fn messages_with_answers(item: &Item) -> Vec<Item> {
    let (said_in, content) = (&item.id, item.content.as_ref());
    let messages = messages(item.item_type, said_in, content).map(|(id, said)| Item {
        id,
        item_type: ItemType::Message,
        role: Some(said.role),
        content: Some(said.content),
        metadata: said.metadata,
        ..item.clone()
    });
    messages.collect()
}

impl NewItem {
    /// The messages attached to the answers, as [`messages_with_answers`] returns them for the
    /// stored item.
    pub fn attached_messages_of(&self) -> Vec<Self> {
        let (said_in, content) = (&self.id, self.content.as_ref());
        let messages = messages(self.item_type, said_in, content).map(|(id, said)| Self {
            id,
            item_type: ItemType::Message,
            role: Some(said.role),
            channel: self.channel.clone(),
            content: Some(said.content),
            metadata: said.metadata,
        });
        messages.collect()
    }
}

/// The messages attached to the answers of an item of this type, each with its id.
fn messages(
    item_type: ItemType,
    answers: &ItemId,
    content: Option<&Payload>,
) -> impl Iterator<Item = (ItemId, AttachedMessage)> {
    let content = content.filter(|_| item_type == ItemType::ActionResult);
    let parts = content.map(|content| attached_messages(Some(content)));
    let parts = parts.unwrap_or_default().into_iter();
    parts.map(move |(index, said)| (attached_id(answers, index), said))
}

fn attached_id(answers: &ItemId, index: usize) -> ItemId {
    format!("{answers}:{index}").into()
}

/// The messages attached to answers, each with its index among the parts.
pub(crate) fn attached_messages(content: Option<&Payload>) -> Vec<(usize, AttachedMessage)> {
    let parts: Vec<Payload> = content
        .and_then(|content| content.read().ok())
        .unwrap_or_default();
    let parts = parts
        .iter()
        .enumerate()
        .filter(|(_, part)| is_attached_message(part));
    parts
        .filter_map(|(index, part)| Some((index, read_attached_message(part, "").ok()?)))
        .collect()
}

/// Makes a message into a part attached to answers, with the role, content and metadata of `item`.
pub fn attached_message(item: &NewItem) -> Payload {
    let mut part = serde_json::json!({
        "type": ATTACHED_MESSAGE, "role": item.role.unwrap_or(Role::User),
        "content": item.content.as_ref().map(Payload::value),
    });
    if let Some(metadata) = &item.metadata {
        part["metadata"] = metadata.value();
    }
    part.into()
}

/// A part with a message that is attached to answers.
#[derive(Deserialize)]
pub(crate) struct AttachedMessage {
    role: Role,
    content: Payload,
    metadata: Option<Payload>,
}

fn is_attached_message(part: &Payload) -> bool {
    part.str_field("type").as_deref() == Some(ATTACHED_MESSAGE)
}

fn read_attached_message(part: &Payload, pointer: &str) -> Result<AttachedMessage, ContentError> {
    let malformed = |field, expected| ContentError::Reinterpreted {
        pointer: pointer.to_owned(),
        kind: ATTACHED_MESSAGE.to_owned(),
        field,
        expected,
    };
    let said: AttachedMessage = part
        .read()
        .map_err(|_| malformed("role", "a role, and \"content\" beside it"))?;
    check_content(&said.content).map_err(|_| malformed("content", "a list of parts"))?;
    Ok(said)
}

fn wrong(pointer: &str, field: &'static str, expected: &'static str) -> ContentError {
    ContentError::Reinterpreted {
        pointer: pointer.to_owned(),
        kind: ANSWER.to_owned(),
        field,
        expected,
    }
}

fn read(part: &Payload, pointer: &str) -> Result<Answer, ContentError> {
    let fields: BTreeMap<String, Payload> = part.read().map_err(|_| ContentError::NotAPart {
        pointer: pointer.to_owned(),
    })?;
    let text = |field: &'static str| match fields.get(field).map(Payload::read::<String>) {
        None => Ok(None),
        Some(Ok(text)) => Ok(Some(text)),
        Some(Err(_)) => Err(wrong(pointer, field, "a string")),
    };
    if text("type")?.as_deref() != Some(ANSWER) {
        return Err(wrong(pointer, "type", "\"loomline-answer\""));
    }
    let tool_call_id = text("toolCallId")?;
    let tool_call_id = tool_call_id.ok_or_else(|| wrong(pointer, "toolCallId", "a string"))?;
    let approved = match fields.get("approved").map(Payload::read::<bool>) {
        None => None,
        Some(Ok(approved)) => Some(approved),
        Some(Err(_)) => return Err(wrong(pointer, "approved", "true or false")),
    };
    let arguments = fields.get("arguments").cloned();
    if arguments.as_ref().is_some_and(|it| !it.value().is_object()) {
        return Err(wrong(pointer, "arguments", "an object"));
    }
    let message = text("message")?;
    let error = text("errorText")?;
    let resumed = match fields.get("resumed").map(Payload::read::<bool>) {
        None => false,
        Some(Ok(true)) => true,
        Some(Ok(false) | Err(_)) => return Err(wrong(pointer, "resumed", "true")),
    };
    if resumed {
        let alone = fields.len() == 3;
        return if alone {
            let says = AnswerContent::Resumed;
            Ok(Answer {
                tool_call_id,
                content: says,
            })
        } else {
            Err(wrong(pointer, "resumed", "nothing else beside it"))
        };
    }
    let says = match (approved, fields.get("output"), error) {
        (Some(true), None, None) if message.is_none() => AnswerContent::Approved { arguments },
        (Some(false), None, None) if arguments.is_none() => AnswerContent::Denied { message },
        (None, Some(output), None) => AnswerContent::Output(output.clone()),
        (None, None, Some(error)) => AnswerContent::Failure(error),
        (Some(true), None, None) => {
            return Err(wrong(pointer, "message", "\"approved\": false beside it"));
        }
        (Some(false), None, None) => {
            return Err(wrong(pointer, "arguments", "\"approved\": true beside it"));
        }
        _ => {
            let expected = "one of \"approved\", \"output\" and \"errorText\"";
            return Err(wrong(pointer, "approved", expected));
        }
    };
    Ok(Answer {
        tool_call_id,
        content: says,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_answer_says_one_thing_of_one_call() {
        let says = |fields: serde_json::Value| {
            let mut part = json!({"type": ANSWER, "toolCallId": "c"});
            for (key, value) in fields.as_object().unwrap() {
                part[key] = value.clone();
            }
            Answer::read(Some(&json!([part]).into())).map(|mut answers| answers.remove(0).content)
        };
        assert_eq!(
            says(json!({"approved": true})),
            Ok(AnswerContent::Approved { arguments: None })
        );
        assert_eq!(
            says(json!({"approved": false, "message": "no"})),
            Ok(AnswerContent::Denied {
                message: Some("no".into())
            })
        );
        assert_eq!(says(json!({"resumed": true})), Ok(AnswerContent::Resumed));
        // A result may be null.
        assert_eq!(
            says(json!({"output": null})),
            Ok(AnswerContent::Output(json!(null).into()))
        );
        assert_eq!(
            says(json!({"errorText": "off"})),
            Ok(AnswerContent::Failure("off".into()))
        );
        for wrong in [
            json!({}),
            json!({"approved": "yes"}),
            json!({"approved": true, "output": 1}),
            json!({"resumed": true, "output": 1}),
            json!({"resumed": false}),
            json!({"output": 1, "errorText": "x"}),
            json!({"approved": true, "arguments": [1]}),
            json!({"approved": false, "arguments": {}}),
            json!({"approved": true, "message": "x"}),
            json!({"toolCallId": 7, "approved": true}),
            json!({"type": "app-x", "approved": true}),
        ] {
            assert!(says(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_call_is_answered_once_in_an_item() {
        let part = json!({"type": ANSWER, "toolCallId": "c", "approved": true});
        assert!(Answer::read(Some(&json!([part, part]).into())).is_err());
        assert!(Answer::read(Some(&json!([]).into())).is_err());
        assert!(Answer::read(Some(&json!("yes").into())).is_err());
        assert!(Answer::read(None).is_err());
    }
}
