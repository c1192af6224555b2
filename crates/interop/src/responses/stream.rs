//! From the log to the events of a response, record by record.

use super::echo::Echo;
use super::ending::{Ending, Failure, Status};
use super::error::ErrorKind;
use super::include::ListOptions;
use super::output::{Output, Shows};
use super::resource::{Head, ResponseObject, results_of};
use super::wire::{EventFraming, Wire, put};
use crate::run::{RunEvent, RunFold, RunSelector};
use jiff::Timestamp;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use timeline::{
    Event, Execution, ExecutionId, ExecutionStatus, Interruption, ItemId, ItemType, Record,
};

/// Selects the response of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponseOf {
    /// The response that begins with this execution.
    Execution(ExecutionId),
    /// The response that answers this item.
    Trigger(ItemId),
}

/// The events of one response.
///
/// It reads the records of a thread in order, from before the response's first one, and skips those
/// of other runs. Equal records yield equal events with equal numbers, so a client can resume after
/// any event ([`ResponseStream::starting_after`]). Answers to calls begin another response; a
/// handoff continues this one.
///
/// The protocol can't withdraw a step that is retried after a crash. The items of the dead attempt
/// end as `incomplete`, and the next attempt makes new ones. The final response has only those.
#[derive(Debug)]
pub struct ResponseStream {
    fold: RunFold,
    head: Option<Head>,
    output: Output,
    /// The calls whose results each item of answers submitted, until the response begins.
    results: BTreeMap<ItemId, BTreeSet<String>>,
    /// Options of this reader, in addition to those of the response's own client.
    also: ListOptions,
    ending: Ending,
    ended_at: Option<Timestamp>,
}

impl ResponseStream {
    /// The events of this response.
    pub fn new(of: ResponseOf, framing: EventFraming) -> Self {
        Self::with(of, Wire::new(framing))
    }

    /// A stream without events, for [`ResponseStream::object`] only.
    pub fn quiet(of: ResponseOf) -> Self {
        Self::with(of, Wire::muted())
    }

    fn with(of: ResponseOf, wire: Wire) -> Self {
        Self {
            fold: RunFold::new(match of {
                ResponseOf::Execution(execution) => RunSelector::running(Some(execution)),
                ResponseOf::Trigger(item) => RunSelector::answering(item),
            }),
            head: None,
            output: Output::new(wire),
            results: BTreeMap::new(),
            also: ListOptions::default(),
            ending: Ending::none(Status::Queued),
            ended_at: None,
        }
    }

    /// Omits the events up to this number, which the client has.
    #[must_use]
    pub fn starting_after(mut self, number: u64) -> Self {
        self.output.wire.start_after(number);
        self
    }

    /// Adds options of this reader to those of the response's own client.
    ///
    /// The events, their order and their numbers do not change, so a client can resume with other
    /// options. Reasoning has its provider's signature as soon as that is known, at the latest in
    /// the final response. Items of extensions are added only to a quiet stream.
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

    /// The status of the response; queued before its execution begins.
    pub fn status(&self) -> Status {
        self.ending.status
    }

    /// The execution of the response that runs, or ran last; `None` before the response begins.
    pub fn execution(&self) -> Option<&ExecutionId> {
        self.head.as_ref()?;
        self.fold.selector().execution()
    }

    /// The response's id, once its execution is known.
    pub fn id(&self) -> Option<String> {
        let head = self.head.as_ref()?;
        serde_json::from_str(head.id()).ok()
    }

    /// The response in its present state; `None` before its execution begins.
    pub fn object(&mut self) -> Option<ResponseObject> {
        let head = self.head.as_ref()?;
        let items = self.output.json();
        let mut json = String::with_capacity(items.len() + 1_024);
        let (model, usage) = (self.output.model(), self.output.usage());
        head.write(&mut json, &self.ending, self.ended_at, model, &items, usage);
        let status = self.ending.status;
        Some(ResponseObject { json, status })
    }

    /// Writes the events of a record; nothing for a record of another run.
    pub fn apply(&mut self, record: &Record, out: &mut String) {
        if self.is_over() {
            return;
        }
        if let Event::ItemCreated { item } = &record.event
            && self.head.is_none()
            && item.item_type == ItemType::ActionResult
        {
            self.results.insert(item.id.clone(), results_of(item));
        }
        for event in self.fold.events(record) {
            self.event(event, record.at, out);
        }
    }

    fn event(&mut self, event: RunEvent<'_>, at: Timestamp, out: &mut String) {
        match event {
            RunEvent::Started { execution } => self.start(execution, out),
            RunEvent::Continued { execution, .. } => {
                let shows = self.shows(&Echo::of(execution));
                self.output.execution(shows, None);
            }
            RunEvent::ExecutionEnded {
                status,
                interruption,
                is_last,
                ..
            } => {
                if is_last || status != ExecutionStatus::Completed {
                    self.end(status, interruption, at, out);
                }
            }
            event @ (RunEvent::StepStarted { .. }
            | RunEvent::Chunk(_)
            | RunEvent::StepReset { .. }
            | RunEvent::Responded { .. }
            | RunEvent::Part { .. }
            | RunEvent::StepEnded { .. }) => self.output.event(event, out),
            RunEvent::ContinuationPending
            | RunEvent::Ended
            | RunEvent::Abandoned
            | RunEvent::ItemAdded(_)
            | RunEvent::ThreadChanged(_) => {}
        }
    }

    /// Writes that the stream failed, and its end. For its client the response has failed; the response
    /// itself may continue. `error` is the object that a body has as its `error`.
    pub fn fail(&mut self, error: &Value, out: &mut String) {
        self.error_event(error, out);
        if self.head.is_some() && !self.is_over() {
            let text = |member: &str| error[member].as_str().map(str::to_owned);
            self.ending = Ending::failed(Failure {
                kind: ErrorKind::ServerError,
                code: text("code").unwrap_or_else(|| "server_error".to_owned()),
                message: text("message").unwrap_or_default(),
            });
            self.response_event("response.failed", out);
        }
        self.output.wire.done(out);
    }

    fn start(&mut self, execution: &Execution, out: &mut String) {
        let results = self.results.remove(&execution.trigger_item_id);
        self.results.clear();
        let echo = Echo::of(execution);
        self.head = Some(Head::of(execution, &echo));
        self.output.execution(self.shows(&echo), results);
        let is_background = echo.members.get("background") == Some(&true.into());
        if is_background {
            self.response_event("response.created", out);
            self.response_event("response.queued", out);
        }
        self.ending = Ending::none(Status::InProgress);
        if !is_background {
            self.response_event("response.created", out);
        }
        self.response_event("response.in_progress", out);
    }

    fn end(
        &mut self,
        status: ExecutionStatus,
        why: Option<&Interruption>,
        at: Timestamp,
        out: &mut String,
    ) {
        self.ending = Ending::of(status, why, self.output.cut_reason());
        self.ended_at = Some(at);
        let name = match self.ending.status {
            Status::Completed => "response.completed",
            Status::Failed => "response.failed",
            // A response that somebody stopped has no event of its own.
            Status::Incomplete | Status::Cancelled | Status::Queued | Status::InProgress => {
                "response.incomplete"
            }
        };
        if let Some(error) = self.ending.error.as_ref().map(Failure::event) {
            self.error_event(&error, out);
        }
        self.response_event(name, out);
        self.output.wire.done(out);
    }

    fn error_event(&mut self, error: &Value, out: &mut String) {
        self.output.wire.event(out, "error", |out| {
            put(out, format_args!(",\"error\":{error}"));
        });
    }

    /// Writes an event that contains the whole response.
    fn response_event(&mut self, name: &str, out: &mut String) {
        let is_written = self.output.wire.is_written();
        let object = is_written.then(|| self.object()).flatten();
        let json = object.map(|object| object.json).unwrap_or_default();
        self.output.wire.event(out, name, |out| {
            out.push_str(",\"response\":");
            out.push_str(&json);
        });
    }
}
