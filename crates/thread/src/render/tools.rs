//! The tool traffic of other agents: hidden or summarised.

use super::alter::text_part;
use super::draft::{Draft, DraftPart, pointer_at};
use super::pairs::{Link, Pairs};
use super::{RenderChange, What};
use crate::document::{Part, PartKind};
use std::collections::BTreeMap;

/// Removes the calls of other agents and their answers, at all positions.
pub(super) fn hide(draft: &mut Draft<'_>, changes: &mut Vec<RenderChange>) {
    take_out(draft, What::ToolTrafficHidden, changes);
}

/// Replaces the calls of a response by one text, which reports how each ended.
pub(super) fn summarise(draft: &mut Draft<'_>, pairs: &Pairs<'_>, changes: &mut Vec<RenderChange>) {
    let returned: BTreeMap<_, _> = draft
        .parts
        .iter()
        .filter(|piece| by_provider(draft, piece) == Some(Traffic::Answer))
        .map(|piece| Part::new(&piece.json))
        .map(|part| (part.tool_call_id(), part))
        .collect();
    let mut place = None;
    let mut n_before = 0;
    let mut sentences = Vec::new();
    for piece in &draft.parts {
        let traffic = traffic(draft, piece);
        if traffic == Some(Traffic::Call) {
            place.get_or_insert((n_before, piece.at));
            let part = Part::new(&piece.json);
            let name = part.tool_name().unwrap_or("a tool");
            let answer = match piece.link {
                Some(_) => pairs.answer(piece.at),
                None => returned.get(&part.tool_call_id()).copied(),
            };
            let ending = answer.map_or("got no answer", ending);
            sentences.push(format!("called {name} and {ending}"));
        }
        n_before += usize::from(traffic.is_none());
    }
    take_out(draft, What::ToolTrafficSummarised, changes);
    if let Some((n, at)) = place {
        let json = text_part(&sentences.join("; "));
        let link = None;
        draft.parts.insert(n, DraftPart { json, at, link });
    }
}

fn take_out(draft: &mut Draft<'_>, what: What, changes: &mut Vec<RenderChange>) {
    let parts = std::mem::take(&mut draft.parts);
    let (gone, left) = parts
        .into_iter()
        .partition(|piece| traffic(draft, piece).is_some());
    draft.parts = left;
    let gone: Vec<DraftPart<'_>> = gone;
    changes.extend(
        gone.iter()
            .map(|piece| RenderChange::new(pointer_at(piece.at), what)),
    );
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Traffic {
    Call,
    Answer,
}

/// Whether a part is a call of another agent, or the answer to one.
fn traffic(draft: &Draft<'_>, piece: &DraftPart<'_>) -> Option<Traffic> {
    match piece.link {
        Some(Link::Call(Some(_))) => Some(Traffic::Call),
        Some(Link::Answer(_, Some(_))) => Some(Traffic::Answer),
        Some(_) => None,
        None => by_provider(draft, piece),
    }
}

/// Classifies parts of tools that another agent's provider ran by itself.
fn by_provider(draft: &Draft<'_>, piece: &DraftPart<'_>) -> Option<Traffic> {
    draft.foreign?;
    match Part::new(&piece.json).kind() {
        PartKind::Other("builtin-tool-call") => Some(Traffic::Call),
        PartKind::Other("builtin-tool-return") => Some(Traffic::Answer),
        PartKind::UserPrompt
        | PartKind::Text
        | PartKind::Thinking
        | PartKind::ToolCall
        | PartKind::ToolReturn
        | PartKind::RetryPrompt
        | PartKind::File
        | PartKind::SystemPrompt
        | PartKind::Other(_)
        | PartKind::Missing => None,
    }
}

/// How a call ended, from the outcome of its answer.
fn ending(answer: Part<'_>) -> &'static str {
    let outcome = answer.object().and_then(|part| part.get_str("outcome"));
    let failed = answer.kind() == PartKind::RetryPrompt
        || matches!(answer.status(), Some("error" | "validation_error"))
        || matches!(
            outcome,
            Some("failed" | "denied" | "interrupted" | "retried")
        );
    if failed {
        "got an error"
    } else {
        "got an answer"
    }
}
