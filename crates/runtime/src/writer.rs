//! The only way for a reactor to write: to its own step, while that step runs.

use crate::compaction::ForModel;
use crate::error::RuntimeError;
use crate::live::Live;
use crate::planted::{self, Bug};
use crate::tries::Tries;
use interop::parts::ToolPart;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use store::Filter;
use timeline::{
    BlockId, BlockKind, Chunk, Command, ExecutionId, NewChunk, Payload, StepId, Transcript,
    chunk_type,
};
use tokio::time::Instant;

/// Chunks are shown together for at most this time…
const WINDOW: Duration = Duration::from_millis(30);
/// …or until they hold this many bytes.
const WINDOW_BYTES: usize = 4_096;
/// An answer with calls of pure tools waits at most this time for their results.
const HOLD: Duration = Duration::from_millis(20);

/// The writer no longer owns the step, which was cancelled, interrupted, or taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the step was stopped")]
pub struct WriterStopped;

/// A growing block of a model's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockDelta {
    /// Text.
    Text,
    /// Reasoning.
    Reasoning,
    /// The arguments of a tool call.
    ToolInput,
}

impl BlockDelta {
    fn chunk<'a>(self, id: &'a str, text: &'a str) -> Chunk<'a> {
        let block = |kind| Chunk::BlockDelta {
            kind,
            block: BlockId::read(id),
            text: text.into(),
            extra: None,
        };
        match self {
            Self::Text => block(BlockKind::Text),
            Self::Reasoning => block(BlockKind::Reasoning),
            Self::ToolInput => Chunk::ToolInputDelta {
                tool_call_id: id.into(),
                text: text.into(),
                extra: None,
            },
        }
    }
}

enum PendingChunk {
    Delta {
        kind: BlockDelta,
        id: String,
        text: String,
    },
    Chunk(NewChunk),
    Command(Box<Command>),
}

impl PendingChunk {
    fn command(command: Command) -> Self {
        Self::Command(Box::new(command))
    }
}

/// The chunks to write, in order.
#[derive(Default)]
struct Buffer {
    pieces: Vec<PendingChunk>,
    bytes: usize,
    /// The latest time to write it, unless the step ends first.
    due: Option<Instant>,
    /// The time when the chunks that are shown and not stored yet are stored.
    store_due: Option<Instant>,
    last: Option<Instant>,
    /// Whether it must be stored, and not only shown, when it is due.
    must_store: bool,
    /// How often it was taken to be written…
    n_taken: u64,
    /// …was shown…
    n_shown: u64,
    /// …and is durable.
    n_written: u64,
    /// Nothing more is written.
    is_over: bool,
    /// Number of parts of the step after all this is written.
    n_parts: u32,
}

impl Buffer {
    /// The number of takes that were shown, or stored.
    fn n_done(&self, must_store: bool) -> u64 {
        if must_store {
            self.n_written
        } else {
            self.n_shown
        }
    }

    fn put(&mut self, idx: u32, part: Payload) {
        self.n_parts = self.n_parts.max(idx.saturating_add(1));
        self.pieces
            .push(PendingChunk::command(Command::PutPart { idx, part }));
    }

    /// Appends a part; returns its index.
    fn add(&mut self, part: Payload) -> u32 {
        let idx = self.n_parts;
        self.put(idx, part);
        idx
    }

    fn push_delta(&mut self, kind: BlockDelta, id: &str, text: &str) {
        self.bytes += text.len();
        match self.pieces.last_mut() {
            Some(PendingChunk::Delta {
                kind: last,
                id: of,
                text: whole,
            }) if *last == kind && of == id => whole.push_str(text),
            _ => self.pieces.push(PendingChunk::Delta {
                kind,
                id: id.to_owned(),
                text: text.to_owned(),
            }),
        }
    }

    fn take(&mut self) -> Vec<Command> {
        self.bytes = 0;
        self.due = None;
        self.must_store = false;
        self.n_taken += 1;
        self.last = Some(Instant::now());
        let mut commands: Vec<Command> = Vec::new();
        for piece in std::mem::take(&mut self.pieces) {
            let chunk = match piece {
                PendingChunk::Delta { kind, id, text } => kind.chunk(&id, &text).encode(),
                PendingChunk::Chunk(chunk) => chunk,
                PendingChunk::Command(command) => {
                    commands.push(*command);
                    continue;
                }
            };
            match commands.last_mut() {
                Some(Command::Emit { chunks }) => chunks.push(chunk),
                _ => commands.push(Command::Emit {
                    chunks: vec![chunk],
                }),
            }
        }
        commands
    }
}

/// Writes into one running step. Everything is written in order, and by the driver of the step
/// alone. So what the step's tools buffer at the same moment shares a commit.
///
/// Followers see the chunks of a model's answer before they are stored. The next fact of the step,
/// or any other append to the thread, stores them first.
pub struct StepWriter {
    live: Arc<Live>,
    execution: ExecutionId,
    step: StepId,
    buffer: Mutex<Buffer>,
    due: tokio::sync::Notify,
    written: tokio::sync::Notify,
    fault: Mutex<Option<RuntimeError>>,
}

impl StepWriter {
    /// Creates the writer of a step that already has `n_parts` parts.
    pub(crate) fn new(
        live: Arc<Live>,
        execution: ExecutionId,
        step: StepId,
        n_parts: usize,
    ) -> Self {
        let buffer = Buffer {
            n_parts: u32::try_from(n_parts).unwrap_or(u32::MAX),
            ..Buffer::default()
        };
        Self {
            live,
            execution,
            step,
            buffer: Mutex::new(buffer),
            due: tokio::sync::Notify::new(),
            written: tokio::sync::Notify::new(),
            fault: Mutex::default(),
        }
    }

    /// Streams more of a block. The first chunk is shown as soon as the model pauses;
    /// chunks that follow within 30 ms or 4 KB are shown together. Returns once it is shown or
    /// buffered. It is durable with the next fact, or after [`flush`](Self::flush).
    pub async fn delta(&self, kind: BlockDelta, id: &str, text: &str) -> Result<(), WriterStopped> {
        self.put(|buffer| buffer.push_delta(kind, id, text)).await
    }

    /// Emits another chunk, in order with the deltas. The runtime's own marker types are refused
    /// (EK §11); then nothing is written.
    pub async fn emit(&self, kind: &str, data: Payload) -> Result<(), WriterStopped> {
        if chunk_type::MARKERS.contains(&kind) {
            return Err(WriterStopped);
        }
        self.emit_chunk(NewChunk {
            chunk_type: kind.to_owned(),
            data: Some(data),
        })
        .await
    }

    /// Emits a chunk that is no marker.
    pub(crate) async fn emit_chunk(&self, chunk: NewChunk) -> Result<(), WriterStopped> {
        self.put(|buffer| {
            buffer.bytes += chunk.data.as_ref().map_or(0, |data| data.text().len());
            buffer.pieces.push(PendingChunk::Chunk(chunk));
        })
        .await
    }

    async fn put(&self, push: impl FnOnce(&mut Buffer)) -> Result<(), WriterStopped> {
        let full = {
            let mut buffer = self.buffer();
            push(&mut buffer);
            let due = buffer.last.map_or_else(Instant::now, |last| last + WINDOW);
            self.set_due(&mut buffer, due);
            buffer.bytes >= WINDOW_BYTES
        };
        if full { self.pass(false).await } else { Ok(()) }
    }

    /// Has all that was buffered or shown written at the next pause of the step; durable when this
    /// returns.
    pub async fn flush(&self) -> Result<(), WriterStopped> {
        self.pass(true).await
    }

    /// Waits until the buffer is shown at the next pause of the step, or stored.
    async fn pass(&self, must_store: bool) -> Result<(), WriterStopped> {
        let wanted = {
            let mut buffer = self.buffer();
            let wanted = buffer.n_taken + u64::from(!buffer.pieces.is_empty());
            if buffer.n_done(must_store) < wanted {
                buffer.must_store |= must_store;
                self.set_due(&mut buffer, Instant::now());
            }
            wanted
        };
        loop {
            // Waiters are woken in their order, so that tools start in the order of their calls.
            let written = self.written.notified();
            {
                let buffer = self.buffer();
                if buffer.n_done(must_store) >= wanted {
                    return Ok(());
                }
                if buffer.is_over {
                    return Err(WriterStopped);
                }
            }
            written.await;
        }
    }

    /// Whether something was taken to be written, and is neither shown nor durable yet.
    pub(crate) fn is_writing(&self) -> bool {
        let buffer = self.buffer();
        buffer.n_shown < buffer.n_taken
    }

    /// Why a write failed, if one failed while the writer still owned the step.
    pub(crate) fn fault(&self) -> Option<RuntimeError> {
        self.fault
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Waits until the buffer is due to be written, and writes it. The driver of the step polls this
    /// concurrently.
    pub(crate) async fn write_when_due(&self) -> Result<(), WriterStopped> {
        loop {
            let due = {
                let buffer = self.buffer();
                buffer.due.into_iter().chain(buffer.store_due).min()
            };
            match due {
                // A timer that is due already would still take its millisecond.
                Some(due) if due <= Instant::now() => return self.write().await,
                Some(due) => tokio::select! {
                    biased;
                    () = tokio::time::sleep_until(due) => {}
                    () = self.due.notified() => {}
                },
                None => self.due.notified().await,
            }
        }
    }

    /// Records the model's response: its parts and its metadata. `last` are the chunks that end the
    /// open blocks.
    ///
    /// It is written with the results of its tools or the end of the step, at most 20 ms later. A
    /// tool with effects starts only after [`flush`](Self::flush) or
    /// [`tool_started`](Self::tool_started) returns (architecture rule 4).
    pub fn respond(&self, last: Vec<NewChunk>, parts: Vec<Payload>, response: Payload) {
        let acts = parts.iter().any(|part| ToolPart::read(part).is_some());
        let mut buffer = self.buffer();
        buffer
            .pieces
            .extend(last.into_iter().map(PendingChunk::Chunk));
        let n_parts = u32::try_from(parts.len()).unwrap_or(u32::MAX);
        buffer.n_parts = buffer.n_parts.max(n_parts);
        buffer
            .pieces
            .push(PendingChunk::command(Command::Respond { parts, response }));
        let mut due = Instant::now();
        if acts {
            buffer.pieces.push(PendingChunk::command(substate(true)));
            // The deltas before it wait with it.
            buffer.due = None;
            due += HOLD;
        }
        self.set_due(&mut buffer, due);
    }

    /// Records the start of an effect tool. If a crash follows, its outcome is unknown. Durable
    /// when this returns, in one commit with its call if that is not written yet.
    pub async fn tool_started(&self, tool_call_id: &str) -> Result<(), WriterStopped> {
        let start = Command::StartTool {
            tool_call_id: tool_call_id.to_owned(),
        };
        self.buffer().pieces.push(PendingChunk::command(start));
        self.flush().await
    }

    /// Stores a note that the step finds if it runs again; it replaces the previous note. Durable
    /// when this returns.
    pub async fn note(&self, note: Payload) -> Result<(), WriterStopped> {
        let note = Command::Note { note };
        self.buffer().pieces.push(PendingChunk::command(note));
        self.flush().await
    }

    /// The step it writes into.
    pub(crate) fn step(&self) -> &StepId {
        &self.step
    }

    /// Replaces a part, such as a tool call that got its result. It is written at the next pause of
    /// the step, or with its end. [`flush`](Self::flush) waits for it.
    pub fn put_part(&self, idx: u32, part: Payload) {
        self.put_part_by(idx, part, Instant::now());
    }

    /// Replaces a part that can wait 20 ms for others.
    pub(crate) fn put_held_part(&self, idx: u32, part: Payload) {
        self.put_part_by(idx, part, Instant::now() + HOLD);
    }

    fn put_part_by(&self, idx: u32, part: Payload, due: Instant) {
        let mut buffer = self.buffer();
        buffer.put(idx, part);
        self.set_due(&mut buffer, due);
    }

    /// Appends a part to the step, such as an event that is not in the model's answer. It is
    /// written like that of [`put_part`](Self::put_part). Returns the part's index.
    pub fn add_part(&self, part: Payload) -> u32 {
        let mut buffer = self.buffer();
        let idx = buffer.add(part);
        self.set_due(&mut buffer, Instant::now());
        idx
    }

    /// Whether a part may be refused as too large.
    pub(crate) fn is_large(&self, part: &Payload) -> bool {
        part.text().len() > self.live.message_bytes / 2
    }

    /// Marks the work on the step as over or abandoned.
    pub(crate) fn give_up(&self) {
        self.buffer().is_over = true;
        self.written.notify_waiters();
    }

    /// Whether the work on the step is over, or will end because a write failed.
    pub(crate) fn is_abandoned(&self) -> bool {
        let fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        fault.is_some() || self.buffer().is_over
    }

    /// The current parts of the step.
    pub async fn parts(&self) -> Result<Vec<Payload>, WriterStopped> {
        let held = self.live.hold_run().await;
        let mut held = held.map_err(|error| self.stopped(error))?;
        let core = held.core().map_err(|error| self.stopped(error))?;
        let active = core
            .state
            .active()
            .filter(|active| active.execution.id == self.execution)
            .ok_or(WriterStopped)?;
        Ok(active
            .step
            .as_ref()
            .map(|step| step.parts.clone())
            .unwrap_or_default())
    }

    /// Takes the buffered chunks, to write them with the end of the step.
    pub(crate) fn take(&self) -> Vec<Command> {
        self.buffer().take()
    }

    fn buffer(&self) -> MutexGuard<'_, Buffer> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_due(&self, buffer: &mut Buffer, due: Instant) {
        if buffer.due.is_none_or(|before| due < before) {
            buffer.due = Some(due);
            self.due.notify_one();
        }
    }

    pub(crate) async fn for_model(&self) -> Result<ForModel, WriterStopped> {
        let read = self.live.for_model().await;
        read.map_err(|error| self.stopped(error))
    }

    /// The thread of the step.
    pub(crate) fn live(&self) -> &Live {
        &self.live
    }

    /// Notes why the step can't go on.
    pub(crate) fn stopped(&self, error: RuntimeError) -> WriterStopped {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        WriterStopped
    }

    pub(crate) async fn transcript(&self) -> Result<Transcript, WriterStopped> {
        let read = self.live.transcript(Filter::Facts).await;
        read.map_err(|error| self.stopped(error))
    }

    /// Writes the buffer. Only the driver of the step does so.
    pub(crate) async fn write(&self) -> Result<(), WriterStopped> {
        let (mut taken, mut tries) = (None, Tries::OF_OWNER);
        let result = loop {
            let n_before = self.live.n_overtaken();
            match self.write_once(&mut taken).await {
                Err(error) => {
                    if !self.live.decides_again(&error, n_before, &mut tries).await {
                        break Err(error);
                    }
                    if planted::has(Bug::DropsRefusedWrites) {
                        taken = taken.map(|taken: Taken| Taken {
                            commands: Vec::new(),
                            ..taken
                        });
                    }
                }
                result => break result,
            }
        };
        match result {
            Ok(true) => Ok(()),
            Ok(false) => Err(WriterStopped),
            Err(error) => {
                *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                Err(WriterStopped)
            }
        }
    }

    /// Writes what was taken from the buffer, or what is in it now. False if the step is over.
    async fn write_once(&self, taken: &mut Option<Taken>) -> Result<bool, RuntimeError> {
        let mut held = self.live.hold_step(&self.step).await?;
        let active = held.core()?.state.active();
        let active = active.filter(|active| active.execution.id == self.execution);
        let step = active.and_then(|active| active.step.as_ref());
        let Some(step) = step.filter(|step| step.step.id == self.step) else {
            return Ok(false);
        };
        // Only a step without a response is void after a crash, with all that it has shown.
        let is_answered = step.response.is_some();
        // Taken only once it can be written: a writer that is dropped while it waits loses nothing.
        let Taken {
            commands,
            count,
            must_store,
        } = taken.get_or_insert_with(|| {
            let mut buffer = self.buffer();
            let must_store = buffer.must_store;
            Taken {
                commands: buffer.take(),
                count: buffer.n_taken,
                must_store,
            }
        });
        let is_chunk = |command: &Command| matches!(command, Command::Emit { .. });
        let stores = *must_store || is_answered || !commands.iter().all(is_chunk);
        if stores && !commands.is_empty() {
            let commands = commands.iter().map(|command| (None, command.clone()));
            held.commit(commands, None).await?;
        } else {
            if !commands.is_empty() {
                // They are shown once, also where another append to the log comes before they are stored.
                held.show(std::mem::take(commands)).await?;
            }
            let due = held.unstored_due()?;
            if stores || due.is_some_and(|due| due <= Instant::now()) {
                held.store_unstored().await?;
            }
        }
        let store_due = held.unstored_due()?;
        {
            let mut buffer = self.buffer();
            buffer.n_shown = *count;
            if stores {
                buffer.n_written = *count;
            }
            buffer.store_due = store_due;
        }
        self.written.notify_waiters();
        Ok(true)
    }
}

/// The commands that were taken from a buffer to be written.
struct Taken {
    commands: Vec<Command>,
    /// How often the buffer was taken, this time included.
    count: u64,
    must_store: bool,
}

/// Notifies followers that tools run, or no longer run (EK §8.1).
pub(crate) fn substate(actions: bool) -> Command {
    let key = if actions {
        serde_json::json!("actions")
    } else {
        serde_json::Value::Null
    };
    let chunk = NewChunk {
        chunk_type: chunk_type::CONTEXT_SUBSTATE.to_owned(),
        data: Some(serde_json::json!({ "key": key }).into()),
    };
    Command::Emit {
        chunks: vec![chunk],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn neighbouring_deltas_of_one_block_become_one() {
        let mut buffer = Buffer::default();
        for (id, text) in [("a", "Hel"), ("a", "lo"), ("b", "x"), ("a", "!")] {
            buffer.push_delta(BlockDelta::Text, id, text);
        }
        let expected = [("a", "Hello"), ("b", "x"), ("a", "!")]
            .map(|(id, text)| BlockDelta::Text.chunk(id, text).encode());
        assert_eq!(
            buffer.take(),
            [Command::Emit {
                chunks: expected.into()
            }]
        );
    }
}
