//! The durable life of a thread: its entities, their state machines, and its events.
//!
//! A thread is an append-only log of [`Event`]s. [`State::decide`] turns a [`Command`] into events
//! or refuses it; [`State::apply`] folds one event in. Replay is `apply` in order and nothing else.
//! [`Transcript`] is the second fold: the whole conversation, for export and for the next model
//! call.
//!
//! The crate is pure: no I/O, no clock, no randomness. Time and ids come in as arguments. It knows
//! no other vocabulary: `interop` converts parts for models and documents.
//!
//! ```
//! use jiff::Timestamp;
//! use loomline_timeline::{Command, NewThread, State};
//!
//! let mut state = State::default();
//! let create = Command::Create { thread: NewThread::new("th_1", Some("greetings")), context_id: "cx_1".into() };
//! for event in state.decide(create, Timestamp::UNIX_EPOCH)? {
//!     state.apply(&event);
//! }
//! assert!(state.active().is_none());
//! # Ok::<(), loomline_timeline::Rejected>(())
//! ```

mod answer;
mod change;
mod chunk;
mod command;
mod compaction;
mod content;
mod decide;
mod entity;
mod erase;
mod event;
mod ids;
mod payload;
mod position;
mod state;
mod status;
mod transcript;
mod verify;

pub use answer::{
    ANSWER, ATTACHED_MESSAGE, Answer, AnswerContent, attached_message, messages_with_answers,
};
pub use change::{Removed, ThreadUpdate, UnknownTarget};
pub use chunk::{
    BlockId, BlockKind, CHUNK_TYPES, Chunk, Extra, Marker, NewChunk, SourceKind, split_delta,
};
pub use command::{Command, Ending, NewItem, NewThread, Trigger};
pub use compaction::{Compaction, Replaced, SummaryAuthor, SummaryTokens};
pub use content::{
    ContentError, MessagePartKind, check_content, check_item, check_part, check_parts, part_kind,
};
pub use decide::Rejected;
pub use entity::{
    Context, Execution, Fork, Interruption, Item, ItemType, OpenCall, OpenChild, OpenKind, Part,
    Role, Step, StepOutcome, Thread,
};
pub use erase::ERASED;
pub use event::{Event, EventError, EventType, ExecutionResult, Record, chunk_type};
pub use ids::{CompactionId, ContextId, ExecutionId, ItemId, PartKey, Seq, StepId, ThreadId};
pub use payload::Payload;
pub use position::ReadPosition;
pub use state::{Active, ActiveStep, Open, QueuedTrigger, State};
pub use status::{
    ContextStatus, Entity, ExecutionStatus, IllegalTransition, ItemStatus, Machine, StepStatus,
    ThreadStatus,
};
pub use transcript::{Entry, PartRecord, Reaction, StepRecord, Transcript};
pub use verify::{Misfit, Verifier, verify};
