//! The log of a thread: live, replayed, or resumed after any event (EK-10).

use super::tree::{TreeEventId, TreeEvents};
use crate::auth::Caller;
use crate::body::Query;
use crate::error::{ApiError, ErrorBody};
use crate::event_id::Incarnation;
use crate::sse::{self, FrameBuffer, View};
use crate::state::Api;
use crate::threads::ThreadKey;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, header};
use jiff::Timestamp;
use runtime::{FollowedRecord, Logged, SubagentEvent, Until, Watched};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::ops::ControlFlow;
use timeline::{Event, ReadPosition, Seq};
use utoipa::{IntoParams, ToSchema};

/// Maximum number of events in a JSON page.
const MAX_PAGE: usize = 1_000;

/// The end of an event stream.
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
    /// Only events after the one with this id or position. The header `Last-Event-ID` overrides it.
    after: Option<String>,
    /// `forever` (the default), or `rest`: until all events were sent and no execution runs.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    until: Ends,
    /// Maximum number of events.
    limit: Option<usize>,
    /// Whether a stream also shows the events of sub-agents, at any depth. They are events `subagent`.
    /// Their data is the event of the sub-agent's thread and `path`, the calls that lead to it.
    #[serde(default)]
    subagents: bool,
    /// Whether the stream shows sub-agents as events of UAP §8.7 instead: as events `subagent` without
    /// an id, whose data is the event.
    #[serde(default)]
    uap: bool,
}

impl EventsQuery {
    fn after(&self) -> Result<TreeEventId, ApiError> {
        let text = self.after.as_deref().unwrap_or("0");
        TreeEventId::read(text).ok_or_else(|| ApiError::InvalidQuery {
            what: "after: expected the id of an event, or its position".to_owned(),
        })
    }
}

/// Shows every record.
struct AllEvents {
    incarnation: Incarnation,
    left: usize,
}

impl View<FollowedRecord> for AllEvents {
    fn write(&mut self, followed: &FollowedRecord, out: &mut FrameBuffer) -> ControlFlow<()> {
        sse::record_frame(followed, self.incarnation, out);
        self.left = self.left.saturating_sub(1);
        sse::flow(self.left == 0)
    }

    fn fail(&mut self, error: &ApiError, out: &mut String) {
        sse::failure_frame(error, out);
    }
}

/// An event of a thread's log with its position and time: the data of a stream's event, and an entry of
/// a page.
#[derive(Serialize, ToSchema)]
pub(crate) struct EventRecord {
    /// The position in the log; the first is 1.
    seq: Seq,
    /// When the event was written.
    at: Timestamp,
    #[serde(flatten)]
    event: Event,
}

/// A page of a thread's log.
#[derive(Serialize, ToSchema)]
pub(crate) struct EventPage {
    /// The events, oldest first.
    events: Vec<EventRecord>,
    /// The position of the last event of the page: the next page begins after it.
    last: Seq,
    /// Whether the log has further events.
    more: bool,
}

/// Follows the events of a thread as a stream; with `Accept: application/json`, reads a page.
///
/// The data of each event is `{"seq", "at", …event}`. Its id is its position in the log, a dot, and 8
/// digits for the thread's identity. A chunk that is not stored yet has the id of the last stored event,
/// a dot, and the number of such chunks. A client that reconnects with the id misses no event and receives
/// none twice. If the thread was deleted and created again under its key, the request fails with
/// `foreign_event_id`. If a failover or an older backup has lost the end of the log, it fails with
/// `ahead_of_log`. With `subagents` the id also has the positions of sub-agents' threads.
#[utoipa::path(get, path = "/threads/{key}/events", operation_id = "followEvents", tag = "events", security(("key" = [])),
    params(("key" = String, Path), ("last-event-id" = Option<String>, Header), EventsQuery),
    responses((status = 200, content((EventPage = "application/json"), (EventRecord = "text/event-stream"))),
        (status = "default", body = ErrorBody)))]
pub(crate) async fn follow(
    State(api): State<Api>,
    caller: Caller,
    thread: ThreadKey,
    headers: HeaderMap,
    Query(query): Query<EventsQuery>,
) -> Result<Response, ApiError> {
    let place = match last_event_id(&headers)? {
        Some(place) => place,
        None => query.after()?,
    };
    let after = place.cursor.own;
    let found = thread.find().await?;
    let (tail, incarnation) = (found.row().tail, Incarnation::of(found.id()));
    if !place.id().fits(incarnation) {
        return Err(ApiError::ForeignEventId);
    }
    found.row().check_position(after.seq)?;
    if sse::wants_json(&headers) {
        if query.subagents || query.uap {
            let what = "subagents are shown by a stream: ask for text/event-stream".to_owned();
            return Err(ApiError::InvalidQuery { what });
        }
        let limit = query.limit.unwrap_or(MAX_PAGE).clamp(1, MAX_PAGE);
        let records = thread.read(after.seq, limit).await?;
        return Ok((
            [(header::CONTENT_TYPE, "application/json")],
            page(&records, after, tail),
        )
            .into_response());
    }
    let open = api.open_stream(&caller)?;
    let until = match query.until {
        Ends::Forever => Until::Forever,
        Ends::Rest => Until::Rest,
    };
    let left = query.limit.unwrap_or(usize::MAX).max(1);
    if query.uap {
        let watch = thread.watch(after, until).await?;
        let view = WatchedEvents(AllEvents { incarnation, left });
        return Ok(sse::response(watch, view, open));
    }
    if query.subagents {
        let place = TreeEventId {
            incarnation: Some(incarnation),
            ..place
        };
        let cursor = place.cursor.clone();
        let tree = thread.tree(cursor, until).await?;
        return Ok(sse::response(tree, TreeEvents::all(place, left), open));
    }
    let follow = thread.follow(after, until).await?;
    let view = AllEvents { incarnation, left };
    Ok(sse::response(follow, view, open))
}

/// Shows every record, and the events of sub-agents.
struct WatchedEvents(AllEvents);

impl View<Watched> for WatchedEvents {
    fn write(&mut self, watched: &Watched, out: &mut FrameBuffer) -> ControlFlow<()> {
        match watched {
            Watched::Record(followed) => self.0.write(followed, out),
            Watched::Subagent(event) => {
                let event = SubagentEvent::clone(event).into_event(0, "".into());
                let data = serde_json::to_string(&event).unwrap_or_default();
                interop::sse::write_named("subagent", data, out);
                ControlFlow::Continue(())
            }
        }
    }

    fn fail(&mut self, error: &ApiError, out: &mut String) {
        self.0.fail(error, out);
    }
}

fn last_event_id(headers: &HeaderMap) -> Result<Option<TreeEventId>, ApiError> {
    let Some(value) = headers.get("last-event-id") else {
        return Ok(None);
    };
    let seq = value
        .to_str()
        .ok()
        .and_then(|value| TreeEventId::read(value.trim()));
    let error = ApiError::InvalidHeader {
        name: "last-event-id",
        expected: "the id of an event",
    };
    seq.map(Some).ok_or(error)
}

fn page(records: &[Logged], after: ReadPosition, tail: Seq) -> String {
    let mut out = String::from("{\"events\":[");
    let mut position = after;
    let lacks = |logged: &&Logged| position.pass(logged.record.seq, &logged.record.event);
    for (index, logged) in records.iter().filter(lacks).enumerate() {
        if index > 0 {
            out.push(',');
        }
        sse::record_json(logged, &mut out);
    }
    let last = records.last().map_or(after.seq, |logged| logged.record.seq);
    // Writing to a string can't fail.
    let _ = write!(out, "],\"last\":{last},\"more\":{}}}", last < tail);
    out
}
