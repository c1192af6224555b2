//! Positions of items, executions and steps in a log.

use crate::StoreError;
use futures_util::future::BoxFuture;
use timeline::{Execution, ExecutionId, ItemId, ItemType, Removed, Seq, StepId, ThreadId};

/// Something in a log that can be looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landmark<'a> {
    /// An item. A trigger that had to wait is found at the start of its execution.
    Item(&'a ItemId),
    /// An execution.
    Execution(&'a ExecutionId),
    /// A step.
    Step(&'a StepId),
}

/// The part of a log before or after an event, without that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The events before this one.
    Before(Seq),
    /// The events after this one.
    After(Seq),
}

/// An execution as its log has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundExecution {
    /// The execution.
    pub execution_id: ExecutionId,
    /// The position of its trigger.
    pub trigger: Seq,
    /// The type of its trigger.
    pub trigger_type: ItemType,
    /// Whether it continues the execution before it ([`FoundExecution::continues`]).
    pub goes_on: bool,
    /// Its first event.
    pub created: Seq,
    /// Its last event, `thread.finished`; `None` while it runs.
    pub finished: Option<Seq>,
}

impl FoundExecution {
    /// Whether an execution with a trigger of this type continues the previous one on its thread: it
    /// acts on answers to that one's calls, or follows a handoff.
    pub fn continues(execution: &Execution, trigger: ItemType) -> bool {
        trigger == ItemType::ActionResult || execution.follows_handoff()
    }
}

/// Positions in the log of one thread. A fork's inherited records are found in its parent's log.
///
/// Each method costs one look-up in an index, independent of the log's length.
pub trait LogIndex: Send + Sync {
    /// The event that made something, if this log has made it.
    fn position_of<'a>(
        &'a self,
        thread: &'a ThreadId,
        landmark: Landmark<'a>,
    ) -> BoxFuture<'a, Result<Option<Seq>, StoreError>>;

    /// The events on this side at which an agent read messages, nearest first and at most `limit`:
    /// messages recorded, or triggers of executions.
    fn nearest_triggers<'a>(
        &'a self,
        thread: &'a ThreadId,
        side: Side,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Seq>, StoreError>>;

    /// The nearest execution that was created on this side.
    fn nearest_run<'a>(
        &'a self,
        thread: &'a ThreadId,
        side: Side,
    ) -> BoxFuture<'a, Result<Option<FoundExecution>, StoreError>>;

    /// The positions at which the log removed these; others are left out.
    fn removals<'a>(
        &'a self,
        thread: &'a ThreadId,
        of: Vec<Removed>,
    ) -> BoxFuture<'a, Result<Vec<(Removed, Seq)>, StoreError>>;

    /// The events before `before` that compacted the thread, newest first and at most `limit`.
    /// Withdrawn compactions are among them.
    fn compactions<'a>(
        &'a self,
        thread: &'a ThreadId,
        before: Seq,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Seq>, StoreError>>;
}
