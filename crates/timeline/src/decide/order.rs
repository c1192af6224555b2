//! The order within a step (EK §6 and §7, ruling 2): the reactor responds, its calls start and have
//! results, and then the step is complete.
//!
//! Only commands are checked. Logs of earlier versions are read without the check.

use super::Rejected;
use crate::content::{MessagePartKind, part_kind};
use crate::entity::{OpenCall, StepOutcome};
use crate::payload::Payload;
use crate::state::{Active, ActiveStep};

/// Rejects the start of a call that the step neither made nor has an answer to.
pub(super) fn check_call(active: &Active, step: &ActiveStep, id: &str) -> Result<(), Rejected> {
    let was_left = active.open_calls.iter().any(|call| call.tool_call_id == id);
    let mut calls = step.parts.iter().filter_map(call_of);
    if was_left || calls.any(|(call, _)| call == id) {
        return Ok(());
    }
    Err(Rejected::UnknownCall {
        step_id: step.step.id.clone(),
        call: id.to_owned(),
    })
}

/// Rejects completing a step whose reactor has not responded or whose calls are unfinished.
pub(super) fn check_step(
    step: &ActiveStep,
    outcome: &StepOutcome,
    goes_on: bool,
) -> Result<(), Rejected> {
    if step.response.is_none() {
        return Err(Rejected::NotResponded(step.step.id.clone()));
    }
    let Some(left) = &outcome.open_calls else {
        let calls = step.parts.iter().filter_map(call_of);
        return match calls.into_iter().find(|(_, is_answered)| !is_answered) {
            None => Ok(()),
            Some((call, _)) => Err(Rejected::CallRunning {
                step_id: step.step.id.clone(),
                call,
            }),
        };
    };
    match OpenCall::list(Some(left)).into_iter().next() {
        Some(call) if goes_on => Err(Rejected::CallWaits(call.tool_call_id)),
        Some(_) | None => Ok(()),
    }
}

/// The id of the call in this part, and whether it has a result; `None` if the part is not a call.
fn call_of(part: &Payload) -> Option<(String, bool)> {
    let MessagePartKind::Tool(_) = part_kind(&part.str_field("type")?)? else {
        return None;
    };
    let state = part.str_field("state").unwrap_or_default();
    let is_answered = matches!(&*state, "output-available" | "output-error");
    Some((part.str_field("toolCallId")?, is_answered))
}

#[cfg(test)]
mod tests;
