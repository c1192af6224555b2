//! Posted messages, as objects of the API.

use super::content;
use super::ids::message_id;
use super::metadata::{ACTOR, Carrier, Metadata, own};
use super::object::{Attachment, MessageObject, MessageStatus};
use crate::ids::THREAD;
use crate::{Converted, Losses};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, VecDeque};
use timeline::{Item, ItemType, Payload, Role};

/// The message in a stored item; `None` if the item is not a message of a user or an agent. The item
/// of a reaction is not one either, because its steps are the messages.
pub fn message_of_item(thread_id: &str, item: &Item) -> Option<Converted<MessageObject>> {
    if item.item_type != ItemType::Message || item.execution_id.is_some() {
        return None;
    }
    let role = match item.role {
        Some(Role::User) | None => "user",
        Some(Role::Assistant) => "assistant",
        Some(Role::System | Role::Developer) => return None,
    };
    let mut losses = Losses::default();
    let kept = own(item.metadata.as_ref());
    let (content, attachments) = split(item.content.as_ref(), &kept, &mut losses);
    let metadata: Option<Payload> = kept.get("metadata").map(|kept| kept.clone().into());
    let mut metadata = Metadata::view(metadata.as_ref(), Carrier::Message, "", &mut losses);
    let actor = item.metadata.as_ref().and_then(|it| it.str_field(ACTOR));
    metadata
        .0
        .extend(actor.map(|actor| (ACTOR.to_owned(), actor.into())));
    let at = item.created_at.as_second();
    Some(losses.with(MessageObject {
        id: message_id(item.id.as_str()),
        object: "thread.message",
        created_at: at,
        thread_id: THREAD.write(thread_id),
        status: MessageStatus::Completed,
        incomplete_details: None,
        completed_at: Some(at),
        incomplete_at: None,
        role,
        content,
        assistant_id: None,
        run_id: None,
        attachments,
        metadata,
    }))
}

/// The parts that are shown as content, and those that are files of the message.
fn split(
    content: Option<&Payload>,
    kept: &Map<String, Value>,
    losses: &mut Losses,
) -> (Vec<content::Content>, Vec<Attachment>) {
    let mut tools = tools_of(kept);
    let parts: Vec<Payload> = content
        .and_then(|content| content.read().ok())
        .unwrap_or_default();
    let (mut shown, mut attachments) = (Vec::new(), Vec::new());
    for (place, part) in parts.iter().enumerate() {
        let is_file = part.str_field("type").as_deref() == Some("input_file");
        match part.str_field("file_id").filter(|_| is_file) {
            Some(file_id) => attachments.push(Attachment {
                tools: tools
                    .get_mut(&file_id)
                    .and_then(VecDeque::pop_front)
                    .unwrap_or_default(),
                file_id,
            }),
            None => shown.extend(content::content_view(
                part,
                &format!("/content/{place}"),
                losses,
            )),
        }
    }
    (shown, attachments)
}

/// Which tools each file was meant for, each time that it was attached.
fn tools_of(kept: &Map<String, Value>) -> BTreeMap<String, VecDeque<Vec<Value>>> {
    let mut tools: BTreeMap<String, VecDeque<Vec<Value>>> = BTreeMap::new();
    let list = kept.get("attachments").and_then(Value::as_array);
    for file in list.into_iter().flatten() {
        if let Some(id) = file.get("file_id").and_then(Value::as_str) {
            let of_file = file.get("tools").and_then(Value::as_array);
            let all = tools.entry(id.to_owned()).or_default();
            all.push_back(of_file.cloned().unwrap_or_default());
        }
    }
    tools
}
