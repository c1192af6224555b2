//! A run as it happens: the one fold from the log to typed events, live and replayed.
//!
//! A run is an execution with those that continue it: an agent that took over, or the executions
//! that acted on answers to its calls. [`RunSelector`] picks the events of one run from a thread's
//! log. [`RunFold`] returns its [`RunEvent`]s, record by record. [`replay`] returns them from a
//! [`Transcript`](timeline::Transcript). Every view of a protocol is built from these events and is
//! independent of other protocols.

mod blocks;
mod continuation;
mod event;
mod fold;
mod metadata;
mod replay;
mod select;
mod step_calls;
mod streamed;
mod timing;

pub use continuation::{answers, continues, hands_over, is_handoff};
pub use event::{RunEvent, RunPart};
pub use fold::RunFold;
pub(crate) use metadata::RunMetadata;
pub use metadata::usage_of;
pub use replay::{replay, resume};
pub use select::{RunSelector, Selected};
pub use step_calls::{StartedSubagent, StepCalls};
pub(crate) use streamed::streamed_texts;
pub use timing::{
    Attempt, AttemptEnd, CallTimes, ExecutionTimes, Restart, StepTimes, duration_text,
};
