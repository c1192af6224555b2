//! The reasons why a command is rejected.

use crate::change::Removed;
use crate::content::ContentError;
use crate::entity::OpenKind;
use crate::ids::{ExecutionId, ItemId, StepId};
use crate::status::IllegalTransition;

/// The reason why a command is rejected. A rejected command changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// A status can't move that way.
    #[error(transparent)]
    Transition(#[from] IllegalTransition),
    /// Something in a part or in an item's content.
    #[error(transparent)]
    Content(#[from] ContentError),
    /// The thread is not made yet.
    #[error("the thread does not exist")]
    NoThread,
    /// The thread is made already.
    #[error("the thread exists already")]
    ThreadExists,
    /// An execution runs.
    #[error("execution {0} is running on this thread")]
    Busy(ExecutionId),
    /// No execution runs.
    #[error("no execution is running on this thread")]
    NotRunning,
    /// The execution has no running step.
    #[error("execution {0} has no running step")]
    NoStep(ExecutionId),
    /// The execution still has a running step.
    #[error("step {0} is still running")]
    StepRunning(StepId),
    /// The model has answered in this step already.
    #[error("the model has answered in step {0} already")]
    AlreadyResponded(StepId),
    /// The reactor has not responded in this step, so it is not complete (EK §6).
    #[error("the reactor has not responded in step {0}, so the step can't be complete")]
    NotResponded(StepId),
    /// A call of the step has no result, and the step's outcome does not list it as open (ruling
    /// 2).
    #[error(
        "the tool call {call:?} of step {step_id} has no result, and the outcome does not leave it open"
    )]
    CallRunning {
        /// The step.
        step_id: StepId,
        /// The call.
        call: String,
    },
    /// Another step would follow while calls are pending (ruling 2).
    #[error("the tool call {0:?} waits for an answer, so no other step can follow")]
    CallWaits(String),
    /// The step did not make the call and has no answer to it.
    #[error("step {step_id} has no tool call {call:?} to start")]
    UnknownCall {
        /// The step.
        step_id: StepId,
        /// The call.
        call: String,
    },
    /// The part's position would leave a gap.
    #[error("part {idx} of step {step_id} would leave a gap: there are {n_parts}")]
    PartGap {
        /// The step.
        step_id: StepId,
        /// The position.
        idx: u32,
        /// The number of existing parts.
        n_parts: usize,
    },
    /// Answers with attached messages must answer all pending calls.
    #[error("the call {0:?} waits for an answer too; say more when every call has its answer")]
    Unanswered(String),
    /// No trigger is waiting.
    #[error("no trigger is waiting on this thread")]
    NothingWaits,
    /// A chunk that only the runtime writes (EK §11).
    #[error("chunks of type {0:?} are the runtime's own")]
    Reserved(String),
    /// A message lacks a role, or an item of another type has one.
    #[error("an item of type message has a role, and only such an item")]
    Role,
    /// The answer is for a call that is not pending, or not any more.
    #[error("no tool call {0:?} of this thread waits for an answer")]
    NotOpen(String),
    /// The call requires another kind of answer, or waits for other calls.
    #[error("the tool call {call:?} waits for {}", waited(*.kind))]
    WrongAnswer {
        /// The call.
        call: String,
        /// The kind of answer that the call needs.
        kind: OpenKind,
    },
    /// The call already has an answer.
    #[error("the tool call {0:?} is answered already")]
    AnsweredAlready(String),
    /// The thread is closed for good.
    #[error("the thread is closed")]
    Closed,
    /// There is nothing of this id to remove.
    #[error("there is no {0} on this thread")]
    NotThere(Removed),
    /// It is already removed.
    #[error("{0} is removed already")]
    RemovedAlready(Removed),
    /// The item or step waits for an execution or belongs to a running one.
    #[error("{0} can't be removed while it waits for an execution or is of one that runs")]
    StillNeeded(Removed),
    /// The item is the reaction of an execution.
    #[error("item {0} is what an execution writes; remove its steps instead")]
    Written(ItemId),
    /// Calls of the step were left pending, so later steps depend on it.
    #[error("step {0} has calls that were left for somebody to answer, so it can't be removed")]
    LeftOpen(StepId),
    /// Something else was posted since the call was made.
    #[error(
        "the tool call {0:?} no longer waits: a new message, a cancel or a close has withdrawn it"
    )]
    Superseded(String),
}

fn waited(kind: OpenKind) -> &'static str {
    match kind {
        OpenKind::Approval => "an approval or a denial",
        OpenKind::External => "a result",
        OpenKind::Others => "other calls that wait",
        OpenKind::Child => "its sub-agent, whose own calls can be answered",
    }
}
