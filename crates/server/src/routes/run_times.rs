//! The times of a run: its attempts, its tool calls, its restarts.

use crate::error::ApiError;
use crate::state::Api;
use crate::threads::ThreadKey;
use interop::run::{Attempt, AttemptEnd, CallTimes, ExecutionTimes, Restart};
use jiff::Timestamp;
use runtime::{Landmark, Position};
use serde::Serialize;
use timeline::{ExecutionId, Seq};
use upp::Effect;
use utoipa::ToSchema;

/// Number of records read at once.
const PAGE: usize = 512;

/// The reason for the end of an attempt.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
enum AttemptReason {
    /// The model answered.
    Completed,
    /// The step failed or was stopped.
    Failed,
    /// The process stopped, and the next one tried again.
    Restarted,
    /// The process tried again without a restart.
    Retried,
}

/// An attempt at the model's answer.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AttemptView {
    /// When it began.
    #[schema(value_type = String, format = DateTime)]
    started_at: Timestamp,
    /// When its first chunk was stored.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    first_chunk_at: Option<Timestamp>,
    /// When it ended. If its process died, the time of its last event.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Timestamp>,
    /// Why it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<AttemptReason>,
}

/// A tool call of a step.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallView {
    /// Its id.
    tool_call_id: String,
    /// The tool's name.
    tool_name: String,
    /// `pure`, `idempotent`, `reconcilable` or `effect`, as the agent is configured now; absent for a
    /// tool that it does not have.
    #[schema(value_type = Option<String>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    effect: Option<Effect>,
    /// When the step stored the call.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// When the tool started, if known.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<Timestamp>,
    /// When the result was stored; absent while there is none.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Timestamp>,
    /// `ok`, `error`, or a more specific outcome such as `denied` or `interrupted`.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<String>,
    /// Whether it waited for an approval.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    needs_approval: bool,
}

/// Another process took up the run.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RestartView {
    /// The event.
    seq: Seq,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// Whether the process before it shut down in order.
    orderly: bool,
}

impl From<Attempt> for AttemptView {
    fn from(attempt: Attempt) -> Self {
        let (ended_at, reason) = attempt.ended.unzip();
        Self {
            started_at: attempt.started,
            first_chunk_at: attempt.first_chunk,
            ended_at,
            reason: reason.map(|reason| match reason {
                AttemptEnd::Completed => AttemptReason::Completed,
                AttemptEnd::Failed => AttemptReason::Failed,
                AttemptEnd::Restarted => AttemptReason::Restarted,
                AttemptEnd::Retried => AttemptReason::Retried,
            }),
        }
    }
}

impl From<Restart> for RestartView {
    fn from(
        Restart {
            seq,
            at,
            is_orderly,
        }: Restart,
    ) -> Self {
        Self {
            seq,
            at,
            orderly: is_orderly,
        }
    }
}

impl CallView {
    /// A call of a run; `agent` is the run's agent.
    pub(super) fn of(call: CallTimes, api: &Api, agent: Option<&str>) -> Self {
        let tool = api.app().tool_of(agent, &call.tool_name);
        Self {
            tool_call_id: call.tool_call_id,
            tool_name: call.tool_name,
            effect: tool.map(|tool| tool.effect),
            created_at: call.created,
            started_at: call.started,
            ended_at: call.ended,
            outcome: call.outcome,
            needs_approval: call.needs_approval,
        }
    }
}

/// The times of an execution. Costs time proportional to its records, chunks included.
pub(super) async fn times_of(
    thread: &ThreadKey,
    id: &ExecutionId,
) -> Result<ExecutionTimes, ApiError> {
    let mut times = ExecutionTimes::new(id.clone());
    let place = thread.position_of(Landmark::Execution(id)).await?;
    let Some(mut after) = place.map(Position::before) else {
        return Ok(times);
    };
    loop {
        let (page, last) = thread.records(after, PAGE).await?;
        let is_over = page.iter().any(|logged| times.apply(&logged.record));
        if is_over || last == after {
            return Ok(times);
        }
        after = last;
    }
}
