//! The loop strategy: model and tools in turn (UAP §5.2).

use super::rounds;
use super::{ExecutionStrategy, Limit, Next, StepContext, StepOutcome};
use crate::boxed::boxed;
use crate::error::AgentError;
use crate::state::AgentState;
use futures_util::future::BoxFuture;

/// Asks the model and runs its tools, until it calls none (UAP §5.2).
///
/// It is done when a response has no calls. A call that names no tool is answered with the error
/// `Tool 'x' not found`, so that the model can correct itself, and the conversation stays one that
/// every provider takes. So is one whose arguments are no JSON object, as when the answer was cut off
/// within them. The run is done all the same when the agent has no tools at all, or after the third
/// round in a row of nothing but such calls.
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
        boxed(move || self.cycle(state, context))
    }
}

impl Loop {
    /// [`step`](ExecutionStrategy::step) without a box.
    pub(crate) async fn cycle(
        &self,
        mut state: AgentState,
        context: &StepContext<'_>,
    ) -> Result<StepOutcome, AgentError> {
        // A step of this strategy is one cycle. A phase is another strategy's, and would never end.
        if state.phase().is_some() {
            state = state.with_phase(None);
        }
        if !state.has_open_calls() {
            let response = context.asked(context.request(&state)).await?;
            state = state.and_response(response);
        }
        if !state.has_open_calls() || context.agent.tool_rounds() == Some(0) {
            return Ok(StepOutcome {
                state,
                next: Next::Done,
            });
        }
        if let Some(limit) = rounds::lower(self.max_iterations, context.agent)
            && rounds::has_rounds(&state, limit)
        {
            context.agent.on_max_iterations(limit);
            return Err(AgentError::MaxIterations { limit });
        }
        let state = context.acted(state).await?;
        let next = if rounds::only_ghosts(rounds::since_prompt(&state), context) {
            Next::Done
        } else {
            Next::Continue
        };
        Ok(StepOutcome { state, next })
    }
}
