//! All that waits for a person in the threads that the caller may see.

mod entries;
mod page;

pub(super) use page::{WaitingCursor, WaitingFilter, WaitingReader};

use crate::auth::Caller;
use crate::body::Query;
use crate::error::{ApiError, ErrorBody};
use crate::state::Api;
use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

const DEFAULT_LIMIT: usize = 50;
const MAX_LIMIT: usize = 200;

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

/// What is listed.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct WaitingQuery {
    /// Only this kind: `approval`, `external` or `request`.
    #[param(value_type = Option<String>)]
    kind: Option<WaitingKind>,
    /// Only calls and requests of this agent.
    agent: Option<String>,
    /// Only in threads whose key has this prefix. The thread of a sub-agent has a key of its own.
    prefix: Option<String>,
    /// Only entries that have waited since this instant or a later one.
    #[param(value_type = Option<String>, format = DateTime)]
    since: Option<Timestamp>,
    /// Only entries that have waited since this instant or an earlier one.
    #[param(value_type = Option<String>, format = DateTime)]
    until: Option<Timestamp>,
    /// Maximum number of entries, default 50, at most 200.
    limit: Option<usize>,
    /// The `next` of the previous page.
    cursor: Option<String>,
}

/// A page of what waits: the thread with the oldest entry first. The entries of one thread stand together.
#[derive(Serialize, ToSchema)]
pub(crate) struct WaitingList {
    /// The entries.
    entries: Vec<WaitingView>,
    /// The cursor of the next page; absent at the end. A page with fewer entries than the limit can have
    /// one: the server limits how many threads it examines for a page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A call or a request that waits for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WaitingView {
    /// The id of the entry. It stays the same while the entry waits.
    pub(super) id: String,
    /// `approval`: a call waits for an approval. `external`: a call waits for a result. `request`: a request
    /// of AITP is open.
    #[schema(value_type = String)]
    pub(super) kind: WaitingKind,
    /// The key of the thread to answer on. For a sub-agent's call it is the thread that the person began, if
    /// the caller may access that.
    pub(super) thread_key: String,
    /// The title of that thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<String>,
    /// The agent that made the call or the request, if it has a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) agent: Option<String>,
    /// The tool of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_name: Option<String>,
    /// The id of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_call_id: Option<String>,
    /// The key of the thread with the call: that one, or that of a sub-agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) call_thread_key: Option<String>,
    /// The id to answer a request under, such as `decision:seat`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) request_id: Option<String>,
    /// The topic of a request: `decision`, `data`, `payment`, `top_up`, or a topic of wallets.
    #[schema(value_type = Option<String>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) topic: Option<interop::aitp::Topic>,
    /// One line: the first argument of a call, the title of a request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) summary: Option<String>,
    /// Since when it waits. For a call it is the end of the run that left it open.
    #[schema(value_type = String, format = DateTime)]
    pub(super) since: Timestamp,
    /// The last instant at which an answer counts.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<Timestamp>,
    /// Whether the caller may answer it.
    pub(super) may_answer: bool,
}

/// Lists the calls and requests that wait for a person, in all threads that the key may see.
///
/// The calls are those of `…/pending` that wait for an approval or a result, the requests are the open
/// ones of `…/requests`. Closed threads are left out. The cost is proportional to the number of threads in
/// which something waits.
#[utoipa::path(get, path = "/waiting", operation_id = "listWaiting", tag = "answers", security(("key" = [])), params(WaitingQuery),
    responses((status = 200, body = WaitingList), (status = "default", body = ErrorBody)))]
pub(crate) async fn list(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<WaitingQuery>,
) -> Result<Json<WaitingList>, ApiError> {
    let cursor = query.cursor.as_deref().map(WaitingCursor::read);
    let filter = WaitingFilter {
        kind: query.kind,
        agent: query.agent,
        prefix: query.prefix,
        since: query.since,
        until: query.until,
    };
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
    let mut reader = WaitingReader::new(&api, &caller);
    let page = reader.page(&filter, cursor.transpose()?, limit).await?;
    Ok(Json(WaitingList {
        entries: page.entries,
        next: page.next.map(|next| next.to_string()),
    }))
}
