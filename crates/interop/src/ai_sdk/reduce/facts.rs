//! Facts that a stream contains but its message does not.

use crate::ai_sdk::chunk::some;
use std::ops::Range;
use thread::Json;

/// A message, and the facts of its stream that are not in the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reduced {
    /// The message, if the stream ever had one shown.
    pub message: Option<Json>,
    /// The other facts of the stream.
    pub facts: StreamFacts,
}

/// Facts that a stream contains but its message does not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamFacts {
    /// Why the model stopped, from `finish`.
    pub finish_reason: Option<String>,
    /// Whether the stream had a `finish`.
    pub finished: bool,
    /// Whether the run was aborted.
    pub aborted: Option<Aborted>,
    /// The errors, in order.
    pub errors: Vec<StreamError>,
    /// The steps of this stream as ranges of the message's parts, each starting at its `step-start`.
    /// Steps without parts are left out, and so are steps that the message had before this stream.
    pub steps: Vec<Range<usize>>,
    /// The data chunks that are in no message.
    pub transient: Vec<Json>,
    /// Whether the stream had its end marker, see [`Reducer::done`](super::Reducer::done).
    pub done_seen: bool,
}

/// That a run was aborted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aborted {
    /// The reason, if the stream contains one.
    pub reason: Option<String>,
}

/// An error that a stream reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamError {
    /// How many parts the message had.
    pub index: usize,
    /// The error's text.
    pub text: String,
}

/// The facts so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    pub(super) facts: StreamFacts,
    /// The index at which the current step started.
    open: Option<usize>,
}

impl Facts {
    /// Starts a step after `parts` parts, and ends the previous step.
    pub(super) fn start_step(&mut self, parts: usize) {
        self.close_step(parts);
        self.open = Some(parts);
    }

    pub(super) fn close_step(&mut self, parts: usize) {
        if let Some(start) = self.open.take() {
            self.facts.steps.push(start..parts);
        }
    }

    /// Limits the last step to the first `parts` parts of the message.
    pub(super) fn reset_step(&mut self, parts: usize) {
        if let Some(last) = self.facts.steps.last_mut() {
            last.end = last.end.min(parts);
        }
    }

    /// Forgets the steps, because the message restarts.
    pub(super) fn restart(&mut self) {
        self.facts.steps.clear();
        self.open = None;
    }

    pub(super) fn finish(&mut self, chunk: &Json) {
        self.facts.finished = true;
        if let Some(reason) = some(chunk, "finishReason").and_then(Json::as_str) {
            self.facts.finish_reason = Some(reason.to_owned());
        }
    }

    pub(super) fn abort(&mut self, chunk: &Json) {
        let reason = chunk.get("reason").and_then(Json::as_str);
        self.facts.aborted = Some(Aborted {
            reason: reason.map(str::to_owned),
        });
    }

    pub(super) fn error(&mut self, place: usize, text: &str) {
        self.facts.errors.push(StreamError {
            index: place,
            text: text.to_owned(),
        });
    }

    /// The facts for a message of `parts` parts.
    pub(super) fn facts_of(self, parts: usize) -> StreamFacts {
        let mut told = self.facts;
        told.steps.retain(|step| step.start < parts);
        for step in &mut told.steps {
            step.end = step.end.min(parts);
        }
        for error in &mut told.errors {
            error.index = error.index.min(parts);
        }
        told
    }
}
