//! The durable runtime of agent threads.
//!
//! Read [`Runtime`], [`store::Store`] and [`Reactor`] first. A store has one append-only log for
//! each thread, and a [`Reactor`] runs one step. The [`Runtime`] owns the loop between them: it
//! decides, appends and streams. After a crash it continues from the last durable event.
//!
//! The runtime is the only writer of a thread. In this process a lock for each thread ensures that;
//! against other processes, an epoch in the store does. In memory it has only the tail of the log
//! and the reactor's memory between two steps.

mod admission;
mod agent;
mod answer;
mod ask_agent;
mod attempt_note;
mod cache;
mod change;
pub mod checkpoint;
mod children;
mod clock;
mod compaction;
mod directory;
mod error;
mod external;
mod follow;
mod fork;
mod gate;
mod growth;
pub mod handoff;
mod lease;
mod live;
mod node;
mod observer;
mod pages;
#[cfg(not(feature = "planted-bugs"))]
mod planted;
#[cfg(feature = "planted-bugs")]
pub mod planted;
mod react;
mod reactor;
mod recover;
mod registry;
mod repeat;
mod request;
mod rewind;
mod run;
mod run_slots;
mod runtime;
mod thread_changes;
mod thread_page;
mod threads;
pub mod tree;
mod tries;
mod unrecovered;
mod versions;
mod view;
mod worker_steps;
mod writer;

pub use agent::{AgentReactor, CompactionPolicy, Models, OptionsRefused};
/// The sub-agents' events in [`Watched`].
pub use agents::{AgentStreamEvent, SubagentEvent};
pub use ask_agent::RunReply;
pub use children::{
    Addressed, Below, CallAddress, Cursor, Pending, Relative, Relatives, ThreadContinuation, Tree,
    Watch, Watched, is_subagent,
};
pub use clock::{Clock, Ids, SystemClock, SystemIds};
pub use compaction::{Cut, CutRefusal, IllegalCut, LegalCut, NewCompaction, ThreadCompaction};
pub use error::{AnswerRefusal, RuntimeError};
pub use external::ExternalReactor;
pub use follow::{Follow, FollowedRecord, Until};
pub use gate::{Gate, GateRequest, Preconditions};
pub use lease::LeaseFault;
pub use observer::{Ended, Observer};
pub use reactor::{MessagesForModel, Reacted, Reactor, ReactorError, Reactors, Resumed, StepRun};
pub use registry::{AgentReactors, RegistryError};
pub use request::{
    Accepted, AnswerRequest, Cancelled, Import, NewThreadRequest, Policy, ReactRequest,
    RequestToken, Rewind, continued_run,
};
pub use run_slots::{QueuedTriggers, RunLimits, RunSlot, RunSlots, TenantRunLimits, TenantRuns};
pub use runtime::{Runtime, RuntimeOptions, Sources};
pub use store::{
    Append, Appended, Created, Epoch, Filter, FoundExecution, Head, Hint, KeyError, KeyPattern,
    Landmark, LargeRecord, Lease, LimitKind, LimitReached, Logged, MemoryStore, NewRecord, NodeId,
    NodeTable, Ownership, PAGE_BYTES, PageSize, ParentRun, Quotas, Refusals, Run, Side,
    StorageLimits, StorageUsage, Store, StoreError, TenantId, ThreadFilter, ThreadRow, ThreadRows,
    Token, WaitingRow, WaitingRows,
};
pub use store::{objects, search};
pub use thread_changes::ThreadChanges;
pub use thread_page::{PageRequest, Position, ThreadPage};
pub use versions::{MessageVersion, MessageVersions};
pub use view::{ViewBudget, ViewRefused, ViewShare};
pub use worker_steps::{
    AnsweredCall, ExternalAnswer, ExternalError, ExternalSteps, LeaseRef, LeaseRequest, LeaseState,
    LeasedStep, RefusedAnswer, StepDelta, StepUsage, WorkerPolicy,
};
pub use writer::{BlockDelta, StepWriter, WriterStopped};
