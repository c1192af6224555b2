//! Planning and replanning.

use super::check::Frame;
use super::{Plan, PlanError, words};
use crate::agent::Agent;
use crate::error::AgentError;
use crate::plan::{PlanStatus, PlanStep};
use crate::state::AgentState;
use crate::strategy::{Next, StepContext, StepOutcome, prompt};
use jsonschema::Validator;
use serde_json::Value;
use std::sync::Arc;
use upp::{AssistantMessage, ToolChoice};

/// The phase of a step whose first plan was refused.
const CORRECTING: &str = "planning";

impl Plan {
    /// Checks that the model can make a plan and that the plan's schema is valid.
    pub(super) fn check_means(&self, agent: &Agent) -> Result<(), PlanError> {
        let model = agent.model();
        if !model.capabilities().structured_output {
            return Err(PlanError::Unsupported {
                model: model.model_id().to_owned(),
            });
        }
        self.validator(agent).map(|_| ())
    }

    /// The validator of plans: the configured schema, or the default one.
    fn validator(&self, agent: &Agent) -> Result<Validator, PlanError> {
        match &self.plan_schema {
            Some(schema) => validator(schema),
            None => validator(&words::accepted(agent.tools())),
        }
    }

    fn schema(&self, agent: &Agent) -> Arc<Value> {
        self.plan_schema
            .clone()
            .unwrap_or_else(|| Arc::new(words::schema(agent.tools())))
    }

    /// One cycle of planning: requests a plan, and accepts it or requests a correction.
    pub(super) async fn make(
        &self,
        state: AgentState,
        kind: &'static str,
        context: &StepContext<'_>,
    ) -> Result<StepOutcome, AgentError> {
        let schema = self.schema(context.agent);
        let validator = self.validator(context.agent)?;
        let corrects = state.phase() == Some(CORRECTING);
        let state = self.asked(state, kind, &validator, context).await?;

        let mut request = context.request(&state);
        request.tool_choice = ToolChoice::None;
        request.structure = Some(schema);
        let (state, data) = context.answered_by_model(state, request).await?;
        let drafted = match state.last_response() {
            Some(response) => self.drafted(response, data, &state, &validator, context.agent),
            None => return Err(AgentError::NoResponse),
        };
        let state = context.refuse(&state, words::NO_TOOLS_YET).await?;
        match drafted {
            Ok(steps) => {
                let state = adopted(&state, steps, kind)?;
                let next = Next::Continue;
                Ok(StepOutcome { state, next })
            }
            Err(reasons) if corrects => Err(PlanError::Refused { reasons }.into()),
            Err(_) => Ok(StepOutcome {
                state: state.with_phase(Some(CORRECTING.into())),
                next: Next::Continue,
            }),
        }
    }

    /// The state with the prompt of this cycle. If the first plan was refused, this is the second
    /// prompt of its step.
    async fn asked(
        &self,
        state: AgentState,
        kind: &'static str,
        validator: &Validator,
        context: &StepContext<'_>,
    ) -> Result<AgentState, AgentError> {
        let n_given = prompt::marks(&state)
            .take_while(|mark| mark.is_now(kind, &state))
            .count();
        let corrects = state.phase() == Some(CORRECTING);
        if n_given > usize::from(corrects) {
            return Ok(state);
        }
        let text = if corrects {
            // The reasons are found again in the answer, so that the state needs no place for them.
            let drafted = state
                .last_response()
                .map(|last| self.drafted(last, None, &state, validator, context.agent));
            words::correct(&drafted.and_then(Result::err).unwrap_or_default())
        } else if kind == prompt::REPLAN {
            words::replan(state.plan().unwrap_or_default(), self.max_plan_steps)
        } else {
            words::plan(self.max_plan_steps)
        };
        context.prompt(&state, kind, text).await
    }

    /// The plan in this answer, or its defects.
    fn drafted(
        &self,
        response: &AssistantMessage,
        data: Option<Value>,
        state: &AgentState,
        validator: &Validator,
        agent: &Agent,
    ) -> Result<Vec<PlanStep>, Vec<String>> {
        if !response.tool_calls.is_empty() {
            return Err(vec!["it calls tools instead of giving steps".to_owned()]);
        }
        let text = response.joined_text();
        let Some(answer) = data.or_else(|| serde_json::from_str(&text).ok()) else {
            return Err(vec!["it is no JSON document".to_owned()]);
        };
        let completed = completed(state);
        let frame = Frame {
            validator,
            completed: &completed,
            limit: self.max_plan_steps,
            tools: &agent
                .tools()
                .iter()
                .map(|tool| tool.name.as_str())
                .collect(),
        };
        frame.check(&answer)
    }
}

fn validator(schema: &Value) -> Result<Validator, PlanError> {
    upp::schema::check(schema).map_err(|refused| PlanError::Schema(refused.into()))?;
    let built = jsonschema::options().offline().build(schema);
    built.map_err(|source| PlanError::Schema(Box::new(source).into()))
}

/// The steps that this run has completed; plans of earlier runs do not count.
fn completed(state: &AgentState) -> Vec<PlanStep> {
    if prompt::last_mark(state).is_none_or(|mark| mark.kind != prompt::REPLAN) {
        return Vec::new();
    }
    let plan = state.plan().unwrap_or_default().iter();
    plan.filter(|step| step.status == PlanStatus::Completed)
        .cloned()
        .collect()
}

/// The state with these steps after the completed ones.
fn adopted(
    state: &AgentState,
    steps: Vec<PlanStep>,
    kind: &'static str,
) -> Result<AgentState, PlanError> {
    if kind == prompt::REPLAN && came_from_replan(state) && is_left(state, &steps) {
        let ids = steps.into_iter().map(|step| step.id).collect();
        return Err(PlanError::NoProgress { ids });
    }
    let mut plan = completed(state);
    plan.extend(steps);
    Ok(state.with_plan(plan).with_phase(None))
}

/// Whether the state's current plan came from a replan. Reads back to the prompt that requested the
/// plan, and no further.
fn came_from_replan(state: &AgentState) -> bool {
    prompt::marks(state)
        .filter(|mark| mark.step != state.step())
        .find(|mark| matches!(mark.kind, prompt::PLAN | prompt::REPLAN))
        .is_some_and(|mark| mark.kind == prompt::REPLAN)
}

/// Whether these steps have the descriptions and tools of the plan's remaining steps, in order.
fn is_left(state: &AgentState, steps: &[PlanStep]) -> bool {
    fn work(step: &PlanStep) -> (&str, Option<&str>) {
        (&step.description, step.tool.as_deref())
    }
    let plan = state.plan().unwrap_or_default().iter();
    let left = plan.filter(|step| step.status != PlanStatus::Completed);
    left.map(work).eq(steps.iter().map(work))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_default_schema_is_one_that_strict_providers_take() {
        fn check(schema: &Value) {
            if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
                let names: Vec<&String> = properties.keys().collect();
                assert_eq!(schema["required"], json!(names));
                assert_eq!(schema["additionalProperties"], json!(false));
                properties.values().for_each(check);
            }
            if let Some(items) = schema.get("items") {
                check(items);
            }
        }
        let schema = words::schema(&[]);
        check(&schema);
        assert!(validator(&schema).is_ok());
    }
}
