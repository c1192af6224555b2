//! From the log of one run to the events of its thread.

mod said;

use super::event::ProtocolEvent;
use super::request::{Channel, EventRequest};
use super::writing::Writing;
use crate::langgraph::interrupt::{Asked, interrupts};
use crate::langgraph::stream::{Frame, FrameId, RunStream};
use crate::parts::ToolPart;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use timeline::{Event, ItemId, OpenCall, Record, StepStatus, chunk_type};

/// What one reader of a thread has heard of a run.
///
/// It is made of [`RunStream`], which knows what of a log is shown and what becomes of a dead attempt; this one says
/// the same in the streaming protocol's words. Each event costs what it says; values, which cost the thread, are only said
/// where they are wanted, when the run begins and when it is over.
#[derive(Clone, Debug)]
pub struct ProtocolRun {
    run: RunStream,
    request: EventRequest,
    thread_id: String,
    run_id: String,
    has_begun: bool,
    writing: Option<Writing>,
    /// The message that was finished last.
    finished: Option<String>,
    usage: Value,
    /// The calls of the step whose tools have not started, as far as is known.
    calls: BTreeMap<String, ToolPart>,
    /// The calls whose tools are at work.
    at_work: BTreeSet<String>,
    /// The calls that the last step has left for others.
    open: Vec<OpenCall>,
    /// How many steps have begun.
    n_steps: u32,
    failure: Option<(String, String)>,
    /// The record that is told.
    seq: u64,
    at_ms: i64,
    /// What of it is said.
    moment: Moment,
    /// How much each channel was told of it.
    n_told: BTreeMap<u32, u32>,
    out: Vec<ProtocolEvent>,
}

/// What is said of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    /// What it says itself.
    Itself,
    /// What stands at the end of the run.
    End,
}

/// How many events of a record a channel may have, at one of its moments. Where there are more, as with more than a
/// thousand calls in one answer, the last ones have one place: who stopped among them misses the rest of them.
const MAX_TOLD: u32 = 1 << 12;

/// The order in which a record is told. It gives each channel places of its own, so that an event has the same place
/// whatever else is listened to.
fn rank(channel: Channel, moment: Moment) -> u32 {
    let rank = match channel {
        // That a run begins is first of all, that it has ended comes last.
        Channel::Lifecycle if moment == Moment::Itself => 0,
        Channel::Messages => 1,
        Channel::Tools => 2,
        Channel::Custom | Channel::Tasks => 3,
        Channel::Updates => 4,
        Channel::Values => 5,
        Channel::Checkpoints => 6,
        Channel::Input => 7,
        Channel::Lifecycle => 8,
    };
    match moment {
        Moment::Itself => rank,
        Moment::End => rank + 7,
    }
}

impl ProtocolRun {
    /// The run that answers this item; the thread and the run as their client names them.
    pub fn new(thread_id: &str, run_id: &str, trigger: ItemId, request: EventRequest) -> Self {
        Self {
            run: RunStream::new(thread_id, run_id, trigger, &request.modes()),
            request,
            thread_id: thread_id.to_owned(),
            run_id: run_id.to_owned(),
            has_begun: false,
            writing: None,
            finished: None,
            usage: Value::Null,
            calls: BTreeMap::new(),
            at_work: BTreeSet::new(),
            open: Vec::new(),
            n_steps: 0,
            failure: None,
            seq: 0,
            at_ms: 0,
            moment: Moment::Itself,
            n_told: BTreeMap::new(),
            out: Vec::new(),
        }
    }

    /// A run that goes on where calls were answered.
    #[must_use]
    pub fn resumed(self) -> Self {
        Self {
            run: self.run.resumed(),
            ..self
        }
    }

    /// The events of a record. After them [`ProtocolRun::wants_values`] may hold.
    pub fn events(&mut self, record: &Record) -> Vec<ProtocolEvent> {
        self.seq = record.seq.0;
        self.at_ms = record.at.as_millisecond();
        self.moment = Moment::Itself;
        self.n_told.clear();
        let frames = self.run.select(record).1;
        if !self.has_begun && self.run.execution().is_some() {
            self.has_begun = true;
            let data = json!({"event": "started", "graph_name": self.run.agent()});
            self.say(Channel::Lifecycle, "lifecycle", || data);
        }
        for frame in frames {
            self.frame(frame);
        }
        if self.has_begun {
            self.look_at(&record.event);
        }
        self.out.sort_by_key(|event| event.place);
        std::mem::take(&mut self.out)
    }

    /// The execution that runs, or ran last.
    pub fn execution(&self) -> Option<&timeline::ExecutionId> {
        self.run.execution()
    }

    /// Whether the run has just begun and the values are wanted as they are then: [`ProtocolRun::begin`] says them.
    pub fn wants_values(&mut self) -> bool {
        self.run.wants_values() && self.is_new(self.place(Channel::Values))
    }

    /// The values when the run begins.
    pub fn begin(&mut self, values: Value) -> Vec<ProtocolEvent> {
        self.say(Channel::Values, "values", || values);
        std::mem::take(&mut self.out)
    }

    /// Whether something is to be said at the end of the run that was not heard before.
    pub fn wants_end(&self) -> bool {
        self.is_new(FrameId::after(self.seq))
    }

    /// Whether the values are wanted when the run is over.
    pub fn wants_last_values(&self) -> bool {
        let nth = rank(Channel::Values, Moment::End) * MAX_TOLD;
        let seq = self.seq;
        self.run.wants_last_values() && self.is_new(FrameId { seq, nth })
    }

    /// What stands at the end: the values, what waits for an answer, and how the run has ended, which is last.
    ///
    /// What the thread's own calls ask is as the log has it, whether somebody has answered by now or not. `beneath` is what
    /// waits in the threads of sub-agents.
    pub fn end(
        &mut self,
        key: &str,
        values: Option<Value>,
        beneath: &[Asked],
    ) -> Vec<ProtocolEvent> {
        self.moment = Moment::End;
        // What it says of values and interrupts has other words here.
        for frame in self.run.end(None, &[]) {
            if frame.event == "error" {
                self.frame(frame);
            }
        }
        let open = std::mem::take(&mut self.open);
        for call in &open {
            self.at_work.remove(&call.tool_call_id);
        }
        let why = "the run has ended";
        self.break_message(why);
        self.break_tools(why);
        let own = open.iter().filter_map(|call| Asked::of(key, key, call));
        let beneath = beneath.iter().filter(|asked| asked.thread_key != key);
        let asked: Vec<Asked> = own.chain(beneath.cloned()).collect();
        if let Some(values) = values {
            self.say(Channel::Values, "values", || values);
        }
        let id = self.execution().map(ToString::to_string);
        let (step, at) = (self.n_steps, json!({"id": id}));
        self.say(
            Channel::Checkpoints,
            "checkpoints",
            || json!({"id": id, "step": step, "source": "loop"}),
        );
        for interrupt in interrupts(&asked) {
            let (id, value) = (&interrupt["id"], &interrupt["value"]);
            // The protocol says payload; LangGraph's own client of 0.4.14 reads value.
            let data = || json!({"interrupt_id": id, "payload": value, "value": value});
            self.say(Channel::Input, "input.requested", data);
        }
        let mut data = json!({"graph_name": self.run.agent(), "checkpoint": at});
        data["event"] = match &self.failure {
            Some((error, _)) if error == "UserInterrupt" => "interrupted",
            Some((_, message)) => {
                data["error"] = message.as_str().into();
                "failed"
            }
            None if open.is_empty() => "completed",
            None => "interrupted",
        }
        .into();
        self.say(Channel::Lifecycle, "lifecycle", || data);
        std::mem::take(&mut self.out)
    }

    /// Says something in a channel, if it is wanted and was not heard before.
    fn say(&mut self, channel: Channel, method: &'static str, data: impl FnOnce() -> Value) {
        let is_heard = self.request.hears(channel);
        self.put((channel, is_heard), method, data);
    }

    fn put(
        &mut self,
        (channel, is_heard): (Channel, bool),
        method: &'static str,
        data: impl FnOnce() -> Value,
    ) {
        let place = self.place(channel);
        *self.n_told.entry(rank(channel, self.moment)).or_default() += 1;
        if is_heard && self.is_new(place) {
            let (at_ms, data) = (self.at_ms, data());
            self.out.push(ProtocolEvent {
                place,
                method,
                at_ms,
                data,
            });
        }
    }

    /// The place of what a channel says next.
    fn place(&self, channel: Channel) -> FrameId {
        let rank = rank(channel, self.moment);
        let n_told = self.n_told.get(&rank).copied().unwrap_or_default();
        FrameId {
            seq: self.seq,
            nth: rank * MAX_TOLD + n_told.min(MAX_TOLD - 1),
        }
    }

    /// Whether this place was not heard before.
    fn is_new(&self, place: FrameId) -> bool {
        self.request.since.is_none_or(|since| place > since)
    }

    fn frame(&mut self, frame: Frame) {
        let Frame {
            event, mut data, ..
        } = frame;
        match event {
            "updates" => {
                let node = data.as_object_mut().and_then(|it| {
                    let node = it.keys().next()?.clone();
                    Some((it.remove(&node)?, node))
                });
                if let Some((values, node)) = node {
                    let data = || json!({"node": node, "values": values});
                    self.say(Channel::Updates, "updates", data);
                }
            }
            "custom" => {
                let kind = data["name"].as_str().unwrap_or_default();
                let name = kind.strip_prefix("data-").unwrap_or(kind).to_owned();
                let is_heard = self.request.hears_custom(&name);
                let payload = data["data"].take();
                self.put(
                    (Channel::Custom, is_heard),
                    "custom",
                    || json!({"name": name, "payload": payload}),
                );
            }
            "messages" => self.message(&data[0]),
            "error" => {
                let text = |key: &str| data[key].as_str().unwrap_or_default().to_owned();
                self.failure = Some((text("error"), text("message")));
            }
            _ => {}
        }
    }

    /// What a record means beside what the run's stream says of it.
    fn look_at(&mut self, event: &Event) {
        if let Event::StepCreated { .. } = event {
            self.n_steps += 1;
            self.open.clear();
            self.calls.clear();
        }
        if let Event::StepStatusChanged {
            to: StepStatus::Completed,
            outcome,
            ..
        } = event
        {
            self.open = OpenCall::list(outcome.open_calls.as_ref());
        }
        if let Event::ChunkEmitted {
            chunk_type: kind,
            data,
            ..
        } = event
        {
            match kind.as_str() {
                chunk_type::STEP_RESPONSE => self.finish_message(),
                chunk_type::TOOL_STARTED => {
                    let call = data.as_ref().and_then(|it| it.str_field("toolCallId"));
                    self.tool_marked(&call.unwrap_or_default());
                }
                chunk_type::STEP_RESET => {
                    let why = "the attempt has died, and is made anew";
                    self.break_message(why);
                    self.break_tools(why);
                }
                _ => {}
            }
        }
        if let Event::PartCreated { part, .. } | Event::PartUpdated { part, .. } = event
            && let Some(tool) = ToolPart::read(part)
        {
            self.tool(tool);
        }
    }
}
