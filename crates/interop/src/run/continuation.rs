//! Which executions continue the previous run.

use crate::parts::EventPart;
use timeline::{Answer, Execution, ExecutionStatus, Item, ItemType, Payload, Reaction};

/// Whether this item brings answers to calls.
pub fn answers(item: &Item) -> bool {
    item.item_type == ItemType::ActionResult && Answer::read(item.content.as_ref()).is_ok()
}

/// Whether an execution continues the previous run on its thread: it acts on answers, or follows a
/// handoff. `trigger` is the item that it answers.
pub fn continues(execution: &Execution, trigger: Option<&Item>) -> bool {
    trigger.is_some_and(answers) || execution.follows_handoff()
}

/// Whether a part of a step hands the run over to another agent.
pub fn is_handoff(part: &Payload) -> bool {
    EventPart::read(part)
        .as_ref()
        .is_some_and(EventPart::is_handoff)
}

/// Whether another execution continues the run of this one, because its agent handed over.
pub fn hands_over(reaction: &Reaction) -> bool {
    let last = reaction.steps.last();
    let parts = last.map(|step| step.parts.as_slice()).unwrap_or_default();
    reaction.execution.status == ExecutionStatus::Completed
        && parts.iter().any(|part| is_handoff(&part.part))
}
