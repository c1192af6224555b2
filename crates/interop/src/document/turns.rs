//! Entries of a transcript as turns of a document.

use super::agents::{Registry, agent_id, agent_of};
use super::clock::{Clock, rfc3339};
use super::content;
use super::delta::{RETURNS, patched, read, read_object, unwrapped};
use super::events::{Events, SYSTEM, event_turn};
use super::open_calls::Left;
use super::parts::{self, MESSAGE};
use super::usage;
use crate::parts::{StepResponse, ThreadEvent, ToolPart, is_prompt};
use std::collections::BTreeSet;
use thread::document::CompletionStatus;
use thread::{Json, Object, complete_cycles};
use timeline::{
    Answer, Execution, ExecutionStatus, Interruption, Item, ItemType, Payload, Reaction, Role,
    StepRecord,
};

/// The metadata key under which an import stores the data it needs for the export.
pub(super) const EXTENSION: &str = "threadprotocol";
/// The part that holds a turn of an unknown kind.
pub(super) const TURN: &str = "threadprotocol-turn";
/// The characters that may end the namespace of a metadata key (0.0.3).
pub(super) const SEPARATORS: [char; 5] = [':', '.', '/', '_', '-'];

/// Reads the model's metadata about its answer; empty if it can't be read.
pub(super) fn read_response(response: &Payload) -> StepResponse {
    response.read().unwrap_or_default()
}

/// The result of exporting an item.
pub(super) enum ItemTurn {
    /// A turn.
    Turn(Json),
    /// Nothing is missing without it.
    Nothing,
    /// The document can't hold it; the description of the loss.
    Lost(&'static str),
}

pub(super) fn item_turn(item: &Item, clock: &mut Clock, registry: &mut Registry) -> ItemTurn {
    match (item.item_type, item.role) {
        (ItemType::ItemReference, _) => match ThreadEvent::of_item(item) {
            Some(event) => {
                let at = clock.at(item.created_at);
                registry.note_speaker(SYSTEM, at.clone());
                ItemTurn::Turn(event_turn(&event, &at).into())
            }
            None => ItemTurn::Nothing,
        },
        // What was answered is in the turn that begins with it.
        (ItemType::ActionResult, _) if Answer::read(item.content.as_ref()).is_ok() => {
            ItemTurn::Nothing
        }
        (ItemType::ActionExecute | ItemType::ActionResult, _) => {
            ItemTurn::Lost("an action that belongs to no execution")
        }
        (ItemType::Message, Some(Role::User) | None) => {
            ItemTurn::Turn(user_turn(item, clock).into())
        }
        (ItemType::Message, Some(Role::Assistant)) => {
            ItemTurn::Turn(spoken_turn(item, clock, registry).into())
        }
        (ItemType::Message, Some(Role::System | Role::Developer)) => {
            let content = content_of(item);
            match content.first().filter(|part| is(part, TURN)) {
                Some(part) => ItemTurn::Turn(unwrapped(part, "turn")),
                None => ItemTurn::Lost("a system message"),
            }
        }
    }
}

fn is(part: &Json, kind: &str) -> bool {
    part.get("type").and_then(Json::as_str) == Some(kind)
}

fn content_of(item: &Item) -> Vec<Json> {
    let content = item.content.as_ref().map(read);
    content.and_then(Json::into_array).unwrap_or_default()
}

fn user_turn(item: &Item, clock: &mut Clock) -> Object {
    let metadata = read_object(item.metadata.as_ref());
    let kept = metadata.get(EXTENSION);
    let groups = kept
        .and_then(|kept| kept.get("parts"))
        .and_then(Json::as_array);
    let parts = content::exported(&content_of(item), groups);
    let submitted_at = clock.at(item.created_at);
    let received_at = rfc3339(item.created_at);
    let late = submitted_at != received_at;
    let client = client_metadata(&metadata, item.channel.as_deref());
    let derived = user_object(submitted_at, parts, client);
    let Some(turn) = kept.and_then(|kept| kept.get("turn")?.as_object()) else {
        return derived.with_some("received_at", late.then_some(received_at));
    };
    let turn = patched(derived, Some(turn));
    clock.pass(turn.get_str("submitted_at"));
    turn
}

/// A user's turn in this system's order.
pub(super) fn user_object(
    submitted_at: String,
    parts: Vec<Json>,
    client_metadata: Option<Object>,
) -> Object {
    Object::new()
        .with("turn_type", "user")
        .with("submitted_at", submitted_at)
        .with("parts", Json::Array(parts))
        .with_some("client_metadata", client_metadata)
}

/// The metadata that a client added, with a namespace in every key.
pub(super) fn client_metadata(metadata: &Object, channel: Option<&str>) -> Option<Object> {
    let own = metadata.iter().filter(|(key, _)| *key != EXTENSION);
    let namespaced = own.map(|(key, value)| {
        let key = if key.contains(SEPARATORS) {
            key.to_owned()
        } else {
            format!("app:{key}")
        };
        (key, value.clone())
    });
    let channel = channel.map(|channel| ("loomline:channel".to_owned(), channel.into()));
    let client: Object = namespaced.chain(channel).collect();
    (!client.is_empty()).then_some(client)
}

/// The message of an author who answered without a run on this server.
fn spoken_turn(item: &Item, clock: &mut Clock, registry: &mut Registry) -> Object {
    let metadata = read_object(item.metadata.as_ref());
    let named = metadata
        .get_str("agent")
        .or_else(|| metadata.get_str("actor"));
    let name = named.unwrap_or("assistant");
    let at = clock.at(item.created_at);
    registry.note_speaker(name, at.clone());
    let id = agent_id(name);
    let parts: Vec<Payload> = item
        .content
        .as_ref()
        .and_then(|content| content.read().ok())
        .unwrap_or_default();
    let parts = parts.iter().map(parts::exported).collect();
    let message = response_object(&StepResponse::default(), &id, at.clone(), parts);
    Object::new()
        .with("turn_type", "agent")
        .with("agent_id", id)
        .with("started_at", at.as_str())
        .with("completed_at", at.as_str())
        .with("completion_status", CompletionStatus::Complete.as_str())
        .with("messages", Json::Array(vec![message.into()]))
}

/// An agent's turn, the number of omitted messages, and whether calls of it are open.
pub(super) struct AgentTurn {
    pub(super) turn: Object,
    pub(super) n_dropped: usize,
    pub(super) is_open: bool,
}

/// `left` has the calls of the turn that can't be answered any more.
pub(super) fn agent_turn(reaction: &Reaction, left: &Left, clock: &mut Clock) -> AgentTurn {
    let execution = &reaction.execution;
    let (_, agent_id) = agent_of(execution);
    let run = read_object(execution.run.as_ref());
    let kept = run
        .get(EXTENSION)
        .and_then(|kept| kept.get("turn")?.as_object());
    let started_at = clock.at(execution.created_at);
    let mut all = Vec::new();
    for step in &reaction.steps {
        push_step(&mut all, step, &agent_id, left, clock);
    }
    let total = usage::total(&all);
    let ending = ending(execution);
    let n_all = all.len();
    let messages = complete_cycles(all, ending);
    let n_dropped = n_all - messages.len();
    let ended_at = clock.at(reaction.ended_at.unwrap_or(execution.created_at));
    let turn = Turn {
        agent_id: &agent_id,
        started_at,
        ended_at,
        ending,
        interruption: execution.interruption.as_ref(),
        messages,
        total,
    };
    let turn = patched(turn.into_object(), kept);
    clock.pass(turn.get_str("completed_at"));
    let interrupted_at = turn
        .get("interruption")
        .and_then(|why| why.get("interrupted_at"));
    clock.pass(interrupted_at.and_then(Json::as_str));
    AgentTurn {
        turn,
        n_dropped,
        is_open: is_open(reaction, left),
    }
}

/// How a finished execution ended.
pub(super) fn ending(execution: &Execution) -> CompletionStatus {
    if execution.status == ExecutionStatus::Completed {
        CompletionStatus::Complete
    } else {
        CompletionStatus::Interrupted
    }
}

fn is_open(reaction: &Reaction, left: &Left) -> bool {
    let parts = reaction.steps.iter().flat_map(|step| &step.parts);
    parts
        .filter_map(|part| ToolPart::read(&part.part))
        .any(|tool| !tool.is_answered() && !left.contains(&tool.tool_call_id))
}

/// The content of an agent's turn to write.
pub(super) struct Turn<'a> {
    pub(super) agent_id: &'a str,
    pub(super) started_at: String,
    pub(super) ended_at: String,
    pub(super) ending: CompletionStatus,
    pub(super) interruption: Option<&'a Interruption>,
    pub(super) messages: Vec<Json>,
    pub(super) total: Option<Object>,
}

impl Turn<'_> {
    /// The turn in this system's order.
    pub(super) fn into_object(self) -> Object {
        let turn = Object::new()
            .with("turn_type", "agent")
            .with("agent_id", self.agent_id)
            .with("started_at", self.started_at);
        let status = self.ending.as_str();
        let turn = match self.ending {
            CompletionStatus::Complete => turn
                .with("completed_at", self.ended_at)
                .with("completion_status", status),
            CompletionStatus::Interrupted => {
                let reason = self.interruption.map_or("error", |why| why.reason.as_str());
                let detail = self.interruption.and_then(|why| why.detail.as_deref());
                let why = Object::new()
                    .with("reason", reason)
                    .with("interrupted_at", self.ended_at)
                    .with_some("detail", detail);
                turn.with("completion_status", status)
                    .with("interruption", why)
            }
        };
        turn.with("messages", Json::Array(self.messages))
            .with_some("total_usage", self.total)
    }
}

/// The messages of one step: carried messages before the response, the response, the returns of its
/// calls, and carried messages after.
fn push_step(
    messages: &mut Vec<Json>,
    step: &StepRecord,
    agent_id: &str,
    left: &Left,
    clock: &mut Clock,
) {
    let tools: Vec<ToolPart> = step
        .parts
        .iter()
        .filter_map(|part| ToolPart::read(&part.part))
        .map(|tool| left.with_outcome(tool, step))
        .collect();
    let mut said_parts = Vec::with_capacity(step.parts.len());
    let mut after = Vec::new();
    let mut claimed = BTreeSet::new();
    let mut events = Events::default();
    for part in &step.parts {
        if events.take(part) {
            continue;
        }
        if let Some(tool) = ToolPart::read(&part.part) {
            said_parts.push(parts::exported_call(&tool).into());
            continue;
        }
        if is_prompt(&part.part) {
            continue;
        }
        if !part.part.text().contains(MESSAGE) {
            said_parts.push(parts::exported(&part.part));
            continue;
        }
        let json = read(&part.part);
        if is(&json, MESSAGE) {
            let message = carried(&json, &tools, &mut claimed);
            match json.get("before").and_then(Json::as_bool) {
                Some(true) => messages.push(message),
                Some(false) | None => after.push(message),
            }
        } else {
            said_parts.push(parts::exported(&part.part));
        }
    }
    if let Some((response, at)) = &step.response {
        let said = read_response(response);
        let extra = said.extra.as_ref().map(|extra| read_object(Some(extra)));
        let timestamp = said.timestamp.clone().unwrap_or_else(|| clock.at(*at));
        clock.pass(Some(&timestamp));
        if !said.answers {
            let response = response_object(&said, agent_id, timestamp, said_parts);
            messages.push(patched(response, extra.as_ref()).into());
        }
        messages.extend(events.before(agent_id, clock));
        let unclaimed = tools
            .iter()
            .filter(|tool| !claimed.contains(&tool.tool_call_id));
        let returns: Vec<Json> = unclaimed
            .filter_map(parts::exported_return)
            .map(Json::from)
            .collect();
        if !returns.is_empty() {
            let at = step.parts.iter().map(|part| part.updated_at).max();
            let timestamp = clock.at(at.unwrap_or(step.step.created_at));
            let request = request_object(agent_id, timestamp, returns);
            let extra = extra
                .as_ref()
                .and_then(|extra| extra.get(RETURNS)?.as_object());
            messages.push(patched(request, extra).into());
        }
        messages.extend(events.after(agent_id, clock));
    }
    messages.extend(after);
}

/// A response in this system's order.
pub(super) fn response_object(
    said: &StepResponse,
    agent_id: &str,
    timestamp: String,
    parts: Vec<Json>,
) -> Object {
    let finish_reason = said.stop_reason.as_deref().and_then(usage::finish_reason);
    let metadata = said.metadata.as_ref().map(read).filter(|metadata| {
        metadata
            .as_object()
            .is_some_and(|object| !object.is_empty())
    });
    Object::new()
        .with("message_type", "response")
        .with("timestamp", timestamp)
        .with("agent_id", agent_id)
        .with("parts", Json::Array(parts))
        .with_some("model_name", said.model.as_deref())
        .with_some("provider_name", said.provider.as_deref())
        .with_some("provider_response_id", said.response_id.as_deref())
        .with_some("usage", said.usage.as_ref().map(usage::exported))
        .with_some("finish_reason", finish_reason)
        .with_some("provider_metadata", metadata)
}

/// A request with returns in this system's order.
pub(super) fn request_object(agent_id: &str, timestamp: String, parts: Vec<Json>) -> Object {
    Object::new()
        .with("message_type", "request")
        .with("timestamp", timestamp)
        .with("agent_id", agent_id)
        .with("parts", Json::Array(parts))
}

/// A carried message. A string among its parts is a call id and is replaced by that call's return.
fn carried(part: &Json, tools: &[ToolPart], claimed: &mut BTreeSet<String>) -> Json {
    let mut message = unwrapped(part, "message");
    let parts = message
        .as_object_mut()
        .and_then(|message| message.get_mut("parts")?.as_array_mut());
    for slot in parts.into_iter().flatten() {
        let Some(tool) = slot
            .as_str()
            .and_then(|id| tools.iter().find(|tool| tool.tool_call_id == id))
        else {
            continue;
        };
        if let Some(answer) = parts::exported_return(tool) {
            claimed.insert(tool.tool_call_id.clone());
            *slot = answer.into();
        }
    }
    message
}
