//! Checks whether an answer is a usable plan. Has no side effects.

use crate::plan::{PlanStatus, PlanStep};
use crate::strategy::Limit;
use crate::tools::topological;
use jsonschema::Validator;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of reasons in the message to the model.
const N_REASONS: usize = 8;

/// The requirements for a plan.
pub(super) struct Frame<'a> {
    /// The schema of the answer.
    pub(super) validator: &'a Validator,
    /// The steps that are completed already.
    pub(super) completed: &'a [PlanStep],
    /// Maximum number of steps.
    pub(super) limit: Limit,
    /// The names of the tools.
    pub(super) tools: &'a BTreeSet<&'a str>,
}

/// A step in the model's form.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Draft {
    id: String,
    description: String,
    #[serde(default)]
    tool: Option<String>,
    #[serde(default)]
    depends_on: Option<Vec<String>>,
}

impl From<Draft> for PlanStep {
    fn from(draft: Draft) -> Self {
        Self {
            id: draft.id,
            description: draft.description,
            tool: draft.tool,
            depends_on: draft.depends_on.unwrap_or_default(),
            status: PlanStatus::Pending,
        }
    }
}

impl Frame<'_> {
    /// The steps of the plan, all pending; or its defects, for the model.
    pub(super) fn check(&self, answer: &Value) -> Result<Vec<PlanStep>, Vec<String>> {
        let breaches = self.validator.iter_errors(answer).take(N_REASONS);
        let breaches: Vec<String> = breaches
            .map(|breach| format!("at \"{}\": {}", breach.instance_path(), breach.masked()))
            .collect();
        if !breaches.is_empty() {
            return Err(breaches);
        }
        let steps = read(answer)?;
        let mut reasons = self.faults(&steps);
        if reasons.is_empty() {
            return Ok(steps);
        }
        reasons.truncate(N_REASONS);
        Err(reasons)
    }

    fn faults(&self, steps: &[PlanStep]) -> Vec<String> {
        let mut faults = Vec::new();
        if steps.is_empty() {
            faults.push("it has no steps".to_owned());
        }
        if let Limit::AtMost(limit) = self.limit
            && self.limit.is_below(steps.len())
        {
            let n = steps.len();
            faults.push(format!("it has {n} steps, but at most {limit} are allowed"));
        }
        let mut ids: BTreeMap<&str, Option<usize>> = BTreeMap::new();
        ids.extend(self.completed.iter().map(|step| (step.id.as_str(), None)));
        for (at, step) in steps.iter().enumerate() {
            if ids.insert(&step.id, Some(at)).is_some() {
                faults.push(format!("the id '{}' is used twice", step.id));
            }
            if let Some(tool) = &step.tool
                && !self.tools.contains(tool.as_str())
            {
                let id = &step.id;
                faults.push(format!("step '{id}' uses '{tool}', which is no tool"));
            }
        }
        let mut needs = Vec::with_capacity(steps.len());
        for step in steps {
            let mut own = BTreeSet::new();
            for id in &step.depends_on {
                match ids.get(id.as_str()) {
                    Some(at) => own.extend(at),
                    None => faults.push(format!(
                        "step '{}' depends on '{id}', which is no step of the plan",
                        step.id
                    )),
                }
            }
            needs.push(own);
        }
        if let Err(stuck) = topological(&needs) {
            let stuck = stuck.into_iter().filter_map(|at| steps.get(at));
            let stuck: Vec<String> = stuck.map(|step| format!("'{}'", step.id)).collect();
            let stuck = stuck.join(", ");
            faults.push(format!("the steps {stuck} wait for each other"));
        }
        faults
    }
}

fn read(answer: &Value) -> Result<Vec<PlanStep>, Vec<String>> {
    let Some(items) = answer.get("steps").and_then(Value::as_array) else {
        return Err(vec!["it has no list `steps`".to_owned()]);
    };
    let mut steps = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        let draft = Draft::deserialize(item)
            .map_err(|error| vec![format!("at \"/steps/{at}\": {error}")])?;
        steps.push(draft.into());
    }
    Ok(steps)
}

#[cfg(test)]
mod tests;
