//! Why a plan can't be made or carried out.

use crate::schema::SchemaError;

/// Why a run by plan has no result (UAP §5.4).
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The model has no structured output; no request was sent.
    #[error("the model {model:?} can't make a plan: it has no structured output")]
    Unsupported {
        /// The model's name.
        model: String,
    },
    /// The `plan_schema` is no JSON Schema, or refers to a schema outside of the document; no
    /// request was sent.
    #[error("the schema of the plan is no usable JSON Schema")]
    Schema(#[source] SchemaError),
    /// The model returned no usable plan, even after it received the reasons; no step ran.
    #[error("the model made no usable plan: {}", .reasons.join("; "))]
    Refused {
        /// The defects of the last plan.
        reasons: Vec<String>,
    },
    /// A step of the plan failed, and there may be no other plan.
    #[error("the step {id:?} of the plan failed: {description}")]
    StepFailed {
        /// The step.
        id: String,
        /// The description of the step.
        description: String,
    },
    /// Two replans in a row left the same work.
    #[error("another plan would not help: it has the same steps again, {}", .ids.join(", "))]
    NoProgress {
        /// The steps.
        ids: Vec<String>,
    },
}
