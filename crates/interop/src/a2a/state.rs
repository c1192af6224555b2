//! The state of a task.

use jiff::Timestamp;
use serde_json::{Value, json};

/// A state of a task. This server never uses `Rejected` and `AuthRequired`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// The task is queued.
    Submitted,
    /// An agent is running.
    Working,
    /// The task is complete.
    Completed,
    /// It broke off.
    Failed,
    /// The task was stopped, or a newer message replaced it.
    Canceled,
    /// Calls or AITP requests wait for answers.
    InputRequired,
    /// The server did not accept the task.
    Rejected,
    /// The client must sign in.
    AuthRequired,
}

impl TaskState {
    /// All of them, in the order of the protocol's numbers, the first being 1.
    pub const ALL: [Self; 8] = [
        Self::Submitted,
        Self::Working,
        Self::Completed,
        Self::Failed,
        Self::Canceled,
        Self::InputRequired,
        Self::Rejected,
        Self::AuthRequired,
    ];

    /// The protocol's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Submitted => "TASK_STATE_SUBMITTED",
            Self::Working => "TASK_STATE_WORKING",
            Self::Completed => "TASK_STATE_COMPLETED",
            Self::Failed => "TASK_STATE_FAILED",
            Self::Canceled => "TASK_STATE_CANCELED",
            Self::InputRequired => "TASK_STATE_INPUT_REQUIRED",
            Self::Rejected => "TASK_STATE_REJECTED",
            Self::AuthRequired => "TASK_STATE_AUTH_REQUIRED",
        }
    }

    /// Whether the task has ended.
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Completed | Self::Failed | Self::Canceled | Self::Rejected => true,
            Self::Submitted | Self::Working | Self::InputRequired | Self::AuthRequired => false,
        }
    }
}

/// A `TaskStatus`.
pub(super) fn status(state: TaskState, at: Timestamp, message: Option<Value>) -> Value {
    // Milliseconds, as the specification wants timestamps.
    let mut status = json!({"state": state.name(), "timestamp": format!("{at:.3}")});
    if let Some(message) = message {
        status["message"] = message;
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_over_in_four_of_its_states() {
        let over = TaskState::ALL.into_iter().filter(|it| it.is_terminal());
        let names: Vec<&str> = over.map(TaskState::name).collect();
        assert_eq!(
            names,
            [
                "TASK_STATE_COMPLETED",
                "TASK_STATE_FAILED",
                "TASK_STATE_CANCELED",
                "TASK_STATE_REJECTED",
            ]
        );
    }

    #[test]
    fn the_timestamp_of_a_status_has_milliseconds() {
        for (at, expected) in [
            ("2026-01-05T09:00:00Z", "2026-01-05T09:00:00.000Z"),
            ("2026-01-05T09:00:00.123456Z", "2026-01-05T09:00:00.123Z"),
        ] {
            let told = status(TaskState::Working, at.parse().unwrap(), None);
            assert_eq!(told["timestamp"], expected);
        }
    }
}
