//! The end of a run, or of its execution while it waits for answers.

use super::step::{Calls, End, MessageEnd};
use super::{Change, Run};
use crate::threads::error::RequestError;
use crate::threads::object::{LastError, RunStatus};
use crate::truncate::Cut;
use jiff::Timestamp;
use timeline::{ExecutionStatus, Interruption};

/// The state of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// An execution of it runs.
    Running,
    /// It has pending calls.
    Waiting,
    /// It is over.
    Over(Over, Timestamp),
}

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Over {
    Completed,
    /// The last answer was cut off at the model's limit or by the provider's policy. Or no tokens were
    /// left for another answer.
    Incomplete(Option<&'static str>),
    Cancelled,
    Expired,
    Failed(LastError),
}

impl Over {
    pub(super) fn status(&self) -> RunStatus {
        match self {
            Self::Completed => RunStatus::Completed,
            Self::Incomplete(_) => RunStatus::Incomplete,
            Self::Cancelled => RunStatus::Cancelled,
            Self::Expired => RunStatus::Expired,
            Self::Failed(_) => RunStatus::Failed,
        }
    }

    /// The outcome of an open message and an open run step. After a successful end, calls without an
    /// answer are dropped.
    fn of_parts(&self) -> (MessageEnd, End) {
        match self {
            Self::Completed | Self::Incomplete(_) => (MessageEnd::Whole, End::Cancelled),
            Self::Cancelled => (MessageEnd::Cancelled, End::Cancelled),
            Self::Expired => (MessageEnd::Expired, End::Expired),
            Self::Failed(_) => (MessageEnd::Failed, End::Failed),
        }
    }

    /// The outcome of a failed execution, from its interruption.
    fn of_failure(why: Option<&Interruption>) -> Self {
        let reason = why.map_or("error", |why| why.reason.as_str());
        let code = match reason {
            Interruption::USER_CANCELLED => return Self::Cancelled,
            "timeout" | "expired" => return Self::Expired,
            "rate_limited" | "quota_exceeded" => "rate_limit_exceeded",
            "safety_halt" => "invalid_prompt",
            _ => "server_error",
        };
        let message = why.and_then(|why| why.detail.clone());
        Self::Failed(LastError {
            code,
            message: message.unwrap_or_else(|| reason.to_owned()),
        })
    }
}

impl Run {
    pub(super) fn execution_ended(
        &mut self,
        to: ExecutionStatus,
        why: Option<&Interruption>,
        at: Timestamp,
    ) {
        match to {
            ExecutionStatus::Executing => {}
            ExecutionStatus::Failed => self.over(Over::of_failure(why), at),
            // The next execution begins in the same transaction.
            ExecutionStatus::Completed if self.hands_over => {}
            ExecutionStatus::Completed => self.rests(at),
        }
    }

    fn rests(&mut self, at: Timestamp) {
        let open = &self.open;
        self.pending.retain(|call| open.contains_key(&call.id));
        self.pending_elsewhere
            .retain(|call| open.contains_key(call));
        let waits = !self.pending.is_empty() || !self.pending_elsewhere.is_empty();
        self.rested_at = at;
        if !self.queued.is_empty() || (waits && !self.is_overtaken) {
            self.state = State::Waiting;
        } else if waits {
            self.over(Over::Cancelled, at);
        } else {
            let over = match self.cut {
                Some(Cut::Tokens) => Over::Incomplete(Some("max_completion_tokens")),
                Some(Cut::ContentFilter) => Over::Incomplete(None),
                None => Over::Completed,
            };
            self.over(over, at);
        }
    }

    /// A message was posted, or another run started, so the pending calls can't be answered any more.
    /// Unhandled answers came before that and still count.
    pub(in crate::threads) fn overtaken(&mut self, at: Timestamp) {
        self.lapse(at);
        match self.state {
            State::Waiting if self.queued.is_empty() => {
                self.over(Over::Cancelled, at.max(self.rested_at));
            }
            State::Waiting | State::Running => self.is_overtaken = true,
            State::Over(..) => {}
        }
    }

    /// A message that was queued earlier starts another run, so this run does not wait.
    pub(in crate::threads) fn overtaken_at_once(&mut self) {
        self.overtaken(self.rested_at);
    }

    /// It was stopped while it waited.
    pub(in crate::threads) fn cancelled(&mut self, at: Timestamp) {
        self.lapse(at);
        if self.state == State::Waiting {
            self.over(Over::Cancelled, at);
        }
    }

    /// Marks a run as expired whose time ended before `now`, whatever happens later.
    fn lapse(&mut self, now: Timestamp) {
        if let Some(at) = self.lapses_at().filter(|_| self.is_expired(now)) {
            self.over(Over::Expired, at);
        }
    }

    fn over(&mut self, over: Over, at: Timestamp) {
        let (message, step) = over.of_parts();
        let was_running = self.state == State::Running;
        if was_running && self.steps.last().is_some_and(|step| !step.is_complete()) {
            self.cut_off(message, step, at);
        }
        for (place, of_ours) in self.steps.iter_mut().enumerate() {
            if of_ours.end(step, at) {
                self.changes.push(Change::Calls(place));
            }
        }
        self.state = State::Over(over, at);
    }

    /// The deltas of the running step are all there will be of it.
    fn cut_off(&mut self, message: MessageEnd, end: End, at: Timestamp) {
        let place = self.steps.len().saturating_sub(1);
        let (texts, calls) = (self.streamed.texts.clone(), self.streamed.calls());
        let Some(step) = self.steps.last_mut() else {
            return;
        };
        step.set_streamed(texts);
        if step.calls.is_none() && !calls.is_empty() {
            step.calls = Some(Calls::ended(calls, end, at));
            self.changes.push(Change::Calls(place));
        }
        let open = step.message.as_mut().filter(|open| open.end.is_none());
        if let Some(open) = open {
            open.end = Some((message, at));
            self.changes.insert(0, Change::Message(place));
        }
    }

    /// Checks that the run may be stopped. Fails if it has ended.
    pub fn check_cancel(&self, now: Timestamp) -> Result<(), RequestError> {
        let status = self.status(now);
        if status.is_active() {
            return Ok(());
        }
        Err(RequestError::NotCancellable { status })
    }

    /// Checks that messages may be added to the thread. Fails while the run is active.
    pub fn check_message(&self, now: Timestamp) -> Result<(), RequestError> {
        if !self.status(now).is_active() {
            return Ok(());
        }
        Err(RequestError::ThreadLocked {
            thread: self.thread_id.clone(),
            run: self.id.clone(),
        })
    }

    /// Checks that the thread may be deleted. Fails while the run is active.
    pub fn check_delete(&self, now: Timestamp) -> Result<(), RequestError> {
        if !self.status(now).is_active() {
            return Ok(());
        }
        Err(RequestError::DeletionLocked {
            thread: self.thread_id.clone(),
            run: self.id.clone(),
        })
    }

    /// Checks that another run may start. Fails while this run is active.
    pub fn check_run(&self, now: Timestamp) -> Result<(), RequestError> {
        if !self.status(now).is_active() {
            return Ok(());
        }
        Err(RequestError::ActiveRun {
            thread: self.thread_id.clone(),
            run: self.id.clone(),
        })
    }
}
