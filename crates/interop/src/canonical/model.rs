//! The turns of a document as model messages.

use super::document_of;
use crate::archive::ArchivedRun;
use crate::runs::{ModelMessage, ModelRun, RunInterruption};
use crate::{Converted, Losses};
use thread::{Json, Object};

/// Members of an agent's turn that are derived from its messages or stored with them.
const KNOWN: [&str; 8] = [
    "turn_type",
    "agent_id",
    "started_at",
    "completed_at",
    "completion_status",
    "interruption",
    "messages",
    "total_usage",
];

/// The turns of a document as model messages, one run for each agent's turn with the user's turns
/// before it. System prompts are not in it: they never were in the document (TP-8).
pub(crate) fn model_runs(run: &ArchivedRun, pointer: &str) -> Converted<Vec<ModelRun>> {
    let mut losses = Losses::default();
    let (_, turns) = document_of(run, pointer, &mut losses);
    let mut runs = Vec::new();
    let mut asked: Vec<ModelMessage> = Vec::new();
    for (place, turn) in turns.into_iter().enumerate() {
        let at = format!("{pointer}/records/{place}");
        let Some(mut turn) = turn.into_object() else {
            losses.push(at, "what is no turn");
            continue;
        };
        match turn.get_str("turn_type") {
            Some("user") => {
                let json = model_message(turn, "request", "submitted_at").into();
                asked.push(ModelMessage { json, pointer: at });
            }
            Some("agent") => {
                for (key, _) in turn.iter().filter(|(key, _)| !KNOWN.contains(key)) {
                    let step = thread::json::pointer([thread::json::Step::Key(key)]);
                    losses.push(format!("{at}{step}"), "a member of an agent's turn");
                }
                let messages = turn.get_mut("messages").map(std::mem::take);
                let messages = messages.and_then(Json::into_array).unwrap_or_default();
                let mut said = std::mem::take(&mut asked);
                for (place, json) in messages.into_iter().enumerate() {
                    let pointer = format!("{at}/messages/{place}");
                    match message_of(json) {
                        Some(json) => said.push(ModelMessage { json, pointer }),
                        None => losses.push(pointer, "a message of no known type"),
                    }
                }
                runs.push(ModelRun {
                    agent_id: turn.get_str("agent_id").map(str::to_owned),
                    messages: said,
                    interruption: interruption(&turn),
                });
            }
            _ => losses.push(at, "a turn of no known type"),
        }
    }
    if !asked.is_empty() {
        runs.push(ModelRun {
            agent_id: None,
            messages: asked,
            interruption: None,
        });
    }
    losses.with(runs)
}

fn interruption(turn: &Object) -> Option<RunInterruption> {
    if turn.get_str("completion_status") != Some("interrupted") {
        return None;
    }
    let why = turn.get("interruption").and_then(Json::as_object);
    let text = |key: &str| why.and_then(|why| why.get_str(key)).map(str::to_owned);
    Some(RunInterruption {
        reason: text("reason").unwrap_or_else(|| "interrupted".to_owned()),
        at: text("interrupted_at"),
    })
}

fn message_of(json: Json) -> Option<Json> {
    let message = json.into_object()?;
    match message.get_str("message_type") {
        Some("request") => Some(model_message(message, "request", "timestamp").into()),
        Some("response") => Some(model_message(message, "response", "timestamp").into()),
        Some("system") => Some(message.into()),
        _ => None,
    }
}

/// A message of a model: the protocol's members under the library's names, the others as they are.
fn model_message(source: Object, kind: &str, instant: &str) -> Object {
    let mut message = Object::new();
    for (key, value) in source {
        match &*key {
            "turn_type" | "message_type" | "agent_id" => {}
            key if key == instant => {
                message.insert("timestamp", value);
            }
            _ => {
                message.insert(key, value);
            }
        }
    }
    message.with("kind", kind)
}
