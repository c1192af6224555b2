//! Executing the steps of a plan.

use super::words;
use crate::error::AgentError;
use crate::plan::{PlanStatus, PlanStep};
use crate::state::AgentState;
use crate::strategy::rounds::Past;
use crate::strategy::{Next, StepContext, StepOutcome, prompt, rounds};
use std::collections::BTreeSet;
use upp::{Message, ToolCallId};

/// The phase of a step of the plan that has called tools.
pub(super) const EXECUTING: &str = "executing";

/// The first pending step whose dependencies are completed. Repeated calls yield a topological
/// order.
pub(super) fn next_ready(plan: &[PlanStep]) -> Option<&PlanStep> {
    let completed: BTreeSet<&str> = plan
        .iter()
        .filter(|step| step.status == PlanStatus::Completed)
        .map(|step| step.id.as_str())
        .collect();
    plan.iter().find(|step| {
        let mut needs = step.depends_on.iter();
        step.status == PlanStatus::Pending && needs.all(|id| completed.contains(id.as_str()))
    })
}

/// One cycle of this step of the plan.
pub(super) async fn out(
    step: &PlanStep,
    state: &AgentState,
    context: &StepContext<'_>,
) -> Result<StepOutcome, AgentError> {
    let has_begun = step.status == PlanStatus::InProgress;
    let is_asked = state.phase() == Some(EXECUTING) || has_prompted(state, has_begun);
    let mut state = if has_begun {
        state.clone()
    } else {
        with_status(state, &step.id, PlanStatus::InProgress)
    };
    if !is_asked {
        let text = words::execute(step);
        state = context.prompt(&state, prompt::PLAN_STEP, text).await?;
    }
    let mut request = context.request(&state);
    if !is_last(&state) {
        request.structure = None;
    }
    let (state, _) = context.answered_by_model(state, request).await?;
    if state.open_calls().is_empty() {
        return Ok(ended(&state, step));
    }
    if context.agent.tool_rounds() == Some(0) {
        let next = Next::Done;
        return Ok(StepOutcome { state, next });
    }
    rounds::check_tool_strategy(&state, context.agent)?;
    let state = context.acted(state).await?;
    if rounds::has_no_tools(context) {
        return Ok(ended(&state, step));
    }
    Ok(StepOutcome {
        state: state.with_phase(Some(EXECUTING.into())),
        next: Next::Continue,
    })
}

/// Whether the prompt for the plan's next step exists already, as after a crash, or after results
/// that the application added itself.
pub(super) fn has_prompted(state: &AgentState, has_begun: bool) -> bool {
    prompt::last_mark(state).is_some_and(|mark| {
        mark.kind == prompt::PLAN_STEP && (has_begun || mark.step == state.step())
    })
}

/// Whether only the step in progress remains of the plan.
fn is_last(state: &AgentState) -> bool {
    let plan = state.plan().unwrap_or_default().iter();
    plan.filter(|step| step.status != PlanStatus::Completed)
        .count()
        == 1
}

/// The outcome of a step whose response has no calls.
fn ended(state: &AgentState, step: &PlanStep) -> StepOutcome {
    let status = if has_failed(state, step) {
        PlanStatus::Failed
    } else {
        PlanStatus::Completed
    };
    let state = with_status(state, &step.id, status).with_phase(None);
    let mut plan = state.plan().unwrap_or_default().iter();
    let next = if plan.all(|step| step.status == PlanStatus::Completed) {
        Next::Done
    } else {
        Next::Continue
    };
    StepOutcome { state, next }
}

/// Whether all calls of the last round failed, or the step's tool never succeeded.
fn has_failed(state: &AgentState, step: &PlanStep) -> bool {
    let past = Past::of(state).succeeded;
    let mut needs_tool = step.tool.as_ref().is_some_and(|name| !past.contains(name));
    let mut last_failed = None;
    // A round that waited has its results in several messages, all before its response is come to.
    let mut succeeded: Option<BTreeSet<&ToolCallId>> = None;
    for message in rounds::since_prompt(state) {
        match message {
            Message::ToolResult(message) => {
                let results = message.results.iter().filter(|result| !result.is_error);
                let ids = results.map(|result| &result.tool_call_id);
                succeeded.get_or_insert_default().extend(ids);
            }
            Message::Assistant(message) => {
                let Some(succeeded) = succeeded.take() else {
                    continue;
                };
                last_failed.get_or_insert(succeeded.is_empty());
                needs_tool &= !message.tool_calls.iter().any(|call| {
                    Some(&*call.tool_name) == step.tool.as_deref()
                        && succeeded.contains(&call.tool_call_id)
                });
            }
            Message::User(_) => {}
        }
    }
    needs_tool || last_failed == Some(true)
}

/// A state whose plan has this status for this step; the plan of `state` does not change.
fn with_status(state: &AgentState, id: &str, status: PlanStatus) -> AgentState {
    let mut plan = state.plan().unwrap_or_default().to_vec();
    for step in plan.iter_mut().filter(|step| step.id == id) {
        step.status = status;
    }
    state.with_plan(plan)
}
