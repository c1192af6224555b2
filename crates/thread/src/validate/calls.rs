//! Calls and answers (rule 2) and complete cycles (0.0.4).

use super::{Report, Rule};
use crate::cycles::{CallSite, Finding, Ledger, Reason};
use crate::document::{Thread, Version};
use crate::upgrade::Origin;

/// Checks that calls and answers match; `origin` has the positions of the turns in the source.
pub(super) fn check(report: &mut Report<'_>, thread: &Thread, origin: &Origin) {
    let pointer = |place: CallSite, key: &str| {
        format!(
            "{}/{key}",
            origin.part(place.turn, place.message, place.part)
        )
    };
    let unanswered = if report.version >= Version::V0_0_4 {
        Rule::CompleteCycle
    } else {
        Rule::CallUnanswered
    };
    for finding in Ledger::read(thread) {
        match finding {
            Finding::Unanswered {
                reason: Reason::Pending,
                ..
            } => {}
            Finding::Unanswered { call, reason } => {
                let pointer = origin.part(call.turn, Some(call.message), call.part);
                report.add_at(unanswered, pointer, explain(reason));
            }
            Finding::Orphan { place, id } => {
                let message = format!("no call {id:?} is open here");
                report.add_at(Rule::ToolCallId, pointer(place, "tool_call_id"), message);
            }
            Finding::Repeated { place, id } => {
                let message = format!("the id {id:?} comes twice in one cycle");
                report.add_at(
                    Rule::ToolCallIdRepeated,
                    pointer(place, "tool_call_id"),
                    message,
                );
            }
            Finding::Misplaced { place, is_call } => {
                let message = if is_call {
                    "only a response calls a tool"
                } else {
                    "a response answers no call"
                };
                let pointer = origin.part(place.turn, place.message, place.part);
                report.add_at(Rule::ToolPosition, pointer, message);
            }
            Finding::Renamed { place, name } => {
                let message = format!("{name:?} is not the tool that was called");
                report.add_at(Rule::ToolName, pointer(place, "tool_name"), message);
            }
        }
    }
}

fn explain(reason: Reason) -> &'static str {
    match reason {
        Reason::Pending => "the call waits for its answer",
        Reason::Overtaken => "the call has no answer before the next response",
        Reason::Interrupted => "the turn was interrupted before the call had an answer",
        Reason::NotLast => "the call has no answer, and its turn is not the last of an agent",
    }
}
