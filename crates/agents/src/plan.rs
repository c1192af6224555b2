//! The plan of a state (UAP §5.4).

use serde::{Deserialize, Serialize};

/// The status of a plan's step (UAP §5.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    /// It has not started.
    #[default]
    Pending,
    /// It runs.
    InProgress,
    /// It succeeded.
    Completed,
    /// It failed.
    Failed,
}

/// One step of a plan (UAP §5.4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanStep {
    /// The step's id, unique in its plan.
    pub id: String,
    /// A description of the step's work.
    pub description: String,
    /// The tool it uses, if it names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The ids of the steps that must complete first.
    #[serde(default)]
    pub depends_on: Vec<String>,
    /// The status.
    #[serde(default)]
    pub status: PlanStatus,
}
