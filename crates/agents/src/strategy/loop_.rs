//! The loop strategy: model and tools in turn (UAP §5.2).

use super::{ExecutionStrategy, Limit, Next, StepContext, StepOutcome};
use crate::agent::Agent;
use crate::error::AgentError;
use crate::state::AgentState;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::num::NonZeroU32;
use upp::{Message, ToolCall};

/// After so many rounds in a row in which no call names a tool, the run ends.
///
/// A model is told twice that its tool does not exist; one that asks a third time never stops.
const N_GHOST_ROUNDS: usize = 3;

/// Asks the model and runs its tools, until it calls none (UAP §5.2).
///
/// It is done when a response has no calls. A call that names no tool is answered with the error
/// `Tool 'x' not found`, so that the model can correct itself, and the conversation stays one that
/// every provider takes. The run is done all the same when the agent has no tools at all, or after
/// the third round in a row that called nothing that exists.
///
/// With [`Limit::AtMost`] n, n rounds of tools run; a response that asks for another one is an
/// error, after `on_max_iterations`. The lower of this limit and the one of the tool strategy
/// counts. A round is counted from the last message of the user on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loop {
    /// How many rounds of tools may run.
    pub max_iterations: Limit,
}

impl ExecutionStrategy for Loop {
    fn name(&self) -> &'static str {
        "loop"
    }

    fn step<'a>(
        &'a self,
        state: AgentState,
        context: &'a StepContext<'a>,
    ) -> BoxFuture<'a, Result<StepOutcome, AgentError>> {
        self.cycle(state, context).boxed()
    }
}

impl Loop {
    async fn cycle(
        &self,
        mut state: AgentState,
        context: &StepContext<'_>,
    ) -> Result<StepOutcome, AgentError> {
        if state.open_calls().is_empty() {
            let response = context.ask(context.request(state.messages())).await?;
            state = state.with_message(response.message);
        }
        if state.open_calls().is_empty() || context.agent.tool_rounds() == Some(0) {
            return Ok(StepOutcome {
                state,
                next: Next::Done,
            });
        }
        if let Some(limit) = self.limit(context.agent)
            && has_rounds(&state, limit)
        {
            context.agent.on_max_iterations(limit);
            return Err(AgentError::MaxIterations { limit });
        }
        let state = context.act(&state).await?;
        let next = if only_ghosts(&state, context.agent) {
            Next::Done
        } else {
            Next::Continue
        };
        Ok(StepOutcome { state, next })
    }

    /// The lower of the strategy's limit and the tool strategy's.
    fn limit(self, agent: &Agent) -> Option<NonZeroU32> {
        let own = match self.max_iterations {
            Limit::Unbounded => None,
            Limit::AtMost(n) => Some(n),
        };
        let tools = agent.tool_rounds().and_then(NonZeroU32::new);
        match (own, tools) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (one, other) => one.or(other),
        }
    }
}

/// The messages of the current run, the latest first.
fn run(state: &AgentState) -> impl Iterator<Item = &Message> {
    let messages = state.messages();
    (0..messages.len())
        .rev()
        .map_while(|at| messages.get(at))
        .take_while(|message| !matches!(message, Message::User(_)))
}

/// Whether so many rounds came before the one whose calls are open.
fn has_rounds(state: &AgentState, limit: NonZeroU32) -> bool {
    let limit = usize::try_from(limit.get()).unwrap_or(usize::MAX);
    let responses = run(state).filter(|message| match message {
        Message::Assistant(message) => !message.tool_calls.is_empty(),
        Message::User(_) | Message::ToolResult(_) => false,
    });
    responses.skip(1).take(limit).count() == limit
}

fn only_ghosts(state: &AgentState, agent: &Agent) -> bool {
    let is_ghost = |call: &ToolCall| agent.tool(&call.tool_name).is_none();
    let n_rounds = run(state)
        .filter_map(|message| match message {
            Message::Assistant(message) => Some(message),
            Message::User(_) | Message::ToolResult(_) => None,
        })
        .take(N_GHOST_ROUNDS)
        .take_while(|message| message.tool_calls.iter().all(is_ghost))
        .count();
    n_rounds == N_GHOST_ROUNDS || agent.tools().is_empty()
}
