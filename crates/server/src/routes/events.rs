//! The log of a thread: live, replayed, or resumed after any event (EK-10).

use super::tree::{Place, TreeEvents};
use crate::auth::Caller;
use crate::body::{PathOf, Query};
use crate::error::{ApiError, ErrorBody};
use crate::sse::{self, FrameBuffer, View};
use crate::state::Api;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, header};
use runtime::{Logged, Until};
use serde::Deserialize;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::sync::Arc;
use timeline::Seq;
use utoipa::IntoParams;

/// The most events of a page of JSON.
const MAX_PAGE: usize = 1_000;

/// When a stream of events ends.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Ends {
    #[default]
    Forever,
    Rest,
}

/// Which events are sent.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsQuery {
    /// Only events after this one; the header `Last-Event-ID` wins over it.
    after: Option<u64>,
    /// `forever` (the default), or `rest`: until all there is was sent and no execution runs.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    until: Ends,
    /// At most so many.
    limit: Option<usize>,
    /// Whether the stream also shows what sub-agents do, at any depth: as events `subagent`, whose
    /// data is the event of the sub-agent's thread with `path`, the calls that led there.
    #[serde(default)]
    subagents: bool,
}

/// Shows every record.
struct AllEvents {
    left: usize,
}

impl View<Arc<Logged>> for AllEvents {
    fn write(&mut self, logged: &Arc<Logged>, out: &mut FrameBuffer) -> ControlFlow<()> {
        sse::record_frame(logged, out);
        self.left = self.left.saturating_sub(1);
        sse::flow(self.left == 0)
    }

    fn fail(&mut self, error: &ApiError, out: &mut String) {
        sse::failure_frame(error, out);
    }
}

/// Follows the events of a thread as a stream; with `Accept: application/json`, reads a page.
///
/// Each event of the stream has the place in the log as its id and `{"seq", "at", …event}` as its
/// data, so that a client that reconnects misses nothing and sees nothing twice. With `subagents` the
/// id also says how far the threads beneath were read, and is to be given back as it came.
#[utoipa::path(get, path = "/threads/{key}/events", operation_id = "followEvents", tag = "events", security(("key" = [])),
    params(("key" = String, Path), ("last-event-id" = Option<String>, Header), EventsQuery),
    responses((status = 200, content((String = "text/event-stream"), (Object = "application/json"))),
        (status = "default", body = ErrorBody)))]
pub(crate) async fn follow(
    State(api): State<Api>,
    caller: Caller,
    PathOf(key): PathOf<String>,
    headers: HeaderMap,
    Query(query): Query<EventsQuery>,
) -> Result<Response, ApiError> {
    let after = || Place(Seq(query.after.unwrap_or_default()).into());
    let place = last_event_id(&headers)?.unwrap_or_else(after);
    let after = place.0.seq;
    let runtime = api.runtime();
    // What is beyond the end was another thread's of this key, or a store's that is gone: waiting for more would hide what
    // there is.
    let tail = runtime.find(&caller.tenant, &key).await?.tail;
    if after > tail {
        let what = format!("the thread has {tail} events, and none of the id {after}: begin at 0");
        return Err(ApiError::InvalidQuery { what });
    }
    if sse::wants_json(&headers) {
        if query.subagents {
            let what = "subagents are shown by a stream: ask for text/event-stream".to_owned();
            return Err(ApiError::InvalidQuery { what });
        }
        let limit = query.limit.unwrap_or(MAX_PAGE).clamp(1, MAX_PAGE);
        let records = runtime.read(&caller.tenant, &key, after, limit).await?;
        return Ok((
            [(header::CONTENT_TYPE, "application/json")],
            page(&records, after, tail),
        )
            .into_response());
    }
    let open = api.open_stream(&caller)?;
    let tenant = caller.tenant;
    let until = match query.until {
        Ends::Forever => Until::Forever,
        Ends::Rest => Until::Rest,
    };
    let left = query.limit.unwrap_or(usize::MAX).max(1);
    if query.subagents {
        let tree = runtime.tree(&tenant, &key, place.0.clone(), until).await?;
        return Ok(sse::response(tree, TreeEvents::all(place, left), open));
    }
    let follow = runtime.follow(&tenant, &key, after, until).await?;
    Ok(sse::response(follow, AllEvents { left }, open))
}

fn last_event_id(headers: &HeaderMap) -> Result<Option<Place>, ApiError> {
    let Some(value) = headers.get("last-event-id") else {
        return Ok(None);
    };
    let seq = value
        .to_str()
        .ok()
        .and_then(|value| Place::read(value.trim()));
    let error = ApiError::InvalidHeader {
        name: "last-event-id",
        expected: "the id of an event",
    };
    seq.map(Some).ok_or(error)
}

fn page(records: &[Logged], after: Seq, tail: Seq) -> String {
    let mut out = String::from("{\"events\":[");
    for (index, logged) in records.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        sse::record_json(logged, &mut out);
    }
    let last = records.last().map_or(after, |logged| logged.record.seq);
    // Writing to a string can't fail.
    let _ = write!(out, "],\"last\":{last},\"more\":{}}}", last < tail);
    out
}
