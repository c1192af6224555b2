//! Every call gets its answer before the next response, or goes (ruling 15).

use super::draft::{Draft, DraftPart, Kind, pointer_at};
use super::pairs::{At, Link};
use super::{RenderChange, Unanswered, What};
use crate::document::Part;
use crate::json::{Json, Object};
use std::collections::{BTreeMap, BTreeSet};

/// The text of the answer that is added to a call without one.
const NO_ANSWER: &str = "The call has no answer.";

/// Removes each response with an unanswered call, and the answers to its other calls.
fn drop_open(drafts: &mut Vec<Draft<'_>>, changes: &mut Vec<RenderChange>) {
    let answered: BTreeSet<At> = answers(drafts).collect();
    let mut dropped = BTreeSet::new();
    drafts.retain(|draft| {
        let open = calls(draft).any(|at| !answered.contains(&at));
        if open {
            changes.push(RenderChange::new(draft.pointer(), What::OpenCycleDropped));
            dropped.extend(calls(draft));
        }
        !open
    });
    let is_dropped =
        |piece: &DraftPart<'_>| answered_by(piece).is_some_and(|call| dropped.contains(&call));
    drafts.retain_mut(|draft| take_out(draft, is_dropped, What::OpenCycleDropped, changes));
}

fn calls(draft: &Draft<'_>) -> impl Iterator<Item = At> {
    let is_call = |piece: &DraftPart<'_>| matches!(piece.link, Some(Link::Call(_)));
    draft
        .parts
        .iter()
        .filter(move |piece| is_call(piece))
        .map(|piece| piece.at)
}

/// Each call that has an answer.
fn answers(drafts: &[Draft<'_>]) -> impl Iterator<Item = At> {
    let pieces = drafts.iter().flat_map(|draft| &draft.parts);
    pieces.filter_map(answered_by)
}

/// The call that a part answers.
fn answered_by(piece: &DraftPart<'_>) -> Option<At> {
    if let Some(Link::Answer(call, _)) = piece.link {
        return Some(call);
    }
    None
}

/// Removes parts from a message; returns whether the message stays.
fn take_out(
    draft: &mut Draft<'_>,
    goes: impl Fn(&DraftPart<'_>) -> bool,
    what: What,
    changes: &mut Vec<RenderChange>,
) -> bool {
    let before = draft.parts.len();
    draft.parts.retain(|piece| {
        let gone = goes(piece);
        if gone {
            changes.push(RenderChange::new(pointer_at(piece.at), what));
        }
        !gone
    });
    let left = before == draft.parts.len() || !draft.parts.is_empty();
    if !left {
        changes.push(RenderChange::new(draft.pointer(), What::EmptyMessage));
    }
    left
}

/// Places every answer directly after the response with its call. An answer at a later position is
/// moved there. A call without an answer gets one, after the existing ones. Only the viewing
/// agent's own pending calls at the very end stay open, for the caller to answer.
pub(super) fn close_open_calls<'a>(
    mut drafts: Vec<Draft<'a>>,
    unanswered: Unanswered,
    pending: &BTreeSet<At>,
    changes: &mut Vec<RenderChange>,
) -> Vec<Draft<'a>> {
    if unanswered == Unanswered::Drop {
        drop_open(&mut drafts, changes);
    }
    let plan = Plan::new(&drafts, pending);
    let left = plan.left_open.iter();
    changes.extend(left.map(|at| RenderChange::new(pointer_at(*at), What::PendingCallLeftOpen)));
    if plan.moves.is_empty() && plan.lacking.is_empty() {
        return drafts;
    }
    plan.carry_out(drafts, changes)
}

/// The calls with an answer at the wrong position, those without an answer, and those that may stay
/// without one.
#[derive(Default)]
struct Plan {
    moves: BTreeSet<At>,
    lacking: BTreeSet<At>,
    left_open: BTreeSet<At>,
}

impl Plan {
    fn new(drafts: &[Draft<'_>], pending: &BTreeSet<At>) -> Self {
        let standing: BTreeSet<At> = answers(drafts).collect();
        let mut plan = Self::default();
        let mut end = drafts.len();
        for (place, draft) in drafts.iter().enumerate().rev() {
            if draft.kind != Kind::Response {
                continue;
            }
            let window = drafts.get(place + 1..end).unwrap_or_default();
            let (in_place, is_all) = leading_answers(window);
            let is_own_end = end == drafts.len() && draft.foreign.is_none() && is_all;
            for at in calls(draft).filter(|at| !in_place.contains(at)) {
                if standing.contains(&at) {
                    plan.moves.insert(at);
                } else if is_own_end && pending.contains(&at) {
                    plan.left_open.insert(at);
                } else {
                    plan.lacking.insert(at);
                }
            }
            end = place;
        }
        plan
    }

    fn carry_out<'a>(
        &self,
        mut drafts: Vec<Draft<'a>>,
        changes: &mut Vec<RenderChange>,
    ) -> Vec<Draft<'a>> {
        let mut moved = self.take_moving(&mut drafts, changes);
        let mut settled: Vec<Draft<'a>> = Vec::with_capacity(drafts.len());
        let mut due: Option<Draft<'a>> = None;
        let mut made_up: Option<Draft<'a>> = None;
        for mut draft in drafts {
            if let Some(mut answers) = due.take() {
                if draft.kind == Kind::Request {
                    answers.parts.append(&mut draft.parts);
                    draft.parts = answers.parts;
                } else {
                    settled.push(answers);
                }
            }
            if draft.kind == Kind::Response {
                settle_made_up(&mut settled, made_up.take());
                (due, made_up) = self.due(&draft, &mut moved, changes);
            } else {
                put_made_up(&mut settled, &mut draft, &mut made_up);
            }
            settled.push(draft);
        }
        settled.extend(due);
        settle_made_up(&mut settled, made_up);
        settled
    }

    /// Removes the answers to move from their old positions.
    fn take_moving<'a>(
        &self,
        drafts: &mut Vec<Draft<'a>>,
        changes: &mut Vec<RenderChange>,
    ) -> BTreeMap<At, DraftPart<'a>> {
        let mut moved = BTreeMap::new();
        let answer_to =
            |piece: &DraftPart<'_>| answered_by(piece).filter(|call| self.moves.contains(call));
        drafts.retain_mut(|draft| {
            let pieces = draft.parts.iter();
            moved.extend(pieces.filter_map(|piece| Some((answer_to(piece)?, piece.clone()))));
            let goes = |piece: &DraftPart<'_>| answer_to(piece).is_some();
            take_out(draft, goes, What::AnswerMoved, changes)
        });
        moved
    }

    /// The answers that a response still lacks, in the order of its calls: a request with the moved
    /// ones, and a request with the generated ones.
    fn due<'a>(
        &self,
        response: &Draft<'a>,
        moved: &mut BTreeMap<At, DraftPart<'a>>,
        changes: &mut Vec<RenderChange>,
    ) -> (Option<Draft<'a>>, Option<Draft<'a>>) {
        let (mut came, mut made_up) = (Vec::new(), Vec::new());
        for piece in &response.parts {
            if let Some(answer) = moved.remove(&piece.at) {
                came.push(answer);
            } else if self.lacking.contains(&piece.at) {
                let at = piece.at;
                let json = no_answer(Part::new(&piece.json), response.timestamp.clone());
                let link = Some(Link::Answer(at, response.foreign));
                changes.push(RenderChange::new(
                    pointer_at(at),
                    What::AnsweredAsInterrupted,
                ));
                made_up.push(DraftPart { json, at, link });
            }
        }
        let request = |parts: Vec<DraftPart<'a>>| {
            let timestamp = response.timestamp.clone();
            (!parts.is_empty()).then(|| Draft::request(response.location, timestamp, parts))
        };
        (request(came), request(made_up))
    }
}

/// Adds generated answers after the last existing one, before other parts of a request.
fn put_made_up<'a>(
    settled: &mut [Draft<'a>],
    request: &mut Draft<'a>,
    made_up: &mut Option<Draft<'a>>,
) {
    let parts = request.parts.iter();
    let n_answers = parts
        .take_while(|piece| answered_by(piece).is_some())
        .count();
    if n_answers == request.parts.len() {
        return;
    }
    let Some(answers) = made_up.take() else {
        return;
    };
    match settled.last_mut() {
        Some(before) if n_answers == 0 && before.kind == Kind::Request => {
            before.parts.extend(answers.parts);
        }
        Some(_) | None => {
            request.parts.splice(n_answers..n_answers, answers.parts);
        }
    }
}

/// Adds generated answers to the previous request, or to a request of their own.
fn settle_made_up<'a>(settled: &mut Vec<Draft<'a>>, made_up: Option<Draft<'a>>) {
    let Some(answers) = made_up else {
        return;
    };
    match settled.last_mut() {
        Some(before) if before.kind == Kind::Request => before.parts.extend(answers.parts),
        Some(_) | None => settled.push(answers),
    }
}

/// The calls whose answers come before any other part, and whether there are only answers.
fn leading_answers(window: &[Draft<'_>]) -> (BTreeSet<At>, bool) {
    let mut leading = BTreeSet::new();
    for piece in window.iter().flat_map(|draft| &draft.parts) {
        let Some(call) = answered_by(piece) else {
            return (leading, false);
        };
        leading.insert(call);
    }
    (leading, true)
}

/// The answer that is added to a call without one, as Pydantic AI 2 writes it.
fn no_answer(call: Part<'_>, timestamp: Option<Json>) -> Json {
    Object::new()
        .with("part_kind", "tool-return")
        .with("tool_name", call.tool_name().unwrap_or_default())
        .with("tool_call_id", call.tool_call_id().unwrap_or_default())
        .with("status", "error")
        .with("content", NO_ANSWER)
        .with_some("timestamp", timestamp)
        .with("outcome", "interrupted")
        .into()
}
