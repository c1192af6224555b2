//! The prompts about plans, and the schema of the model's answer.

use crate::plan::{PlanStatus, PlanStep};
use crate::strategy::Limit;
use serde_json::{Value, json};
use std::fmt::Write as _;
use upp::Tool;

pub(super) const NO_TOOLS_YET: &str =
    "a plan is asked for. Tools are called when its steps are executed.";

/// The schema that is sent with the request for a plan. Providers with strict structured output
/// require that every property is required and that no others are allowed.
pub(super) fn schema(tools: &[Tool]) -> Value {
    with_required(tools, &["id", "description", "tool", "dependsOn"])
}

/// The schema of accepted plans: a step without a tool may omit `tool` (UAP §5.4).
pub(super) fn accepted(tools: &[Tool]) -> Value {
    with_required(tools, &["id", "description", "dependsOn"])
}

fn with_required(tools: &[Tool], required: &[&str]) -> Value {
    let mut names = vec![Value::Null];
    names.extend(tools.iter().map(|tool| json!(tool.name)));
    let step = json!({
        "type": "object",
        "properties": {
            "id": {"type": "string", "description": "A short id, unique in the plan."},
            "description": {"type": "string", "description": "What the step does."},
            "tool": {
                "type": ["string", "null"],
                "enum": names,
                "description": "The tool the step uses; null if it needs none.",
            },
            "dependsOn": {
                "type": "array",
                "items": {"type": "string"},
                "description": "The ids of the steps that must be completed before this one.",
            },
        },
        "required": required,
        "additionalProperties": false,
    });
    json!({
        "type": "object",
        "properties": {"steps": {"type": "array", "minItems": 1, "items": step}},
        "required": ["steps"],
        "additionalProperties": false,
    })
}

/// The instructions for the plan's form.
fn form(limit: Limit) -> String {
    let mut text = "Give each step a short unique id and a description; name the tool it uses, if \
        it uses one; and list in dependsOn the ids of the steps that must be completed before it. \
        Do not call tools yet."
        .to_owned();
    if let Limit::AtMost(limit) = limit {
        let _ = write!(text, " Use at most {limit} steps.");
    }
    text
}

/// The prompt for the first plan.
pub(super) fn plan(limit: Limit) -> String {
    format!(
        "Before anything is done, break the task into a plan of clear steps. {}",
        form(limit)
    )
}

/// The prompt for another plan after a failure.
pub(super) fn replan(plan: &[PlanStep], limit: Limit) -> String {
    let mut text = String::new();
    for step in plan {
        let what = match step.status {
            PlanStatus::Failed => "failed",
            PlanStatus::Completed => "is completed",
            PlanStatus::Pending | PlanStatus::InProgress => "was not executed",
        };
        let _ = writeln!(text, "- {} {what}: {}", step.id, step.description);
    }
    format!(
        "A step of the plan failed. This is how far it is:\n{text}Make a new plan of what is left to do \
         from here. What is completed stays and is not done again; new steps may depend on it, \
         and need ids of their own. {}",
        form(limit)
    )
}

/// The prompt to correct a refused plan.
pub(super) fn correct(reasons: &[String]) -> String {
    let mut text = "This plan can't be used:".to_owned();
    for reason in reasons {
        let _ = write!(text, "\n- {reason}");
    }
    text.push_str("\nGive the whole plan again, corrected.");
    text
}

/// The prompt for one step of the plan.
pub(super) fn execute(step: &PlanStep) -> String {
    let mut text = format!("Execute step {}: {}", step.id, step.description);
    if let Some(tool) = &step.tool {
        let _ = write!(text, "\nUse the {tool} tool.");
    }
    text.push_str("\nWhen the step is done, say what came of it.");
    text
}
