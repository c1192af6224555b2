//! Which executions continue the run of the one before them.

use crate::parts::EventPart;
use serde::Deserialize;
use timeline::{Answer, Execution, ExecutionStatus, Item, ItemType, Payload, Reaction};

/// The member of an execution's `run` that counts the handoffs before it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Handoffs {
    handoffs: u32,
}

/// Whether this item brings answers to calls.
pub fn answers(item: &Item) -> bool {
    item.item_type == ItemType::ActionResult && Answer::read(item.content.as_ref()).is_ok()
}

/// Whether an execution continues the run of the one before it on its thread: it acts on answers, or
/// an agent handed over to its own. `trigger` is the item that it answers.
pub fn continues(execution: &Execution, trigger: Option<&Item>) -> bool {
    trigger.is_some_and(answers) || has_handoffs(execution)
}

/// Whether an agent handed over to the one of this execution.
fn has_handoffs(execution: &Execution) -> bool {
    let run = execution.run.as_ref();
    let run: Option<Handoffs> = run.and_then(|run| run.read().ok());
    run.unwrap_or_default().handoffs > 0
}

/// Whether a part of a step hands the run over to another agent.
pub fn is_handoff(part: &Payload) -> bool {
    EventPart::read(part).is_some_and(|event| event.is_handoff())
}

/// Whether another execution continues the run of this one, because its agent handed over.
pub fn hands_over(reaction: &Reaction) -> bool {
    let last = reaction.steps.last();
    let parts = last.map(|step| step.parts.as_slice()).unwrap_or_default();
    reaction.execution.status == ExecutionStatus::Completed
        && parts.iter().any(|part| is_handoff(&part.part))
}
