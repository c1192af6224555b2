//! The tool traffic of other agents: hidden or summarised.

use super::alter::text_part;
use super::draft::{Draft, Piece, pointer_at};
use super::pairs::{Link, Pairs};
use super::{Change, What};
use crate::document::{Part, PartKind};

/// Takes out the calls of other agents and the answers to them, wherever they stand.
pub(super) fn hide(draft: &mut Draft<'_>, changes: &mut Vec<Change>) {
    take_out(draft, What::ToolTrafficHidden, changes);
}

/// Puts one text in the place of the calls of a response, which says how each ended.
pub(super) fn summarise(draft: &mut Draft<'_>, pairs: &Pairs<'_>, changes: &mut Vec<Change>) {
    let calls = draft.parts.iter().enumerate();
    let calls = calls.filter(|(_, piece)| matches!(piece.link, Some(Link::Call(Some(_)))));
    let mut place = None;
    let mut sentences = Vec::new();
    for (n, piece) in calls {
        place.get_or_insert((n, piece.at));
        let name = Part::new(&piece.json).tool_name().unwrap_or("a tool");
        let ending = pairs.answer(piece.at).map_or("got no answer", ending);
        sentences.push(format!("called {name} and {ending}"));
    }
    if let Some((n, at)) = place {
        let json = text_part(&sentences.join("; "));
        let link = None;
        // Answers never stand in a response, so nothing before the first call is taken out.
        take_out(draft, What::ToolTrafficSummarised, changes);
        draft.parts.insert(n, Piece { json, at, link });
    } else {
        take_out(draft, What::ToolTrafficSummarised, changes);
    }
}

fn take_out(draft: &mut Draft<'_>, what: What, changes: &mut Vec<Change>) {
    draft.parts.retain(|piece| {
        let foreign = is_foreign(piece);
        if foreign {
            changes.push(Change::new(pointer_at(piece.at), what));
        }
        !foreign
    });
}

fn is_foreign(piece: &Piece<'_>) -> bool {
    matches!(
        piece.link,
        Some(Link::Call(Some(_)) | Link::Answer(_, Some(_)))
    )
}

/// How a call ended, by what its answer says of itself.
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
