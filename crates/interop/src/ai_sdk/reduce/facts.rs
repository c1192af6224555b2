//! What a stream tells that its message does not.

use crate::ai_sdk::chunk::some;
use std::ops::Range;
use thread::Json;

/// A message, and what else its stream told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reduced {
    /// The message, if the stream ever had one shown.
    pub message: Option<Json>,
    /// What else was told.
    pub facts: StreamFacts,
}

/// What a stream told that its message does not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamFacts {
    /// Why the model stopped, as `finish` says.
    pub finish_reason: Option<String>,
    /// Whether `finish` came.
    pub finished: bool,
    /// Whether the run was aborted.
    pub aborted: Option<Aborted>,
    /// The errors, in order.
    pub errors: Vec<StreamError>,
    /// The steps of this stream as parts of the message, each from its `step-start` on. Steps
    /// without a part are left out, and so are those of a message that the stream went on with.
    pub steps: Vec<Range<usize>>,
    /// The data chunks that are in no message.
    pub transient: Vec<Json>,
    /// Whether the stream said that it was over, see [`Reducer::done`](super::Reducer::done).
    pub done_seen: bool,
}

/// That a run was aborted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aborted {
    /// Why, if that was said.
    pub reason: Option<String>,
}

/// An error that a stream told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamError {
    /// How many parts the message had.
    pub index: usize,
    /// What was said.
    pub text: String,
}

/// The facts so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    pub(super) facts: StreamFacts,
    /// Where the step that runs began.
    open: Option<usize>,
}

impl Facts {
    /// A step starts behind so many parts, and ends the one before it.
    pub(super) fn start_step(&mut self, parts: usize) {
        self.close_step(parts);
        self.open = Some(parts);
    }

    pub(super) fn close_step(&mut self, parts: usize) {
        if let Some(start) = self.open.take() {
            self.facts.steps.push(start..parts);
        }
    }

    /// Only so many parts are left of the last step.
    pub(super) fn reset_step(&mut self, parts: usize) {
        if let Some(last) = self.facts.steps.last_mut() {
            last.end = last.end.min(parts);
        }
    }

    /// The message begins anew.
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

    /// The facts of a message of so many parts.
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
