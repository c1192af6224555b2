//! What a task asks by AITP, and what its sub-agents ask, in its stream. What of that is open, the task's log alone
//! does not say.

use super::super::reply::{Asked, asked_parts};
use super::super::requests::{self, AskedRequest, goes_on_id};
use super::super::state::TaskState;
use super::{Phase, TaskView};
use jiff::Timestamp;
use serde_json::Value;
use timeline::ExecutionId;

/// What a view knows of what the task has asked.
#[derive(Clone, Debug, Default)]
pub(super) struct Asking {
    /// How many messages have gone on with the task, once something was answered.
    pub(super) n_went_on: usize,
    /// Whether something that was said may have asked something.
    pub(super) may_ask: bool,
    /// Whether requests that were open may be no longer.
    pub(super) is_stirred: bool,
}

impl TaskView {
    /// A view of a task that waits for answers to what it has asked by AITP, from where it does.
    #[must_use]
    pub fn resting(mut self) -> Self {
        (self.asking.may_ask, self.asking.is_stirred) = (true, true);
        Self {
            phase: Phase::Rests,
            ..self
        }
    }

    /// Whether it is to be told which requests of the task are open ([`TaskView::requests`]), before anything
    /// else that happens.
    pub fn wants_requests(&self) -> bool {
        match self.phase {
            Phase::Ended(..) => true,
            // Who goes on with the task has the last word.
            Phase::Rests => self.asking.is_stirred && self.goes_on.is_empty(),
            Phase::Waits
            | Phase::Runs(_)
            | Phase::HandedOver
            | Phase::Asks
            | Phase::Left(..)
            | Phase::Over => false,
        }
    }

    /// Whether it is to be told which calls of the task wait ([`TaskView::calls`]), before anything else that happens.
    pub fn wants_calls(&self) -> bool {
        matches!(self.phase, Phase::Left(..))
    }

    /// Takes which calls of the task wait, those of its sub-agents among them, and the execution of it that ran last.
    /// What that is to the reader.
    pub fn calls(&mut self, calls: Option<&[Asked]>, last: Option<&ExecutionId>) -> Vec<Value> {
        if let Phase::Left(execution, at) = self.phase.clone() {
            match calls.filter(|_| last == Some(&execution)) {
                Some(asked) => {
                    let parts = Some(asked_parts(asked));
                    self.ended_with((TaskState::InputRequired, parts), &execution, at);
                }
                // The log tells what has become of them, and this view has not come so far.
                None => self.phase = Phase::Asks,
            }
        }
        std::mem::take(&mut self.out)
    }

    /// Has it look again whether requests are open: time has passed.
    pub fn stir(&mut self) {
        self.asking.is_stirred = true;
    }

    /// The same view, for one that has seen so many messages go on with the task.
    #[must_use]
    pub fn after_answers(mut self, n_went_on: usize) -> Self {
        self.asking.n_went_on = n_went_on;
        self
    }

    /// The same view, for one that has seen the last message that goes on with the task, and not what comes of it.
    #[must_use]
    pub fn awaiting_answer(mut self) -> Self {
        let id = goes_on_id(&self.trigger, self.asking.n_went_on);
        self.goes_on.insert(id);
        self
    }

    /// Takes which requests of the task are open at this instant, and how many messages have gone on with it. What
    /// that is to the reader.
    pub fn requests(
        &mut self,
        (open, n_went_on): (&[AskedRequest], usize),
        now: Timestamp,
    ) -> Vec<Value> {
        self.asking.is_stirred = false;
        // Then the log tells what has become of them, and this view has not come so far.
        let is_behind = n_went_on > self.asking.n_went_on;
        match (self.phase.clone(), open) {
            (Phase::Ended(..), _) if is_behind => self.phase = Phase::Rests,
            (Phase::Ended(execution, at), []) => {
                self.ended_with((TaskState::Completed, None), &execution, at);
            }
            (Phase::Ended(execution, at), [_, ..]) => {
                let parts = requests::asked_parts(open);
                self.ended_with((TaskState::InputRequired, Some(parts)), &execution, at);
            }
            // They were settled otherwise.
            (Phase::Rests, []) if !is_behind => self.end(TaskState::Completed, now, None),
            (
                Phase::Waits
                | Phase::Runs(_)
                | Phase::HandedOver
                | Phase::Asks
                | Phase::Left(..)
                | Phase::Rests
                | Phase::Over,
                _,
            ) => {}
        }
        std::mem::take(&mut self.out)
    }
}
