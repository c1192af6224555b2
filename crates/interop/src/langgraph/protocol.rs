//! The streaming protocol of `LangChain`'s clients (`langchain-protocol`): commands about a thread,
//! and the thread's events over channels. `threads.stream` of `LangGraph`'s SDK uses it.
//!
//! [`ProtocolCommand`] reads a command, and [`EventRequest`] reads a subscription. [`ProtocolRun`]
//! converts a run to events, record by record. All events are in the root namespace.

mod command;
mod event;
mod request;
mod run;
mod writer;

pub use command::{Answered, CommandError, ErrorCode, ProtocolCommand};
pub use event::ProtocolEvent;
pub use request::EventRequest;
pub use run::ProtocolRun;
