//! Sub-agents: agents that other agents call as tools (UAP §8).
//!
//! A sub-agent is a tool with a schema of its own. No schema is derived from an agent, because a
//! prompt is no description and a task's inputs can't be guessed (UAP §2.6, §8.3).

mod event;
mod host;
mod tool;

mod waits;

pub use event::{SubagentEnd, SubagentEvent, SubagentForwarded, SubagentStart};
pub use host::run_in_memory;
pub(crate) use host::{Host, Hosted, InMemoryHost};
pub use tool::{Prompt, SubAgent, SubAgentTool, subagent_tool};
pub use waits::Waits;

use crate::agent::Agent;
use crate::error::AgentError;
use crate::id;
use crate::trace::SubagentExecutionTrace;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use upp::{Message, ToolCallId, ToolContext, Turn};

/// One run of a sub-agent to start.
#[derive(Clone, Debug)]
pub struct Spawn {
    /// The agent that runs, from an empty state.
    pub agent: Agent,
    /// The id of this run, a random UUID (v4; UAP §3.4).
    pub subagent_id: Arc<str>,
    /// Its type or name, such as `explorer`.
    pub subagent_type: Arc<str>,
    /// The call of the parent that spawns it.
    pub tool_call_id: ToolCallId,
    /// The task.
    pub prompt: Message,
    /// Whether the parent's stream has the events of the run; the start and end events are emitted
    /// in any case.
    pub propagate: bool,
    /// Cancelled when the parent no longer needs the result.
    pub signal: CancellationToken,
    /// Through this a host reports that the run waits for an outside answer.
    pub waits: Waits,
}

impl Spawn {
    /// A run for a tool call, named after the agent and shown in the parent's stream.
    pub fn new(agent: Agent, prompt: impl Into<Message>, context: &ToolContext) -> Self {
        Self {
            subagent_id: id::random(),
            subagent_type: agent.name().into(),
            agent,
            tool_call_id: context.tool_call_id.clone(),
            prompt: prompt.into(),
            propagate: true,
            signal: context.signal.child_token(),
            waits: Waits::default(),
        }
    }

    /// Runs it on the host of the call's context: events go to the parent's stream, the trace to
    /// the parent's state. Without an agent as caller, it runs without a stream.
    pub async fn run(self, context: &ToolContext) -> SubAgentRun {
        let hosted = context.host.as_ref();
        match hosted.and_then(|host| host.downcast_ref::<Hosted>()) {
            Some(hosted) => hosted.run(self).await,
            None => host::run(self, None).await,
        }
    }
}

/// How a sub-agent's run ended.
#[derive(Debug)]
pub struct SubAgentRun {
    /// The sub-agent's turn, or its error.
    pub turn: Result<Turn, AgentError>,
    /// The sub-agent's trace is the last one, even if it failed. Before it are the traces of its
    /// own sub-agents; the call that spawned each one identifies it (UAP §8.8).
    pub traces: Vec<SubagentExecutionTrace>,
}

/// Runs sub-agents for an agent's tools.
///
/// A host that runs sub-agents outside of the call may report that a run waits for an outside
/// answer ([`Waits`]); the run's future then stays pending. Once nothing else runs in the step, the
/// calls of such runs are left open and their futures dropped. When a call is
/// [resumed](crate::Answers::resume), it runs again, and the host must find its run again.
///
/// A host emits `subagent_start` before the agent starts and `subagent_end` after it has ended,
/// successfully or not (UAP §8.7). It returns the traces with the result. Dropping the future
/// cancels the run. A sub-agent has its own stop conditions; its parent's do not apply (UAP §15.2).
pub trait SubAgentHost: Send + Sync {
    /// Runs a sub-agent to its end.
    fn run(&self, spawn: Spawn) -> BoxFuture<'static, SubAgentRun>;
}
