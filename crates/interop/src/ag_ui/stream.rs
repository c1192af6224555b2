//! Converts the events of a run to those of the protocol.

mod blocks;
mod interrupts;
mod results;

use super::messages::first_text;
#[cfg(feature = "aitp")]
use crate::aitp::RequestQuestion;
use crate::run::{RunEvent, RunFold, RunMetadata, RunPart, RunSelector, Selected};
use blocks::Blocks;
pub use interrupts::interrupt_id;
#[cfg(feature = "aitp")]
use interrupts::request;
use interrupts::{child_interrupt, interrupt};
use jiff::Timestamp;
use results::Results;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use timeline::{
    Chunk, Event, ExecutionId, ExecutionStatus, Interruption, Item, ItemId, ItemType, OpenCall,
    OpenKind, Payload, Record, StepId, StepStatus,
};

/// The events of one run, for one reader. The cost is proportional to the records.
#[derive(Clone, Debug)]
pub struct RunView {
    fold: RunFold,
    trigger: Option<ItemId>,
    thread_id: String,
    run_id: String,
    /// Whether the step is open to the client.
    step_open: bool,
    blocks: Blocks,
    results: Results,
    metadata: RunMetadata,
    /// The calls that the last completed step leaves open.
    open: Vec<OpenCall>,
    user_message: UserMessage,
    wants_messages: bool,
    is_over: bool,
    ending: Option<Ending>,
    out: Vec<Value>,
}

/// The first message that a run answers.
#[derive(Clone, Debug, Default)]
enum UserMessage {
    /// The client has it.
    #[default]
    Known,
    /// The next message in the log is sent.
    Awaited,
    /// The message is known and is sent when the run starts.
    Found { id: String, text: String },
}

/// The end of a run.
#[derive(Clone, Debug)]
enum Ending {
    /// It completed.
    Finished {
        interrupts: Vec<Value>,
        /// The calls whose results the client must send.
        pending: Vec<String>,
        /// The calls with waiting sub-agents.
        children: BTreeSet<String>,
    },
    Cancelled,
    /// With this event.
    Failed(Value),
}

impl RunView {
    /// A view of the run that answers this item, with the client's ids of thread and run. If the
    /// item answers calls, the client knows these.
    pub fn new(thread_id: &str, run_id: &str, trigger: ItemId) -> Self {
        let run = RunSelector::answering(trigger.clone());
        Self {
            trigger: Some(trigger),
            wants_messages: false,
            ..Self::of(thread_id, run_id, run)
        }
    }

    /// A view of the run of this execution, or of the next one that begins. The client may lack the
    /// start of the run, so it receives all messages at the end.
    pub fn running(thread_id: &str, run_id: &str, execution: Option<ExecutionId>) -> Self {
        Self::of(thread_id, run_id, RunSelector::running(execution))
    }

    fn of(thread_id: &str, run_id: &str, run: RunSelector) -> Self {
        Self {
            fold: RunFold::new(run).with_blocks(),
            trigger: None,
            thread_id: thread_id.to_owned(),
            run_id: run_id.to_owned(),
            step_open: false,
            blocks: Blocks::default(),
            results: Results::default(),
            metadata: RunMetadata::default(),
            open: Vec::new(),
            user_message: UserMessage::Known,
            wants_messages: true,
            is_over: false,
            ending: None,
            out: Vec::new(),
        }
    }

    /// A view of a run that the executions continue which answer these items, in order.
    #[must_use]
    pub fn then_answering(mut self, items: Vec<ItemId>) -> Self {
        self.fold = self.fold.then_answering(items);
        self
    }

    /// A view that begins with the first message that the run answers, which its client does not know.
    #[must_use]
    pub fn with_user_message(mut self) -> Self {
        self.user_message = UserMessage::Awaited;
        self
    }

    /// The relation of a record to the run, and its events, each a JSON object.
    ///
    /// [`RunView::end`] returns the last event. The client may need all messages before it
    /// ([`RunView::wants_messages`]).
    pub fn select(&mut self, record: &Record) -> (Selected, Vec<Value>) {
        if let Event::ItemCreated { item } = &record.event {
            self.item(item);
        }
        let (selected, events) = self.fold.select(record);
        for event in events {
            self.event(event, record.at);
        }
        (selected, std::mem::take(&mut self.out))
    }

    /// Whether an execution of the run is at work.
    pub fn is_running(&self) -> bool {
        self.fold.selector().is_running()
    }

    /// Whether the run ended and [`RunView::end`] returns its last event.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether the client needs all messages ([`to_messages`](super::to_messages)) before the end: the
    /// run is interrupted, or the client has text of a dead attempt.
    pub fn wants_messages(&self) -> bool {
        self.is_over && (self.wants_messages || self.has_interrupts())
    }

    /// Whether the run completed; only then may it have made AITP requests.
    pub fn is_finished(&self) -> bool {
        matches!(self.ending, Some(Ending::Finished { .. }))
    }

    /// Adds interrupts for requests of AITP that the run made and that are open.
    #[cfg(feature = "aitp")]
    pub fn add_requests(&mut self, questions: &[RequestQuestion]) {
        if let Some(Ending::Finished { interrupts, .. }) = &mut self.ending {
            interrupts.extend(questions.iter().map(request));
        }
    }

    /// Whether the run has open calls with waiting sub-agents.
    pub fn has_waiting_children(&self) -> bool {
        matches!(&self.ending, Some(Ending::Finished { children, .. }) if !children.is_empty())
    }

    /// Adds interrupts for open calls of sub-agents. Each comes with the key of its thread and the
    /// run's own call that led to it. Calls without an interrupt in the protocol are left out.
    pub fn add_child_calls<'a>(
        &mut self,
        calls: impl IntoIterator<Item = (&'a str, &'a str, &'a OpenCall)>,
    ) {
        if let Some(Ending::Finished {
            interrupts,
            children,
            ..
        }) = &mut self.ending
        {
            let calls = calls.into_iter();
            let own = calls.filter(|(_, own, _)| children.contains(*own));
            interrupts.extend(own.filter_map(|(key, own, call)| child_interrupt(key, own, call)));
        }
    }

    fn has_interrupts(&self) -> bool {
        match &self.ending {
            Some(Ending::Finished { interrupts, .. }) => !interrupts.is_empty(),
            Some(Ending::Cancelled | Ending::Failed(_)) | None => false,
        }
    }

    /// The last events, with `messages` if the client needs them.
    pub fn end(&mut self, messages: Option<Vec<Value>>) -> Vec<Value> {
        let snapshot = messages.map(|all| json!({"type": "MESSAGES_SNAPSHOT", "messages": all}));
        let last = self.ending.take().map(|ending| self.last_event(ending));
        snapshot.into_iter().chain(last).collect()
    }

    /// The event of a stream that failed.
    pub fn failed(message: &str, code: &str) -> Value {
        json!({"type": "RUN_ERROR", "message": message, "code": code})
    }

    fn push(&mut self, event: Value) {
        self.out.push(event);
    }

    /// An item is in the log, the trigger of the run among others.
    fn item(&mut self, item: &Item) {
        if self.trigger.as_ref() == Some(&item.id) && item.item_type == ItemType::ActionResult {
            self.fold.set_first_answers();
            self.results.answered_by(item);
        }
        if let UserMessage::Awaited = self.user_message
            && let Some((id, text)) = first_text(item)
        {
            self.user_message = UserMessage::Found { id, text };
        }
    }

    fn event(&mut self, event: RunEvent<'_>, at: Timestamp) {
        match event {
            RunEvent::Started { execution } => {
                self.metadata.execution(execution);
                let (thread, run) = (self.thread_id.as_str(), self.run_id.as_str());
                let started = json!({"type": "RUN_STARTED", "threadId": thread, "runId": run});
                self.push(started);
                self.show_user_message();
            }
            RunEvent::Continued { execution, .. } => self.metadata.execution(execution),
            RunEvent::StepStarted { step } => {
                self.step_open = true;
                self.blocks.start_step(&step.id);
                self.results.begin();
                self.push(json!({"type": "STEP_STARTED", "stepName": step.id}));
            }
            RunEvent::Chunk(chunk) => self.chunk(&chunk),
            RunEvent::StepReset { .. } => {
                // The messages replace those of the dead attempt.
                self.wants_messages = true;
                self.blocks.reset(&mut self.out);
                self.results.begin();
            }
            RunEvent::Responded {
                response: Some(response),
            } => self.metadata.response(&response),
            RunEvent::Part {
                idx,
                part,
                is_new,
                is_known,
                ..
            } => self.part(idx, part, (is_new, is_known)),
            RunEvent::StepEnded {
                status: StepStatus::Completed,
                outcome,
                ..
            } => {
                self.open = OpenCall::list(outcome.open_calls.as_ref());
                self.results.step_over();
                self.finish_step();
            }
            RunEvent::ExecutionEnded {
                status,
                interruption,
                is_last,
                ..
            } => {
                let is_completed = status == ExecutionStatus::Completed;
                if is_completed {
                    self.finish_step();
                }
                if is_last && is_completed {
                    self.finish();
                } else if is_last {
                    self.break_off(interruption, at);
                }
            }
            RunEvent::Abandoned => {
                let why = "the thread was closed before the run began";
                self.push(Self::failed(why, "closed"));
            }
            RunEvent::Responded { .. }
            | RunEvent::StepEnded { .. }
            | RunEvent::ContinuationPending
            | RunEvent::Ended
            | RunEvent::ItemAdded(_)
            | RunEvent::ThreadChanged(_) => {}
        }
    }

    /// The message that the run answers, as a message of the user's.
    fn show_user_message(&mut self) {
        let UserMessage::Found { id, text } = std::mem::take(&mut self.user_message) else {
            return;
        };
        self.push(json!({"type": "TEXT_MESSAGE_START", "messageId": id, "role": "user"}));
        if !text.is_empty() {
            self.push(json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": text}));
        }
        self.push(json!({"type": "TEXT_MESSAGE_END", "messageId": id}));
    }

    fn finish_step(&mut self) {
        let results = self.results.rest();
        self.out.extend(results);
        if std::mem::take(&mut self.step_open) {
            let name = self.fold.step().map(StepId::as_str).unwrap_or_default();
            let finished = json!({"type": "STEP_FINISHED", "stepName": name});
            self.push(finished);
        }
    }

    fn custom(&mut self, name: &str, value: Value) {
        let mut event = json!({"type": "CUSTOM", "name": name});
        event["value"] = value;
        self.push(event);
    }

    fn chunk(&mut self, chunk: &Chunk<'_>) {
        let out = &mut self.out;
        match chunk {
            Chunk::BlockDelta {
                kind, block, text, ..
            } => self.blocks.delta(*kind, &block.id, text, out),
            Chunk::BlockEnd { kind, block, .. } => self.blocks.end(*kind, &block.id, out),
            Chunk::ToolInputStart {
                tool_call_id,
                tool_name,
                ..
            } => self.blocks.start_call(tool_call_id, tool_name, out),
            Chunk::ToolInputDelta {
                tool_call_id, text, ..
            } => self.blocks.call_delta(tool_call_id, text, out),
            Chunk::Source { data, .. } => {
                let mut source: Map<String, Value> = data.read().unwrap_or_default();
                source.shift_remove("type");
                self.custom(chunk.chunk_type(), source.into());
            }
            Chunk::Data { chunk_type, data } => {
                let mut data = data.map(Payload::value).unwrap_or_default();
                let inner = data.get_mut("data").map(Value::take);
                self.custom(chunk_type, inner.unwrap_or(data));
            }
            Chunk::BlockStart { .. }
            | Chunk::Marker(_)
            | Chunk::Runtime { .. }
            | Chunk::Other { .. } => {}
        }
    }

    fn part(&mut self, idx: u32, part: RunPart, (is_new, is_known): (bool, bool)) {
        match part {
            RunPart::Tool(tool) => {
                if is_new && !is_known && !self.blocks.end_call(&tool, &mut self.out) {
                    self.wants_messages = true;
                }
                self.out.extend(self.results.take(idx, &tool));
            }
            RunPart::Event(event) if is_new => self.custom(&event.part_type, event.data.value()),
            RunPart::File { url, media_type } if is_new => {
                self.custom("file", json!({"url": url, "mediaType": media_type}));
            }
            RunPart::Event(_) | RunPart::File { .. } | RunPart::Content => {}
        }
    }

    fn finish(&mut self) {
        let open = std::mem::take(&mut self.open);
        let interrupts = open.iter().filter_map(interrupt).collect();
        let (mut pending, mut children) = (Vec::new(), BTreeSet::new());
        for call in open {
            match call.kind {
                OpenKind::External => pending.push(call.tool_call_id),
                OpenKind::Child => drop(children.insert(call.tool_call_id)),
                OpenKind::Approval | OpenKind::Others => {}
            }
        }
        self.end_with(Ending::Finished {
            interrupts,
            pending,
            children,
        });
    }

    fn break_off(&mut self, why: Option<&Interruption>, at: Timestamp) {
        let reason = why.map_or("error", |why| why.reason.as_str());
        if reason == Interruption::USER_CANCELLED {
            let metadata = self.metadata.end(ExecutionStatus::Failed, why, at);
            self.custom("message-metadata", json!({ "messageMetadata": metadata }));
            self.end_with(Ending::Cancelled);
            return;
        }
        let detail = why.and_then(|why| why.detail.as_deref());
        let failed = Self::failed(detail.unwrap_or(reason), "error");
        self.end_with(Ending::Failed(failed));
    }

    /// Closes all open messages and stores the last event for [`RunView::end`].
    fn end_with(&mut self, ending: Ending) {
        self.blocks.close(&mut self.out);
        self.finish_step();
        self.is_over = true;
        self.ending = Some(ending);
    }

    fn last_event(&self, ending: Ending) -> Value {
        let outcome = match ending {
            Ending::Failed(event) => return event,
            Ending::Cancelled => json!({"type": "cancelled"}),
            Ending::Finished {
                interrupts,
                pending,
                children: _,
            } => {
                if !interrupts.is_empty() {
                    json!({"type": "interrupt", "interrupts": interrupts})
                } else if pending.is_empty() {
                    json!({"type": "success"})
                } else {
                    json!({"type": "success", "pendingToolCallIds": pending})
                }
            }
        };
        let (thread, run) = (self.thread_id.as_str(), self.run_id.as_str());
        json!({"type": "RUN_FINISHED", "threadId": thread, "runId": run, "outcome": outcome})
    }
}
