//! Converts the log of one run to server-sent events.

mod frame;
mod messages;

pub(in crate::langgraph) use frame::FrameIds;
pub use frame::{Frame, FrameId};

use super::interrupt::{InterruptedCall, interrupts};
use super::request::StreamMode;
use super::updates::RunUpdates;
use crate::run::{RunEvent, Selected};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use timeline::{ExecutionId, ItemId, ReadPosition, Record};

/// The frames of one run for one reader.
///
/// The cost of a record depends on its content. Values cost time for the whole thread. So the caller
/// reads them only if the client wants them, when the run starts and when it ends.
#[derive(Clone, Debug)]
pub struct RunEventStream {
    run: RunUpdates,
    modes: BTreeSet<StreamMode>,
    ids: FrameIds,
    values_wanted: bool,
    at: FrameId,
    out: Vec<Frame>,
}

impl RunEventStream {
    /// A stream of the run that answers this item. The ids of the thread and the run are those that
    /// clients use.
    pub fn new(thread_id: &str, run_id: &str, trigger: ItemId, modes: &[StreamMode]) -> Self {
        Self {
            run: RunUpdates::new(thread_id, run_id, trigger),
            modes: modes.iter().copied().collect(),
            ids: FrameIds::default(),
            values_wanted: false,
            at: FrameId { seq: 0, nth: 0 },
            out: Vec::new(),
        }
    }

    /// A stream of a run that acts on answers to calls.
    #[must_use]
    pub fn resumed(mut self) -> Self {
        self.run.fold.set_first_answers();
        self
    }

    /// A stream that continues after this frame.
    #[must_use]
    pub fn after(self, last: Option<FrameId>) -> Self {
        let ids = FrameIds::after(last);
        Self { ids, ..self }
    }

    /// The first frame of every stream.
    pub fn metadata(&self) -> Frame {
        Frame {
            id: None,
            event: "metadata",
            data: json!({
                "run_id": self.run.run_id, "attempt": 1, "thread_id": self.run.thread_id,
            }),
        }
    }

    /// The execution that runs, or ran last.
    pub fn execution(&self) -> Option<&ExecutionId> {
        self.run.fold.selector().execution()
    }

    /// Classifies a record of the thread's log for this run, and returns the record's frames. Call
    /// [`RunEventStream::wants_values`] afterwards.
    pub fn select(&mut self, record: &Record) -> (Selected, Vec<Frame>) {
        self.select_at(record, record.seq.into())
    }

    /// Like [`RunEventStream::select`], also for chunks that are not stored yet. `position` is that of
    /// a reader behind the record.
    pub fn select_at(&mut self, record: &Record, position: ReadPosition) -> (Selected, Vec<Frame>) {
        if self.ids.begin(record, position) {
            self.run.note_lost();
        }
        self.at = FrameId {
            seq: record.seq.0,
            nth: 0,
        };
        let (selected, events) = self.run.fold.select(record);
        for event in &events {
            if let RunEvent::Started { .. } = event {
                // They follow the record's other frames. A reader that has them does not need them
                // again.
                let nth = self.at.nth + 1;
                let is_new = self.ids.lacks(FrameId { nth, ..self.at });
                self.values_wanted = is_new && self.wants_last_values();
            }
            for update in self.run.updates(event) {
                self.update(update);
            }
        }
        (selected, std::mem::take(&mut self.out))
    }

    /// Whether the run has just started and its values are wanted; [`RunEventStream::begin`] streams
    /// them.
    pub fn wants_values(&mut self) -> bool {
        std::mem::take(&mut self.values_wanted)
    }

    /// The values when the run starts.
    pub fn begin(&mut self, values: Value) -> Vec<Frame> {
        self.push(StreamMode::Values, "values", |_| values);
        std::mem::take(&mut self.out)
    }

    /// Whether the values are wanted when the run ends.
    pub fn wants_last_values(&self) -> bool {
        self.modes.contains(&StreamMode::Values)
    }

    /// The frames at the end of the run: the interrupts, the values, and the error if it failed.
    pub fn end(&mut self, values: Option<Value>, asked: &[InterruptedCall]) -> Vec<Frame> {
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
        if let Some((error, message)) = self.run.failure.take() {
            let data = json!({"error": error, "message": message});
            self.put(true, "error", |_| data);
        }
        std::mem::take(&mut self.out)
    }

    /// Adds a frame of a mode.
    fn push(&mut self, mode: StreamMode, event: &'static str, data: impl FnOnce(&Self) -> Value) {
        self.put(self.modes.contains(&mode), event, data);
    }

    /// Adds a frame. It uses up a number even if the client does not want it; then its data is not
    /// built.
    fn put(&mut self, is_wanted: bool, event: &'static str, data: impl FnOnce(&Self) -> Value) {
        self.at.nth += 1;
        let id = self.ids.next(self.at.nth);
        if is_wanted && id.is_some() {
            let data = data(self);
            self.out.push(Frame { id, event, data });
        }
    }
}
