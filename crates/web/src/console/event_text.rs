//! An event of the log in a few words.

use crate::chat::message_text;
use crate::execution::{UNNAMED, agent_of};
use crate::json;
use interop::parts::{EventPart, TextPart, ToolPart};
use serde::Deserialize;
use timeline::{Chunk, Event, ExecutionResult, Item, Marker, Payload, Removed};

/// Maximum length of a text, in characters.
const TEXT: usize = 120;

/// The content of an event in words. Texts of others have no invisible characters.
pub(super) fn event_text(event: &Event) -> String {
    match event {
        Event::ContextCreated { context } => json::line(context.id.as_str(), TEXT),
        Event::ContextResolved { context_id } => json::line(context_id.as_str(), TEXT),
        Event::ContextStatusChanged { from, to, .. } => format!("{from} → {to}"),
        Event::ThreadCreated { thread } => {
            let name = thread.title.as_deref().or(thread.key.as_deref());
            json::line(name.unwrap_or_default(), TEXT)
        }
        Event::ThreadResolved { thread_id } => json::line(thread_id.as_str(), TEXT),
        Event::ThreadStatusChanged { from, to, .. } => format!("{from} → {to}"),
        Event::ExecutionCreated { execution } => {
            let agent = agent_of(execution);
            let agent = json::line(agent.as_deref().unwrap_or(UNNAMED), TEXT);
            format!("run of {agent}")
        }
        Event::ExecutionStatusChanged {
            from,
            to,
            interruption,
            ..
        } => {
            let why = interruption
                .as_ref()
                .map(|why| json::line(&why.reason, TEXT));
            let why = why.map(|why| format!(" · {why}")).unwrap_or_default();
            format!("{from} → {to}{why}")
        }
        Event::ItemCreated { item } => item_text(item),
        Event::ItemStatusChanged { from, to, .. } => format!("{from} → {to}"),
        Event::StepCreated { step } => format!("step {}", step.iteration),
        Event::StepStatusChanged {
            from, to, outcome, ..
        } => {
            let error = outcome.error_text.as_deref();
            let error = error.map(|error| format!(" · {}", json::line(error, TEXT)));
            format!("{from} → {to}{}", error.unwrap_or_default())
        }
        Event::PartCreated { idx, part, .. } | Event::PartUpdated { idx, part, .. } => {
            format!("part {idx} · {}", part_text(part))
        }
        Event::ChunkEmitted {
            chunk_type, data, ..
        } => chunk_text(chunk_type, data.as_ref()),
        Event::ThreadFinished { result, .. } => match result {
            ExecutionResult::Completed => "completed".to_owned(),
            ExecutionResult::Failed => "failed".to_owned(),
        },
    }
}

/// Whether an event reports that an attempt is void or that the run lost its process.
pub(super) fn warns(event: &Event) -> bool {
    let Event::ChunkEmitted {
        chunk_type, data, ..
    } = event
    else {
        return false;
    };
    matches!(
        Chunk::decode(chunk_type, data.as_ref()),
        Chunk::Marker(Marker::StepReset | Marker::ExecutionResumed)
    )
}

fn item_text(item: &Item) -> String {
    let text = item.content.as_ref().map(message_text);
    let text = json::line(text.as_deref().unwrap_or_default(), TEXT);
    let name = item.item_type.name();
    let separator = if text.is_empty() { "" } else { " · " };
    format!("{name}{separator}{text}")
}

fn part_text(part: &Payload) -> String {
    if let Some(tool) = ToolPart::read(part) {
        let state = if tool.is_answered() { "result" } else { "call" };
        return format!("{state} of {}", json::line(tool.tool_name(), TEXT));
    }
    if let Some(event) = EventPart::read(part) {
        return json::line(&event.part_type, TEXT);
    }
    let name = part.str_field("type").unwrap_or_default();
    let text = part.read::<TextPart>().map(|part| part.text);
    let text = json::line(text.as_deref().unwrap_or_default(), TEXT);
    format!("{} {text}", json::line(&name, TEXT))
}

fn chunk_text(name: &str, data: Option<&Payload>) -> String {
    let text = match Chunk::decode(name, data) {
        Chunk::BlockDelta { text, .. } | Chunk::ToolInputDelta { text, .. } => {
            json::line(&text, TEXT)
        }
        Chunk::ToolInputStart { tool_name, .. } => json::line(&tool_name, TEXT),
        Chunk::Marker(marker) => marker_text(&marker),
        Chunk::BlockStart { .. }
        | Chunk::BlockEnd { .. }
        | Chunk::Source { .. }
        | Chunk::Runtime { .. }
        | Chunk::Data { .. }
        | Chunk::Other { .. } => String::new(),
    };
    let name = json::line(name, TEXT);
    if text.is_empty() {
        name
    } else {
        format!("{name} · {text}")
    }
}

/// Whether a removal withdraws a compaction.
fn withdraws(data: &Payload) -> bool {
    matches!(data.read(), Ok(Removed::Compaction(_)))
}

fn marker_text(marker: &Marker<'_>) -> String {
    let words = match marker {
        Marker::StepResponse(data) => return response_text(*data),
        Marker::StepReset => "the attempt is void: its chunks of this step don't count",
        Marker::ToolStarted(_) => "a tool with effects starts",
        Marker::StepNoted(_) => "a note for the next attempt",
        Marker::ExecutionResumed => "another process resumes the run",
        Marker::ExecutionParked => "the process shuts down cleanly",
        Marker::ThreadUpdated(_) => "title or metadata changed",
        Marker::ItemRemoved(Some(data)) if withdraws(data) => "a compaction is withdrawn",
        Marker::ItemRemoved(_) => "an item or a step is removed",
        Marker::ThreadCompacted(_) => "a summary replaces older runs",
    };
    words.to_owned()
}

/// The members of an answer's metadata that the text shows.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AnsweredWith {
    model: Option<String>,
    stop_reason: Option<String>,
}

fn response_text(data: Option<&Payload>) -> String {
    let read: AnsweredWith = data.and_then(|data| data.read().ok()).unwrap_or_default();
    let words = [
        Some("the model answered".to_owned()),
        read.model,
        read.stop_reason,
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    json::line(&words.join(" · "), TEXT)
}
