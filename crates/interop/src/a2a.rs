//! A2A 1.0: what an agent that speaks A2A asks, and what it is shown.
//!
//! A context is a thread, its id the thread's key. A task is what one message sets off: its execution, those
//! that it hands over to, and those that go on with it once calls that waited, or what it has asked by AITP, were answered. A message is an
//! item; the artifact is what the agents said last. JSON is that of the protocol's `a2a.proto`, in its JSON
//! mapping: what is absent there is absent here.
//!
//! Both HTTP bindings are made of the same objects: JSON-RPC wraps them ([`Call`], [`result`]), the other one
//! doesn't.

mod card;
mod error;
mod fields;
mod message;
mod part;
mod reply;
mod request;
mod requests;
mod rpc;
mod state;
mod stream;
mod task;

pub use card::{AgentCard, Interfaces};
pub use error::{ErrorKind, RequestError};
pub use message::{Incoming, MESSAGE_METADATA};
pub use reply::{PendingCallView, ReplyAnswer, TaskAnswer};
pub use request::{ListTasks, SendMessage, TaskId, check_version};
pub use requests::{PendingRequestView, RequestReply, goes_on_id, with_task};
pub use rpc::{Call, Method, failure, result};
pub use state::TaskState;
pub use stream::TaskView;
pub use task::{TaskOptions, TaskRun, TaskWait};

/// The version of the protocol, as its header and its cards say it.
pub const VERSION: &str = "1.0";
