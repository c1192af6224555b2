//! From the log of one run to its server-sent events.

mod draft;
mod frame;
mod pieces;

pub use frame::{Frame, FrameId};

use super::interrupt::{Asked, interrupts};
use super::message::agent_of;
use super::request::StreamMode;
use super::run::error_name;
use crate::ai_sdk::{ChunkJson, MessageSoFar, StreamView};
use crate::parts::StepResponse;
use crate::run::RunSelector;
use draft::{Draft, Kind};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use timeline::{
    Event, ExecutionId, ExecutionStatus, ItemId, Payload, Record, StepId, StepStatus, chunk_type,
};

/// The major version of `ai` whose chunks are translated: the one that can say most.
const MAJOR: u8 = 7;

/// What one reader of a run has seen.
///
/// It is made of the AI SDK's view, which knows what of a log is shown, in which order, and what becomes of a dead
/// attempt; this one says the same in `LangGraph`'s words. Each event costs what it says; values, which cost the thread,
/// are only said where they are wanted, when the run begins and when it is over.
#[derive(Clone, Debug)]
pub struct RunStream {
    chunks: StreamView,
    thread_id: String,
    run_id: String,
    modes: BTreeSet<StreamMode>,
    last: Option<FrameId>,
    agent: Option<String>,
    execution: Option<ExecutionId>,
    has_begun: bool,
    is_over: bool,
    values_wanted: bool,
    step: Option<StepId>,
    iteration: u32,
    parts: Vec<Payload>,
    response: Option<StepResponse>,
    draft: Draft,
    /// The parts of the step whose results were told.
    results: Vec<u32>,
    failure: Option<(String, String)>,
    at: FrameId,
    out: Vec<Frame>,
}

impl RunStream {
    /// A stream of the run that answers this item; the thread and the run as their client names them.
    pub fn new(thread_id: &str, run_id: &str, trigger: ItemId, modes: &[StreamMode]) -> Self {
        Self {
            chunks: StreamView::new(MAJOR, RunSelector::answering(trigger)),
            thread_id: thread_id.to_owned(),
            run_id: run_id.to_owned(),
            modes: modes.iter().copied().collect(),
            last: None,
            agent: None,
            execution: None,
            has_begun: false,
            is_over: false,
            values_wanted: false,
            step: None,
            iteration: 0,
            parts: Vec::new(),
            response: None,
            draft: Draft::default(),
            results: Vec::new(),
            failure: None,
            at: FrameId { seq: 0, nth: 0 },
            out: Vec::new(),
        }
    }

    /// A run that goes on where calls were answered.
    #[must_use]
    pub fn resumed(self) -> Self {
        let run_id = self.run_id.clone();
        Self {
            chunks: self.chunks.continuing(Some(MessageSoFar::of(run_id))),
            ..self
        }
    }

    /// A stream that is taken up again after a frame.
    #[must_use]
    pub fn after(self, last: Option<FrameId>) -> Self {
        Self { last, ..self }
    }

    /// What stands first in every stream.
    pub fn metadata(&self) -> Frame {
        Frame {
            id: None,
            event: "metadata",
            data: json!({"run_id": self.run_id, "attempt": 1, "thread_id": self.thread_id}),
        }
    }

    /// The agent that runs, or ran last.
    pub(super) fn agent(&self) -> Option<&str> {
        self.agent.as_deref()
    }

    /// The execution that runs, or ran last.
    pub fn execution(&self) -> Option<&ExecutionId> {
        self.execution.as_ref()
    }

    /// The frames of a record. After them [`RunStream::wants_values`] may hold.
    pub fn frames(&mut self, record: &Record) -> Vec<Frame> {
        self.at = FrameId {
            seq: record.seq.0,
            nth: 0,
        };
        // What comes after the run is another's.
        if self.is_over {
            return Vec::new();
        }
        self.note(&record.event);
        for chunk in self.chunks.chunks(record) {
            if let ChunkJson::Chunk(Value::Object(chunk)) = chunk {
                self.translate(&chunk, &record.event);
            }
        }
        self.look_back(&record.event);
        std::mem::take(&mut self.out)
    }

    /// Whether the run has just begun and the values are wanted as they are then: [`RunStream::begin`] says them.
    pub fn wants_values(&mut self) -> bool {
        std::mem::take(&mut self.values_wanted)
    }

    /// The values when the run begins.
    pub fn begin(&mut self, values: Value) -> Vec<Frame> {
        self.push(StreamMode::Values, "values", |_| values);
        std::mem::take(&mut self.out)
    }

    /// Whether the values are wanted when the run is over.
    pub fn wants_last_values(&self) -> bool {
        self.modes.contains(&StreamMode::Values)
    }

    /// What stands at the end: what was broken off, what waits for an answer, and the values.
    pub fn end(&mut self, values: Option<Value>, asked: &[Asked]) -> Vec<Frame> {
        if !asked.is_empty() {
            self.push(
                StreamMode::Updates,
                "updates",
                |_| json!({"__interrupt__": interrupts(asked)}),
            );
        }
        self.push(StreamMode::Values, "values", |_| {
            let mut values = values.unwrap_or_default();
            if let (Value::Object(values), false) = (&mut values, asked.is_empty()) {
                values.insert("__interrupt__".to_owned(), interrupts(asked).into());
            }
            values
        });
        if let Some((error, message)) = self.failure.take() {
            let data = json!({"error": error, "message": message});
            self.show("error", data);
        }
        std::mem::take(&mut self.out)
    }

    /// Says something in one of the modes. Each such thing has its number, whether it is wanted or not.
    /// What nobody wants is not even made.
    fn push(&mut self, mode: StreamMode, event: &'static str, data: impl FnOnce(&Self) -> Value) {
        self.at.nth += 1;
        if self.modes.contains(&mode) && self.last.is_none_or(|last| self.at > last) {
            let (id, data) = (Some(self.at), data(self));
            self.out.push(Frame { id, event, data });
        }
    }

    /// Says something in every mode.
    fn show(&mut self, event: &'static str, data: Value) {
        self.at.nth += 1;
        if self.last.is_none_or(|last| self.at > last) {
            let id = Some(self.at);
            self.out.push(Frame { id, event, data });
        }
    }

    fn note(&mut self, event: &Event) {
        if let Event::StepCreated { step } = event {
            self.step = Some(step.id.clone());
            self.iteration = step.iteration;
            self.parts.clear();
            self.response = None;
            self.draft = Draft::default();
            self.results.clear();
        }
        if let Event::PartCreated {
            step_id, idx, part, ..
        }
        | Event::PartUpdated {
            step_id, idx, part, ..
        } = event
            && self.step.as_ref() == Some(step_id)
        {
            let idx = usize::try_from(*idx).unwrap_or(usize::MAX);
            if let Some(known) = self.parts.get_mut(idx) {
                *known = part.clone();
            } else if idx == self.parts.len() {
                self.parts.push(part.clone());
            }
        }
        if let Event::ExecutionStatusChanged {
            to: ExecutionStatus::Failed,
            interruption,
            ..
        } = event
            && self.has_begun
        {
            let why = interruption.as_ref();
            let reason = why.map_or("error", |why| why.reason.as_str());
            let detail = why.and_then(|why| why.detail.as_deref()).unwrap_or(reason);
            self.failure = Some((error_name(reason).to_owned(), detail.to_owned()));
        }
    }

    /// What a record means once its chunks were told.
    fn look_back(&mut self, event: &Event) {
        if !self.has_begun {
            return;
        }
        if let Event::ExecutionCreated { execution } = event {
            self.execution = Some(execution.id.clone());
            self.agent = agent_of(execution.run.as_ref());
        }
        if let Event::ChunkEmitted {
            chunk_type: kind,
            step_id: Some(step),
            data,
            ..
        } = event
            && kind == chunk_type::STEP_RESPONSE
            && self.step.as_ref() == Some(step)
        {
            self.responded(data.as_ref());
        }
        if let Event::StepStatusChanged {
            step_id,
            to: StepStatus::Completed,
            ..
        } = event
            && self.step.as_ref() == Some(step_id)
        {
            self.completed();
        }
    }

    fn translate(&mut self, chunk: &Map<String, Value>, event: &Event) {
        let text = |key: &str| chunk.get(key).and_then(Value::as_str).unwrap_or_default();
        match text("type") {
            "start" => {
                self.has_begun = true;
                // Said after this record's other frames; what was seen before is not read again.
                let next = FrameId {
                    nth: self.at.nth + 1,
                    ..self.at
                };
                let is_new = self.last.is_none_or(|last| next > last);
                self.values_wanted = is_new && self.modes.contains(&StreamMode::Values);
            }
            "text-delta" => self.grew(Kind::Text, text("id"), text("delta")),
            "reasoning-delta" => self.grew(Kind::Reasoning, text("id"), text("delta")),
            "file" => {
                let content = self
                    .draft
                    .file(text("url"), chunk.get("mediaType").and_then(Value::as_str));
                self.piece(content, &[]);
                self.grown();
            }
            "tool-input-start" => {
                let call = self.draft.called(text("toolCallId"), text("toolName"));
                self.called(call);
            }
            "tool-input-delta" => {
                let more = self
                    .draft
                    .arguments(text("toolCallId"), text("inputTextDelta"));
                self.called(more);
            }
            "tool-input-available" | "tool-input-error" => self.call_ended(event),
            "tool-output-available" | "tool-output-error" | "tool-output-denied" => {
                self.returned(event);
            }
            "reset-step" => {
                self.took_all_back();
                self.parts.clear();
                self.response = None;
            }
            "error" | "abort" => {
                self.took_all_back();
                self.is_over = true;
            }
            "finish" => self.is_over = true,
            kind if kind.starts_with("data-") || kind.starts_with("source-") => {
                self.push(StreamMode::Custom, "custom", |_| match chunk.get("data") {
                    Some(data) => json!({"name": kind, "data": data}),
                    None => json!({"name": kind, "data": chunk}),
                });
            }
            _ => {}
        }
    }
}
