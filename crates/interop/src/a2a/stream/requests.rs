//! The questions of a task in its stream: its AITP requests, and the pending calls of its sub-agents.
//! The task's log alone does not show which of them are open.

use super::super::reply::{PendingCallView, question_parts};
use super::super::requests::{
    PendingRequestView, continuation_id, question_parts as request_parts,
};
use super::super::state::TaskState;
use super::{Phase, TaskView};
use jiff::Timestamp;
use serde_json::Value;
use timeline::ExecutionId;

/// The AITP requests of a task, as far as its view knows them.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenRequests {
    /// How many messages have continued the task with an answer.
    pub(super) n_answers: usize,
    /// Whether a part of an answer may be a request.
    pub(super) may_exist: bool,
    /// Whether open requests may have been settled.
    pub(super) may_have_changed: bool,
}

impl TaskView {
    /// A view of a task with open AITP requests, starting where it waits for answers.
    #[must_use]
    pub fn resting(mut self) -> Self {
        (self.requests.may_exist, self.requests.may_have_changed) = (true, true);
        self.phase = Phase::Rests;
        self
    }

    /// Whether it needs the open requests of the task ([`TaskView::requests`]) before the next record.
    pub fn wants_requests(&self) -> bool {
        match self.phase {
            Phase::Ended(..) => true,
            // The execution that continues the task decides.
            Phase::Rests => self.requests.may_have_changed && self.continuations.is_empty(),
            Phase::Runs | Phase::Asks | Phase::Left(..) | Phase::Over => false,
        }
    }

    /// Whether the caller must pass the task's pending calls to [`TaskView::calls`] before the next
    /// record.
    pub fn wants_calls(&self) -> bool {
        matches!(self.phase, Phase::Left(..))
    }

    /// Takes the task's pending calls, including those of its sub-agents, and the task's last
    /// execution. Returns the `StreamResponse` objects.
    pub fn calls(
        &mut self,
        calls: Option<&[PendingCallView]>,
        last: Option<&ExecutionId>,
    ) -> Vec<Value> {
        if let Phase::Left(execution, at) = self.phase.clone() {
            match calls.filter(|_| last == Some(&execution)) {
                Some(asked) => {
                    let parts = Some(question_parts(asked));
                    self.end_with((TaskState::InputRequired, parts), &execution, at);
                }
                // They were settled later in the log, and this view is not there yet.
                None => self.phase = Phase::Asks,
            }
        }
        std::mem::take(&mut self.out)
    }

    /// Has the view check again whether requests are open: one may have expired.
    pub fn check_requests(&mut self) {
        self.requests.may_have_changed = true;
    }

    /// A view from after this many messages that continued the task with an answer.
    #[must_use]
    pub fn after_answers(mut self, n_answers: usize) -> Self {
        self.requests.n_answers = n_answers;
        self
    }

    /// A view that starts after the last message that continued the task, and before that message's
    /// execution.
    #[must_use]
    pub fn awaiting_answer(mut self) -> Self {
        let id = continuation_id(&self.trigger, self.requests.n_answers);
        self.continuations.insert(id);
        self
    }

    /// Takes the requests of the task that are open at this instant, and how many messages have
    /// continued it. Returns the `StreamResponse` objects.
    pub fn requests(
        &mut self,
        (open, n_answers): (&[PendingRequestView], usize),
        now: Timestamp,
    ) -> Vec<Value> {
        self.requests.may_have_changed = false;
        // They were settled later in the log, and this view is not there yet.
        let is_behind = n_answers > self.requests.n_answers;
        match (self.phase.clone(), open) {
            (Phase::Ended(..), _) if is_behind => self.phase = Phase::Rests,
            (Phase::Ended(execution, at), []) => {
                self.end_with((TaskState::Completed, None), &execution, at);
            }
            (Phase::Ended(execution, at), [_, ..]) => {
                let parts = request_parts(open);
                self.end_with((TaskState::InputRequired, Some(parts)), &execution, at);
            }
            // They were settled otherwise.
            (Phase::Rests, []) if !is_behind => self.end(TaskState::Completed, now, None),
            (Phase::Runs | Phase::Asks | Phase::Left(..) | Phase::Rests | Phase::Over, _) => {}
        }
        std::mem::take(&mut self.out)
    }
}
