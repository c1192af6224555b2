//! The `ReAct` strategy: reason, act, observe (UAP §5.3).

use super::{ExecutionStrategy, Limit, Next, StepContext, StepOutcome, prompt, rounds};
use crate::error::AgentError;
use crate::event::UapEventType;
use crate::state::AgentState;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use upp::ToolChoice;

/// The phase of a step whose reasoning is done.
const ACTING: &str = "act";

const REASONING_PROMPT: &str = "Think step by step about what to do next. Consider what is known so \
    far, what is still missing, and which of the available tools would help most. Do not call a \
    tool yet.";

const ACTION_PROMPT: &str = "Now do what your reasoning says: call the tools you need, or give the \
    final answer if nothing is left to do.";

const REASON_FIRST: &str = "this is the moment to reason. Call it when you are asked to act.";

/// Lets the model reason before each action (UAP §5.3).
///
/// A step has two cycles. In the first one, a prompt requests reasoning ([`PromptMark`] `reason`).
/// The request includes the tools, so that a provider's cache still hits, but the model may not
/// call them. If it does, the calls get error results and do not run. In the second cycle, a prompt
/// requests an action (`act`): the model calls tools, which run, or it answers. Both prompts and
/// both answers are in the conversation. The reasoning is also in [`AgentState::reasoning`], one
/// text for each step.
///
/// The run is done if an action has no calls, if the stop condition holds, or after `max_steps`
/// steps. Reaching `max_steps` is no error: the work so far is the result. Calls to unknown tools
/// are handled as by the [loop](super::Loop). An action has one round of tools, so the only
/// relevant limit of the tool strategy is 0: then no tool runs, and the turn ends with its calls.
///
/// [`AgentOptions::structure`](crate::AgentOptions) applies to actions only.
///
/// [`PromptMark`]: crate::PromptMark
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct React {
    /// Maximum number of steps of a run.
    pub max_steps: Limit,
    /// The prompt of the reasoning phase, in place of the default.
    pub reasoning_prompt: Option<Arc<str>>,
}

impl ExecutionStrategy for React {
    fn name(&self) -> &'static str {
        "react"
    }

    fn step<'a>(
        &'a self,
        state: AgentState,
        context: &'a StepContext<'a>,
    ) -> BoxFuture<'a, Result<StepOutcome, AgentError>> {
        async move {
            let has_calls = !state.open_calls().is_empty();
            let reasons = match state.phase() {
                Some(_) => false,
                // Calls that no reasoning made are an action that was interrupted.
                None => !has_calls || prompt::has_prompt_of(&state, prompt::REASON),
            };
            if reasons {
                self.reason(state, context).await
            } else {
                self.act(state, context).await
            }
        }
        .boxed()
    }
}

impl React {
    async fn reason(
        &self,
        mut state: AgentState,
        context: &StepContext<'_>,
    ) -> Result<StepOutcome, AgentError> {
        if !prompt::has_prompt_of(&state, prompt::REASON) {
            let text = self.reasoning_prompt.as_deref().unwrap_or(REASONING_PROMPT);
            state = context.prompt(&state, prompt::REASON, text).await?;
        }
        let mut request = context.request(&state);
        request.tool_choice = ToolChoice::None;
        request.structure = None;
        let (state, _) = context.answered_by_model(state, request).await?;
        let reasoning = state
            .last_response()
            .map(|response| response.joined_text())
            .unwrap_or_default();
        let state = context.refuse(&state, REASON_FIRST).await?;

        let hooks = &context.agent.options().strategy;
        hooks.on_reason(state.step(), &reasoning);
        context
            .show(UapEventType::Reasoning, &state, "reasoning", &reasoning)
            .await?;
        Ok(StepOutcome {
            state: state
                .with_reasoning(reasoning)
                .with_phase(Some(ACTING.into())),
            next: Next::Continue,
        })
    }

    async fn act(
        &self,
        mut state: AgentState,
        context: &StepContext<'_>,
    ) -> Result<StepOutcome, AgentError> {
        if state.open_calls().is_empty() && !prompt::has_prompt_of(&state, prompt::ACT) {
            state = context.prompt(&state, prompt::ACT, ACTION_PROMPT).await?;
        }
        let request = context.request(&state);
        let (state, _) = context.answered_by_model(state, request).await?;
        let state = state.with_phase(None);
        if state.open_calls().is_empty() || context.agent.tool_rounds() == Some(0) {
            let next = Next::Done;
            return Ok(StepOutcome { state, next });
        }
        let state = context.acted(state).await?;
        let is_last = self.is_last(&state) || rounds::has_no_tools(context);
        let next = if is_last { Next::Done } else { Next::Continue };
        Ok(StepOutcome { state, next })
    }

    /// Whether the ending step is the last that the run may have.
    fn is_last(&self, state: &AgentState) -> bool {
        let first = prompt::last_mark(state).map_or(state.step(), |mark| mark.first_step);
        let n_steps = state.step().saturating_sub(first).saturating_add(1);
        match self.max_steps {
            Limit::Unbounded => false,
            Limit::AtMost(limit) => n_steps >= u64::from(limit.get()),
        }
    }
}
