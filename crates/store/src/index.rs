//! Where in a log the things are that it has made.

use crate::Run;
use timeline::{Execution, ExecutionId, ItemId, ItemType, Seq, StepId};

/// Something in a log that can be looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landmark<'a> {
    /// An item. One that an execution answers though it had to wait stands where that began.
    Item(&'a ItemId),
    /// An execution.
    Execution(&'a ExecutionId),
    /// A step.
    Step(&'a StepId),
}

/// An execution as its log has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// The execution.
    pub execution_id: ExecutionId,
    /// Where the item was kept that it answers.
    pub trigger: Seq,
    /// What that item is.
    pub trigger_type: ItemType,
    /// Whether it goes on with the execution before it ([`Ran::continues`]).
    pub goes_on: bool,
    /// Its first event.
    pub created: Seq,
    /// Its last event, `thread.finished`; none while it runs.
    pub finished: Option<Seq>,
}

impl Ran {
    /// Whether an execution with a trigger of this type goes on with the one before it on its thread:
    /// it acts on answers to that one's calls, or an agent has handed over to its own.
    pub fn continues(execution: &Execution, trigger: ItemType) -> bool {
        trigger == ItemType::ActionResult || Run::of(execution.run.as_ref()).handoffs > 0
    }
}
