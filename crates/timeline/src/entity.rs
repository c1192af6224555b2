//! The entities (EK §4). JSON is camelCase, in the specification's words.

use crate::ids::{ContextId, ExecutionId, ItemId, PartKey, Seq, StepId, ThreadId};
use crate::payload::Payload;
use crate::status::{ContextStatus, ExecutionStatus, ItemStatus, StepStatus, ThreadStatus};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where a thread was forked from: everything up to `seq` of `thread_id` comes before its own log.
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
    /// How it stands.
    pub status: ThreadStatus,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
    /// For people.
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
    /// The one thread it belongs to.
    pub thread_id: ThreadId,
    /// How it stands.
    pub status: ContextStatus,
    /// The application's state.
    pub content: Option<Payload>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
}

/// What an item is (EK §4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ItemType {
    /// Something said.
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

/// Who says a message (EK §4.3).
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
    /// What it is.
    #[serde(rename = "type")]
    pub item_type: ItemType,
    /// Who says it, for messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// When it was made.
    pub created_at: Timestamp,
    /// How it stands; one that does not say so is stored (EK §4.3).
    #[serde(default = "stored")]
    pub status: ItemStatus,
    /// Where it came in: `web`, `whatsapp`, `email`, or another name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// What it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Payload>,
    /// The execution that writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<ExecutionId>,
    /// How it is to be answered, while it waits for its execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Payload>,
    /// Fields of the client or of another format; never interpreted here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Payload>,
}

fn stored() -> ItemStatus {
    ItemStatus::Stored
}

/// Why an execution ended before its time (ThreadProtocol 0.0.4 `interruption`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Interruption {
    /// [`user_cancelled`](Self::USER_CANCELLED), `timeout`, `network_failure`, `safety_halt`, [`poisoned`](Self::POISONED),
    /// `error`, or another word.
    pub reason: String,
    /// What a person should know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl Interruption {
    /// The reason of an execution that somebody has stopped, or that nobody wants any more.
    pub const USER_CANCELLED: &str = "user_cancelled";

    /// The reason of an execution that went wrong, where no other word fits better.
    pub const ERROR: &str = "error";

    /// The reason of an execution that too many processes have died with.
    pub const POISONED: &str = "poisoned";

    /// An execution was broken off for this reason; the detail is for people.
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
    /// What it answers.
    pub trigger_item_id: ItemId,
    /// What it writes.
    pub reaction_item_id: ItemId,
    /// An outer workflow's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_run_id: Option<String>,
    /// How it stands.
    pub status: ExecutionStatus,
    /// When it began.
    pub created_at: Timestamp,
    /// When it last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
    /// Why it ended early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interruption: Option<Interruption>,
    /// Who answers, and how: the reactor's own parameters.
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

/// What a step came to (EK §4.6).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct StepOutcome {
    /// The calls the model made: ids and names; their content is in the parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Value>,
    /// Their outcomes: ids and states; their content is in the parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_execution_results: Option<Value>,
    /// Whether another step follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continue_loop: Option<bool>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_text: Option<String>,
    /// Ours: what the step added to its agent's state beside messages; the agent's own, never
    /// interpreted here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_state: Option<Payload>,
    /// Ours: the calls that the step leaves without results on purpose ([`OpenCall`]s); absent
    /// where every call has its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_calls: Option<Payload>,
    /// Ours: why no step follows though the agent would have gone on, such as [`StepOutcome::SPENT`];
    /// readers take other words. Absent where one follows, and where the agent was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_short: Option<String>,
}

impl StepOutcome {
    /// The run's answers have had as many tokens as they may have together.
    pub const SPENT: &str = "max_output_tokens";
}

/// What an open call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum OpenKind {
    /// Somebody must say whether its tool may run.
    Approval,
    /// Somebody else runs its tool and brings the result.
    External,
    /// Others that wait must end first.
    Others,
    /// A sub-agent on a thread of its own waits; the call runs again when that goes on.
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
    /// What kind of sub-agent the tool says it is.
    pub subagent_type: String,
    /// The last event of its log when the call was left open.
    pub seq: Seq,
    /// Whether its run is over, and it is another one that waits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_over: bool,
    /// Whether those who follow the thread above are not shown what it does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_hidden: bool,
}

/// A call that waits for something from outside when its execution is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct OpenCall {
    /// The call's id.
    pub tool_call_id: String,
    /// What it waits for.
    pub kind: OpenKind,
    /// Its part, as it stands.
    pub part: Payload,
    /// The step whose response made it; absent in logs from before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<StepId>,
    /// The sub-agents that it has started, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<OpenChild>,
}

impl OpenCall {
    /// The calls that the end of a step leaves open: what [`StepOutcome::open_calls`] has.
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
    /// How it stands.
    pub status: StepStatus,
    /// The reaction item it writes to.
    pub event_id: ItemId,
    /// What it came to.
    #[serde(flatten)]
    pub outcome: StepOutcome,
    /// When it began.
    pub created_at: Timestamp,
    /// When it last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
}

/// A stored part of a step (EK §4.7): the truth of what the step said and did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// `{stepId}:{idx}`.
    pub key: PartKey,
    /// The content; its `type` says what it is.
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
