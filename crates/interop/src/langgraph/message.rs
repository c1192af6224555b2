//! A thread's messages in `LangChain`'s shape, and in the Agent Protocol's.

use super::content::{block, content, file_block, reasoning_block, text_block};
use super::input::MESSAGE_METADATA;
use crate::parts::{OUTPUT_FILE, StepResponse, ToolPart, ToolState, is_prompt};
use crate::responses::Tokens;
use serde_json::{Map, Value, json};
use timeline::{
    Entry, Item, ItemType, MessagePartKind, Payload, Reaction, Role, StepRecord, StepStatus,
    Transcript, messages_with_answers, part_kind,
};

/// The messages of a thread: posted messages, and the output of each completed step. Queued messages
/// are left out, and so are steps that run or were cut off.
pub fn messages_of(transcript: &Transcript) -> Vec<Value> {
    transcript.entries.iter().flat_map(entry_messages).collect()
}

/// The messages of one entry of a transcript.
pub(super) fn entry_messages(entry: &Entry) -> Vec<Value> {
    match entry {
        Entry::Item(item) if item.run.is_some() => Vec::new(),
        Entry::Item(item) => item_messages(item),
        Entry::Reaction(reaction) => reaction_messages(reaction),
    }
}

fn reaction_messages(reaction: &Reaction) -> Vec<Value> {
    let agent = agent_of(reaction.execution.run.as_ref());
    let steps = reaction.steps.iter();
    let steps = steps.filter(|it| it.step.status == StepStatus::Completed);
    steps
        .flat_map(|step| messages_of_step(step, agent.as_deref()))
        .collect()
}

/// The agent that a run's parameters name.
pub(super) fn agent_of(run: Option<&Payload>) -> Option<String> {
    run?.str_field("agent")
}

/// The messages of an item: its own, or those that accompany its answers.
pub(super) fn item_messages(item: &Item) -> Vec<Value> {
    let mut messages: Vec<Value> = message_of(item).into_iter().collect();
    messages.extend(messages_with_answers(item).iter().filter_map(message_of));
    messages
}

fn message_of(item: &Item) -> Option<Value> {
    let kind = match (item.item_type, item.role) {
        (ItemType::Message, Some(Role::User) | None) => "human",
        (ItemType::Message, Some(Role::Assistant)) => "ai",
        (ItemType::Message, Some(Role::System | Role::Developer)) => "system",
        (ItemType::ActionExecute | ItemType::ActionResult | ItemType::ItemReference, _) => {
            return None;
        }
    };
    let parts = item.content.as_ref().map(Payload::value);
    let blocks = match parts {
        Some(Value::Array(parts)) => parts.iter().filter_map(block).collect(),
        Some(Value::String(text)) => vec![text_block(&text)],
        Some(_) | None => Vec::new(),
    };
    let mut message = base(kind, item.id.as_str(), content(blocks));
    let noted = item.metadata.as_ref().map(Payload::value);
    let noted = noted.and_then(|noted| noted.get(MESSAGE_METADATA)?.as_object().cloned());
    if let Value::Object(message) = &mut message {
        message.extend(noted.unwrap_or_default());
        if kind == "ai" {
            for key in ["tool_calls", "invalid_tool_calls"] {
                message.insert(key.to_owned(), json!([]));
            }
            message.insert("usage_metadata".to_owned(), Value::Null);
        }
    }
    Some(message)
}

/// The members that all messages have.
pub(super) fn base(kind: &str, id: &str, content: Value) -> Value {
    let mut message = json!({
        "content": null, "additional_kwargs": {}, "response_metadata": {},
        "type": kind, "name": null, "id": id,
    });
    message["content"] = content;
    message
}

/// The messages of a step: the model's, and one for each result of its calls.
pub fn messages_of_step(record: &StepRecord, agent: Option<&str>) -> Vec<Value> {
    let response = record.response.as_ref();
    let response: Option<StepResponse> = response.and_then(|(said, _)| said.read().ok());
    let parts = record.parts.iter().map(|part| &part.part);
    let step = record.step.id.as_str();
    let (message, results) = step_messages(step, agent, response.as_ref(), parts);
    message.into_iter().chain(results).collect()
}

/// The message of a step's model and those of its calls' results, from the step's parts in order.
pub(super) fn step_messages<'a>(
    id: &str,
    agent: Option<&str>,
    response: Option<&StepResponse>,
    parts: impl Iterator<Item = &'a Payload>,
) -> (Option<Value>, Vec<Value>) {
    // The calls of such a step are those of an earlier one.
    let answers = response.is_some_and(|said| said.answers);
    let (mut blocks, mut calls, mut results) = (Vec::new(), Vec::new(), Vec::new());
    for (idx, part) in (0..).zip(parts) {
        if let Some(tool) = ToolPart::read(part) {
            results.extend(result(&tool, id, idx));
            calls.push(tool);
        } else {
            blocks.extend(spoken(part));
        }
    }
    let is_empty = response.is_none() && blocks.is_empty() && calls.is_empty();
    if is_empty || answers {
        return (None, results);
    }
    let mut message = base("ai", id, content(blocks));
    message["name"] = agent.into();
    put_calls(&mut message, &calls);
    message["usage_metadata"] = Value::Null;
    if let Some(response) = response {
        put_response(&mut message, response);
    }
    (Some(message), results)
}

/// The visible content of an answer's part; `None` if people do not see it.
fn spoken(part: &Payload) -> Option<Value> {
    if is_prompt(part) {
        return None;
    }
    let part = part.value();
    let text = |key: &str| part.get(key).and_then(Value::as_str);
    let shown = |text: &str| !text.is_empty();
    match part_kind(text("type")?)? {
        MessagePartKind::OutputText | MessagePartKind::InputText => {
            text("text").filter(|it| shown(it)).map(text_block)
        }
        MessagePartKind::Refusal => text("refusal").filter(|it| shown(it)).map(text_block),
        MessagePartKind::Reasoning => text("text").filter(|it| shown(it)).map(reasoning_block),
        MessagePartKind::Extension(OUTPUT_FILE) => {
            let url = text("file_data").or_else(|| text("file_url"))?;
            Some(file_block(url, text("media_type")))
        }
        MessagePartKind::InputImage
        | MessagePartKind::InputFile
        | MessagePartKind::Tool(_)
        | MessagePartKind::Extension(_) => None,
    }
}

/// The arguments of a call as an object; `None` if the model sent something else.
pub(super) fn arguments(text: &str) -> Option<Map<String, Value>> {
    if text.trim().is_empty() {
        return Some(Map::new());
    }
    serde_json::from_str(text).ok()
}

fn put_calls(message: &mut Value, calls: &[ToolPart]) {
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for tool in calls {
        let (name, id) = (tool.tool_name(), tool.tool_call_id.as_str());
        match arguments(tool.arguments()) {
            Some(args) => {
                good.push(json!({"name": name, "args": args, "id": id, "type": "tool_call"}));
            }
            None => bad.push(json!({
                "name": name, "args": tool.arguments(), "id": id, "type": "invalid_tool_call",
                "error": "the arguments are no JSON object",
            })),
        }
    }
    message["tool_calls"] = good.into();
    message["invalid_tool_calls"] = bad.into();
}

/// Adds the model's metadata and token usage to a message.
pub(super) fn put_response(message: &mut Value, response: &StepResponse) {
    let metadata = [
        ("model_name", &response.model),
        ("model_provider", &response.provider),
        ("finish_reason", &response.stop_reason),
    ];
    let metadata = metadata.into_iter();
    let metadata =
        metadata.filter_map(|(key, text)| Some((key.to_owned(), text.as_deref()?.into())));
    message["response_metadata"] = metadata.collect::<Map<String, Value>>().into();
    if let Some(usage) = usage(response) {
        message["usage_metadata"] = usage;
    }
}

/// The tokens that an answer used.
pub(super) fn usage(response: &StepResponse) -> Option<Value> {
    let tokens: Tokens = response.usage.as_ref()?.read().ok()?;
    Some(json!({
        "input_tokens": tokens.input_tokens,
        "output_tokens": tokens.output_tokens,
        "total_tokens": tokens.input_tokens.saturating_add(tokens.output_tokens),
        "input_token_details": {
            "cache_read": tokens.cache_read_tokens, "cache_creation": tokens.cache_write_tokens,
        },
        "output_token_details": {"reasoning": tokens.reasoning_tokens},
    }))
}

/// The message for the result of a call, if there is one. Its id is the part's, because calls of
/// several steps may have equal ids.
pub(super) fn result(tool: &ToolPart, step: &str, idx: u32) -> Option<Value> {
    let text = tool.result_text()?;
    let mut message = base("tool", &format!("{step}:{idx}"), text.into());
    message["name"] = tool.tool_name().into();
    message["tool_call_id"] = tool.tool_call_id.as_str().into();
    message["artifact"] = Value::Null;
    message["status"] = match tool.state {
        ToolState::OutputError => "error",
        ToolState::InputAvailable
        | ToolState::ApprovalRequested
        | ToolState::ApprovalResponded
        | ToolState::OutputAvailable => "success",
    }
    .into();
    Some(message)
}

/// Messages as the Agent Protocol has them: `{role, content, id, …}`.
pub fn agent_protocol_messages(messages: &[Value]) -> Vec<Value> {
    let messages = messages.iter().map(|message| {
        let role = match message["type"].as_str() {
            Some("human") | None => "user",
            Some("ai") => "assistant",
            Some(other) => other,
        };
        let mut shown = json!({"role": role, "content": message["content"], "id": message["id"]});
        for key in ["tool_calls", "tool_call_id", "status"] {
            let given = message.get(key);
            let says = given.is_some_and(|it| it.as_array().is_none_or(|list| !list.is_empty()));
            if let Some(given) = given.filter(|_| says) {
                shown[key] = given.clone();
            }
        }
        shown
    });
    messages.collect()
}
