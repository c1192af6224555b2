//! The durable runtime of agent threads.
//!
//! Read [`Runtime`], [`store::Store`] and [`Reactor`] first. A store keeps one append-only log a
//! thread; a [`Reactor`] runs one step; the [`Runtime`] owns the loop between them: it decides,
//! appends, shows, and after a crash goes on from the last durable event.
//!
//! It is the only writer of a thread: one lock a thread in this process, and a fencing epoch in
//! the store against every other process. It keeps nothing that is not in the log but the tail of
//! it and what a reactor asks it to remember between two steps.

mod admission;
mod agent;
mod answer;
mod cache;
mod change;
pub mod checkpoint;
mod children;
mod clock;
mod directory;
mod error;
mod follow;
mod fork;
mod gate;
mod growth;
pub mod handoff;
mod kept;
mod live;
mod observer;
mod pages;
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
mod say;
mod stretch;
mod threads;
pub mod tree;
mod view;
mod writer;

pub use agent::{AgentReactor, Models, OptionsRefused};
/// What [`Watched`] tells of sub-agents.
pub use agents::{AgentStreamEvent, SubagentEvent};
pub use children::{Addressed, Below, CallPlace, Cursor, GoesOn, Pending, Tree, Watch, Watched};
pub use clock::{Clock, Ids, SystemClock, SystemIds};
pub use error::{Refusal, RuntimeError};
pub use follow::{Follow, Until};
pub use gate::{Entering, Gate, Terms};
pub use observer::{Ended, Observer};
pub use reactor::{MessagesForModel, Reacted, Reactor, ReactorError, Reactors, Resumed, StepRun};
pub use registry::{AgentReactors, RegistryError};
pub use request::{
    Accepted, AnswerRequest, Cancelled, Import, NewThreadRequest, Policy, React, RequestToken,
    Rewind, continued_run,
};
pub use run_slots::{QueuedTriggers, RunLimits, RunSlot, RunSlots, TenantRunLimits, TenantRuns};
pub use runtime::{Runtime, RuntimeOptions, Sources};
pub use say::Reply;
pub use store::objects;
pub use store::{
    Append, Claim, Created, Epoch, Filter, Head, KeyError, Landmark, LargeRecord, LimitKind,
    LimitReached, Logged, MemoryStore, NewRecord, PAGE_BYTES, Page, PageSize, ParentRun, Quotas,
    Ran, Refusals, Run, Side, StorageLimits, Store, StoreError, TenantId, ThreadRow, Token, Usage,
};
pub use stretch::{Place, Stretch, StretchOf};
pub use view::{ViewBudget, ViewRefused, ViewShare};
pub use writer::{Delta, StepWriter, Stopped};
