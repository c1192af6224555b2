//! Threads, runs and agents for `LangChain`'s two protocols: `LangGraph`'s, as its SDKs use it, and
//! the Agent Protocol. Both have the same paths; a body with `assistant_id` is `LangGraph`'s.
//!
//! - Requests: [`RunCreate`], [`ThreadCreate`], [`ThreadSearch`], … read a body or a query strictly.
//!   An option that this server does not support is refused by name.
//! - Objects: [`messages_of`] is a thread's `values.messages` in `LangChain`'s form, [`Snapshots`] its
//!   states, [`RunRecord`] a run.
//! - Interrupts: [`interrupts`] are the pending calls; [`Resume`] reads the answers.
//! - Events: [`RunEventStream`] writes the server-sent events of a run, record by record.
//! - Streaming protocol: [`ProtocolCommand`] and [`ProtocolRun`], by which clients command a thread
//!   and follow it.
//!
//! A run is one execution with those after handoffs. A run with pending calls has ended
//! (`interrupted`), and the answer starts another run.

mod agent;
mod content;
mod error;
mod fields;
mod input;
mod interrupt;
mod message;
mod protocol;
mod request;
mod resent;
mod run;
mod select;
mod state;
mod store;
mod stream;
mod thread;
mod updates;

pub use agent::{Agent, AgentSearch};
pub use error::{ErrorKind, RequestError};
pub use input::{ClientToolResult, Input, InputMessage, MESSAGE_METADATA};
pub use interrupt::{InterruptedCall, Resume, ResumeAnswer, interrupts};
pub use message::{agent_protocol_messages, messages_of, messages_of_step};
pub use protocol::{
    Answered, CommandError, ErrorCode, EventRequest, ProtocolCommand, ProtocolEvent, ProtocolRun,
};
pub use request::{
    HistoryQuery, JoinQuery, Multitask, ResumeValues, RunCreate, RunsQuery, RunsSearch, Speaks,
    StateQuery, StateUpdate, StreamMode, ThreadCreate, ThreadPatch, ThreadSearch, read_cancel,
    uuid_of,
};
pub use run::{QueuedRun, RunRecord, RunStatus, is_pending};
pub use select::Select;
pub use state::{Moment, Snapshot, Snapshots, values_at, values_of};
pub use store::{StoreDelete, StoreGet, StoreItem, StoreNamespaces, StorePut, StoreSearch};
pub use stream::{Frame, FrameId, RunEventStream};
pub use thread::{
    ThreadOptions, ThreadStatus, copied_metadata, matches_metadata, merged_metadata, shown_id,
    thread_object,
};
