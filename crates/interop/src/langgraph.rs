//! Threads, runs and agents as `LangChain`'s two protocols have them: `LangGraph`'s, as its SDKs speak it, and
//! the Agent Protocol. Both stand on the same paths; a body with `assistant_id` is `LangGraph`'s.
//!
//! - Requests: [`RunCreate`], [`ThreadCreate`], [`ThreadSearch`], … read a body or a query strictly: what this server
//!   does not do is refused by name, and never passed over.
//! - Objects: [`messages_of`] is a thread's `values.messages` in `LangChain`'s shape, [`Snapshots`] its states, [`RunRecord`] a run.
//! - Interrupts: [`interrupts`] are the calls that wait, [`Resume`] reads what answers them.
//! - Events: [`RunEventStream`] writes the server-sent events of a run, record by record.
//! - The streaming protocol, by which clients command a thread and follow it: [`ProtocolCommand`], [`ProtocolRun`].
//!
//! A run is one execution, and those it has handed over to. A run that comes to a call somebody must answer is over
//! (`interrupted`), and the answer begins another one.

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
