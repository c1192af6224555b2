//! The parameters of a run, as they are stored with a trigger and its execution.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use timeline::{ExecutionId, Open, OpenKind, Payload, ThreadId};

/// The parameters for answering a trigger; stored with the execution.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Run {
    /// The agent's name; the default agent when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Maximum number of steps. Unlimited when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u32>,
    /// Time limit of the execution, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Parameters that only the reactor understands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params: Option<Value>,
    /// Number of handoffs since the trigger.
    #[serde(skip_serializing_if = "is_zero")]
    pub handoffs: u32,
    /// The execution that waits for this one: a sub-agent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentRun>,
    /// The id of the future execution, so that the caller can name it while it is queued; a new id when
    /// absent. It is stored with the queue entry, not with the execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<ExecutionId>,
}

/// The execution that started another one on a thread of its own (UAP §8).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ParentRun {
    /// Its thread.
    pub thread_id: ThreadId,
    /// The execution.
    pub execution_id: ExecutionId,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl Run {
    /// Reads the parameters that an execution was started with.
    pub fn of(payload: Option<&Payload>) -> Self {
        payload
            .and_then(|payload| payload.read().ok())
            .unwrap_or_default()
    }
}

/// The calls that a fork inherits from the open calls of its parent.
///
/// `None` if one of them waits for a sub-agent: that has one thread, which belongs to the parent. A
/// caller that waits for the parent's run does not wait for the fork's, so the fork's run has no parent.
pub fn inherited(mut open: Open) -> Option<Open> {
    let mut calls = open.calls.iter();
    if calls.any(|call| call.kind == OpenKind::Child) {
        return None;
    }
    let mut run = Run::of(open.execution.run.as_ref());
    if run.parent.take().is_some() {
        open.execution.run = Some(Payload::write(&run).ok()?);
    }
    Some(open)
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::{Execution, ExecutionStatus, OpenCall};

    fn open(kinds: &[OpenKind], run: Option<Payload>) -> Open {
        let calls = kinds.iter().map(|kind| OpenCall {
            tool_call_id: "c".to_owned(),
            kind: *kind,
            part: serde_json::json!({}).into(),
            origin: None,
            children: Vec::new(),
        });
        let execution = Execution {
            id: "e".into(),
            thread_id: "t".into(),
            context_id: "c".into(),
            trigger_item_id: "i".into(),
            reaction_item_id: "r".into(),
            workflow_run_id: None,
            status: ExecutionStatus::Completed,
            created_at: jiff::Timestamp::UNIX_EPOCH,
            updated_at: None,
            interruption: None,
            run,
        };
        Open {
            execution,
            calls: calls.collect(),
        }
    }

    #[test]
    fn calls_that_wait_for_sub_agents_are_the_parents_alone() {
        let kinds = [OpenKind::External, OpenKind::Approval];
        let all = open(&kinds, None);
        assert_eq!(inherited(all.clone()), Some(all));
        assert_eq!(inherited(open(&[kinds[0], OpenKind::Child], None)), None);
    }

    #[test]
    fn nobody_waits_for_the_run_of_a_fork() {
        let mut run = Run {
            agent: Some("helper".to_owned()),
            parent: Some(ParentRun {
                thread_id: "t".into(),
                execution_id: "e".into(),
            }),
            ..Run::default()
        };
        let written = Payload::write(&run).unwrap();
        let left = inherited(open(&[OpenKind::External], Some(written))).unwrap();
        run.parent = None;
        assert_eq!(Run::of(left.execution.run.as_ref()), run);
    }
}
