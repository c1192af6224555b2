//! The host of a step's sub-agents.

use super::{Site, run};
use crate::writer::StepWriter;
use agents::{
    AgentError, AgentStreamEvent, Journal, Spawn, Stopped, SubAgentHost, SubAgentRun, run_in_memory,
};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use upp::{Response, ToolCallId, ToolExecution};

/// The chunk type of an event of a sub-agent that runs in memory (UAP §8.7).
pub(super) const UAP_CHUNK: &str = "data-uap";

/// Runs the sub-agents of one step.
pub(super) struct RuntimeHost {
    site: Arc<Site>,
    agent_id: Arc<str>,
    step: u64,
    /// Number of sub-agents that each call has started: a tool may start several, one after the
    /// other.
    n_started: Mutex<BTreeMap<ToolCallId, u32>>,
}

impl RuntimeHost {
    pub(super) fn new(site: Arc<Site>, agent_id: Arc<str>, step: u64) -> Self {
        Self {
            site,
            agent_id,
            step,
            n_started: Mutex::default(),
        }
    }

    /// Number of sub-agents that this call had started before this one.
    fn counted(&self, call: &ToolCallId) -> u32 {
        let mut all = self
            .n_started
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let n = all.entry(call.clone()).or_default();
        let before = *n;
        *n = n.saturating_add(1);
        before
    }
}

impl SubAgentHost for RuntimeHost {
    fn run(&self, spawn: Spawn) -> BoxFuture<'static, SubAgentRun> {
        let site = Arc::clone(&self.site);
        if site.has(spawn.agent.name()) {
            let n_before = self.counted(&spawn.tool_call_id);
            return run::child(site, spawn, n_before).boxed();
        }
        inside(site, spawn, Arc::clone(&self.agent_id), self.step).boxed()
    }
}

/// Runs a sub-agent in memory. After a crash its effects would be unknown, so the call counts as an
/// effect that has started.
async fn inside(site: Arc<Site>, spawn: Spawn, agent_id: Arc<str>, step: u64) -> SubAgentRun {
    let started = site.writer.tool_started(spawn.tool_call_id.as_str()).await;
    if started.is_err() {
        return SubAgentRun {
            turn: Err(AgentError::Cancelled),
            traces: Vec::new(),
        };
    }
    let journal = ChildEvents(Arc::clone(&site.writer));
    run_in_memory(spawn, agent_id, step, &journal).await
}

/// Streams the events of a sub-agent in memory to the parent's followers.
struct ChildEvents(Arc<StepWriter>);

impl Journal for ChildEvents {
    fn emit(&self, event: AgentStreamEvent) -> BoxFuture<'_, Result<(), Stopped>> {
        async move {
            let AgentStreamEvent::Uap { uap } = event else {
                return Ok(());
            };
            // A client's message does not keep it.
            let chunk = json!({"data": uap, "transient": true}).into();
            self.0.emit(UAP_CHUNK, chunk).await.map_err(|_| Stopped)
        }
        .boxed()
    }

    fn responded<'a>(&'a self, _response: &'a Response) -> BoxFuture<'a, Result<(), Stopped>> {
        ready(Ok(())).boxed()
    }

    fn returned<'a>(
        &'a self,
        _position: usize,
        _execution: &'a ToolExecution,
    ) -> BoxFuture<'a, Result<(), Stopped>> {
        ready(Ok(())).boxed()
    }
}
