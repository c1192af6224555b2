//! The entities (EK §4). JSON is camelCase, with the specification's names.

use crate::ids::{ContextId, ExecutionId, ItemId, PartKey, Seq, StepId, ThreadId};
use crate::payload::Payload;
use crate::status::{ContextStatus, ExecutionStatus, ItemStatus, StepStatus, ThreadStatus};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The origin of a fork: the events of `thread_id` up to `seq` precede its own log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Fork {
    /// The parent.
    pub thread_id: ThreadId,
    /// The last event of the parent that belongs to the fork.
    pub seq: Seq,
}

/// A thread (EK §4.1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Thread {
    /// Internal.
    pub id: ThreadId,
    /// Public, stable, unique in its tenant.
    pub key: Option<String>,
    /// The status of the thread.
    pub status: ThreadStatus,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
    /// The title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The application's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Payload>,
    /// The thread it was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork: Option<Fork>,
}

/// Typed state attached to a thread (EK §4.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Context {
    /// Internal.
    pub id: ContextId,
    /// Mirrors the thread's key.
    pub key: Option<String>,
    /// The thread that has the context.
    pub thread_id: ThreadId,
    /// The status of the context.
    pub status: ContextStatus,
    /// The application's state.
    pub content: Option<Payload>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
}

/// The type of an item (EK §4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ItemType {
    /// A posted message.
    Message,
    /// A call of an action.
    ActionExecute,
    /// The result of one.
    ActionResult,
    /// A pointer to another item.
    ItemReference,
}

impl ItemType {
    /// Its name in the specification.
    pub fn name(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::ActionExecute => "action_execute",
            Self::ActionResult => "action_result",
            Self::ItemReference => "item_reference",
        }
    }
}

/// The role of a message's author (EK §4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The user.
    User,
    /// The agent.
    Assistant,
    /// The system.
    System,
    /// The developer.
    Developer,
}

/// An item (EK §4.3). A reaction's content is derived from its parts and absent here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Item {
    /// Internal and public.
    pub id: ItemId,
    /// The type of the item.
    #[serde(rename = "type")]
    pub item_type: ItemType,
    /// The role of the author; only messages have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// When it was made.
    pub created_at: Timestamp,
    /// The status of the item. An item without one is stored (EK §4.3).
    #[serde(default = "stored")]
    pub status: ItemStatus,
    /// The channel through which it arrived: `web`, `whatsapp`, `email`, or another name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The content of the item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Payload>,
    /// The execution that writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<ExecutionId>,
    /// The parameters of its execution, while it waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Payload>,
    /// Fields of the client or of another format; never interpreted here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Payload>,
}

fn stored() -> ItemStatus {
    ItemStatus::Stored
}

/// The reason why an execution ended early (ThreadProtocol 0.0.4 `interruption`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Interruption {
    /// [`user_cancelled`](Self::USER_CANCELLED), `timeout`, `network_failure`, `safety_halt`,
    /// [`poisoned`](Self::POISONED), `error`, or another name.
    pub reason: String,
    /// An explanation for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl Interruption {
    /// The reason of an execution that was cancelled, or is no longer needed.
    pub const USER_CANCELLED: &str = "user_cancelled";

    /// The reason of an execution that failed for no more specific reason.
    pub const ERROR: &str = "error";

    /// The reason of an execution that too many processes have died with.
    pub const POISONED: &str = "poisoned";

    /// An interruption with this reason; the detail is for people.
    pub fn new(reason: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            detail: Some(detail.into()),
        }
    }
}

/// One run of an agent (EK §4.5).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Execution {
    /// Internal and public.
    pub id: ExecutionId,
    /// The thread.
    pub thread_id: ThreadId,
    /// The context.
    pub context_id: ContextId,
    /// The item that the execution responds to.
    pub trigger_item_id: ItemId,
    /// The item that the execution writes.
    pub reaction_item_id: ItemId,
    /// An outer workflow's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_run_id: Option<String>,
    /// The status of the execution.
    pub status: ExecutionStatus,
    /// When it began.
    pub created_at: Timestamp,
    /// When it last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
    /// The reason why it ended early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interruption: Option<Interruption>,
    /// The agent and its parameters, in the reactor's own format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Payload>,
}

impl Execution {
    /// Whether an agent handed over to the one of this execution: its `run` counts handoffs.
    pub fn follows_handoff(&self) -> bool {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Handoffs {
            handoffs: u32,
        }
        let run = self.run.as_ref();
        let run: Option<Handoffs> = run.and_then(|run| run.read().ok());
        run.unwrap_or_default().handoffs > 0
    }
}

/// The result of a step (EK §4.6).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct StepOutcome {
    /// The calls the model made: ids and names; their content is in the parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Payload>,
    /// Their outcomes: ids and states; their content is in the parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_execution_results: Option<Payload>,
    /// Whether another step follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continue_loop: Option<bool>,
    /// The error message of a failed step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_text: Option<String>,
    /// Extension to EK: what the step added to its agent's state, except messages. The format is
    /// the agent's own; this crate never interprets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_state: Option<Payload>,
    /// Extension to EK: the calls that the step intentionally leaves without results
    /// ([`OpenCall`]s). Absent if every call has a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_calls: Option<Payload>,
    /// Extension to EK: the reason why the agent stopped before it was done, such as
    /// [`StepOutcome::SPENT`]. Readers accept unknown reasons. Absent if a step follows, and if the
    /// agent was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_short: Option<String>,
}

impl StepOutcome {
    /// The run's answers have had as many tokens as they may have together.
    pub const SPENT: &str = "max_output_tokens";
}

/// The kind of answer that an open call needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum OpenKind {
    /// An approval of the call.
    Approval,
    /// A result from the client, which runs the tool.
    External,
    /// The end of other pending calls.
    Others,
    /// The call's sub-agent waits on its own thread. The call runs again when the sub-agent
    /// continues.
    Child,
}

/// A sub-agent on a thread of its own that an open call has started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct OpenChild {
    /// Its thread.
    pub thread_id: ThreadId,
    /// The key of its thread.
    pub key: String,
    /// The run of the sub-agent.
    pub subagent_id: String,
    /// The type of the sub-agent, as its tool declares it.
    pub subagent_type: String,
    /// The last event of its log when the call was left open.
    pub seq: Seq,
    /// Whether its run is over and the call now waits for another run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_over: bool,
    /// Whether the sub-agent's work is hidden from followers of the parent thread.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_hidden: bool,
}

/// A call that is pending when its execution ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct OpenCall {
    /// The call's id.
    pub tool_call_id: String,
    /// The kind of answer that the call needs.
    pub kind: OpenKind,
    /// The current part of the call.
    pub part: Payload,
    /// The step whose response made the call. Absent in older logs, which did not store it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<StepId>,
    /// The sub-agents that it has started, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<OpenChild>,
}

impl OpenCall {
    /// Reads the open calls at the end of a step from [`StepOutcome::open_calls`].
    pub fn list(left: Option<&Payload>) -> Vec<Self> {
        left.and_then(|left| left.read().ok()).unwrap_or_default()
    }
}

/// One request/response cycle with its tools (EK §4.6).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// Internal and public.
    pub id: StepId,
    /// The execution.
    pub execution_id: ExecutionId,
    /// Its number in the execution, from 0.
    pub iteration: u32,
    /// The status of the step.
    pub status: StepStatus,
    /// The reaction item it writes to.
    pub event_id: ItemId,
    /// The result of the step.
    #[serde(flatten)]
    pub outcome: StepOutcome,
    /// When it began.
    pub created_at: Timestamp,
    /// When it last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
}

/// A stored part of a step (EK §4.7): the final record of the step's output and calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// `{stepId}:{idx}`.
    pub key: PartKey,
    /// The content; its `type` names the kind.
    pub part: Payload,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_item_without_a_status_is_stored() {
        let item: Item = serde_json::from_value(json!({
            "id": "itm_user_01",
            "type": "message",
            "role": "user",
            "createdAt": "2026-02-20T10:00:00.000Z",
            "content": [{"type": "input_text", "text": "Summarize this repo."}],
        }))
        .unwrap();
        assert_eq!(item.status, ItemStatus::Stored);
    }
}
