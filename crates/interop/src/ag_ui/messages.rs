//! A thread as the messages of an AG-UI client.

use super::request::{MESSAGE_ID, NewMessage};
use crate::document::data_url;
use crate::parts::{PROMPT, ReasoningPart, StepResponse, ToolPart};
use crate::run::streamed_texts;
use crate::{Converted, Losses};
use serde_json::{Map, Value, json};
use timeline::{
    Answer, Entry, ExecutionStatus, Item, ItemType, MessagePartKind, Role, StepRecord, StepStatus,
    Transcript, messages_with_answers, part_kind,
};

/// The messages of a thread, with the ids under which its runs streamed them. Messages that wait
/// for a run and the answer being written are left out. The text of an answer that was cut off is
/// included if the transcript was read with its chunks.
pub fn to_messages(transcript: &Transcript) -> Converted<Vec<Value>> {
    let mut messages = Vec::new();
    let mut losses = Losses::default();
    let mut answers = None;
    for (index, entry) in transcript.entries.iter().enumerate() {
        let at = format!("/entries/{index}");
        match entry {
            Entry::Item(item) if item.run.is_some() => {}
            Entry::Item(item) => {
                answers = Some(item);
                messages.extend(item_message(item, &at, &mut losses));
                for item in messages_with_answers(item) {
                    messages.extend(item_message(&item, &at, &mut losses));
                }
            }
            Entry::Reaction(reaction) => {
                let is_over = reaction.execution.status != ExecutionStatus::Executing;
                let is_shown =
                    |it: &&StepRecord| is_over || it.step.status == StepStatus::Completed;
                let is_own = |item: &&Item| item.id == reaction.execution.trigger_item_id;
                let given = answers.filter(is_own).map(client_results);
                let given = given.unwrap_or_default();
                for step in reaction.steps.iter().filter(is_shown) {
                    push_step(&mut messages, (step, &given), &at, &mut losses);
                }
            }
        }
    }
    losses.with(messages)
}

/// The results that a client sent in these answers: each call, and the client's own id of its message.
pub(super) fn client_results(item: &Item) -> Vec<(String, String)> {
    let content = item.content.as_ref();
    let content = content.filter(|_| item.item_type == ItemType::ActionResult);
    let parts: Vec<Value> = content.and_then(|it| it.read().ok()).unwrap_or_default();
    let text = |part: &Value, key: &str| Some(part.get(key)?.as_str()?.to_owned());
    let given = parts.iter();
    given
        .filter_map(|part| Some((text(part, "toolCallId")?, text(part, MESSAGE_ID)?)))
        .collect()
}

/// Whether an answer was cut off; its text is then only in the chunks.
pub fn was_cut_off(transcript: &Transcript) -> bool {
    let mut reactions = transcript.entries.iter().filter_map(|entry| match entry {
        Entry::Reaction(reaction) => Some(reaction),
        Entry::Item(_) => None,
    });
    reactions.any(|reaction| {
        let is_over = reaction.execution.status != ExecutionStatus::Executing;
        let mut steps = reaction.steps.iter();
        is_over && steps.any(|it| it.step.status != StepStatus::Completed)
    })
}

/// Whether this part of a thread has the client's message with equal content. `None` if no message
/// has its id.
pub fn is_known_message(transcript: &Transcript, message: &NewMessage) -> Option<bool> {
    let items = transcript
        .entries
        .iter()
        .rev()
        .filter_map(|entry| match entry {
            Entry::Item(item) => Some(item),
            Entry::Reaction(_) => None,
        });
    let mut known = items.flat_map(|item| {
        let beside = messages_with_answers(item);
        beside.into_iter().chain([item.clone()])
    });
    let known = known.find(|item| item.id.as_str() == message.id)?;
    Some(is_same(&known, message))
}

/// Whether this part of a thread has the message with answers to one of these calls.
pub fn is_sent_with_answers(transcript: &Transcript, calls: &[&str], message: &NewMessage) -> bool {
    let mut items = transcript.entries.iter().filter_map(|entry| match entry {
        Entry::Item(item) if item.item_type == ItemType::ActionResult => Some(item),
        Entry::Item(_) | Entry::Reaction(_) => None,
    });
    items.any(|item| {
        let answers = Answer::read(item.content.as_ref()).unwrap_or_default();
        let answers_one = answers
            .iter()
            .any(|it| calls.contains(&it.tool_call_id.as_str()));
        let mut beside = messages_with_answers(item).into_iter();
        answers_one && beside.any(|it| is_same(&it, message))
    })
}

/// Whether an item has the content of a message as clients get it.
fn is_same(known: &Item, message: &NewMessage) -> bool {
    let sent = Item {
        content: Some(message.content.clone()),
        ..known.clone()
    };
    let content = |item: &Item| item_message(item, "", &mut Losses::default());
    known.role.is_none_or(|role| role == Role::User) && content(known) == content(&sent)
}

/// The first message of an item to the agents, if it is text: its id and the text.
pub(super) fn first_text(item: &Item) -> Option<(String, String)> {
    let beside = messages_with_answers(item);
    let item = beside.first().unwrap_or(item);
    let message = item_message(item, "", &mut Losses::default())?;
    let text = message.get("content").and_then(Value::as_str)?;
    Some((item.id.to_string(), text.to_owned()))
}

fn item_message(item: &Item, at: &str, losses: &mut Losses) -> Option<Value> {
    let role = match (item.item_type, item.role) {
        (ItemType::Message, Some(Role::User) | None) => "user",
        (ItemType::Message, Some(Role::Assistant)) => "assistant",
        (ItemType::Message, Some(Role::System)) => "system",
        (ItemType::Message, Some(Role::Developer)) => "developer",
        (ItemType::ActionResult, _) if Answer::read(item.content.as_ref()).is_ok() => return None,
        (ItemType::ActionExecute | ItemType::ActionResult | ItemType::ItemReference, _) => {
            losses.push(at, "an action");
            return None;
        }
    };
    let parts: Vec<Value> = item
        .content
        .as_ref()
        .and_then(|it| it.read().ok())
        .unwrap_or_default();
    let shown: Vec<Value> = parts
        .iter()
        .filter_map(|part| {
            let shown = content_part(part);
            if shown.is_none() {
                losses.push(at, "a part that this protocol has no word for");
            }
            shown
        })
        .collect();
    let only_text = shown.iter().all(|part| part["type"] == "text");
    let content = if role != "user" || only_text {
        let texts: Vec<&str> = shown
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect();
        Value::String(texts.join("\n"))
    } else {
        Value::Array(shown)
    };
    Some(json!({"id": item.id.as_str(), "role": role, "content": content}))
}

/// A part of a user's message.
fn content_part(part: &Value) -> Option<Value> {
    let text = |key: &str| part.get(key).and_then(Value::as_str);
    let media = |kind: &str, url: &str| {
        let mut source = match data_url(url) {
            Some((mime, data)) => json!({"type": "data", "value": data, "mimeType": mime}),
            None => json!({"type": "url", "value": url}),
        };
        // A range of types stands for no type.
        let named = text("media_type").filter(|mime| !mime.ends_with("/*"));
        if let (Value::Object(source), Some(mime)) = (&mut source, named) {
            source.entry("mimeType").or_insert_with(|| mime.into());
        }
        json!({"type": kind, "source": source})
    };
    match part_kind(text("type")?)? {
        MessagePartKind::InputText | MessagePartKind::OutputText => {
            Some(json!({"type": "text", "text": text("text")?}))
        }
        MessagePartKind::Refusal => Some(json!({"type": "text", "text": text("refusal")?})),
        MessagePartKind::InputImage => Some(media("image", text("image_url")?)),
        MessagePartKind::InputFile => {
            let mime = text("media_type").unwrap_or("application/octet-stream");
            let kind = match mime.split_once('/') {
                Some(("audio", _)) => "audio",
                Some(("video", _)) => "video",
                Some(_) | None => "document",
            };
            let data = text("file_data").map(|data| {
                if data.starts_with("data:") {
                    return data.to_owned();
                }
                format!("data:{mime};base64,{data}")
            });
            Some(media(kind, data.as_deref().or(text("file_url"))?))
        }
        MessagePartKind::Reasoning | MessagePartKind::Tool(_) | MessagePartKind::Extension(_) => {
            None
        }
    }
}

fn push_step(
    messages: &mut Vec<Value>,
    (record, given): (&StepRecord, &[(String, String)]),
    at: &str,
    losses: &mut Losses,
) {
    let id = record.step.id.as_str();
    let response = record.response.as_ref();
    let read: Option<StepResponse> = response.and_then(|(response, _)| response.read().ok());
    // The calls of such a step are those of an earlier one.
    let answers = read.is_some_and(|response| response.answers);
    let (mut texts, mut calls, mut results) = (Vec::new(), Vec::new(), Vec::new());
    let mut n_reasonings = 0;
    let mut reasoning = |text: String| {
        let id = reasoning_id(id, n_reasonings);
        n_reasonings += 1;
        json!({"id": id, "role": "reasoning", "content": text})
    };
    if response.is_none() {
        let (streamed, reasonings) = streamed_texts(record);
        texts.extend(streamed);
        messages.extend(reasonings.into_iter().map(&mut reasoning));
    }
    for part in &record.parts {
        if let Some(tool) = ToolPart::read(&part.part) {
            if !answers {
                calls.push(json!({
                    "id": tool.tool_call_id, "type": "function",
                    "function": {"name": tool.tool_name(), "arguments": arguments(&tool)},
                }));
            }
            let given = given.iter().filter(|_| answers).enumerate();
            let mut given = given.filter(|(_, (call, _))| *call == tool.tool_call_id);
            let (order, id) = given.next().map(|(n, (_, id))| (n, id.as_str())).unzip();
            results.extend(result(&tool, id).map(|result| (order, result)));
            continue;
        }
        let value = part.part.value();
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        match text("type").and_then(part_kind) {
            Some(MessagePartKind::OutputText | MessagePartKind::InputText) => {
                texts.push(text("text").unwrap_or_default().to_owned());
            }
            Some(MessagePartKind::Refusal) => {
                texts.push(text("refusal").unwrap_or_default().to_owned());
            }
            Some(MessagePartKind::Reasoning) => {
                let read: Option<ReasoningPart> = part.part.read().ok();
                // The signature for its provider stays here, with the history.
                let Some(read) = read.filter(|read| !read.text.is_empty()) else {
                    continue;
                };
                messages.push(reasoning(read.text));
            }
            Some(MessagePartKind::Extension(PROMPT)) => {}
            Some(
                MessagePartKind::InputImage
                | MessagePartKind::InputFile
                | MessagePartKind::Tool(_)
                | MessagePartKind::Extension(_),
            )
            | None => {
                losses.push(at, "a part that this protocol has no word for");
            }
        }
    }
    texts.retain(|text| !text.is_empty());
    if texts.is_empty() && !calls.is_empty() {
        texts.push(String::new());
    }
    for (n, text) in texts.into_iter().enumerate() {
        let mut message = Map::new();
        message.insert("id".to_owned(), text_id(id, n, 0).into());
        message.insert("role".to_owned(), "assistant".into());
        if !text.is_empty() {
            message.insert("content".to_owned(), text.into());
        }
        if n == 0 && !calls.is_empty() {
            message.insert(
                "toolCalls".to_owned(),
                Value::Array(std::mem::take(&mut calls)),
            );
        }
        messages.push(Value::Object(message));
    }
    // The results that a client has given stand in its order, before those of tools that ran afterwards.
    results.sort_by_key(|(order, _)| order.unwrap_or(usize::MAX));
    for (_, result) in results {
        let position = if answers {
            result_position(messages, &result["toolCallId"])
        } else {
            messages.len()
        };
        messages.insert(position, result);
    }
}

/// The position of the result of an earlier step's call: after the other results of its message.
fn result_position(messages: &[Value], call: &Value) -> usize {
    let calls = |message: &Value| {
        let calls = message["toolCalls"].as_array();
        calls.is_some_and(|calls| calls.iter().any(|it| it["id"] == *call))
    };
    let Some(made) = messages.iter().rposition(calls) else {
        return messages.len();
    };
    let later = messages.get(made + 1..).unwrap_or_default();
    let results = later.iter().take_while(|it| it["role"] == "tool");
    made + 1 + results.count()
}

/// The arguments of a call in the stream and the messages. Clients read them as JSON, so a call without
/// any has an empty object.
pub(super) fn arguments(tool: &ToolPart) -> &str {
    match tool.arguments() {
        blank if blank.trim().is_empty() => "{}",
        arguments => arguments,
    }
}

/// The result of a call, under its client's id if there is one.
fn result(tool: &ToolPart, id: Option<&str>) -> Option<Value> {
    let content = tool.result_text()?;
    let call = tool.tool_call_id.as_str();
    let id = id.map_or_else(|| result_id(call), str::to_owned);
    let mut message = json!({"id": id, "role": "tool", "toolCallId": call, "content": content});
    if let Some(error) = &tool.error_text {
        message["error"] = error.as_str().into();
    }
    Some(message)
}

/// The id of a step's nth text. The first one is the step's message, which owns its calls. A second
/// attempt has new messages.
pub(super) fn text_id(step: &str, n: usize, attempt: u32) -> String {
    match (n, attempt) {
        (0, 0) => step.to_owned(),
        (n, 0) => format!("{step}-{n}"),
        (n, attempt) => format!("{step}-{n}-{attempt}"),
    }
}

/// The id of a step's nth reasoning.
pub(super) fn reasoning_id(step: &str, n: usize) -> String {
    format!("{step}-reasoning-{n}")
}

/// The id of a call's result.
pub(super) fn result_id(call: &str) -> String {
    format!("{call}-result")
}
