//! From the events of one run to the chunks of a UI message stream.

mod event;
mod part;

use crate::run::{RunEvent, RunFold, RunMetadata, RunSelector, Selected};
use crate::sse::DONE;
use jiff::Timestamp;
use serde_json::{Value, json};
use timeline::{ExecutionStatus, Interruption, Record};

/// The first major version whose clients can reset a step.
const RESETS_STEPS: u8 = 7;

/// One event of a UI message stream.
#[derive(Clone, Debug, PartialEq)]
pub enum ChunkJson {
    /// A chunk.
    Chunk(Value),
    /// The end of the stream.
    Done,
}

impl ChunkJson {
    /// The data of the event as server-sent events have it.
    pub fn to_text(&self) -> String {
        match self {
            Self::Chunk(chunk) => chunk.to_string(),
            Self::Done => DONE.to_owned(),
        }
    }
}

/// A message that other executions continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageSoFar {
    /// Its id.
    pub id: String,
    pub(super) metadata: RunMetadata,
}

impl MessageSoFar {
    /// A message of which nothing but the id is known.
    pub fn of(id: String) -> Self {
        let metadata = RunMetadata::default();
        Self { id, metadata }
    }
}

/// The chunks of one run for one reader. The run is one message.
///
/// A failed attempt is voided by `reset-step`, which clients support from `ai` 7 on. For older clients
/// its open blocks are ended and its text stays.
#[derive(Clone, Debug)]
pub struct StreamView {
    major: u8,
    /// Whether the stream shows events of the thread, as transient data.
    shows_thread: bool,
    /// Whether the stream shows the chunks of EK §8.1 that clients of the AI SDK do not need.
    shows_ek: bool,
    fold: RunFold,
    message_id: Option<String>,
    /// The metadata of the message so far.
    metadata: RunMetadata,
    step_open: bool,
    out: Vec<Value>,
}

impl StreamView {
    /// A view of this run for clients of this major version of `ai`.
    pub fn new(major: u8, run: RunSelector) -> Self {
        Self {
            major,
            shows_thread: false,
            shows_ek: false,
            fold: RunFold::new(run).with_blocks(),
            message_id: None,
            metadata: RunMetadata::default(),
            step_open: false,
            out: Vec::new(),
        }
    }

    /// A view of a run that continues a message: the calls of the message were answered.
    #[must_use]
    pub fn continuing(mut self, message: Option<MessageSoFar>) -> Self {
        if let Some(message) = message {
            self.message_id = Some(message.id);
            self.metadata = message.metadata;
            self.fold.set_first_answers();
        }
        self
    }

    /// A view that also shows thread events outside of its runs, as transient data.
    #[must_use]
    pub fn with_thread(mut self) -> Self {
        self.shows_thread = true;
        self
    }

    /// A view that shows all six chunk types of EK §8.1. Without it, the stream has `tool-output-available`,
    /// `tool-output-error` and `finish`. With it, also the context, a ping when the run begins, and whether
    /// tools run, as transient data.
    #[must_use]
    pub fn with_ek(mut self) -> Self {
        self.shows_ek = true;
        self
    }

    /// The id and metadata of the message that the run writes, as far as known.
    pub fn message(&self) -> Option<MessageSoFar> {
        let id = self.message_id.clone()?;
        let metadata = self.metadata.clone();
        Some(MessageSoFar { id, metadata })
    }

    /// Whether an execution of the run is at work.
    pub fn is_running(&self) -> bool {
        self.fold.selector().is_running()
    }

    /// The chunks that a record of the thread's log is.
    pub fn chunks(&mut self, record: &Record) -> Vec<ChunkJson> {
        self.select(record).1
    }

    /// Classifies a record of the thread's log for this run, and returns the record's chunks.
    pub fn select(&mut self, record: &Record) -> (Selected, Vec<ChunkJson>) {
        let (selected, events) = self.fold.select(record);
        let is_over = events.contains(&RunEvent::Ended);
        for event in events {
            self.event_at(event, record.at);
        }
        let chunks = self.take().into_iter().map(ChunkJson::Chunk);
        let done = is_over.then_some(ChunkJson::Done);
        (selected, chunks.chain(done).collect())
    }

    fn push(&mut self, chunk: Value) {
        self.out.push(chunk);
    }

    pub(super) fn take(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.out)
    }

    /// Writes the final metadata of a message whose executions have ended.
    pub(super) fn close(&mut self, to: ExecutionStatus, why: Option<&Interruption>, at: Timestamp) {
        let metadata = self.metadata.end(to, why, at);
        self.push(json!({"type": "message-metadata", "messageMetadata": metadata}));
    }
}
