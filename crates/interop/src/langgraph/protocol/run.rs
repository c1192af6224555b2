//! Converts the log of one run to events of the protocol.

mod messages;
mod tools;

use super::event::ProtocolEvent;
use super::request::{Channel, EventRequest};
use super::writer::MessageWriter;
use crate::langgraph::interrupt::{InterruptedCall, interrupts};
use crate::langgraph::stream::{FrameId, FrameIds};
use crate::langgraph::updates::{RunUpdates, Update};
use crate::parts::ToolPart;
use crate::run::{RunEvent, Selected};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use timeline::{Chunk, ExecutionId, ItemId, Marker, OpenCall, ReadPosition, Record, StepStatus};

/// The events of one run for one reader of its thread.
///
/// The cost of a record depends on its content. Values cost time for the whole thread. So the caller
/// reads them only if the client wants them, when the run starts and when it ends.
#[derive(Clone, Debug)]
pub struct ProtocolRun {
    run: RunUpdates,
    request: EventRequest,
    ids: FrameIds,
    values_wanted: bool,
    writer: Option<MessageWriter>,
    /// The message that was finished last.
    finished: Option<String>,
    usage: Value,
    /// The calls of the step whose tools have not started, as far as is known.
    calls: BTreeMap<String, ToolPart>,
    /// The calls whose tools are at work.
    at_work: BTreeSet<String>,
    /// The calls that the last step left open.
    open: Vec<OpenCall>,
    /// Number of steps started.
    n_steps: u32,
    /// The record whose events are made.
    seq: u64,
    at_ms: i64,
    phase: Phase,
    /// How many events of the record each rank has.
    n_events: BTreeMap<u32, u32>,
    out: Vec<ProtocolEvent>,
}

/// Which events of a record are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Those of the record itself.
    Record,
    /// Those at the end of the run.
    End,
}

/// The most events of a record that a channel may have in one phase. Further ones, as of more than a
/// thousand calls in one answer, share the last id: a reader that stops among them misses the rest.
const MAX_EVENTS: u32 = 1 << 12;

/// The order of the events of a record. Each channel has ids of its own, so an event's id does not
/// depend on the channels that the client selects.
fn rank(channel: Channel, phase: Phase) -> u32 {
    let rank = match channel {
        // The start of a run comes first, its end last.
        Channel::Lifecycle if phase == Phase::Record => 0,
        Channel::Messages => 1,
        Channel::Tools => 2,
        Channel::Custom | Channel::Tasks => 3,
        Channel::Updates => 4,
        Channel::Values => 5,
        Channel::Checkpoints => 6,
        Channel::Input => 7,
        Channel::Lifecycle => 8,
    };
    match phase {
        Phase::Record => rank,
        Phase::End => rank + 7,
    }
}

impl ProtocolRun {
    /// The run that answers this item. The ids of the thread and the run are those that clients use.
    pub fn new(thread_id: &str, run_id: &str, trigger: ItemId, request: EventRequest) -> Self {
        Self {
            run: RunUpdates::new(thread_id, run_id, trigger),
            ids: FrameIds::after(request.since),
            request,
            values_wanted: false,
            writer: None,
            finished: None,
            usage: Value::Null,
            calls: BTreeMap::new(),
            at_work: BTreeSet::new(),
            open: Vec::new(),
            n_steps: 0,
            seq: 0,
            at_ms: 0,
            phase: Phase::Record,
            n_events: BTreeMap::new(),
            out: Vec::new(),
        }
    }

    /// A run that acts on answers to calls.
    #[must_use]
    pub fn resumed(mut self) -> Self {
        self.run.fold.set_first_answers();
        self
    }

    /// Classifies a record of the thread's log for this run, and returns the record's events. Call
    /// [`ProtocolRun::wants_values`] afterwards.
    pub fn select(&mut self, record: &Record) -> (Selected, Vec<ProtocolEvent>) {
        self.select_at(record, record.seq.into())
    }

    /// Like [`ProtocolRun::select`], also for chunks that are not stored yet. `position` is that of a
    /// reader behind the record.
    pub fn select_at(
        &mut self,
        record: &Record,
        position: ReadPosition,
    ) -> (Selected, Vec<ProtocolEvent>) {
        if self.ids.begin(record, position) {
            self.run.note_lost();
            if self.writer.is_none() {
                self.finished = Some(self.run.message_id());
            }
        }
        self.seq = record.seq.0;
        self.at_ms = record.at.as_millisecond();
        self.phase = Phase::Record;
        self.n_events.clear();
        let (selected, events) = self.run.fold.select(record);
        for event in &events {
            for update in self.run.updates(event) {
                self.update(update);
            }
            self.event(event);
        }
        self.out.sort_by_key(|event| event.id);
        (selected, std::mem::take(&mut self.out))
    }

    /// The execution that runs, or ran last.
    pub fn execution(&self) -> Option<&ExecutionId> {
        self.run.fold.selector().execution()
    }

    /// Whether the run has just started and its values are wanted; [`ProtocolRun::begin`] returns
    /// them.
    pub fn wants_values(&mut self) -> bool {
        std::mem::take(&mut self.values_wanted)
    }

    /// The values when the run starts.
    pub fn begin(&mut self, values: Value) -> Vec<ProtocolEvent> {
        self.push(Channel::Values, "values", || values);
        std::mem::take(&mut self.out)
    }

    /// Whether the reader lacks events of the end of the run.
    pub fn wants_end(&self) -> bool {
        self.ids.lacks(FrameId::after(self.seq))
    }

    /// Whether the values are wanted when the run ends.
    pub fn wants_last_values(&self) -> bool {
        let nth = rank(Channel::Values, Phase::End) * MAX_EVENTS;
        let seq = self.seq;
        self.request.wants(Channel::Values) && self.ids.lacks(FrameId { seq, nth })
    }

    /// The events at the end of the run: the values, the interrupts, and finally the outcome.
    ///
    /// The open calls of the thread are those in the log, even if they have been answered since.
    /// `beneath` are those in the threads of sub-agents.
    pub fn end(
        &mut self,
        key: &str,
        values: Option<Value>,
        beneath: &[InterruptedCall],
    ) -> Vec<ProtocolEvent> {
        self.phase = Phase::End;
        let open = std::mem::take(&mut self.open);
        for call in &open {
            self.at_work.remove(&call.tool_call_id);
        }
        let why = "the run has ended";
        self.fail_message(why);
        self.fail_tools(why);
        let own = open
            .iter()
            .filter_map(|call| InterruptedCall::of(key, key, call));
        let beneath = beneath.iter().filter(|asked| asked.thread_key != key);
        let asked: Vec<InterruptedCall> = own.chain(beneath.cloned()).collect();
        if let Some(values) = values {
            self.push(Channel::Values, "values", || values);
        }
        let id = self.execution().map(ToString::to_string);
        let (step, at) = (self.n_steps, json!({"id": id}));
        self.push(
            Channel::Checkpoints,
            "checkpoints",
            || json!({"id": id, "step": step, "source": "loop"}),
        );
        for interrupt in interrupts(&asked) {
            let (id, value) = (&interrupt["id"], &interrupt["value"]);
            // The protocol names it payload; LangGraph's own client of 0.4.14 reads value.
            let data = || json!({"interrupt_id": id, "payload": value, "value": value});
            self.push(Channel::Input, "input.requested", data);
        }
        let mut data = json!({"graph_name": self.run.agent, "checkpoint": at});
        data["event"] = match &self.run.failure {
            Some((error, _)) if error == "UserInterrupt" => "interrupted",
            Some((_, message)) => {
                data["error"] = message.as_str().into();
                "failed"
            }
            None if open.is_empty() => "completed",
            None => "interrupted",
        }
        .into();
        self.push(Channel::Lifecycle, "lifecycle", || data);
        std::mem::take(&mut self.out)
    }

    /// Adds an event of a channel.
    fn push(&mut self, channel: Channel, method: &'static str, data: impl FnOnce() -> Value) {
        let is_wanted = self.request.wants(channel);
        self.put((channel, is_wanted), method, data);
    }

    /// Adds an event. It uses up an id even if the client does not want it; then its data is not
    /// built.
    fn put(
        &mut self,
        (channel, is_wanted): (Channel, bool),
        method: &'static str,
        data: impl FnOnce() -> Value,
    ) {
        let FrameId { nth, .. } = self.next_id(channel);
        let id = self.ids.next(nth);
        *self.n_events.entry(rank(channel, self.phase)).or_default() += 1;
        if let Some(id) = id.filter(|_| is_wanted) {
            let (at_ms, data) = (self.at_ms, data());
            self.out.push(ProtocolEvent {
                id,
                method,
                at_ms,
                data,
            });
        }
    }

    /// The id of the channel's next event.
    fn next_id(&self, channel: Channel) -> FrameId {
        let rank = rank(channel, self.phase);
        let n_events = self.n_events.get(&rank).copied().unwrap_or_default();
        FrameId {
            seq: self.seq,
            nth: rank * MAX_EVENTS + n_events.min(MAX_EVENTS - 1),
        }
    }

    fn update(&mut self, update: Update<'_>) {
        match update {
            Update::Piece(piece) => self.piece(&piece),
            Update::Result(_) => {}
            Update::Removed(id) => self.remove_message(&id),
            Update::Completed {
                message,
                is_replaced,
                results,
            } => {
                if let Some(message) = message.as_ref().filter(|_| is_replaced) {
                    self.replace_message(message);
                }
                let node = self.run.node().to_owned();
                self.node_updated(&node, message.as_slice());
                self.node_updated("tools", &results);
            }
            Update::Custom { name, data } => {
                let name = name.strip_prefix("data-").unwrap_or(name);
                let is_wanted = self.request.wants_custom(name);
                self.put(
                    (Channel::Custom, is_wanted),
                    "custom",
                    || json!({"name": name, "payload": data}),
                );
            }
        }
    }

    /// A node added messages to the thread.
    fn node_updated(&mut self, node: &str, messages: &[Value]) {
        if !messages.is_empty() {
            self.push(
                Channel::Updates,
                "updates",
                || json!({"node": node, "values": {"messages": messages}}),
            );
        }
    }

    /// Handles an event's effects other than its updates.
    fn event(&mut self, event: &RunEvent<'_>) {
        match event {
            RunEvent::Started { .. } => {
                let values = self.next_id(Channel::Values);
                self.values_wanted = self.request.wants(Channel::Values) && self.ids.lacks(values);
                let data = json!({"event": "started", "graph_name": self.run.agent});
                self.push(Channel::Lifecycle, "lifecycle", || data);
            }
            RunEvent::StepStarted { .. } => {
                self.n_steps += 1;
                self.open.clear();
                self.calls.clear();
            }
            RunEvent::StepReset { .. } => {
                let why = "the attempt has died, and is made anew";
                self.fail_message(why);
                self.fail_tools(why);
            }
            RunEvent::Responded { .. } => self.finish_message(),
            RunEvent::Part { part, .. } => {
                if let Some(tool) = part.tool() {
                    self.tool(tool);
                }
            }
            RunEvent::Chunk(Chunk::Marker(Marker::ToolStarted(data))) => {
                let call = data.and_then(|data| data.str_field("toolCallId"));
                self.tool_marked(&call.unwrap_or_default());
            }
            RunEvent::StepEnded {
                status: StepStatus::Completed,
                outcome,
                ..
            } => self.open = OpenCall::list(outcome.open_calls.as_ref()),
            RunEvent::StepEnded { .. }
            | RunEvent::Chunk(_)
            | RunEvent::Continued { .. }
            | RunEvent::ExecutionEnded { .. }
            | RunEvent::ContinuationPending
            | RunEvent::Ended
            | RunEvent::Abandoned
            | RunEvent::ItemAdded(_)
            | RunEvent::ThreadChanged(_) => {}
        }
    }
}
