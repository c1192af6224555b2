//! From the log of one execution to the chunks of a UI message stream.

mod blocks;
mod part;
mod record;
mod system;
mod told;

use crate::parts::StepResponse;
use crate::sse::DONE;
use blocks::{Blocks, Kind};
use jiff::Timestamp;
pub use record::chunks;
use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use timeline::{
    Execution, ExecutionId, ExecutionStatus, Interruption, ItemId, Payload, StepId, chunk_type,
};
pub use told::MessageSoFar;
pub(super) use told::Told;

/// The first major version whose clients can take back a step.
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

/// What is shown beside the run, as transient data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    Nothing,
    /// What happens in the thread.
    Thread,
    /// The runtime's own chunks.
    Runtime,
}

/// What comes after the execution that is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// Nothing: the stream ends.
    Ends,
    /// The execution that it has handed over to, or that has answered its calls.
    GoesOn {
        /// Whether it has answered calls.
        answers: bool,
    },
    /// The execution that has answered its calls by the item that is waited for.
    Answers,
}

/// An execution that goes on with the message.
#[derive(Clone, Debug)]
enum Through {
    /// The next one that begins.
    Next {
        /// Whether it answers calls.
        answers: bool,
    },
    /// The one that this item has begun, which answers calls.
    Answering(ItemId),
}

/// What one reader of a stream has seen, and what it wants to see.
///
/// A view follows one execution from its first record on, and those that it hands over to: the first
/// one it meets, or the one that answers an item ([`StreamView::answering`]). They make one message.
/// What belongs to others is left out.
#[derive(Clone, Debug)]
pub struct StreamView {
    major: u8,
    beside: Beside,
    trigger: Option<ItemId>,
    message_id: Option<String>,
    /// The metadata of the message so far.
    told: Told,
    /// The executions that go on with the message after the first one, in order.
    through: VecDeque<Through>,
    /// Whether the step has parts of calls that the client knows.
    answers: bool,
    execution: Option<ExecutionId>,
    then: Then,
    step: Option<StepId>,
    iteration: u32,
    step_open: bool,
    blocks: Blocks,
    out: Vec<Value>,
}

impl StreamView {
    /// A view for clients of this major version of `ai`.
    pub fn new(major: u8) -> Self {
        Self {
            major,
            beside: Beside::Nothing,
            trigger: None,
            message_id: None,
            told: Told::default(),
            through: VecDeque::new(),
            answers: false,
            execution: None,
            then: Then::Ends,
            step: None,
            iteration: 0,
            step_open: false,
            blocks: Blocks::default(),
            out: Vec::new(),
        }
    }

    /// A view of the execution that answers this item.
    #[must_use]
    pub fn answering(mut self, item: ItemId) -> Self {
        self.trigger = Some(item);
        self
    }

    /// A view of an execution that goes on with a message: its calls were answered.
    #[must_use]
    pub fn continuing(mut self, message: Option<MessageSoFar>) -> Self {
        if let Some(message) = message {
            self.message_id = Some(message.id);
            self.told = message.told;
        }
        self
    }

    /// A view that does not end where an execution ends whose message others go on with: for each of
    /// those in order, whether it answers calls.
    #[must_use]
    pub fn through(mut self, goes_on: impl IntoIterator<Item = bool>) -> Self {
        let goes_on = goes_on.into_iter();
        self.through = goes_on.map(|answers| Through::Next { answers }).collect();
        self
    }

    /// A view that does not end where an execution and those end that it has handed over to, where its
    /// calls were answered by more than one item: those that these begin go on with the message, in order.
    #[must_use]
    pub fn then_answering(mut self, items: impl IntoIterator<Item = ItemId>) -> Self {
        self.through = items.into_iter().map(Through::Answering).collect();
        self
    }

    /// A view that also shows what happens in the thread beside its runs, as transient data.
    #[must_use]
    pub fn with_thread(mut self) -> Self {
        self.beside = Beside::Thread;
        self
    }

    /// A view that also shows the runtime's own chunks (EK §8.1), as transient data.
    #[must_use]
    pub fn with_ek(mut self) -> Self {
        self.beside = Beside::Runtime;
        self
    }

    fn push(&mut self, chunk: Value) {
        self.out.push(chunk);
    }

    pub(super) fn take(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.out)
    }

    /// The message that the execution writes, as far as it is told.
    pub fn message(&self) -> Option<MessageSoFar> {
        let id = self.message_id.clone()?;
        let told = self.told.clone();
        Some(MessageSoFar { id, told })
    }

    pub(super) fn started(&mut self, message_id: &str, at: Timestamp) {
        let metadata = self.told.began(at);
        self.push(json!({"type": "start", "messageId": message_id, "messageMetadata": metadata}));
    }

    /// An execution writes the message from here on.
    pub(super) fn executed(&mut self, execution: &Execution) {
        self.told.goes_on(execution);
    }

    /// The execution goes on with the message: what its first step is about is there already.
    pub(super) fn goes_on(&mut self) {
        self.answers = true;
    }

    pub(super) fn step_started(&mut self, step: &StepId, iteration: u32) {
        self.step = Some(step.clone());
        self.iteration = iteration;
        self.answers &= iteration == 0;
        self.step_open = true;
        self.blocks = Blocks::default();
        self.push(json!({"type": "start-step"}));
    }

    pub(super) fn step_completed(&mut self) {
        self.end_blocks();
        self.finish_step();
    }

    fn finish_step(&mut self) {
        if std::mem::take(&mut self.step_open) {
            self.push(json!({"type": "finish-step"}));
        }
    }

    fn end_blocks(&mut self) {
        for (kind, id) in self.blocks.end_all() {
            self.push(json!({"type": kind.end(), "id": id}));
        }
    }

    /// A dead attempt's chunks are void.
    fn reset(&mut self) {
        if self.major >= RESETS_STEPS {
            self.push(json!({"type": "reset-step"}));
        } else {
            self.end_blocks();
        }
        self.blocks = Blocks::default();
    }

    /// A chunk that was written while the step ran.
    pub(super) fn emitted(&mut self, kind: &str, data: Option<&Payload>) {
        match kind {
            chunk_type::STEP_RESPONSE => self.responded(data),
            chunk_type::STEP_RESET => self.reset(),
            chunk_type::CONTEXT_ID | chunk_type::CONTEXT_SUBSTATE | chunk_type::THREAD_PING => {
                if self.beside == Beside::Runtime {
                    let data = data.map(Payload::value);
                    self.push(json!({"type": kind, "data": data, "transient": true}));
                }
            }
            chunk_type::TOOL_STARTED
            | chunk_type::STEP_NOTED
            | chunk_type::EXECUTION_RESUMED
            | chunk_type::EXECUTION_PARKED => {}
            _ if kind.starts_with("data-") => self.data(kind, data),
            _ => self.spoken(kind, data),
        }
    }

    fn data(&mut self, kind: &str, data: Option<&Payload>) {
        let chunk = match data.map(Payload::value) {
            Some(Value::Object(fields)) if fields.contains_key("data") => fields,
            other => Map::from_iter([("data".to_owned(), other.unwrap_or_default())]),
        };
        self.push(typed(kind, chunk));
    }

    /// A model's own chunk, if a client can make sense of it where it stands.
    fn spoken(&mut self, kind: &str, data: Option<&Payload>) {
        let Some(Value::Object(fields)) = data.map(Payload::value) else {
            return;
        };
        let text = |key: &str| fields.get(key).and_then(Value::as_str).unwrap_or_default();
        let id = text("id").to_owned();
        let shown = match kind {
            "text-start" => self.blocks.start(Kind::Text, &id),
            "reasoning-start" => self.blocks.start(Kind::Reasoning, &id),
            "text-delta" => self.grow(Kind::Text, &id, text("delta")),
            "reasoning-delta" => self.grow(Kind::Reasoning, &id, text("delta")),
            "text-end" => self.blocks.end(Kind::Text, &id),
            "reasoning-end" => self.blocks.end(Kind::Reasoning, &id),
            "tool-input-start" => self.blocks.call(text("toolCallId")),
            "tool-input-delta" => self.blocks.is_called(text("toolCallId")),
            "source-url" | "source-document" => true,
            // What the log's facts say is said once, from them.
            _ => false,
        };
        if shown {
            self.push(typed(kind, fields));
        }
    }

    /// A client needs the start of a block before its deltas.
    fn grow(&mut self, kind: Kind, id: &str, delta: &str) -> bool {
        if self.blocks.start(kind, id) {
            self.push(json!({"type": kind.start(), "id": id}));
        }
        self.blocks.grow(kind, id, delta);
        true
    }

    fn responded(&mut self, response: Option<&Payload>) {
        let said: Option<StepResponse> = response.and_then(|response| response.read().ok());
        if let Some(said) = said {
            self.told.responded(&said);
        }
    }

    fn ended(&mut self, to: ExecutionStatus, why: Option<&Interruption>, at: Timestamp) {
        if to == ExecutionStatus::Completed {
            self.end_blocks();
            self.finish_step();
        }
        if self.goes_on_after() {
            return;
        }
        let metadata = self.told.ended(to, why, at);
        if to == ExecutionStatus::Completed {
            let reason = self.told.finish_reason();
            self.push(
                json!({"type": "finish", "finishReason": reason, "messageMetadata": metadata}),
            );
            return;
        }
        let reason = why.map_or("error", |why| why.reason.as_str());
        let detail = why.and_then(|why| why.detail.as_deref());
        if reason == Interruption::USER_CANCELLED {
            self.push(json!({"type": "message-metadata", "messageMetadata": metadata}));
            self.push(json!({"type": "abort", "reason": detail.unwrap_or(reason)}));
            return;
        }
        self.push(json!({"type": "error", "errorText": detail.unwrap_or(reason)}));
        self.finish_step();
        self.push(json!({"type": "finish", "finishReason": "error", "messageMetadata": metadata}));
    }

    /// The metadata of a message whose executions are over, as its stream has told it at its end.
    pub(super) fn closed(
        &mut self,
        to: ExecutionStatus,
        why: Option<&Interruption>,
        at: Timestamp,
    ) {
        let metadata = self.told.ended(to, why, at);
        self.push(json!({"type": "message-metadata", "messageMetadata": metadata}));
    }

    /// The execution that was followed is over: the next one of the message is waited for.
    fn pass(&mut self) {
        self.execution = None;
        let has_handed_over = self.then != Then::Ends;
        let next = self
            .through
            .pop_front_if(|next| !(has_handed_over && matches!(next, Through::Answering(_))));
        match next {
            Some(Through::Next { answers }) => self.then = Then::GoesOn { answers },
            Some(Through::Answering(item)) => {
                self.then = Then::Answers;
                self.trigger = Some(item);
            }
            None => {}
        }
    }

    /// Whether an execution that begins goes on with the message, and then whether it answers calls.
    fn goes_on_with(&self, trigger: &ItemId) -> Option<bool> {
        match self.then {
            Then::Ends => None,
            Then::GoesOn { answers } => Some(answers),
            Then::Answers => (self.trigger.as_ref() == Some(trigger)).then_some(true),
        }
    }

    /// The execution that answers this item has begun, and is waited for no more.
    fn begun(&mut self, trigger: &ItemId) {
        let is_it = |next: &Through| matches!(next, Through::Answering(item) if item == trigger);
        self.through.retain(|next| !is_it(next));
    }

    /// Whether the message goes on in another execution.
    fn goes_on_after(&self) -> bool {
        self.then != Then::Ends || !self.through.is_empty()
    }

    fn is_step(&self, step: &StepId) -> bool {
        self.step.as_ref() == Some(step)
    }

    fn is_execution(&self, execution: &ExecutionId) -> bool {
        self.execution.as_ref() == Some(execution)
    }
}

/// A chunk of this type with these fields.
fn typed(kind: &str, fields: Map<String, Value>) -> Value {
    let mut chunk = Map::with_capacity(fields.len() + 1);
    chunk.insert("type".to_owned(), kind.into());
    chunk.extend(fields.into_iter().filter(|(key, _)| key != "type"));
    Value::Object(chunk)
}
