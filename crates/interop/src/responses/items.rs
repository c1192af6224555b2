//! Lists of items: the input of a response, and the items of a conversation.

use super::content::{citation, shown_input, shown_output};
use super::echo::{Echo, VIEW};
use super::extension;
use super::include::ListOptions;
use super::item::APPROVAL_RESPONSE;
use super::output::{Output, Sealed, Shows, child};
use super::removed::{is_removed, left_over};
use super::resource::{reaction_of, replay};
use super::sealed::{seal_reasoning, seal_summary};
use super::wire::Wire;
use crate::ids::{COMPACTION, FUNCTION_CALL, FUNCTION_OUTPUT, IdForm, MESSAGE, REASONING};
use crate::json_text::quoted;
use crate::page::Named;
use crate::parts::{ReasoningPart, StepResponse};
use crate::{Converted, Losses};
use serde_json::{Map, Value, json};
use timeline::{
    Answer, AnswerContent, Entry, ExecutionId, Item, ItemId, ItemType, Payload, Reaction, Role,
    Transcript, messages_with_answers,
};

/// An item in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedItem {
    /// The item's id, in the protocol's spelling.
    pub id: String,
    /// The item as JSON text.
    pub json: String,
}

impl Named for ListedItem {
    fn id(&self) -> &str {
        &self.id
    }
}

/// All items of a conversation, the oldest first: the messages to the agents, and the agents'
/// messages and calls.
pub fn conversation_items(
    transcript: &Transcript,
    options: ListOptions,
) -> Converted<Vec<ListedItem>> {
    let mut list = List {
        options,
        ..List::default()
    };
    for (place, entry) in transcript.entries.iter().enumerate() {
        list.entry(transcript, place, entry);
    }
    list.losses.with(list.items)
}

/// The items of a conversation from either end, read entry by entry: for pages ([`super::ListPage`]).
pub fn walk_items(
    transcript: &Transcript,
    options: ListOptions,
) -> impl DoubleEndedIterator<Item = ListedItem> {
    let entries = transcript.entries.iter().enumerate();
    entries.flat_map(move |(place, entry)| {
        let mut list = List {
            options,
            ..List::default()
        };
        list.entry(transcript, place, entry);
        list.items
    })
}

/// The items that a response answers: those since the response before it, and the history that came
/// with its request. `None` if there is no such response.
pub fn input_items(
    transcript: &Transcript,
    execution: &ExecutionId,
    options: ListOptions,
) -> Option<Converted<Vec<ListedItem>>> {
    let (end, _) = reaction_of(transcript, execution)?;
    let before = transcript.entries.get(..end).unwrap_or_default();
    let (list, _) = since_response(transcript, before, options);
    Some(list.losses.with(list.items))
}

/// The items in this part of a transcript that the response after it answers: those since the
/// previous response. The flag says whether there may be more of them before this part.
pub fn list_before(transcript: &Transcript, options: ListOptions) -> (Vec<ListedItem>, bool) {
    let (list, goes_on) = since_response(transcript, &transcript.entries, options);
    (list.items, goes_on)
}

/// The items of these entries since the last response among them, and whether there is no response.
fn since_response(
    transcript: &Transcript,
    entries: &[Entry],
    options: ListOptions,
) -> (List, bool) {
    let former = entries.iter().rposition(|entry| match entry {
        Entry::Reaction(reaction) => !is_imported(reaction),
        Entry::Item(_) => false,
    });
    let mut list = List {
        options,
        ..List::default()
    };
    let start = former.map_or(0, |place| place + 1);
    for (place, entry) in entries.iter().enumerate().skip(start) {
        list.entry(transcript, place, entry);
    }
    (list, former.is_none())
}

/// Whether an item is only a pointer that starts a run: the run after it, or a run that it waits
/// for.
fn begins(item: &Item, next: Option<&Entry>) -> bool {
    let is_answered = match next {
        Some(Entry::Reaction(reaction)) => reaction.execution.trigger_item_id == item.id,
        Some(Entry::Item(_)) | None => false,
    };
    item.item_type == ItemType::ItemReference && (is_answered || item.run.is_some())
}

/// Whether an execution is of a past that a request has brought.
pub(super) fn is_imported(reaction: &Reaction) -> bool {
    let said = reaction
        .steps
        .iter()
        .filter_map(|step| step.response.as_ref());
    let mut said = said.filter_map(|(said, _)| said.read::<StepResponse>().ok());
    said.any(|said| {
        let about = said.metadata.as_ref().map(Payload::value);
        about.is_some_and(|about| about[VIEW]["imported"] == true)
    })
}

/// The item of this id in its listed form; `None` if the conversation has none.
pub fn conversation_item(
    transcript: &Transcript,
    id: &str,
    options: ListOptions,
) -> Option<ListedItem> {
    walk_items(transcript, options).rfind(|item| item.id == id)
}

/// The list entries of an item that was just stored.
pub(super) fn listed(item: &Item) -> Vec<ListedItem> {
    let mut list = List::default();
    list.item(item, "");
    list.items
}

#[derive(Default)]
pub(super) struct List {
    options: ListOptions,
    pub(super) items: Vec<ListedItem>,
    losses: Losses,
}

impl List {
    fn push(&mut self, id: String, mut item: Value) {
        item["id"] = id.as_str().into();
        item["status"] = "completed".into();
        let json = item.to_string();
        self.items.push(ListedItem { id, json });
    }

    pub(super) fn entry(&mut self, transcript: &Transcript, place: usize, entry: &Entry) {
        let at = format!("/entries/{place}");
        match entry {
            Entry::Item(item) if is_removed(transcript, item) => {}
            // It only begins a run, and says nothing.
            Entry::Item(item) if begins(item, transcript.entries.get(place + 1)) => {}
            Entry::Item(item) => self.item(item, &at),
            Entry::Reaction(reaction) => {
                let reaction = &*left_over(transcript, reaction);
                let shows = Shows {
                    summary: Echo::of(&reaction.execution).summary,
                    sealed: Sealed::own(self.options.encrypted_reasoning),
                    extensions: self.options.extensions,
                };
                let mut output = Output::new(Wire::muted());
                replay(&mut output, transcript, place, reaction, shows);
                let done = output.done().iter();
                self.items.extend(done.map(|done| ListedItem {
                    id: done.id.clone(),
                    json: done.json.clone(),
                }));
                for loss in output.losses() {
                    self.losses.push(format!("{at}{}", loss.pointer), loss.what);
                }
            }
        }
    }

    fn item(&mut self, item: &Item, at: &str) {
        match item.item_type {
            ItemType::ItemReference => self.reference(item, at),
            ItemType::ActionResult if self.answers(item, at) => {
                for message in messages_with_answers(item) {
                    self.message(&message, Some(&item.id), at);
                }
            }
            ItemType::ActionExecute | ItemType::ActionResult => self.action(item, at),
            ItemType::Message => self.message(item, None, at),
        }
    }

    /// Adds a pointer to another item, for clients that accept items beyond the specification: the
    /// specification allows item references only in requests.
    fn reference(&mut self, item: &Item, at: &str) {
        let content = item
            .content
            .as_ref()
            .map(Payload::value)
            .unwrap_or_default();
        let target = content["itemId"].as_str();
        if let Some(target) = target.filter(|_| self.options.extensions) {
            self.items.push(ListedItem {
                id: MESSAGE.write(item.id.as_str()),
                json: json!({"type": "item_reference", "id": MESSAGE.write(target)}).to_string(),
            });
        } else {
            let what = "an item that points to another or tells of the thread";
            self.losses.push(at, what);
        }
    }

    /// Adds answers to pending calls.
    fn answers(&mut self, item: &Item, at: &str) -> bool {
        let Ok(answers) = Answer::read(item.content.as_ref()) else {
            return false;
        };
        for (place, answer) in answers.into_iter().enumerate() {
            let call = answer.tool_call_id;
            let output = match answer.content {
                AnswerContent::Output(output) => shown_output(&output.value()),
                AnswerContent::Failure(text) => text.into(),
                // Nobody has said it: the call runs again, and its result comes later.
                AnswerContent::Resumed => continue,
                AnswerContent::Approved { .. } => {
                    self.approval(item, place, &call, None, at);
                    continue;
                }
                AnswerContent::Denied { message } => {
                    self.approval(item, place, &call, Some(message), at);
                    continue;
                }
            };
            let id = child(FUNCTION_OUTPUT, item.id.as_str(), place);
            self.push(
                id,
                json!({"type": "function_call_output", "call_id": call, "output": output}),
            );
        }
        true
    }

    /// Adds an approval answer. `denied` is `Some` for a denial, with its reason if there is one.
    #[expect(clippy::option_option, reason = "a denial need not have a reason")]
    fn approval(
        &mut self,
        item: &Item,
        place: usize,
        call: &str,
        denied: Option<Option<String>>,
        at: &str,
    ) {
        if !self.options.extensions {
            self.losses.push(at, "an answer to a question");
            return;
        }
        let mut said =
            json!({"type": APPROVAL_RESPONSE, "call_id": call, "approve": denied.is_none()});
        if let Some(reason) = denied.flatten() {
            said["reason"] = reason.into();
        }
        self.push(child(FUNCTION_OUTPUT, item.id.as_str(), place), said);
    }

    /// Adds a call or a result that a client stored without a run ([`super::NewItems`]).
    fn action(&mut self, item: &Item, at: &str) {
        let (form, kind) = if item.item_type == ItemType::ActionExecute {
            (FUNCTION_CALL, "function_call")
        } else {
            (FUNCTION_OUTPUT, "function_call_output")
        };
        match item.content.as_ref().map(Payload::value) {
            Some(Value::Object(mut content)) => {
                content.shift_insert(0, "type".to_owned(), kind.into());
                if let Some(output) = content.get_mut("output") {
                    *output = shown_output(output);
                }
                self.push(form.write(item.id.as_str()), content.into());
            }
            Some(_) | None => self
                .losses
                .push(at, "an action that belongs to no execution"),
        }
    }

    /// Adds a message. `beside` is the id of the item of answers to which the message is attached.
    fn message(&mut self, item: &Item, beside: Option<&ItemId>, at: &str) {
        let own = |form: IdForm, n: usize| {
            let id = item.id.as_str();
            match (beside, n) {
                (None, 0) => form.write(id),
                (None, n) => child(form, id, n),
                (Some(answers), n) => {
                    let place = id.rsplit(':').next().unwrap_or_default();
                    let nth = if n == 0 {
                        String::new()
                    } else {
                        format!("-{n}")
                    };
                    child(form, answers.as_str(), format_args!("{place}{nth}"))
                }
            }
        };
        let about = item.metadata.as_ref().map(Payload::value);
        let about = about.as_ref().map(|about| &about[VIEW]);
        let parts = match item.content.as_ref().map(Payload::value) {
            Some(Value::Array(parts)) => parts,
            Some(_) | None => Vec::new(),
        };
        if about.is_some_and(|about| about["compaction"] == true) {
            let summary: String = parts
                .iter()
                .filter_map(|part| part["text"].as_str())
                .collect();
            let id = own(COMPACTION, 0);
            let sealed = quoted(&seal_summary(&summary));
            let json = format!(
                r#"{{"type":"compaction","id":{},"encrypted_content":{sealed}}}"#,
                quoted(&id)
            );
            self.items.push(ListedItem { id, json });
            return;
        }
        let role = item.role.unwrap_or(Role::User);
        let mut shown = Vec::new();
        let mut n_items = 0;
        for part in parts {
            if part["type"] == "reasoning" {
                self.reasoning(own(REASONING, n_items), &part);
                n_items += 1;
                continue;
            }
            let one = if role == Role::Assistant {
                shown_spoken(&part)
            } else {
                shown_input(&part)
            };
            let extension = || extension::shown_part(&part).filter(|_| self.options.extensions);
            let one = one.or_else(extension);
            match one {
                Some(part) => shown.push(part),
                None => self.losses.push(at, "a part that no item can show"),
            }
        }
        if shown.is_empty() && n_items > 0 {
            return;
        }
        let word = match role {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::System => "system",
            Role::Developer => "developer",
        };
        let mut message = json!({"type": "message", "role": word, "content": shown});
        if let Some(phase) = about.and_then(|about| about["phase"].as_str()) {
            message["phase"] = phase.into();
        }
        self.push(own(MESSAGE, 0), message);
    }

    fn reasoning(&mut self, id: String, part: &Value) {
        let Ok(reasoning) = serde_json::from_value::<ReasoningPart>(part.clone()) else {
            return;
        };
        let summary = json!({"type": "summary_text", "text": reasoning.text});
        let summary = if reasoning.text.is_empty() {
            json!([])
        } else {
            json!([summary])
        };
        let mut said = Map::from_iter([
            ("type".to_owned(), "reasoning".into()),
            ("summary".to_owned(), summary),
        ]);
        if let Some(signature) = reasoning
            .signature
            .filter(|_| self.options.encrypted_reasoning)
        {
            let sealed = seal_reasoning(reasoning.provider.as_deref(), &signature);
            said.insert("encrypted_content".to_owned(), sealed.into());
        }
        self.push(id, said.into());
    }
}

/// A content part of an assistant message that no run of this server wrote.
fn shown_spoken(part: &Value) -> Option<Value> {
    let text = |key: &str| part.get(key).and_then(Value::as_str);
    match text("type")? {
        "output_text" | "input_text" => {
            let cited = part.get("annotations").and_then(Value::as_array);
            let cited: Vec<Value> = cited.into_iter().flatten().filter_map(citation).collect();
            Some(json!({
                "type": "output_text", "text": text("text")?, "annotations": cited, "logprobs": [],
            }))
        }
        "refusal" => Some(json!({"type": "refusal", "refusal": text("refusal")?})),
        _ => None,
    }
}
