//! A call or a request that waits, in the form that clients see.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The kind of answer that something waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WaitingKind {
    /// A call waits for an approval.
    Approval,
    /// A call waits for a result.
    External,
    /// A request of AITP is open.
    Request,
}

/// A call or a request that waits for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WaitingView {
    /// The id of the entry. It stays the same while the entry waits.
    pub(in crate::routes) id: String,
    /// `approval`: a call waits for an approval. `external`: a call waits for a result. `request`: a request
    /// of AITP is open.
    #[schema(value_type = String)]
    pub(in crate::routes) kind: WaitingKind,
    /// The key of the thread to answer on. For a sub-agent's call it is the thread that the person began, if
    /// the caller may access that.
    pub(in crate::routes) thread_key: String,
    /// The title of that thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::routes) title: Option<String>,
    /// The agent that made the call or the request, if it has a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::routes) agent: Option<String>,
    /// The tool of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::routes) tool_name: Option<String>,
    /// The id of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::routes) tool_call_id: Option<String>,
    /// The key of the thread with the call: that one, or that of a sub-agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::routes) call_thread_key: Option<String>,
    /// The id to answer a request under, such as `decision:seat`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::routes) request_id: Option<String>,
    /// The topic of a request: `decision`, `data`, `payment`, `top_up`, or a topic of wallets.
    #[schema(value_type = Option<String>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::routes) topic: Option<interop::aitp::Topic>,
    /// One line: the first argument of a call, the title of a request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::routes) summary: Option<String>,
    /// Since when it waits. For a call it is the end of the run that left it open.
    #[schema(value_type = String, format = DateTime)]
    pub(in crate::routes) since: Timestamp,
    /// The last instant at which an answer counts.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::routes) expires_at: Option<Timestamp>,
    /// Whether the caller may answer it.
    pub(in crate::routes) may_answer: bool,
}
