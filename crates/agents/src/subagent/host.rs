//! Runs sub-agents in memory, and passes their events to the parent's journal.

mod memory;

pub(crate) use memory::InMemoryHost;

use super::waits::Board;
use super::{Spawn, SubAgentHost, SubAgentRun, SubagentEvent, SubagentForwarded};
use crate::agent::{Start, request};
use crate::error::{AgentError, chain};
use crate::event::AgentStreamEvent;
use crate::id;
use crate::journal::{Journal, Stopped};
use crate::state::AgentState;
use crate::trace::{SubagentExecutionTrace, ToolExecutionTrace};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::sync::{mpsc, oneshot};
use upp::{Message, Response, TokenUsage, ToolCallId, ToolExecution, Turn, UserContent};

/// Number of sub-agents' events that are buffered for the parent's journal before the sub-agents
/// wait.
const N_WAITING: usize = 16;

/// An event for the parent's journal.
pub(crate) struct HostReport {
    event: AgentStreamEvent,
    /// Notified when the journal has the event.
    shown: Option<oneshot::Sender<()>>,
}

/// A tool's host: it collects the traces of each call's sub-agents.
pub(crate) struct Hosted {
    host: Host,
    /// Created when the first sub-agent starts, or when a tool waits; most tools do neither.
    board: OnceLock<Arc<Board>>,
}

/// The host that runs the sub-agents.
pub(crate) enum Host {
    /// The phase itself.
    Memory(InMemoryHost),
    /// A host that the application supplied.
    Other(Arc<dyn SubAgentHost>),
}

impl Hosted {
    pub(crate) fn new(host: Host) -> Self {
        Self {
            host,
            board: OnceLock::new(),
        }
    }

    fn board(&self) -> &Arc<Board> {
        self.board.get_or_init(Arc::default)
    }

    /// Waits until `n_running` calls, which is all running ones, wait for their sub-agents. Marks
    /// them as suspended and returns them.
    pub(crate) async fn stuck(&self, n_running: usize) -> BTreeSet<ToolCallId> {
        self.board().stuck(n_running).await
    }

    pub(crate) async fn run(&self, mut spawn: Spawn) -> SubAgentRun {
        let call = spawn.tool_call_id.clone();
        let (waits, begun) = self.board().begin(&call);
        spawn.waits = waits;
        let run = match &self.host {
            Host::Memory(host) => host.run(spawn),
            Host::Other(host) => host.run(spawn),
        };
        let run = run.await;
        drop(begun);
        self.board().keep(&call, &run.traces);
        run
    }

    /// The host, if the phase itself runs sub-agents.
    pub(crate) fn in_memory(&self) -> Option<&InMemoryHost> {
        match &self.host {
            Host::Memory(host) => Some(host),
            Host::Other(_) => None,
        }
    }

    /// The traces of the sub-agents that this call has spawned; it has ended.
    pub(crate) fn take(&self, call: &ToolCallId) -> Vec<SubagentExecutionTrace> {
        let board = self.board.get();
        board.map_or_else(Vec::new, |board| board.take(call))
    }
}

/// Runs a sub-agent in memory, inside the call that spawns it. Its events go to the journal as
/// events of the parent's step (UAP §8.7). It is for hosts that run only some sub-agents
/// themselves.
///
/// If the journal refuses an event, the sub-agent ends.
pub async fn run_in_memory(
    spawn: Spawn,
    agent_id: Arc<str>,
    step: u64,
    journal: &dyn Journal,
) -> SubAgentRun {
    let host = InMemoryHost::new(agent_id, step);
    let run = host.run(spawn).map(Ok);
    let relayed = host.relayed(run, journal).await;
    relayed.unwrap_or_else(|error| SubAgentRun {
        turn: Err(error),
        traces: Vec::new(),
    })
}

/// The sender to the parent's journal.
#[derive(Clone)]
pub(super) struct Parent {
    agent_id: Arc<str>,
    step: u64,
    told: mpsc::Sender<Box<HostReport>>,
}

impl Parent {
    /// Passes an event on, in the order of the calls. Waits if the queue is full.
    async fn tell(
        &self,
        event: SubagentEvent,
        shown: Option<oneshot::Sender<()>>,
    ) -> Result<(), Stopped> {
        let event = event.into_event(self.step, Arc::clone(&self.agent_id));
        let told = self.told.send(Box::new(HostReport { event, shown }));
        told.await.map_err(|_| Stopped)
    }

    /// Passes an event on and waits until the journal has it.
    async fn show(&self, event: SubagentEvent) -> Result<(), Stopped> {
        let (shown, heard) = oneshot::channel();
        self.tell(event, Some(shown)).await?;
        heard.await.map_err(|_| Stopped)
    }
}

/// Runs a sub-agent from an empty state to its end.
pub(super) async fn run(spawn: Spawn, parent: Option<Parent>) -> SubAgentRun {
    let prompt = text_of(&spawn.prompt);
    let start_time = id::now_ms();
    let journal = Child {
        heard: Mutex::default(),
        parent,
        spawn,
    };
    let turn = match journal
        .show(|spawn| spawn.started(prompt.clone(), start_time))
        .await
    {
        Ok(()) => journal.turn().await,
        Err(Stopped) => Err(AgentError::Cancelled),
    };
    let Child {
        heard,
        parent,
        spawn,
    } = journal;
    let heard = heard.into_inner().unwrap_or_else(PoisonError::into_inner);
    let trace = SubagentExecutionTrace {
        subagent_id: spawn.subagent_id.to_string(),
        subagent_type: spawn.subagent_type.to_string(),
        parent_tool_call_id: spawn.tool_call_id,
        prompt,
        start_time,
        end_time: id::now_ms(),
        success: turn.is_ok(),
        result: turn.as_ref().ok().map(|turn| turn.response.joined_text()),
        error: turn.as_ref().err().map(|error| chain(error)),
        tool_executions: Some(heard.executions).filter(|list| !list.is_empty()),
        usage: Some(heard.usage).filter(|usage| !usage.cycles.is_empty()),
    };
    if let Some(parent) = parent {
        // If the parent is gone, so is everybody who would want to see the end.
        let _gone = parent.show(trace.ended()).await;
    }
    let mut traces = heard.traces;
    traces.push(trace);
    SubAgentRun { turn, traces }
}

/// A sub-agent's journal: it stores the data for the trace, and passes the events to the parent.
struct Child {
    heard: Mutex<ReportInbox>,
    parent: Option<Parent>,
    spawn: Spawn,
}

/// The records of a sub-agent's run, whether or not the run succeeds.
#[derive(Default)]
struct ReportInbox {
    executions: Vec<ToolExecutionTrace>,
    usage: TokenUsage,
    traces: Vec<SubagentExecutionTrace>,
}

impl Child {
    async fn show(&self, event: impl FnOnce(&Spawn) -> SubagentEvent) -> Result<(), Stopped> {
        match &self.parent {
            Some(parent) => parent.show(event(&self.spawn)).await,
            None => Ok(()),
        }
    }

    async fn turn(&self) -> Result<Turn, AgentError> {
        let Spawn { agent, prompt, .. } = &self.spawn;
        let start = Start::Input(prompt.clone());
        let signal = self.spawn.signal.clone();
        // It begins from nothing, so a checkpoint would take the place of the session's.
        let agent = agent.without_checkpoints();
        let result = request(agent, start, AgentState::initial(), self, signal.into()).await?;
        match result.state.open_calls().len() {
            n_calls if !result.pending.is_empty() => Err(AgentError::Waiting { n_calls }),
            _ => Ok(result.turn),
        }
    }

    fn heard(&self) -> MutexGuard<'_, ReportInbox> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Journal for Child {
    fn emit(&self, event: AgentStreamEvent) -> BoxFuture<'_, Result<(), Stopped>> {
        let Some(parent) = self.parent.as_ref().filter(|_| self.spawn.propagate) else {
            return ready(Ok(())).boxed();
        };
        let event = SubagentEvent::Forwarded(SubagentForwarded {
            subagent_id: self.spawn.subagent_id.to_string(),
            subagent_type: self.spawn.subagent_type.to_string(),
            parent_tool_call_id: self.spawn.tool_call_id.clone(),
            inner_event: event,
        });
        parent.tell(event, None).boxed()
    }

    fn try_emit(&self, event: AgentStreamEvent) -> Option<AgentStreamEvent> {
        let is_heard = self.parent.is_some() && self.spawn.propagate;
        is_heard.then_some(event)
    }

    fn responded<'a>(&'a self, response: &'a Response) -> BoxFuture<'a, Result<(), Stopped>> {
        self.heard().usage.push(response.usage.clone());
        ready(Ok(())).boxed()
    }

    fn returned<'a>(
        &'a self,
        _position: usize,
        execution: &'a ToolExecution,
    ) -> BoxFuture<'a, Result<(), Stopped>> {
        self.heard().executions.push(execution.into());
        ready(Ok(())).boxed()
    }

    fn traced<'a>(
        &'a self,
        trace: &'a SubagentExecutionTrace,
    ) -> BoxFuture<'a, Result<(), Stopped>> {
        self.heard().traces.push(trace.clone());
        ready(Ok(())).boxed()
    }
}

/// The text of a task; other content is replaced by the name of its type.
fn text_of(prompt: &Message) -> String {
    let Message::User(message) = prompt else {
        return serde_json::to_string(prompt).unwrap_or_default();
    };
    let blocks = message.content.iter().map(|block| match block {
        UserContent::Text { text } => text.as_str(),
        UserContent::Image(_) => "[image]",
        UserContent::Document(_) => "[document]",
        UserContent::Audio(_) => "[audio]",
        UserContent::Video(_) => "[video]",
        UserContent::Binary(_) => "[binary]",
    });
    blocks.collect::<Vec<_>>().join("\n\n")
}
