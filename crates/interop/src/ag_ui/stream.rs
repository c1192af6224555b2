//! From the log of one execution to the events of a run.

mod interrupts;
mod results;

use super::messages::{arguments, first_said, reasoning_id, result_id, text_id};
use crate::ai_sdk::{ChunkJson, MessageSoFar, StreamView};
#[cfg(feature = "aitp")]
use crate::aitp::Question;
use crate::parts::ToolPart;
use crate::run::RunSelector;
pub use interrupts::interrupt_id;
#[cfg(feature = "aitp")]
use interrupts::request;
use interrupts::{interrupt, interrupt_beneath};
use results::Results;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use timeline::{Event, ItemId, ItemType, OpenCall, OpenKind, Record, StepId, StepStatus};

/// The major version of `ai` whose chunks are translated: the one that can say most.
const MAJOR: u8 = 7;

/// What one reader of a run has seen.
///
/// It is made of the AI SDK's view, which knows what of a log is shown, in which order, and what becomes of
/// a dead attempt; this one says the same in AG-UI's words. Each event costs what it says.
#[derive(Clone, Debug)]
pub struct RunView {
    chunks: StreamView,
    trigger: Option<ItemId>,
    thread_id: String,
    run_id: String,
    step: Option<StepId>,
    /// How often the step has begun anew.
    attempt: u32,
    /// How many texts the step has begun.
    n_texts: usize,
    n_reasonings: usize,
    /// Whether the step is open to the client.
    step_open: bool,
    /// The messages that are open, by their blocks.
    texts: BTreeMap<String, String>,
    reasonings: BTreeMap<String, String>,
    /// The calls that have begun, and the arguments so far of those that have not ended.
    calls: BTreeSet<String>,
    open_calls: BTreeMap<String, String>,
    /// What the last step that is over leaves open.
    open: Vec<OpenCall>,
    /// The call that the record is about.
    part: Option<ToolPart>,
    results: Results,
    heard: Heard,
    wants_messages: bool,
    is_over: bool,
    ending: Option<Ending>,
    out: Vec<Value>,
}

/// The first message that a run hears.
#[derive(Clone, Debug, Default)]
enum Heard {
    /// The client knows it.
    #[default]
    Known,
    /// It is to be told.
    Awaited,
    /// It is this, and is told when the run has begun.
    Said { id: String, text: String },
}

/// How a run ends.
#[derive(Clone, Debug)]
enum Ending {
    /// It is through. What it asks, and the calls whose results the client has.
    Finished {
        interrupts: Vec<Value>,
        pending: Vec<String>,
        /// The calls whose sub-agents wait.
        beneath: BTreeSet<String>,
    },
    Cancelled,
    /// With this event.
    Failed(Value),
}

impl RunView {
    /// A view of the execution that answers this item, under the names the client has for thread and run. Where
    /// the item answers calls, the client knows these.
    pub fn new(thread_id: &str, run_id: &str, trigger: ItemId) -> Self {
        let view = Self::running(thread_id, run_id);
        Self {
            chunks: StreamView::new(MAJOR, RunSelector::answering(trigger.clone())),
            trigger: Some(trigger),
            wants_messages: false,
            ..view
        }
    }

    /// A view of the first execution that it meets. The client may have seen its beginning, so it gets all
    /// messages at the end.
    pub fn running(thread_id: &str, run_id: &str) -> Self {
        Self {
            chunks: StreamView::new(MAJOR, RunSelector::running(None)),
            trigger: None,
            thread_id: thread_id.to_owned(),
            run_id: run_id.to_owned(),
            step: None,
            attempt: 0,
            n_texts: 0,
            n_reasonings: 0,
            step_open: false,
            texts: BTreeMap::new(),
            reasonings: BTreeMap::new(),
            calls: BTreeSet::new(),
            open_calls: BTreeMap::new(),
            open: Vec::new(),
            part: None,
            results: Results::default(),
            heard: Heard::Known,
            wants_messages: true,
            is_over: false,
            ending: None,
            out: Vec::new(),
        }
    }

    /// A view that does not end before the executions have which answer these items, in order.
    #[must_use]
    pub fn then_answering(self, items: Vec<ItemId>) -> Self {
        Self {
            chunks: self.chunks.then_answering(items),
            ..self
        }
    }

    /// A view that begins with the first message that the run hears, which its client does not know.
    #[must_use]
    pub fn telling(self) -> Self {
        Self {
            heard: Heard::Awaited,
            ..self
        }
    }

    /// The events of one record, each a JSON object.
    ///
    /// The last event is held back where the protocol wants the client to have all messages before it, as
    /// [`RunView::wants_messages`] says; [`RunView::end`] gives it.
    pub fn events(&mut self, record: &Record) -> Vec<Value> {
        self.note(&record.event);
        for chunk in self.chunks.chunks(record) {
            if let ChunkJson::Chunk(Value::Object(chunk)) = chunk {
                self.translate(&chunk);
            }
        }
        std::mem::take(&mut self.out)
    }

    /// Whether the run is over, but for what [`RunView::end`] gives.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether the client needs all messages ([`to_messages`](super::to_messages)) before the end: a person
    /// is asked something, or what a dead attempt said was shown and can't be taken back otherwise.
    pub fn wants_messages(&self) -> bool {
        self.is_over && (self.wants_messages || self.asks())
    }

    /// Whether the run is through, so that it may have asked something that is no call's.
    pub fn is_finished(&self) -> bool {
        matches!(self.ending, Some(Ending::Finished { .. }))
    }

    /// Has the run ask this as well: what it has asked by AITP, and what is open still.
    #[cfg(feature = "aitp")]
    pub fn ask(&mut self, questions: &[Question]) {
        if let Some(Ending::Finished { interrupts, .. }) = &mut self.ending {
            interrupts.extend(questions.iter().map(request));
        }
    }

    /// Whether the run leaves calls open whose sub-agents wait.
    pub fn waits_beneath(&self) -> bool {
        matches!(&self.ending, Some(Ending::Finished { beneath, .. }) if !beneath.is_empty())
    }

    /// Has the run ask what the sub-agents of its calls ask: of each call the key of its thread, the run's own
    /// call that led to it, and the call. What no run of this protocol can be told is left out.
    pub fn ask_beneath<'a>(
        &mut self,
        asked: impl IntoIterator<Item = (&'a str, &'a str, &'a OpenCall)>,
    ) {
        if let Some(Ending::Finished {
            interrupts,
            beneath,
            ..
        }) = &mut self.ending
        {
            let asked = asked.into_iter();
            let own = asked.filter(|(_, own, _)| beneath.contains(*own));
            interrupts.extend(own.filter_map(|(key, own, call)| interrupt_beneath(key, own, call)));
        }
    }

    fn asks(&self) -> bool {
        match &self.ending {
            Some(Ending::Finished { interrupts, .. }) => !interrupts.is_empty(),
            Some(Ending::Cancelled | Ending::Failed(_)) | None => false,
        }
    }

    /// What stands at the end; `messages` where they are wanted.
    pub fn end(&mut self, messages: Option<Vec<Value>>) -> Vec<Value> {
        let snapshot = messages.map(|all| json!({"type": "MESSAGES_SNAPSHOT", "messages": all}));
        let ending = self.ending.take().map(|ending| self.ended(ending));
        snapshot.into_iter().chain(ending).collect()
    }

    /// What the stream says when it can't go on.
    pub fn failed(message: &str, code: &str) -> Value {
        json!({"type": "RUN_ERROR", "message": message, "code": code})
    }

    fn push(&mut self, event: Value) {
        self.out.push(event);
    }

    fn note(&mut self, event: &Event) {
        if let Event::StepCreated { step } = event {
            self.step = Some(step.id.clone());
            self.attempt = 0;
            self.n_texts = 0;
            self.n_reasonings = 0;
            // Some models give the calls of every step the same ids.
            self.calls.clear();
            self.results.begin();
        }
        if let Event::ItemCreated { item } = event
            && self.trigger.as_ref() == Some(&item.id)
            && item.item_type == ItemType::ActionResult
        {
            // No event of this protocol names the message that goes on.
            let message = MessageSoFar::of(self.run_id.clone());
            self.chunks = self.chunks.clone().continuing(Some(message));
            self.results.answered_by(item);
        }
        if let (Event::ItemCreated { item }, Heard::Awaited) = (event, &self.heard)
            && let Some((id, text)) = first_said(item)
        {
            self.heard = Heard::Said { id, text };
        }
        if let Event::StepStatusChanged {
            step_id,
            to: StepStatus::Completed,
            outcome,
            ..
        } = event
            && self.step.as_ref() == Some(step_id)
        {
            self.open = OpenCall::list(outcome.open_calls.as_ref());
            self.results.step_over();
        }
        self.part = match event {
            Event::PartCreated { idx, part, .. } | Event::PartUpdated { idx, part, .. } => {
                let tool = ToolPart::read(part);
                if let Some(tool) = &tool {
                    self.results.see(*idx, tool.is_answered());
                }
                tool
            }
            Event::ContextCreated { .. }
            | Event::ContextResolved { .. }
            | Event::ContextStatusChanged { .. }
            | Event::ThreadCreated { .. }
            | Event::ThreadResolved { .. }
            | Event::ThreadStatusChanged { .. }
            | Event::ThreadFinished { .. }
            | Event::ItemCreated { .. }
            | Event::ItemStatusChanged { .. }
            | Event::ExecutionCreated { .. }
            | Event::ExecutionStatusChanged { .. }
            | Event::StepCreated { .. }
            | Event::StepStatusChanged { .. }
            | Event::ChunkEmitted { .. } => None,
        };
    }

    fn translate(&mut self, chunk: &Map<String, Value>) {
        let text = |key: &str| chunk.get(key).and_then(Value::as_str).unwrap_or_default();
        match text("type") {
            "start" => {
                let (thread, run) = (self.thread_id.as_str(), self.run_id.as_str());
                let started = json!({"type": "RUN_STARTED", "threadId": thread, "runId": run});
                self.push(started);
                self.tell();
            }
            "start-step" => {
                self.step_open = true;
                let name = self.step_name();
                self.push(json!({"type": "STEP_STARTED", "stepName": name}));
            }
            "finish-step" => self.finish_step(),
            "reset-step" => self.reset(),
            "text-delta" => self.spoke(text("id"), text("delta")),
            "text-end" => {
                if let Some(id) = self.texts.remove(text("id")) {
                    self.push(json!({"type": "TEXT_MESSAGE_END", "messageId": id}));
                }
            }
            "reasoning-delta" => self.thought(text("id"), text("delta")),
            "reasoning-end" => {
                if let Some(id) = self.reasonings.remove(text("id")) {
                    self.reasoning_ended(&id);
                }
            }
            "tool-input-start" => self.called(text("toolCallId"), text("toolName")),
            "tool-input-delta" => self.arguments(text("toolCallId"), text("inputTextDelta")),
            "tool-input-available" | "tool-input-error" => self.call_ended(),
            "tool-output-available" | "tool-output-error" | "tool-output-denied" => self.returned(),
            // After an error the run is over already.
            "finish" => self.finished(),
            "error" => self.hold(Ending::Failed(Self::failed(text("errorText"), "error"))),
            "abort" => self.hold(Ending::Cancelled),
            kind if kind.starts_with("data-") => {
                let value = chunk.get("data").cloned().unwrap_or_default();
                self.push(json!({"type": "CUSTOM", "name": kind, "value": value}));
            }
            kind @ ("file" | "source-url" | "source-document" | "message-metadata") => {
                let value: Map<String, Value> = chunk
                    .iter()
                    .filter(|(key, _)| *key != "type")
                    .map(|(k, v)| (k.clone(), v.clone()))
                    .collect();
                self.push(json!({"type": "CUSTOM", "name": kind, "value": value}));
            }
            _ => {}
        }
    }

    /// What the run has heard, as a message of the user's.
    fn tell(&mut self) {
        let Heard::Said { id, text } = std::mem::take(&mut self.heard) else {
            return;
        };
        self.push(json!({"type": "TEXT_MESSAGE_START", "messageId": id, "role": "user"}));
        if !text.is_empty() {
            self.push(json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": text}));
        }
        self.push(json!({"type": "TEXT_MESSAGE_END", "messageId": id}));
    }

    fn step_name(&self) -> String {
        self.step
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default()
    }

    fn finish_step(&mut self) {
        let results = self.results.rest();
        self.out.extend(results);
        if std::mem::take(&mut self.step_open) {
            let name = self.step_name();
            self.push(json!({"type": "STEP_FINISHED", "stepName": name}));
        }
    }

    /// More of a text. A message begins with its first piece: one that says nothing is none.
    fn spoke(&mut self, block: &str, delta: &str) {
        if delta.is_empty() {
            return;
        }
        let id = self.texts.get(block).cloned().unwrap_or_else(|| {
            let id = text_id(&self.step_name(), self.n_texts, self.attempt);
            self.n_texts += 1;
            self.push(json!({"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"}));
            self.texts.insert(block.to_owned(), id.clone());
            id
        });
        self.push(json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": delta}));
    }

    /// More of a reasoning, which begins as a text does.
    fn thought(&mut self, block: &str, delta: &str) {
        if delta.is_empty() {
            return;
        }
        let id = self.reasonings.get(block).cloned().unwrap_or_else(|| {
            let id = reasoning_id(&self.step_name(), self.n_reasonings);
            self.n_reasonings += 1;
            self.push(json!({"type": "REASONING_START", "messageId": id}));
            self.push(
                json!({"type": "REASONING_MESSAGE_START", "messageId": id, "role": "reasoning"}),
            );
            self.reasonings.insert(block.to_owned(), id.clone());
            id
        });
        self.push(json!({"type": "REASONING_MESSAGE_CONTENT", "messageId": id, "delta": delta}));
    }

    fn reasoning_ended(&mut self, id: &str) {
        self.push(json!({"type": "REASONING_MESSAGE_END", "messageId": id}));
        self.push(json!({"type": "REASONING_END", "messageId": id}));
    }

    fn called(&mut self, call: &str, tool: &str) {
        if self.calls.insert(call.to_owned()) {
            self.open_calls.insert(call.to_owned(), String::new());
            let parent = text_id(&self.step_name(), 0, self.attempt);
            self.push(json!({
                "type": "TOOL_CALL_START", "toolCallId": call, "toolCallName": tool,
                "parentMessageId": parent,
            }));
        }
    }

    /// An empty delta is no event.
    fn arguments(&mut self, call: &str, delta: &str) {
        if let Some(known) = self.open_calls.get_mut(call).filter(|_| !delta.is_empty()) {
            known.push_str(delta);
            self.push(json!({"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": delta}));
        }
    }

    /// The arguments are complete: what was not streamed of them is said now. If others were streamed,
    /// the messages put it right.
    fn call_ended(&mut self) {
        let Some(tool) = self.part.take() else {
            return;
        };
        let call = tool.tool_call_id.as_str();
        self.called(call, tool.tool_name());
        let whole = arguments(&tool);
        let known = self.open_calls.get(call);
        match known.map(|known| whole.strip_prefix(known.as_str())) {
            Some(Some(rest)) => self.arguments(call, rest),
            Some(None) => self.wants_messages = true,
            None => {}
        }
        if self.open_calls.remove(call).is_some() {
            self.push(json!({"type": "TOOL_CALL_END", "toolCallId": call}));
        }
        self.part = Some(tool);
    }

    fn returned(&mut self) {
        let Some(tool) = self.part.take() else {
            return;
        };
        let call = tool.tool_call_id.as_str();
        if let Some(content) = tool.result_text() {
            let result = json!({
                "type": "TOOL_CALL_RESULT", "messageId": result_id(call),
                "toolCallId": call, "content": content, "role": "tool",
            });
            let results = self.results.take(call, result);
            self.out.extend(results);
        }
    }

    /// A dead attempt is over: what it had begun is closed, and what it said is not taken up again.
    fn reset(&mut self) {
        self.close();
        self.wants_messages = true;
        self.attempt += 1;
        self.n_texts = 0;
        self.calls.clear();
        self.results.begin();
    }

    /// Closes what is open: nothing may be when a run ends.
    fn close(&mut self) {
        for id in std::mem::take(&mut self.texts).into_values() {
            self.push(json!({"type": "TEXT_MESSAGE_END", "messageId": id}));
        }
        for id in std::mem::take(&mut self.reasonings).into_values() {
            self.reasoning_ended(&id);
        }
        for call in std::mem::take(&mut self.open_calls).into_keys() {
            self.push(json!({"type": "TOOL_CALL_END", "toolCallId": call}));
        }
    }

    fn finished(&mut self) {
        let open = std::mem::take(&mut self.open);
        let interrupts = open.iter().filter_map(interrupt).collect();
        let (mut pending, mut beneath) = (Vec::new(), BTreeSet::new());
        for call in open {
            match call.kind {
                OpenKind::External => pending.push(call.tool_call_id),
                OpenKind::Child => drop(beneath.insert(call.tool_call_id)),
                OpenKind::Approval | OpenKind::Others => {}
            }
        }
        self.hold(Ending::Finished {
            interrupts,
            pending,
            beneath,
        });
    }

    /// Keeps the end back.
    fn hold(&mut self, ending: Ending) {
        if !self.is_over {
            self.close();
            self.finish_step();
            self.is_over = true;
            self.ending = Some(ending);
        }
    }

    fn ended(&self, ending: Ending) -> Value {
        let outcome = match ending {
            Ending::Failed(event) => return event,
            Ending::Cancelled => json!({"type": "cancelled"}),
            Ending::Finished {
                interrupts,
                pending,
                beneath: _,
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
