//! The streaming protocol of `LangChain`'s clients (`langchain-protocol`): commands about a thread, and its
//! events over channels. `threads.stream` of `LangGraph`'s SDK speaks it.
//!
//! [`ProtocolCommand`] reads a command, [`EventRequest`] a subscription, and [`ProtocolRun`] gives the events
//! of a run, record by record. All events are in the root namespace.

mod command;
mod event;
mod request;
mod run;
mod writer;

pub use command::{Answered, CommandError, ErrorCode, ProtocolCommand};
pub use event::ProtocolEvent;
pub use request::EventRequest;
pub use run::ProtocolRun;
