//! Sub-agents as executions of their own threads (UAP §8).
//!
//! If the runtime knows a tool's sub-agent by name, the sub-agent runs on a thread of its own. The
//! thread's key is derived from the parent's key and the call; the token is derived from the call.
//! If the call runs again after a crash, it finds the same thread and the same execution. The
//! parent's log has a `data-tp-thread_spawn` before the child starts and a `data-tp-thread_end`
//! after it has ended. Only the child's log has the events in between;
//! [`Runtime::watch`](crate::Runtime::watch) shows them with the parent's.
//!
//! If a child waits for an answer from outside, its parent waits, too. The parent's execution ends
//! with the call open, and continues when the child does ([`wake`]).
//!
//! An agent that is not known by name runs in memory inside the call.

mod delete;
mod events;
mod host;
mod key;
mod outcome;
mod past_questions;
mod pending_questions;
mod records;
mod relations;
mod relatives;
mod repeated;
mod report;
mod run;
mod scope;
mod stop;
mod tree;
mod wake;
mod wake_reports;
mod watch;

pub(crate) use pending_questions::children as unended;
pub use pending_questions::{Addressed, CallAddress, Pending};
pub use relations::is_subagent;
pub use relatives::{Relative, Relatives};
pub(crate) use scope::Scoped;
pub(crate) use stop::{StoppedChildren, reason_of};
pub use tree::{Below, Cursor, Tree};
pub(crate) use wake::waiting_parent;
pub use wake_reports::ThreadContinuation;
pub use watch::{Watch, Watched};

use crate::live::Live;
use crate::reactor::Children;
use crate::runtime::Runtime;
use crate::writer::StepWriter;
use agents::{Agent, SubAgentHost};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use timeline::{Active, ExecutionId, OpenChild, StepId, ThreadId};
use tokio_util::sync::CancellationToken;

/// The runtime's [`Children`] of one step.
pub(crate) struct StepChildren {
    site: Arc<Site>,
    n_handoffs: u32,
}

/// The step that sub-agents are started from.
struct Site {
    runtime: Runtime,
    live: Arc<Live>,
    writer: Arc<StepWriter>,
    execution: ExecutionId,
    /// The step whose response made the calls; an earlier one, if they had waited.
    origin: StepId,
    /// The children that the calls had started before they waited.
    known: BTreeMap<ThreadId, OpenChild>,
    /// The children that each call has started, or started again.
    begun: Mutex<BTreeMap<String, Vec<OpenChild>>>,
    signal: CancellationToken,
}

impl StepChildren {
    /// For the step that runs; `origin` is the step whose response made its calls.
    pub(crate) fn new(
        runtime: &Runtime,
        live: &Arc<Live>,
        active: &Active,
        origin: &StepId,
        writer: &Arc<StepWriter>,
        signal: &CancellationToken,
    ) -> Self {
        let known = active.open_calls.iter().flat_map(|open| &open.children);
        let known = known.map(|child| (child.thread_id.clone(), child.clone()));
        let site = Site {
            runtime: runtime.clone(),
            live: Arc::clone(live),
            writer: Arc::clone(writer),
            execution: active.execution.id.clone(),
            origin: origin.clone(),
            known: known.collect(),
            begun: Mutex::default(),
            signal: signal.clone(),
        };
        Self {
            site: Arc::new(site),
            n_handoffs: store::Run::of(active.execution.run.as_ref()).handoffs,
        }
    }
}

impl Children for StepChildren {
    fn host(&self, agent: &Agent, step: u64) -> Arc<dyn SubAgentHost> {
        Arc::new(host::RuntimeHost::new(
            Arc::clone(&self.site),
            agent.id().into(),
            step,
        ))
    }

    fn of_call(&self, call: &str) -> Vec<OpenChild> {
        let begun = self.site.begun();
        begun.get(call).cloned().unwrap_or_default()
    }

    fn has(&self, agent: &str) -> bool {
        self.site.has(agent)
    }

    fn is_abandoned(&self) -> bool {
        self.site.writer.is_abandoned()
    }

    fn may_hand_over(&self) -> bool {
        self.n_handoffs < self.site.runtime.inner.options.max_handoffs
    }
}

impl Site {
    fn begun(&self) -> MutexGuard<'_, BTreeMap<String, Vec<OpenChild>>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a child of the call, with whether its run is over.
    fn note(&self, call: &str, child: OpenChild) {
        let mut begun = self.begun();
        let children = begun.entry(call.to_owned()).or_default();
        let known = children
            .iter_mut()
            .find(|it| it.thread_id == child.thread_id);
        match known {
            Some(known) => *known = child,
            None => children.push(child),
        }
    }

    fn has(&self, agent: &str) -> bool {
        self.runtime.inner.reactors.has(agent)
    }
}
