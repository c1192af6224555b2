//! The loop strategy: model and tools in turn (UAP §5.2).

use super::rounds;
use super::{ExecutionStrategy, Limit, Next, StepContext, StepOutcome};
use crate::boxed::boxed;
use crate::error::AgentError;
use crate::state::AgentState;
use futures_util::future::BoxFuture;
use std::num::NonZeroU32;

/// Calls the model and runs its tools, until a response has no calls (UAP §5.2).
///
/// A call to an unknown tool gets the error result `Tool 'x' not found`, so that the model can
/// correct itself and the conversation stays valid for every provider. A call whose arguments are
/// no JSON object, such as in a truncated response, also gets an error result. The model may repeat
/// such calls without end, as there is no limit by default. An agent without any tools is done
/// after the first response (UPP §3).
///
/// With [`Limit::AtMost`] n, at most n rounds of tools run. A response that requests another round
/// is the last one: the run is done, and the work so far is its result (UAP §5.2).
/// `on_max_iterations` is called, a warning is logged, and each call that did not run gets an error
/// result that names the limit. The turn's stop reason stays `tool_use`.
///
/// The tool strategy has a limit of its own, which ends a run with an error (UPP §3). It applies if
/// it is the lower one. Rounds are counted from the user's last message on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loop {
    /// Maximum number of tool rounds.
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
            let response = context.call_model(context.request(&state)).await?;
            state = state.and_response(response);
        }
        if !state.has_open_calls() || context.agent.tool_rounds() == Some(0) {
            return Ok(StepOutcome {
                state,
                next: Next::Done,
            });
        }
        if let Limit::AtMost(limit) = self.max_iterations
            && rounds::has_rounds(&state, limit)
        {
            return at_limit(&state, limit, context).await;
        }
        rounds::check_tool_strategy(&state, context.agent)?;
        let state = context.acted(state).await?;
        let next = if rounds::has_no_tools(context) {
            Next::Done
        } else {
            Next::Continue
        };
        Ok(StepOutcome { state, next })
    }
}

/// The outcome of a run whose model requests more rounds than the limit.
async fn at_limit(
    state: &AgentState,
    limit: NonZeroU32,
    context: &StepContext<'_>,
) -> Result<StepOutcome, AgentError> {
    context.agent.on_max_iterations(limit);
    let (agent, limit) = (context.agent.name(), limit.get());
    tracing::warn!(agent, limit, "the loop's limit of tool rounds ended a run");
    let why = format!("the limit of tool rounds is reached: {limit}.");
    Ok(StepOutcome {
        state: context.refuse(state, &why).await?,
        next: Next::Done,
    })
}
