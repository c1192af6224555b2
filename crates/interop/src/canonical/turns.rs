//! The turns of one run.

use super::draft::{Draft, Times};
use crate::Losses;
use crate::document::{UNNAMED, agent_id, total};
use crate::runs::{ModelRun, RunInterruption};
use thread::document::CompletionStatus;
use thread::{Json, Object, complete_cycles};

/// The member that marks a message while its cycle is checked.
const PLACE: &str = "\u{0}place";

/// A turn, and the positions of its messages in the archive.
pub(super) struct Built {
    pub(super) turn: Json,
    /// One place for each message, or the one of a user's turn; `None` for a turn of a document,
    /// which stays as it is.
    pub(super) messages: Option<Vec<String>>,
}

impl Built {
    pub(super) fn as_it_is(turn: Json) -> Self {
        Self {
            turn,
            messages: None,
        }
    }
}

/// The user's turn that began a run, if one did, and the agent's.
pub(super) fn turns(run: ModelRun, times: &mut Times, losses: &mut Losses) -> Vec<Built> {
    let mut drafts: Vec<Draft> = Vec::with_capacity(run.messages.len());
    for message in run.messages {
        drafts.extend(Draft::read(message, times, losses));
    }
    drafts.retain(|draft| !draft.is_void);
    let mut turns = Vec::new();
    let began_at = drafts.first().map(|draft| draft.timestamp.clone());
    let ended_at = drafts.last().map(|draft| draft.timestamp.clone());
    let first = drafts.iter().position(|draft| !draft.is_system);
    if let Some(first) = first.filter(|first| drafts.get(*first).is_some_and(Draft::prompts)) {
        let prompt = drafts.remove(first);
        turns.push(Built {
            messages: Some(vec![prompt.pointer.clone()]),
            turn: prompt.into_user_turn().into(),
        });
    }
    // That a run was interrupted is a fact, even if nothing of what it said can stand here.
    if !drafts.is_empty() || run.interruption.is_some() {
        let agent = run.agent_id.unwrap_or_else(|| agent_id(UNNAMED));
        let turn = Object::new()
            .with("turn_type", "agent")
            .with("agent_id", agent.as_str())
            .with_some(
                "started_at",
                began_at.or_else(|| Some(times.last().to_owned())),
            );
        let ended_at = ended_at.or_else(|| Some(times.last().to_owned()));
        let (mut places, mut messages) = (Vec::new(), Vec::new());
        for draft in drafts {
            places.push(draft.pointer.clone());
            messages.push(draft.into_message(&agent).into());
        }
        let total = total(&messages);
        let turn = match run.interruption {
            Some(why) => {
                let messages = without_cut_off(messages, &mut places, losses);
                let ending = CompletionStatus::Interrupted;
                let kept = complete(messages, ending, &mut places, losses);
                let turn = interrupted(turn, Some(why), ended_at);
                turn.with("messages", Json::Array(kept.messages))
            }
            None => turn
                .with_some("completed_at", ended_at)
                .with("completion_status", "complete")
                .with("messages", Json::Array(messages)),
        };
        turns.push(Built {
            turn: turn.with_some("total_usage", total).into(),
            messages: Some(places),
        });
    }
    turns
}

/// A turn that ended early.
pub(super) fn interrupted(
    turn: Object,
    why: Option<RunInterruption>,
    ended_at: Option<String>,
) -> Object {
    let (reason, at) = match why {
        Some(RunInterruption { reason, at }) => (reason, at),
        None => ("interrupted".to_owned(), None),
    };
    let why = Object::new()
        .with("reason", reason)
        .with_some("interrupted_at", at.or(ended_at));
    turn.with("completion_status", "interrupted")
        .with("interruption", why)
}

/// Removes answers that were cut off during generation, because their content is incomplete.
/// Answers with calls are left to the rule on cycles.
fn without_cut_off(
    messages: Vec<Json>,
    places: &mut Vec<String>,
    losses: &mut Losses,
) -> Vec<Json> {
    let whole = |message: &Json| {
        let text = |key: &str| message.get(key).and_then(Json::as_str);
        let parts = message.get("parts").and_then(Json::as_array);
        let calls = parts
            .unwrap_or_default()
            .iter()
            .any(|part| part.get("part_kind").and_then(Json::as_str) == Some("tool-call"));
        let cut = text("message_type") == Some("response") && text("state") == Some("interrupted");
        !cut || calls
    };
    keep(
        messages,
        places,
        losses,
        "an answer that was cut off",
        whole,
    )
}

fn keep(
    messages: Vec<Json>,
    places: &mut Vec<String>,
    losses: &mut Losses,
    what: &str,
    stays: impl Fn(&Json) -> bool,
) -> Vec<Json> {
    let mut kept = Vec::with_capacity(messages.len());
    for (message, place) in messages.into_iter().zip(std::mem::take(places)) {
        if stays(&message) {
            kept.push(message);
            places.push(place);
        } else {
            losses.push(place, what);
        }
    }
    kept
}

/// The messages of a turn that stay.
pub(super) struct StoredTurn {
    pub(super) messages: Vec<Json>,
    /// For each message that there was, whether it stays.
    pub(super) stays: Vec<bool>,
}

/// The complete cycles of a turn with this ending, and the positions of their messages.
pub(super) fn complete(
    mut messages: Vec<Json>,
    ending: CompletionStatus,
    places: &mut Vec<String>,
    losses: &mut Losses,
) -> StoredTurn {
    let n_parts = |message: &Json| {
        message
            .get("parts")
            .and_then(Json::as_array)
            .map(<[_]>::len)
    };
    let before: Vec<_> = messages.iter().map(n_parts).collect();
    for (place, message) in messages.iter_mut().enumerate() {
        if let Some(message) = message.as_object_mut() {
            message.insert(PLACE, place as u64);
        }
    }
    let mut kept = complete_cycles(messages, ending);
    let mut stays = vec![None; before.len()];
    for message in &mut kept {
        let mark = message
            .as_object_mut()
            .and_then(|message| message.remove(PLACE));
        let place = mark.and_then(|mark| mark.as_u64());
        let place = place.and_then(|place| usize::try_from(place).ok());
        if let Some(slot) = place.and_then(|place| stays.get_mut(place)) {
            *slot = Some(n_parts(message));
        }
    }
    let all = std::mem::take(places);
    let kept = StoredTurn {
        messages: kept,
        stays: stays.iter().map(Option::is_some).collect(),
    };
    for ((pointer, before), stays) in all.into_iter().zip(before).zip(stays) {
        let what = match stays {
            None => "a message of an incomplete cycle",
            Some(after) if after != before => "answers to calls that were left out",
            Some(_) => "",
        };
        if !what.is_empty() {
            losses.push(pointer.clone(), what);
        }
        if stays.is_some() {
            places.push(pointer);
        }
    }
    kept
}
