//! The AITP requests of a thread: those that are open, and the results of the others.

use super::looked;
use super::view::RequestView;
use crate::body::{PathOf, Query};
use crate::error::{ApiError, ErrorBody};
use crate::routes::page_query::of_past;
use crate::state::Api;
use crate::threads::ThreadKey;
use axum::Json;
use axum::extract::State;
use interop::aitp::{self, AitpState, Key, Party};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use timeline::Seq;
use utoipa::{IntoParams, ToSchema};

const DEFAULT_LIMIT: usize = 50;
const MAX_LIMIT: usize = 200;

/// Which requests are listed.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RequestQuery {
    /// Only requests in this state: `open` (the default), `answered`, `declined`, `cancelled`,
    /// `expired`, `superseded`, or `all`.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    state: Wanted,
    /// Only requests that this actor may answer.
    actor: Option<String>,
    /// Maximum number of requests, default 50, at most 200. The requests of one message are not split,
    /// so a page may have more.
    limit: Option<usize>,
    /// The `next` of the previous page.
    after: Option<u64>,
    /// The requests as they were after this event of the thread's own log. Default: as they are.
    at: Option<u64>,
}

/// The state of the requested requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Wanted {
    #[default]
    Open,
    Answered,
    Declined,
    Cancelled,
    Expired,
    Superseded,
    All,
}

impl Wanted {
    fn has(self, state: aitp::RequestState) -> bool {
        let wanted = match self {
            Self::All => return true,
            Self::Open => aitp::RequestState::Open,
            Self::Answered => aitp::RequestState::Answered,
            Self::Declined => aitp::RequestState::Declined,
            Self::Cancelled => aitp::RequestState::Cancelled,
            Self::Expired => aitp::RequestState::Expired,
            Self::Superseded => aitp::RequestState::Superseded,
        };
        wanted == state
    }
}

/// Requests, in the order of their messages.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RequestList {
    /// The requests.
    requests: Vec<RequestView>,
    /// When the next open request expires.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    next_end: Option<Timestamp>,
    /// The cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
    /// The last event that the list covers.
    seq: u64,
}

/// Lists the requests of a thread, by default the open ones.
///
/// Of the requests that are closed, the server remembers the last hundred of each party.
#[utoipa::path(get, path = "/threads/{key}/requests", operation_id = "listRequests", tag = "aitp", security(("key" = [])), params(("key" = String, Path), RequestQuery),
    responses((status = 200, body = RequestList), (status = "default", body = ErrorBody)))]
pub(crate) async fn list(
    State(api): State<Api>,
    thread: ThreadKey,
    Query(query): Query<RequestQuery>,
) -> Result<Json<RequestList>, ApiError> {
    let found = thread.find().await?;
    if let Some(at) = query.at {
        let past = api
            .aitp_states(found.tenant())
            .past(found.row(), Seq(at))
            .await;
        let (desk, then) = past.map_err(of_past)?;
        let (requests, next) = page(&desk, &query, then);
        return Ok(Json(RequestList {
            requests,
            next_end: desk.next_end(then),
            next,
            seq: at,
        }));
    }
    let now = Timestamp::now();
    api.forms()
        .fetch(api.aitp_states(found.tenant()), found.row(), now)
        .await?;
    let (requests, next, next_end) = looked(&api, &found, |desk| {
        let (requests, next) = page(desk, &query, now);
        (requests, next, desk.next_end(now))
    })
    .await?;
    Ok(Json(RequestList {
        requests,
        next_end,
        next,
        seq: found.row().tail.0,
    }))
}

fn page(desk: &AitpState, query: &RequestQuery, now: Timestamp) -> (Vec<RequestView>, Option<u64>) {
    let roster = desk.participants();
    // An actor that does not take part may answer nothing.
    let party: Option<Option<Party>> = query.actor.as_ref().map(|id| roster.party(Some(id), None));
    let may_answer = |request: &aitp::Request| match &party {
        None => true,
        Some(None) => false,
        Some(Some(party)) => desk.ledger().may_answer(&request.ask, party).is_ok(),
    };
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
    let after = query.after.unwrap_or_default();
    let all = desk.ledger().requests();
    let fits = |request: &&aitp::Request| {
        request.seq.0 > after && query.state.has(request.state(now)) && may_answer(request)
    };
    let mut found: Vec<RequestView> = Vec::new();
    for request in all.filter(fits) {
        let last = found.last().map(|last| last.seq);
        if found.len() >= limit && last != Some(request.seq.0) {
            return (found, last);
        }
        found.push(RequestView::of(desk, request, now));
    }
    (found, None)
}

/// Reads a request: the last one with its id.
#[utoipa::path(get, path = "/threads/{key}/requests/{request}", operation_id = "readRequest", tag = "aitp", security(("key" = [])),
    params(("key" = String, Path), ("request" = String, Path)),
    responses((status = 200, body = RequestView), (status = "default", body = ErrorBody)))]
pub(crate) async fn read(
    State(api): State<Api>,
    thread: ThreadKey,
    PathOf((_thread, request)): PathOf<(String, String)>,
) -> Result<Json<RequestView>, ApiError> {
    let found = thread.find().await?;
    let key = Key::read(&request).ok_or(ApiError::RequestNotFound)?;
    let now = Timestamp::now();
    api.forms()
        .fetch(api.aitp_states(found.tenant()), found.row(), now)
        .await?;
    let request = looked(&api, &found, |desk| RequestView::find(desk, &key, now));
    request.await?.map(Json).ok_or(ApiError::RequestNotFound)
}
