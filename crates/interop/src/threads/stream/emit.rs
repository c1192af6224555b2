//! The events of messages and calls that start, end or become void.

use super::{RunStream, frame};
use crate::threads::content::Content;
use crate::threads::object::{MessageStatus, RunStatus, StepObject, StepStatus};
use crate::threads::run::{Change, End, MessageEnd, Run};
use jiff::Timestamp;

impl RunStream {
    /// Announces the message of the running step, once.
    pub(super) fn announce_message(&mut self, out: &mut String) {
        if self.step.message {
            return;
        }
        self.step.message = true;
        let run = self.run.as_ref();
        let Some((message, step)) = run.and_then(|run| run.empty_message(self.step.place)) else {
            return;
        };
        frame::event("thread.run.step.created", &step, out);
        frame::event("thread.run.step.in_progress", &step, out);
        frame::event("thread.message.created", &message, out);
        frame::event("thread.message.in_progress", &message, out);
    }

    /// Announces the calls of the running step, once.
    pub(super) fn announce_calls(&mut self, out: &mut String) {
        if self.step.calls {
            return;
        }
        self.step.calls = true;
        let run = self.run.as_ref();
        if let Some(step) = run.and_then(|run| run.empty_calls(self.step.place, None)) {
            frame::event("thread.run.step.created", &step, out);
            frame::event("thread.run.step.in_progress", &step, out);
        }
    }

    /// Shows the new calls, and the messages and calls that have ended.
    pub(super) fn show_changes(&mut self, at: Timestamp, out: &mut String) {
        let changes = self.run.as_mut().map(Run::take_changes);
        let changes = changes.unwrap_or_default();
        for change in &changes {
            if let Change::Message(place) = change {
                self.message_ended(*place, out);
            }
        }
        self.show_calls(at, out);
        for change in &changes {
            if let Change::Calls(place) = change {
                self.calls_ended(*place, at, out);
            }
        }
    }

    fn message_ended(&mut self, place: usize, out: &mut String) {
        self.announce_message(out);
        let Some(run) = &self.run else {
            return;
        };
        let (Some(message), Some(step)) = (run.message(place), run.message_step_at(place)) else {
            return;
        };
        let id = &self.step.message_id;
        // Texts were streamed in their order; other content comes after them.
        let (mut texts, mut others) = (0, run.n_streamed_texts());
        for content in &message.content {
            if let Content::Text { text } = content
                && let Some(known) = run.streamed_text(texts)
            {
                let rest = text.value.strip_prefix(known);
                if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
                    frame::text_delta(id, texts, false, rest, out);
                }
                texts += 1;
                continue;
            }
            frame::content_delta(id, others, content, out);
            others += 1;
        }
        let name = match message.status {
            MessageStatus::Incomplete => "thread.message.incomplete",
            MessageStatus::Completed | MessageStatus::InProgress => "thread.message.completed",
        };
        frame::event(name, &message, out);
        step_ended(&step, out);
        self.step.message = false;
        self.step.n_texts = 0;
    }

    /// Shows the rest of the running step's calls, once they are stored.
    fn show_calls(&mut self, at: Timestamp, out: &mut String) {
        let place = self.step.place;
        let new = self.run.as_mut().map(|run| run.take_new_calls(place));
        let new = new.unwrap_or_default();
        if new.is_empty() {
            return;
        }
        // Calls that were held back come whole, after the message.
        let was_shown = self.step.calls;
        self.void_message(at, out);
        self.announce_calls(out);
        let Some(run) = &self.run else {
            return;
        };
        let id = &self.step.calls_id;
        let n_shown = run.n_streamed_calls();
        let mut next = if was_shown { n_shown } else { 0 };
        for call in new {
            let arguments = &call.function.arguments;
            let shown = run.streamed_arguments(&call.id).filter(|_| was_shown);
            if let Some((index, known)) = shown {
                let rest = arguments.strip_prefix(known);
                if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
                    frame::call_delta(id, index, rest, out);
                }
            } else {
                let name = &call.function.name;
                frame::call_begins(id, next, &call.id, name, arguments, out);
                next += 1;
            }
        }
    }

    fn calls_ended(&mut self, place: usize, at: Timestamp, out: &mut String) {
        if place == self.step.place {
            self.announce_calls(out);
            self.step.calls = false;
        }
        let run = self.run.as_ref();
        if let Some(step) = run.and_then(|run| run.calls_step_at(place, at)) {
            step_ended(&step, out);
        }
    }

    fn void_message(&mut self, at: Timestamp, out: &mut String) {
        if !self.step.message {
            return;
        }
        self.step.message = false;
        let (place, n_texts) = (self.step.place, std::mem::take(&mut self.step.n_texts));
        let Some(run) = &self.run else {
            return;
        };
        let (end, _) = void_ends(run.status(at));
        if let Some((message, step)) = run.void_message(place, n_texts, (end, at)) {
            frame::event("thread.message.incomplete", &message, out);
            step_ended(&step, out);
        }
    }

    /// Ends the message and the calls of a failed attempt.
    pub(super) fn void_attempt(&mut self, at: Timestamp, out: &mut String) {
        self.void_message(at, out);
        self.void_calls(at, out);
    }

    /// Ends the streamed text that is no part of the answer, and the calls that were not made.
    pub(super) fn void(&mut self, at: Timestamp, out: &mut String) {
        self.void_message(at, out);
        let run = self.run.as_ref();
        if run.is_some_and(|run| !run.has_calls(self.step.place)) {
            self.void_calls(at, out);
        }
    }

    fn void_calls(&mut self, at: Timestamp, out: &mut String) {
        if !std::mem::take(&mut self.step.calls) {
            return;
        }
        let Some(run) = &self.run else {
            return;
        };
        let (_, end) = void_ends(run.status(at));
        if let Some(step) = run.empty_calls(self.step.place, Some((end, at))) {
            step_ended(&step, out);
        }
    }
}

/// The ends of a void message and a void run step, by the status of their run.
fn void_ends(status: RunStatus) -> (MessageEnd, End) {
    match status {
        RunStatus::Cancelled => (MessageEnd::Cancelled, End::Cancelled),
        RunStatus::Expired => (MessageEnd::Expired, End::Expired),
        RunStatus::Queued
        | RunStatus::InProgress
        | RunStatus::RequiresAction
        | RunStatus::Cancelling
        | RunStatus::Failed
        | RunStatus::Completed
        | RunStatus::Incomplete => (MessageEnd::Failed, End::Failed),
    }
}

fn step_ended(step: &StepObject, out: &mut String) {
    let name = match step.status {
        StepStatus::InProgress => return,
        StepStatus::Completed => "thread.run.step.completed",
        StepStatus::Cancelled => "thread.run.step.cancelled",
        StepStatus::Expired => "thread.run.step.expired",
        StepStatus::Failed => "thread.run.step.failed",
    };
    frame::event(name, step, out);
}
