//! From the log to the events of a response, record by record.

use super::echo::Echo;
use super::ending::{Ending, Failure, Status};
use super::error::ErrorKind;
use super::include::ListOptions;
use super::output::{Output, Shows};
use super::resource::{Head, ResponseObject, given_by, is_handoff};
use super::wire::{Framing, Wire, put};
use jiff::Timestamp;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use timeline::{
    Event, Execution, ExecutionId, ExecutionStatus, ItemId, ItemType, Record, StepId, StepStatus,
};

/// Which response a stream is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponseOf {
    /// The one that begins with this execution.
    Execution(ExecutionId),
    /// The one that answers this item.
    Trigger(ItemId),
}

/// The events of one response.
///
/// It is given the records of a thread in order, from before the response's first one, and takes
/// those that are the response's. The same records give the same events with the same numbers, so
/// that a client resumes where it was ([`ResponseStream::starting_after`]).
///
/// A step that is tried again after a crash can't be taken back in this protocol: what it had begun
/// is ended as `incomplete`, what comes again comes as new items, and the response has those alone
/// when it is over.
#[derive(Debug)]
pub struct ResponseStream {
    of: ResponseOf,
    /// The execution that runs.
    execution: Option<ExecutionId>,
    step: Option<StepId>,
    head: Option<Head>,
    output: Output,
    /// The calls whose results each item of answers has brought; of those seen before it begins.
    brought: BTreeMap<ItemId, BTreeSet<String>>,
    /// The calls that the answered item brought results for, if that item was seen.
    given: Option<BTreeSet<String>>,
    /// Another agent goes on when this execution is over.
    hands_over: bool,
    /// What is shown beside what the response's own client wants.
    also: ListOptions,
    ending: Ending,
    ended_at: Option<Timestamp>,
}

impl ResponseStream {
    /// The events of this response.
    pub fn new(of: ResponseOf, framing: Framing) -> Self {
        Self::with(of, Wire::new(framing))
    }

    /// Writes no events: what is wanted is the response itself ([`ResponseStream::object`]).
    pub fn quiet(of: ResponseOf) -> Self {
        Self::with(of, Wire::muted())
    }

    fn with(of: ResponseOf, wire: Wire) -> Self {
        Self {
            of,
            execution: None,
            step: None,
            head: None,
            output: Output::new(wire),
            brought: BTreeMap::new(),
            given: None,
            hands_over: false,
            also: ListOptions::default(),
            ending: Ending::none(Status::Queued),
            ended_at: None,
        }
    }

    /// Leaves out the events up to this number, which the client has.
    #[must_use]
    pub fn starting_after(mut self, number: u64) -> Self {
        self.output.wire.start_after(number);
        self
    }

    /// Shows this beside what the response's own client wants shown.
    ///
    /// The events, their order and their numbers stay what they are, so that a client that comes back
    /// finds its place whatever it wants to see: reasoning has its provider's seal as soon as that is
    /// known, at the latest in the response at the end, and items of their own are shown only where the
    /// stream is quiet.
    #[must_use]
    pub fn including(mut self, options: ListOptions) -> Self {
        self.also = options;
        self
    }

    fn shows(&self, echo: &Echo) -> Shows {
        let own = Shows::from(echo);
        Shows {
            sealed: own.sealed.or_later(self.also.encrypted_reasoning),
            extensions: own.extensions || (self.also.extensions && self.output.wire.is_muted()),
            ..own
        }
    }

    /// Whether the response is over, and the last event written.
    pub fn is_over(&self) -> bool {
        self.ended_at.is_some()
    }

    /// How the response stands; queued before its execution begins.
    pub fn status(&self) -> Status {
        self.ending.status
    }

    /// The execution with which the response begins or goes on, once it is known.
    pub fn execution(&self) -> Option<&ExecutionId> {
        self.execution.as_ref()
    }

    /// The response's id, once its execution is known.
    pub fn id(&self) -> Option<String> {
        let head = self.head.as_ref()?;
        serde_json::from_str(head.id()).ok()
    }

    /// The response as it stands; none before its execution begins.
    pub fn object(&mut self) -> Option<ResponseObject> {
        let head = self.head.as_ref()?;
        let items = self.output.json();
        let mut json = String::with_capacity(items.len() + 1_024);
        let (model, usage) = (self.output.model(), self.output.usage());
        head.write(&mut json, &self.ending, self.ended_at, model, &items, usage);
        let status = self.ending.status;
        Some(ResponseObject { json, status })
    }

    /// Writes the events that a record is to the client; nothing for a record of something else.
    pub fn apply(&mut self, record: &Record, out: &mut String) {
        if self.is_over() {
            return;
        }
        match &record.event {
            Event::ExecutionCreated { execution } => self.begins(execution, out),
            Event::ItemCreated { item } if self.head.is_none() => {
                if item.item_type == ItemType::ActionResult {
                    self.brought.insert(item.id.clone(), given_by(item));
                }
            }
            Event::StepCreated { step } if self.is_own(&step.execution_id) => {
                self.step = Some(step.id.clone());
                let given = self.given.take();
                self.output
                    .step_begins(step.id.as_str(), step.iteration, given);
            }
            Event::StepStatusChanged {
                step_id,
                to,
                outcome,
                ..
            } if self.is_step(step_id) => match to {
                StepStatus::Running => {}
                StepStatus::Completed => self.output.step_ends(false, outcome, out),
                StepStatus::Failed => self.output.step_ends(true, outcome, out),
            },
            Event::PartCreated {
                step_id, idx, part, ..
            }
            | Event::PartUpdated {
                step_id, idx, part, ..
            } if self.is_step(step_id) => {
                self.hands_over |= is_handoff(part);
                self.output.part(*idx, part, out);
            }
            Event::ChunkEmitted {
                chunk_type,
                step_id: Some(step_id),
                data,
                ..
            } if self.is_step(step_id) => {
                self.output.chunk(chunk_type, data.as_ref(), out);
            }
            Event::ExecutionStatusChanged {
                execution_id,
                to,
                interruption,
                ..
            } if self.is_own(execution_id) && *to != ExecutionStatus::Executing => {
                if *to == ExecutionStatus::Completed && self.hands_over {
                    self.execution = None;
                    return;
                }
                let cut = self.output.why_cut();
                self.ending = Ending::of(*to, interruption.as_ref(), cut);
                self.ended_at = Some(record.at);
                self.ends(out);
            }
            Event::StepCreated { .. }
            | Event::StepStatusChanged { .. }
            | Event::PartCreated { .. }
            | Event::PartUpdated { .. }
            | Event::ChunkEmitted { .. }
            | Event::ExecutionStatusChanged { .. }
            | Event::ThreadFinished { .. }
            | Event::ContextCreated { .. }
            | Event::ContextResolved { .. }
            | Event::ContextStatusChanged { .. }
            | Event::ThreadCreated { .. }
            | Event::ThreadResolved { .. }
            | Event::ThreadStatusChanged { .. }
            | Event::ItemCreated { .. }
            | Event::ItemStatusChanged { .. } => {}
        }
    }

    /// Writes that the stream can't go on, and its end: as far as it was told, the response has failed.
    /// The response itself may go on: what has failed is the telling. `error` is the object that a body
    /// has as its `error`.
    pub fn fail(&mut self, error: &Value, out: &mut String) {
        self.tell_error(error, out);
        if self.head.is_some() && !self.is_over() {
            let text = |member: &str| error[member].as_str().map(str::to_owned);
            self.ending = Ending::failed(Failure {
                kind: ErrorKind::ServerError,
                code: text("code").unwrap_or_else(|| "server_error".to_owned()),
                message: text("message").unwrap_or_default(),
            });
            self.tell("response.failed", out);
        }
        self.output.wire.done(out);
    }

    fn tell_error(&mut self, error: &Value, out: &mut String) {
        self.output.wire.event(out, "error", |out| {
            put(out, format_args!(",\"error\":{error}"));
        });
    }

    fn is_own(&self, execution: &ExecutionId) -> bool {
        self.execution.as_ref() == Some(execution)
    }

    fn is_step(&self, step: &StepId) -> bool {
        self.step.as_ref() == Some(step)
    }

    fn begins(&mut self, execution: &Execution, out: &mut String) {
        if self.head.is_some() {
            // The one that follows a handoff begins right behind it.
            if std::mem::take(&mut self.hands_over) {
                self.execution = Some(execution.id.clone());
                let shows = self.shows(&Echo::of(execution));
                self.output.execution(shows);
            }
            return;
        }
        let is_wanted = match &self.of {
            ResponseOf::Execution(id) => *id == execution.id,
            ResponseOf::Trigger(id) => *id == execution.trigger_item_id,
        };
        if !is_wanted {
            return;
        }
        self.given = self.brought.remove(&execution.trigger_item_id);
        self.brought.clear();
        let echo = Echo::of(execution);
        self.execution = Some(execution.id.clone());
        self.head = Some(Head::of(execution, &echo));
        let shows = self.shows(&echo);
        self.output.execution(shows);
        let is_background = echo.said.get("background") == Some(&true.into());
        if is_background {
            self.tell("response.created", out);
            self.tell("response.queued", out);
        }
        self.ending = Ending::none(Status::InProgress);
        if !is_background {
            self.tell("response.created", out);
        }
        self.tell("response.in_progress", out);
    }

    fn ends(&mut self, out: &mut String) {
        let name = match self.ending.status {
            Status::Completed => "response.completed",
            Status::Failed => "response.failed",
            // There is no event of its own for what somebody stopped.
            Status::Incomplete | Status::Cancelled | Status::Queued | Status::InProgress => {
                "response.incomplete"
            }
        };
        if let Some(error) = self.ending.error.as_ref().map(Failure::told) {
            self.tell_error(&error, out);
        }
        self.tell(name, out);
        self.output.wire.done(out);
    }

    /// Writes an event that has the whole response.
    fn tell(&mut self, name: &str, out: &mut String) {
        let is_heard = self.output.wire.is_heard();
        let object = is_heard.then(|| self.object()).flatten();
        let json = object.map(|object| object.json).unwrap_or_default();
        self.output.wire.event(out, name, |out| {
            out.push_str(",\"response\":");
            out.push_str(&json);
        });
    }
}
