//! The streaming protocol of `LangChain`'s clients (`langchain-protocol`): commands about a thread, and its events over
//! channels. `threads.stream` of `LangGraph`'s SDK speaks it.
//!
//! [`ProtocolCommand`] reads a command, [`EventRequest`] what somebody wants to hear, and [`ProtocolRun`] tells a run of it,
//! record by record. All that an agent here says is said in the root namespace.

mod command;
mod event;
mod request;
mod run;
mod writing;

pub use command::{Answered, CommandError, ErrorCode, ProtocolCommand};
pub use event::ProtocolEvent;
pub use request::EventRequest;
pub use run::ProtocolRun;
