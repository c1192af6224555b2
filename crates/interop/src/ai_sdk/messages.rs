//! A thread as the messages that a client shows when it loads.

use super::chunk::Major;
use super::reduce::Reducer;
use super::stream::StreamView;
use crate::document::{data_url, read_object};
use crate::parts::{EventPart, OUTPUT_FILE, PROMPT, StepResponse};
use crate::{Converted, Losses};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use thread::Json;
use timeline::{
    Answer, Entry, ExecutionId, ExecutionStatus, Item, ItemId, ItemType, PartKind, Payload,
    Reaction, Role, StepStatus, Transcript, part_kind, said_beside,
};

/// The member of an item's metadata that is the metadata of the client's message.
pub(super) const METADATA: &str = "ai_sdk";

/// The newest major version of the client, whose messages are built.
const NEWEST: u8 = 7;

/// The messages of a thread, as a client has them that saw every stream.
///
/// The execution that runs is not among them: its stream is resumed from the start. The text of an
/// answer that was cut off is there if the transcript was read with its chunks.
pub fn to_ui_messages(transcript: &Transcript) -> Converted<Vec<Value>> {
    let mut messages = Vec::new();
    let mut losses = Losses::default();
    let chains = Chains::of(transcript);
    for (place, entry) in transcript.entries.iter().enumerate() {
        let at = format!("/entries/{place}");
        match entry {
            Entry::Item(item) => {
                messages.extend(item_message(item, &at, &mut losses));
                for item in said_beside(item) {
                    messages.extend(item_message(&item, &at, &mut losses));
                }
            }
            Entry::Reaction(reaction) => {
                if reaction.execution.status == ExecutionStatus::Executing {
                    continue;
                }
                let parts = reaction.steps.iter().flat_map(|step| &step.parts);
                for _ in parts.filter(|part| is_foreign(&part.part)) {
                    losses.push(at.as_str(), "a part that no client can show");
                }
                if chains.goes_on(place) {
                    continue;
                }
                let chain = chains.up_to(place);
                if chain.iter().all(|reaction| reaction.steps.is_empty()) {
                    // All that it said is removed.
                    continue;
                }
                match answered(&chain) {
                    Some(message) => messages.push(message),
                    None => losses.push(at, "chunks that make no message"),
                }
            }
        }
    }
    losses.with(messages)
}

fn item_message(item: &Item, at: &str, losses: &mut Losses) -> Option<Value> {
    match (item.item_type, item.role) {
        (ItemType::Message, Some(Role::User) | None) => Some(said(item, "user", at, losses)),
        (ItemType::Message, Some(Role::Assistant)) => Some(said(item, "assistant", at, losses)),
        (ItemType::Message, Some(Role::System | Role::Developer)) => {
            losses.push(at, "a system message");
            None
        }
        (ItemType::ActionResult, _) if Answer::read(item.content.as_ref()).is_ok() => None,
        (ItemType::ActionExecute | ItemType::ActionResult, _) => {
            losses.push(at, "an action");
            None
        }
        (ItemType::ItemReference, _) => None,
    }
}

fn said(item: &Item, role: &str, at: &str, losses: &mut Losses) -> Value {
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
            let shown = shown(part);
            if shown.is_none() {
                losses.push(at, "a part that no client can show");
            }
            shown
        })
        .collect();
    let mut message = Map::new();
    message.insert("id".to_owned(), item.id.as_str().into());
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
fn shown(part: &Value) -> Option<Value> {
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
        PartKind::InputText | PartKind::OutputText => {
            Some(json!({"type": "text", "text": text("text")?}))
        }
        PartKind::Refusal => Some(json!({"type": "text", "text": text("refusal")?})),
        PartKind::Reasoning => Some(json!({"type": "reasoning", "text": text("text")?})),
        PartKind::InputImage => Some(file(text("image_url")?, "image/*")),
        PartKind::InputFile => {
            let data = text("file_data").map(|data| {
                let media_type = text("media_type").unwrap_or("application/octet-stream");
                let plain = || format!("data:{media_type};base64,{data}");
                data_url(data).map_or_else(plain, |_| data.to_owned())
            });
            let url = data.or_else(|| text("file_url").map(str::to_owned))?;
            Some(file(&url, "application/octet-stream"))
        }
        PartKind::Extension(name) if name.starts_with("data-") => Some(part.clone()),
        PartKind::Tool(_) | PartKind::Extension(_) => None,
    }
}

/// Whether a part of an answer has no chunks.
fn is_foreign(part: &Payload) -> bool {
    if EventPart::read(part).is_some() {
        return false;
    }
    let name = part.str_field("type");
    let kind = name.as_deref().and_then(part_kind);
    matches!(kind, Some(PartKind::Extension(name)) if name != OUTPUT_FILE && name != PROMPT)
}

/// The id of the message in which a client sees what this execution says: its own, or the one of
/// the execution whose calls it answers or that has handed over to it.
pub fn message_of(transcript: &Transcript, execution: &ExecutionId) -> Option<String> {
    let place = transcript.entries.iter().position(
        |entry| matches!(entry, Entry::Reaction(reaction) if reaction.execution.id == *execution),
    )?;
    let chain = Chains::of(transcript).up_to(place);
    let first = chain.first()?;
    Some(first.execution.reaction_item_id.to_string())
}

/// Executions that answer calls or were handed over to, each with the one it goes on with.
struct Chains<'a> {
    transcript: &'a Transcript,
    /// The place of each execution, and of the one that it goes on with.
    before: BTreeMap<usize, usize>,
    /// The places of those that another one that is over goes on with.
    followed: BTreeSet<usize>,
}

impl<'a> Chains<'a> {
    fn of(transcript: &'a Transcript) -> Self {
        let mut before = BTreeMap::new();
        let mut followed = BTreeSet::new();
        let mut answers: BTreeSet<&ItemId> = BTreeSet::new();
        let mut last = None;
        for (place, entry) in transcript.entries.iter().enumerate() {
            match entry {
                Entry::Item(item)
                    if matches!(
                        item.item_type,
                        ItemType::ActionResult | ItemType::ItemReference
                    ) =>
                {
                    answers.insert(&item.id);
                }
                // What was said between is answered by a message of its own.
                Entry::Item(item) if item.run.is_none() => last = None,
                Entry::Item(_) => {}
                Entry::Reaction(reaction) => {
                    if answers.contains(&reaction.execution.trigger_item_id)
                        && let Some(last) = last
                    {
                        before.insert(place, last);
                        if reaction.execution.status != ExecutionStatus::Executing {
                            followed.insert(last);
                        }
                    }
                    last = Some(place);
                }
            }
        }
        Self {
            transcript,
            before,
            followed,
        }
    }

    /// Whether the message of this execution goes on in another one that is over.
    fn goes_on(&self, place: usize) -> bool {
        self.followed.contains(&place)
    }

    /// The executions of one message, up to the one at this place.
    fn up_to(&self, place: usize) -> Vec<&'a Reaction> {
        let mut places = vec![place];
        while let Some(before) = places.last().and_then(|place| self.before.get(place)) {
            places.push(*before);
        }
        let entries = places.iter().rev().filter_map(|place| {
            let entry = self.transcript.entries.get(*place)?;
            match entry {
                Entry::Reaction(reaction) => Some(reaction),
                Entry::Item(_) => None,
            }
        });
        entries.collect()
    }
}

/// What a client that saw the whole streams of these executions, which make one message, has.
fn answered(chain: &[&Reaction]) -> Option<Value> {
    let first = chain.first()?;
    let mut view = StreamView::new(NEWEST);
    view.started(first.execution.reaction_item_id.as_str());
    for step in chain.iter().flat_map(|reaction| &reaction.steps) {
        let response = step.response.as_ref();
        let said = response.and_then(|(said, _)| said.read::<StepResponse>().ok());
        if said.is_some_and(|said| said.answers) {
            view.goes_on();
        }
        view.step_started(&step.step.id, step.step.iteration);
        if step.response.is_none() {
            for (kind, data) in &step.chunks {
                view.emitted(kind, data.as_ref());
            }
        }
        for (idx, part) in (0..).zip(&step.parts) {
            view.part_created(idx, &part.part);
        }
        if step.step.status == StepStatus::Completed {
            view.step_completed();
        }
    }
    let mut reducer = Reducer::new(Major::NEWEST, None);
    for chunk in view.take() {
        reducer.push(&Json::from(chunk)).ok()?;
    }
    reducer.finish().message?.to_value().ok()
}
