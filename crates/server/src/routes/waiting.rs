//! The pending calls and open requests of the threads that the caller may see.

mod entries;
mod page;
mod view;

pub(super) use page::{WaitingCursor, WaitingFilter, WaitingReader};
pub(super) use view::{WaitingKind, WaitingView};

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

/// The filters and the place of a page.
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

/// A page of pending calls and open requests. The entries of one thread follow each other.
#[derive(Serialize, ToSchema)]
pub(crate) struct WaitingList {
    /// The entries.
    entries: Vec<WaitingView>,
    /// The cursor of the next page; absent at the end. A page with fewer entries than the limit can have
    /// one: the server limits how many threads it examines for a page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
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
