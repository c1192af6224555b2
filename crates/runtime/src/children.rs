//! Sub-agents as executions of their own threads (UAP §8).
//!
//! An agent that a tool spawns and that the runtime knows by name runs like any other: on a thread
//! whose key follows from the parent's key and the call, under a token that follows from the call.
//! Whoever runs the call again after a crash finds the same thread and the same execution. The
//! parent's log has a `data-tp-thread_spawn` before it begins and a `data-tp-thread_end` after it
//! has ended; what happens in between is in the child's log, and nowhere a second time.
//! [`Runtime::watch`](crate::Runtime::watch) shows it with the parent's.
//!
//! An agent that is not known by name runs in memory inside the call.

mod host;
mod key;
mod outcome;
mod records;
mod report;
mod run;
mod scope;
mod stop;
mod told;
mod watch;

pub(crate) use scope::Scoped;
pub(crate) use stop::{StoppedChildren, reason_of};
pub use watch::{Watch, Watched};

use crate::live::Live;
use crate::react::Runtime;
use crate::request::Run;
use crate::writer::StepWriter;
use agents::{Agent, SubAgentHost};
use std::sync::Arc;
use timeline::{ExecutionId, Step, StepId};
use tokio_util::sync::CancellationToken;

/// What the runtime offers a step for its sub-agents and for handing over. Cloning shares.
#[derive(Clone)]
pub struct Children {
    site: Arc<Site>,
    n_handoffs: u32,
}

/// The step that sub-agents are started from.
struct Site {
    runtime: Runtime,
    live: Arc<Live>,
    writer: Arc<StepWriter>,
    execution: ExecutionId,
    step: StepId,
    signal: CancellationToken,
}

impl Children {
    pub(crate) fn new(
        runtime: &Runtime,
        live: &Arc<Live>,
        writer: &Arc<StepWriter>,
        run: &Run,
        step: &Step,
        signal: &CancellationToken,
    ) -> Self {
        let site = Site {
            runtime: runtime.clone(),
            live: Arc::clone(live),
            writer: Arc::clone(writer),
            execution: step.execution_id.clone(),
            step: step.id.clone(),
            signal: signal.clone(),
        };
        Self {
            site: Arc::new(site),
            n_handoffs: run.handoffs,
        }
    }

    /// What runs the sub-agents of this agent's tools: each on a thread of its own if the runtime
    /// knows it by name, else in memory. `step` is the number that the step has to the agent.
    pub fn host(&self, agent: &Agent, step: u64) -> Arc<dyn SubAgentHost> {
        Arc::new(host::RuntimeHost::new(
            Arc::clone(&self.site),
            agent.id().into(),
            step,
        ))
    }

    /// Whether the runtime has an agent of this name.
    pub fn has(&self, agent: &str) -> bool {
        self.site.has(agent)
    }

    /// Whether writing has failed, so that the step is tried again.
    pub(crate) fn is_given_up(&self) -> bool {
        self.site.writer.is_given_up()
    }

    /// Whether the execution may hand over once more.
    pub fn may_hand_over(&self) -> bool {
        self.n_handoffs < self.site.runtime.inner.options.max_handoffs
    }
}

impl Site {
    fn has(&self, agent: &str) -> bool {
        self.runtime.inner.reactors.has(agent)
    }
}
