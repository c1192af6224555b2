//! What was asked in a thread: what waits for an answer, and what came of the rest.

use super::looked;
use super::view::RequestView;
use crate::body::{PathOf, Query};
use crate::error::{ApiError, ErrorBody};
use crate::state::Api;
use crate::threads::ThreadKey;
use axum::Json;
use axum::extract::State;
use interop::aitp::{self, AitpState, Key, Party};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

const DEFAULT_LIMIT: usize = 50;
const MAX_LIMIT: usize = 200;

/// Which requests are listed.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RequestQuery {
    /// Those that stand so: `open` (the default), `answered`, `declined`, `cancelled`, `expired`,
    /// `superseded`, or `all`.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    state: Wanted,
    /// Only those that this actor may answer.
    actor: Option<String>,
    /// About so many at most; 50 when absent, 200 at most. What one message asks stays together.
    limit: Option<usize>,
    /// The `next` of the page before.
    after: Option<u64>,
}

/// How requests stand that are wanted.
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

/// Requests, in the order in which they were asked.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RequestList {
    /// The requests.
    requests: Vec<RequestView>,
    /// When the next of those that are open expires.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    next_end: Option<Timestamp>,
    /// Where the next page goes on; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
    /// The last event that is in it.
    seq: u64,
}

/// Lists what was asked: what waits for an answer, unless another state is wanted.
///
/// Of what is open no longer, the last hundred of everyone who asked are remembered.
#[utoipa::path(get, path = "/threads/{key}/requests", operation_id = "listRequests", tag = "aitp", security(("key" = [])), params(("key" = String, Path), RequestQuery),
    responses((status = 200, body = RequestList), (status = "default", body = ErrorBody)))]
pub(crate) async fn list(
    State(api): State<Api>,
    thread: ThreadKey,
    Query(query): Query<RequestQuery>,
) -> Result<Json<RequestList>, ApiError> {
    let found = thread.find().await?;
    let now = Timestamp::now();
    api.forms()
        .fetch(api.aitp_states(), found.row(), now)
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

/// Reads a request: the last one that was asked under its id.
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
        .fetch(api.aitp_states(), found.row(), now)
        .await?;
    let request = looked(&api, &found, |desk| RequestView::find(desk, &key, now));
    request.await?.map(Json).ok_or(ApiError::RequestNotFound)
}
