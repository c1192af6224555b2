//! The plan strategy: plan first, then execute (UAP §5.4).

mod carry;
mod check;
mod error;
mod make;
mod words;

pub use error::PlanError;

use super::{ExecutionStrategy, Limit, Next, PromptMark, StepContext, StepOutcome, prompt};
use crate::agent::Agent;
use crate::error::AgentError;
use crate::plan::{PlanStatus, PlanStep};
use crate::state::AgentState;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Lets the model make a plan, and executes it step by step (UAP §5.4).
///
/// **Planning** is a step of its own. A prompt (`plan`, a [`PromptMark`]) requests an answer in the
/// schema of a plan, by structured output; tools can't be called meanwhile. An unusable plan is
/// refused before anything runs. That is a plan that does not match the schema, is empty or too
/// long, uses an id twice, names an unknown step or tool, or has a cycle. The model gets the
/// reasons and one more request. If that fails, the run ends with [`PlanError::Refused`].
///
/// **Executing** takes one step for each step of the plan (`plan_step`), in the order of the plan
/// as far as dependencies allow. The model may use any number of tool rounds, within the tool
/// strategy's limit. The step is over when the model answers without calls. It has *failed* if
/// every call of its last round of tools failed, or if it names a tool that never succeeded.
/// Otherwise it is completed, whatever the model's answer is. Each status change makes a new state;
/// earlier states do not change.
///
/// **Replanning** (`replan`) follows a failed step, if it is allowed. Completed steps stay in the
/// plan; the rest is replaced. If two replans in a row leave the same work, the run ends with
/// [`PlanError::NoProgress`]. If replanning is not allowed, the run ends with
/// [`PlanError::StepFailed`]. Steps that depend on the failed step stay pending, and nothing else
/// runs.
///
/// The last answer is the run's response. [`AgentOptions::structure`](crate::AgentOptions) applies
/// to the last step of the plan only. A new input always starts a new plan, whatever is left of an
/// old one. Calls that another strategy left open at the end of the state are answered first, in a
/// step of their own.
///
/// [`PromptMark`]: crate::PromptMark
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Maximum number of steps of a plan. After a replan, completed steps do not count. Default:
    /// unlimited.
    pub max_plan_steps: Limit,
    /// Whether a failed step leads to a new plan. Default: true.
    pub allow_replan: bool,
    /// The JSON Schema of the model's answer, in place of the default one. The plan is read from
    /// the answer's `steps`: objects with `id`, `description`, and optionally `tool` and
    /// `dependsOn`.
    pub plan_schema: Option<Arc<Value>>,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            max_plan_steps: Limit::Unbounded,
            allow_replan: true,
            plan_schema: None,
        }
    }
}

/// The task of the step at a state.
enum Position<'a> {
    /// The state ends with calls that no prompt of a plan caused: another strategy was interrupted.
    Interrupted,
    /// A plan must be made, by the prompt of this kind.
    Planning(&'static str),
    /// This step of the plan must be executed.
    Executing(&'a PlanStep),
    /// This step has failed, and there is no other plan.
    Stuck(&'a PlanStep),
}

impl Plan {
    fn position<'a>(&self, state: &'a AgentState) -> Position<'a> {
        if state.phase() == Some(carry::EXECUTING) {
            return self.within(state);
        }
        let mark = prompt::last_mark(state);
        if !state.open_calls().is_empty() && !mark.is_some_and(|mark| has_asked(&mark, state)) {
            return Position::Interrupted;
        }
        let Some(mark) = mark else {
            return Position::Planning(prompt::PLAN);
        };
        match mark.kind {
            prompt::PLAN if mark.step == state.step() => Position::Planning(prompt::PLAN),
            prompt::REPLAN if mark.step == state.step() => Position::Planning(prompt::REPLAN),
            prompt::PLAN | prompt::REPLAN | prompt::PLAN_STEP => self.within(state),
            _ => Position::Planning(prompt::PLAN),
        }
    }

    fn within<'a>(&self, state: &'a AgentState) -> Position<'a> {
        let plan = state.plan().unwrap_or_default();
        let in_status = |status| plan.iter().find(move |step| step.status == status);
        if let Some(step) = in_status(PlanStatus::InProgress) {
            return Position::Executing(step);
        }
        if let Some(step) = in_status(PlanStatus::Failed) {
            return if self.allow_replan {
                Position::Planning(prompt::REPLAN)
            } else {
                Position::Stuck(step)
            };
        }
        carry::next_ready(plan).map_or(Position::Planning(prompt::PLAN), Position::Executing)
    }
}

impl ExecutionStrategy for Plan {
    fn name(&self) -> &'static str {
        "plan"
    }

    fn step<'a>(
        &'a self,
        state: AgentState,
        context: &'a StepContext<'a>,
    ) -> BoxFuture<'a, Result<StepOutcome, AgentError>> {
        async move {
            match self.position(&state) {
                Position::Interrupted => interrupted(&state, context).await,
                Position::Planning(kind) => self.make(state.clone(), kind, context).await,
                Position::Executing(step) => carry::out(step, &state, context).await,
                Position::Stuck(step) => Err(stuck(step).into()),
            }
        }
        .boxed()
    }

    fn begin_step(
        &self,
        state: &AgentState,
        agent: &Agent,
    ) -> Result<Map<String, Value>, AgentError> {
        match self.position(state) {
            Position::Interrupted => Ok(Map::new()),
            Position::Planning(_) => {
                self.check_means(agent)?;
                Ok(planning())
            }
            Position::Executing(step) => {
                let mut step = step.clone();
                step.status = PlanStatus::InProgress;
                Ok(executing(&step))
            }
            Position::Stuck(step) => Err(stuck(step).into()),
        }
    }

    fn end_step(&self, before: &AgentState, after: &AgentState) -> Map<String, Value> {
        let plan = after.plan().unwrap_or_default();
        match self.position(before) {
            Position::Interrupted => Map::new(),
            Position::Planning(_) => {
                let mut data = planning();
                data.insert("plan".to_owned(), json!(plan));
                data
            }
            Position::Executing(step) | Position::Stuck(step) => {
                let now = plan.iter().find(|other| other.id == step.id);
                executing(now.unwrap_or(step))
            }
        }
    }
}

/// Whether the calls at the end of the state result from this prompt for a plan or for a step of
/// it.
fn has_asked(mark: &PromptMark<'_>, state: &AgentState) -> bool {
    let in_progress = |step: &PlanStep| step.status == PlanStatus::InProgress;
    let has_begun = || state.plan().unwrap_or_default().iter().any(in_progress);
    match mark.kind {
        prompt::PLAN | prompt::REPLAN => mark.step == state.step(),
        prompt::PLAN_STEP => carry::has_prompted(state, has_begun()),
        _ => false,
    }
}

/// One cycle that completes calls of another strategy.
async fn interrupted(
    state: &AgentState,
    context: &StepContext<'_>,
) -> Result<StepOutcome, AgentError> {
    let state = state.with_phase(None);
    if context.agent.tool_rounds() == Some(0) {
        let next = Next::Done;
        return Ok(StepOutcome { state, next });
    }
    let state = context.acted(state).await?;
    let next = Next::Continue;
    Ok(StepOutcome { state, next })
}

fn planning() -> Map<String, Value> {
    Map::from_iter([("phase".to_owned(), json!("planning"))])
}

fn executing(step: &PlanStep) -> Map<String, Value> {
    Map::from_iter([
        ("phase".to_owned(), json!("executing")),
        ("planStep".to_owned(), json!(step)),
    ])
}

fn stuck(step: &PlanStep) -> PlanError {
    PlanError::StepFailed {
        id: step.id.clone(),
        description: step.description.clone(),
    }
}
