//! A thread as the messages that a client shows when it loads.

mod chains;

pub use chains::continues_message;

use super::chunk::Major;
use super::reduce::Reducer;
use super::stream::{MessageSoFar, StreamView};
use crate::document::{data_url, read_object};
use crate::parts::{EventPart, OUTPUT_FILE, PROMPT, StepResponse, ThreadEvent};
use crate::revision::message_id;
use crate::run::{RunEvent, RunMetadata, RunSelector, replay};
use crate::{Converted, Losses};
use chains::Chains;
use serde_json::{Map, Value, json};
use thread::Json;
use timeline::{
    Answer, Entry, ExecutionId, ExecutionStatus, Item, ItemId, ItemType, MessagePartKind, Payload,
    Reaction, Role, StepRecord, Transcript, messages_with_answers, part_kind,
};

/// The member of an item's metadata that is the metadata of the client's message.
pub(super) const METADATA: &str = "ai_sdk";

/// The newest major version of the client, whose messages are built.
const NEWEST: u8 = 7;

/// The messages of a thread, as a client has them that read every stream.
///
/// The running execution is left out, because clients resume its stream from the start. An answer that
/// was cut off has its text if the transcript was read with chunks. A changed message has the id that
/// it was first posted under.
pub fn to_ui_messages(transcript: &Transcript) -> Converted<Vec<Value>> {
    let shown = shown_messages(transcript, false);
    let messages = shown.value.into_iter().map(|shown| shown.message);
    Converted {
        value: messages.collect(),
        losses: shown.losses,
    }
}

/// A message, and the executions that have written it.
pub(super) struct MessageView<'a> {
    pub(super) message: Value,
    pub(super) chain: Vec<&'a Reaction>,
}

/// The messages of a thread. With `with_running`, also the written part of the answer that is in
/// progress.
pub(super) fn shown_messages(
    transcript: &Transcript,
    with_running: bool,
) -> Converted<Vec<MessageView<'_>>> {
    let mut messages = Vec::new();
    let mut losses = Losses::default();
    let chains = Chains::of(transcript, with_running);
    let said = |message: Value| MessageView {
        message,
        chain: Vec::new(),
    };
    for (place, entry) in transcript.entries.iter().enumerate() {
        let at = format!("/entries/{place}");
        match entry {
            Entry::Item(item) => {
                messages.extend(item_message(item, &at, &mut losses).map(said));
                for item in messages_with_answers(item) {
                    messages.extend(item_message(&item, &at, &mut losses).map(said));
                }
            }
            Entry::Reaction(reaction) => {
                if reaction.execution.status == ExecutionStatus::Executing && !with_running {
                    continue;
                }
                let parts = reaction.steps.iter().flat_map(|step| &step.parts);
                for _ in parts.filter(|part| is_foreign(&part.part)) {
                    losses.push(at.as_str(), "a part that no client can show");
                }
                if chains.continues_at(place) {
                    continue;
                }
                let chain = chains.up_to(place);
                if chain.iter().all(|reaction| reaction.steps.is_empty()) {
                    // All that it said is removed.
                    continue;
                }
                match answered(&chain) {
                    Some(message) => messages.push(MessageView { message, chain }),
                    None => losses.push(at, "chunks that make no message"),
                }
            }
        }
    }
    losses.with(messages)
}

fn item_message(item: &Item, at: &str, losses: &mut Losses) -> Option<Value> {
    match (item.item_type, item.role) {
        (ItemType::Message, Some(Role::User) | None) => Some(message_of(item, "user", at, losses)),
        (ItemType::Message, Some(Role::Assistant)) => {
            Some(message_of(item, "assistant", at, losses))
        }
        (ItemType::Message, Some(Role::System | Role::Developer)) => {
            losses.push(at, "a system message");
            None
        }
        (ItemType::ActionResult, _) if Answer::read(item.content.as_ref()).is_ok() => None,
        (ItemType::ActionExecute | ItemType::ActionResult, _) => {
            losses.push(at, "an action");
            None
        }
        (ItemType::ItemReference, _) => happened(item),
    }
}

/// An event of the thread, as a message with the one part that it is.
fn happened(item: &Item) -> Option<Value> {
    let event = ThreadEvent::of_item(item)?;
    let part = json!({"type": event.part_type, "id": event.id, "data": event.data.value()});
    Some(json!({"id": item.id.as_str(), "role": "system", "parts": [part]}))
}

fn message_of(item: &Item, role: &str, at: &str, losses: &mut Losses) -> Value {
    let content = item.content.as_ref().map(Payload::value);
    let parts = match content {
        Some(Value::Array(parts)) => parts,
        Some(
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_),
        )
        | None => Vec::new(),
    };
    let shown: Vec<Value> = parts
        .iter()
        .filter_map(|part| {
            let shown = part_view(part);
            if shown.is_none() {
                losses.push(at, "a part that no client can show");
            }
            shown
        })
        .collect();
    let mut message = Map::new();
    message.insert("id".to_owned(), message_id(item.id.as_str()).into());
    let metadata = read_object(item.metadata.as_ref());
    if let Some(metadata) = metadata
        .get(METADATA)
        .and_then(|metadata| metadata.to_value().ok())
    {
        message.insert("metadata".to_owned(), metadata);
    }
    message.insert("role".to_owned(), role.into());
    message.insert("parts".to_owned(), Value::Array(shown));
    Value::Object(message)
}

/// A part of a user's message, if a client can show it.
fn part_view(part: &Value) -> Option<Value> {
    let text = |key: &str| part.get(key).and_then(Value::as_str);
    let file = |url: &str, otherwise: &str| {
        let found = data_url(url).map(|(media_type, _)| media_type);
        let media_type = text("media_type").or(found).unwrap_or(otherwise);
        let mut file = json!({"type": "file", "mediaType": media_type, "url": url});
        if let (Value::Object(file), Some(name)) = (&mut file, text("filename")) {
            file.insert("filename".to_owned(), name.into());
        }
        file
    };
    match part_kind(text("type")?)? {
        MessagePartKind::InputText | MessagePartKind::OutputText => {
            Some(json!({"type": "text", "text": text("text")?}))
        }
        MessagePartKind::Refusal => Some(json!({"type": "text", "text": text("refusal")?})),
        MessagePartKind::Reasoning => Some(json!({"type": "reasoning", "text": text("text")?})),
        MessagePartKind::InputImage => Some(file(text("image_url")?, "image/*")),
        MessagePartKind::InputFile => {
            let data = text("file_data").map(|data| {
                let media_type = text("media_type").unwrap_or("application/octet-stream");
                let plain = || format!("data:{media_type};base64,{data}");
                data_url(data).map_or_else(plain, |_| data.to_owned())
            });
            let url = data.or_else(|| text("file_url").map(str::to_owned))?;
            Some(file(&url, "application/octet-stream"))
        }
        MessagePartKind::Extension(name) if name.starts_with("data-") => Some(part.clone()),
        MessagePartKind::Tool(_) | MessagePartKind::Extension(_) => None,
    }
}

/// Whether a part of an answer has no chunks.
fn is_foreign(part: &Payload) -> bool {
    if EventPart::read(part).is_some() {
        return false;
    }
    let name = part.str_field("type");
    let kind = name.as_deref().and_then(part_kind);
    matches!(kind, Some(MessagePartKind::Extension(name)) if name != OUTPUT_FILE && name != PROMPT)
}

/// The id of the item that an execution responds to. The execution is identified by the item that it
/// writes. If its trigger is an item reference, this is the referenced item.
pub fn answered_item(transcript: &Transcript, reaction: &ItemId) -> Option<ItemId> {
    let mut trigger = None;
    for entry in transcript.entries.iter().rev() {
        match entry {
            Entry::Reaction(it) if it.execution.reaction_item_id == *reaction => {
                trigger = Some(&it.execution.trigger_item_id);
            }
            Entry::Item(item) if trigger == Some(&item.id) => {
                let points = item.item_type == ItemType::ItemReference;
                let to = item.content.as_ref().filter(|_| points);
                let to = to.and_then(|content| content.str_field("itemId"));
                return Some(to.map_or_else(|| item.id.clone(), |to| to.as_str().into()));
            }
            Entry::Item(_) | Entry::Reaction(_) => {}
        }
    }
    None
}

/// The id and metadata of the message that this execution continues, as the earlier executions wrote
/// it. `with_it` includes the execution itself. `None` if nothing of the message is written.
pub fn message_so_far(
    transcript: &Transcript,
    execution: &ExecutionId,
    with_it: bool,
) -> Option<MessageSoFar> {
    let place = transcript.entries.iter().position(
        |entry| matches!(entry, Entry::Reaction(reaction) if reaction.execution.id == *execution),
    )?;
    let mut chain = Chains::of(transcript, false).up_to(place);
    if !with_it {
        chain.pop();
    }
    let first = chain.first()?;
    let mut metadata = RunMetadata::default();
    for reaction in &chain {
        metadata.execution(&reaction.execution);
        let responses = reaction.steps.iter().filter_map(response);
        responses.for_each(|response| metadata.response(&response));
    }
    let id = first.execution.reaction_item_id.to_string();
    Some(MessageSoFar { id, metadata })
}

pub(super) fn response(step: &StepRecord) -> Option<StepResponse> {
    let (said, _) = step.response.as_ref()?;
    said.read().ok()
}

/// The message of these executions, as a client has it that read all their streams.
fn answered(chain: &[&Reaction]) -> Option<Value> {
    let last = chain.last()?;
    let mut view = StreamView::new(NEWEST, RunSelector::running(None));
    for (at, event) in replay(chain.iter().copied(), true) {
        // The end of the stream is no part of the message.
        if !matches!(event, RunEvent::ExecutionEnded { .. }) {
            view.event_at(event, at);
        }
    }
    let execution = &last.execution;
    if let Some(at) = last.ended_at {
        view.close(execution.status, execution.interruption.as_ref(), at);
    }
    let mut reducer = Reducer::new(Major::NEWEST, None);
    for chunk in view.take() {
        reducer.push(&Json::from(chunk)).ok()?;
    }
    reducer.finish().message?.to_value().ok()
}
