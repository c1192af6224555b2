//! A2A 1.0: the requests of an A2A client, and the objects that it receives.
//!
//! A context is a thread; its id is the thread's key. A task starts with one message. It consists of
//! that message's execution, the executions after handoffs, and those that continue the task after
//! answers to pending calls or AITP requests. A message is an item. The artifact is the agents' last
//! answer. JSON follows the mapping of the protocol's `a2a.proto`: a member that is absent there is
//! absent here.
//!
//! Both HTTP bindings use these objects. JSON-RPC wraps them ([`Call`], [`result`]); the other binding
//! does not.

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
pub use requests::{PendingRequestView, RequestReply, continuation_id, with_task};
pub use rpc::{Call, Method, failure, result};
pub use state::TaskState;
pub use stream::TaskView;
pub use task::{TaskOptions, TaskRun, TaskWait};

/// The version of the protocol, as used in its header and its cards.
pub const VERSION: &str = "1.0";
