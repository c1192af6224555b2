//! Pydantic AI's `ModelMessages` as a ThreadProtocol document.
//!
//! A run becomes an agent's turn; the request with the prompt that began it becomes the user's turn
//! before it. Fields that the protocol doesn't know stay where they were, null ones too. System
//! prompts and instructions are configuration and never enter a document (TP-8): they are reported
//! as losses, as is what an interrupted run said beyond its complete cycles.

mod history;
mod message;
mod runs;

pub(crate) use history::model_runs;
pub use history::{append, read, write};

use crate::document::{agent_id, settle, total};
use crate::{Converted, Loss};
use message::{Draft, Times};
use runs::{Run, runs};
use thread::document::CompletionStatus;
use thread::{Json, Object, Thread, complete_cycles};

/// What a history does not say of itself.
#[derive(Clone, Copy, Debug)]
pub struct ImportOptions<'a> {
    /// The id of the thread.
    pub thread_id: &'a str,
    /// The name of the agent whose history it is.
    pub agent_name: &'a str,
    /// For people.
    pub title: Option<&'a str>,
    /// The instant of what has none, and none before it, in RFC 3339.
    pub now: &'a str,
}

/// Why a value is no history.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PydanticAiError {
    /// A history is a list.
    #[error("a history is a list of messages, not {found}")]
    NotAList {
        /// What it is instead.
        found: &'static str,
    },
    /// A message is neither a request nor a response with parts.
    #[error("{pointer}: a message is a request or a response with a list of parts")]
    NotAMessage {
        /// Where.
        pointer: String,
    },
}

/// The document of a history of one agent.
pub fn to_document(
    history: &Json,
    options: &ImportOptions<'_>,
) -> Result<Converted<Thread>, PydanticAiError> {
    let found = history.type_name();
    let messages = history
        .as_array()
        .ok_or(PydanticAiError::NotAList { found })?;
    let mut losses = Vec::new();
    let agent_id = agent_id(options.agent_name);
    let mut times = Times::new(messages, options.now);
    let first = times.last().to_owned();
    let drafts = messages
        .iter()
        .enumerate()
        .map(|(place, json)| Draft::read(json, place, &mut times, &mut losses))
        .collect::<Result<Vec<_>, _>>()?;
    let mut thread = Thread::new(options.thread_id, &first);
    if let Some(title) = options.title {
        thread.set_title(title);
    }
    thread.set_updated_at(times.last());
    let agents = Object::new().with(
        agent_id.as_str(),
        agent(&drafts, &agent_id, options, &first),
    );
    let mut turns = Vec::new();
    for run in runs(drafts) {
        push_turns(&mut turns, run, &agent_id, &mut losses);
    }
    let root = thread.root_mut();
    root.insert("agents", agents);
    root.insert("turns", Json::Array(turns));
    settle(&mut thread, &mut losses);
    Ok(Converted {
        value: thread,
        losses,
    })
}

fn agent(drafts: &[Draft<'_>], agent_id: &str, options: &ImportOptions<'_>, at: &str) -> Object {
    let last = |key: &str| {
        let mut responses = drafts.iter().rev().filter(|draft| draft.is_response());
        let found = responses.find_map(|draft| draft.text(key));
        found.map(str::to_owned)
    };
    Object::new()
        .with("agent_id", agent_id)
        .with("agent_name", options.agent_name)
        .with_some("model_name", last("model_name"))
        .with_some("provider_name", last("provider_name"))
        .with("created_at", at)
}

/// The user's turn that began a run, if one did, and the agent's.
fn push_turns(turns: &mut Vec<Json>, run: Run<'_>, agent_id: &str, losses: &mut Vec<Loss>) {
    let prompt = run.prompt.as_ref();
    let began_at = prompt.or(run.messages.first());
    let started_at = began_at.map(|draft| draft.timestamp.clone());
    let ended_at = run.messages.last().or(prompt);
    let ended_at = ended_at.map(|draft| draft.timestamp.clone());
    if let Some(prompt) = run.prompt {
        turns.push(prompt.into_user_turn().into());
    }
    if run.messages.is_empty() {
        return;
    }
    let interrupted = run.messages.iter().any(Draft::is_interrupted);
    let place = run.messages.first().map(|draft| draft.place);
    let messages: Vec<Json> = run
        .messages
        .into_iter()
        .map(|draft| draft.into_message(agent_id).into())
        .collect();
    let turn = Object::new()
        .with("turn_type", "agent")
        .with("agent_id", agent_id)
        .with_some("started_at", started_at);
    let total = total(&messages);
    let turn = if interrupted {
        let n_messages = messages.len();
        let kept = complete_cycles(without_cut_off(messages), CompletionStatus::Interrupted);
        if kept.len() < n_messages {
            losses.push(Loss {
                pointer: format!("/{}", place.unwrap_or_default()),
                what: format!("{} messages of incomplete cycles", n_messages - kept.len()),
            });
        }
        let why = Object::new()
            .with("reason", "interrupted")
            .with_some("interrupted_at", ended_at);
        turn.with("completion_status", "interrupted")
            .with("interruption", why)
            .with("messages", Json::Array(kept))
    } else {
        turn.with_some("completed_at", ended_at)
            .with("completion_status", "complete")
            .with("messages", Json::Array(messages))
    };
    turns.push(turn.with_some("total_usage", total).into());
}

/// Leaves out answers that were cut off while the model spoke: what is there of them is no whole
/// part. One with calls is left to the rule on cycles.
fn without_cut_off(mut messages: Vec<Json>) -> Vec<Json> {
    messages.retain(|message| {
        let text = |key: &str| message.get(key).and_then(Json::as_str);
        let calls = message
            .get("parts")
            .and_then(Json::as_array)
            .unwrap_or_default()
            .iter()
            .any(|part| part.get("part_kind").and_then(Json::as_str) == Some("tool-call"));
        let cut = text("message_type") == Some("response") && text("state") == Some("interrupted");
        !cut || calls
    });
    messages
}
