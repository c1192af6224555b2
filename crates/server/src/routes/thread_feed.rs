//! The changes of all threads that the caller may see, as a stream.

use super::waiting::WaitingReader;
use crate::auth::Caller;
use crate::error::{ApiError, ErrorBody};
use crate::sse::{self, FrameBuffer, View};
use crate::state::Api;
use crate::threads::{key_of, listing};
use axum::extract::State;
use axum::response::Response;
use futures_util::stream::BoxStream;
use http::HeaderMap;
use jiff::Timestamp;
use runtime::{ThreadRow, ThreadRows};
use serde::Serialize;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::LazyLock;
use std::time::Duration;
use timeline::{Seq, ThreadStatus};
use utoipa::ToSchema;

/// Time in which changes are gathered.
const GATHERED: Duration = Duration::from_millis(200);
/// Maximum number of threads that are reported at once. If more have changed, the client reads the list.
const REPORTED: usize = 500;
/// Number of threads that are read at once.
const BATCH: usize = 100;

/// A change of a thread: the data of an event `thread`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ThreadNews {
    /// The key of the thread.
    thread: String,
    /// The last event of its log.
    seq: Seq,
    /// Its status.
    status: ThreadStatus,
    /// Whether a call or a request of its own waits for a person. A thread whose sub-agent waits has
    /// `false`; the sub-agent's thread has `true`.
    waits: bool,
}

/// The data of the events `ready` and `reset`: none.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoNews {}

/// The data of an event of the feed.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum FeedData {
    /// Of an event `thread`.
    News(ThreadNews),
    /// Of the events `ready` and `reset`.
    Nothing(NoNews),
}

/// The start of this process, in microseconds.
static STARTED: LazyLock<i64> = LazyLock::new(|| Timestamp::now().as_microsecond());

/// The id of an event: a change in the order of the list of threads. The numbers of deleted threads are used
/// again, so the order holds for this process, until it deletes a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ChangeId {
    started: i64,
    n_deleted: u64,
    change: u64,
}

impl ChangeId {
    /// The current order, before its first change.
    fn order(api: &Api, caller: &Caller) -> Self {
        Self {
            started: *STARTED,
            n_deleted: api
                .runtime(&caller.tenant)
                .n_deleted_threads(&caller.tenant),
            change: 0,
        }
    }

    fn read(text: &str) -> Option<Self> {
        let mut numbers = text.split('-');
        let id = Self {
            started: numbers.next()?.parse().ok()?,
            n_deleted: numbers.next()?.parse().ok()?,
            change: numbers.next()?.parse().ok()?,
        };
        numbers.next().is_none().then_some(id)
    }

    /// Whether both are of one order.
    fn fits(self, other: Self) -> bool {
        (self.started, self.n_deleted) == (other.started, other.n_deleted)
    }
}

impl fmt::Display for ChangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.started, self.n_deleted, self.change)
    }
}

/// An event of the feed.
enum FeedEvent {
    /// The feed begins after this change.
    Ready(ChangeId),
    /// The feed can't report all that has changed: the client reads the list of threads again.
    Reset(ChangeId),
    /// A thread has changed.
    News(ChangeId, FeedData),
}

/// Follows the changes of all threads that the key may see.
///
/// The first event is `ready`. Each change of a thread is an event `thread`; changes within 200 ms are one.
/// Text that an agent is writing is no change. A client that reconnects with `Last-Event-ID` gets each thread
/// that has changed since, with its current state; the last one may be repeated. An event `reset` means that the
/// feed can't report all that has changed: read the list again. It comes after a thread was deleted, after the
/// server was restarted, and if more than 500 threads have changed.
#[utoipa::path(get, path = "/events", operation_id = "followThreads", tag = "events", security(("key" = [])),
    params(("last-event-id" = Option<String>, Header)),
    responses((status = 200, body = FeedData, content_type = "text/event-stream"), (status = "default", body = ErrorBody)))]
pub(crate) async fn follow(
    State(api): State<Api>,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let last = last_event_id(&headers)?;
    let open = api.open_stream(&caller)?;
    let events = feed(api, caller, last);
    Ok(sse::response(events, FeedFrames, open))
}

fn last_event_id(headers: &HeaderMap) -> Result<Option<ChangeId>, ApiError> {
    let Some(value) = headers.get("last-event-id") else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default().trim();
    let error = ApiError::InvalidHeader {
        name: "last-event-id",
        expected: "the id of an event",
    };
    ChangeId::read(text).map(Some).ok_or(error)
}

fn feed(
    api: Api,
    caller: Caller,
    last: Option<ChangeId>,
) -> BoxStream<'static, Result<FeedEvent, ApiError>> {
    Box::pin(async_stream::try_stream! {
        // The subscription comes first, so no change falls between it and the list.
        let mut changes = api.runtime(&caller.tenant).thread_changes(&caller.tenant);
        // The order comes before the list: a deletion between them resets the feed.
        let order = ChangeId::order(&api, &caller);
        let mut seen = SeenChanges::now(&api, &caller).await?;
        let reader = WaitingReader::new(&api, &caller);
        let mut is_behind = false;
        let mut known = ChangeId { change: seen.change, ..order };
        match last {
            None => yield FeedEvent::Ready(known),
            Some(last) if !last.fits(known) || last.change > seen.change => yield FeedEvent::Reset(known),
            Some(last) => {
                yield FeedEvent::Ready(last);
                seen = SeenChanges { change: last.change, tail: None };
                is_behind = true;
            }
        }
        loop {
            if !std::mem::take(&mut is_behind) {
                if !changes.changed().await {
                    return;
                }
                tokio::time::sleep(GATHERED).await;
            }
            let order = ChangeId::order(&api, &caller);
            let is_same_order = order.fits(known);
            known = ChangeId { change: seen.change, ..order };
            match seen.changed(&api, &caller).await? {
                Some(rows) if is_same_order => {
                    for row in rows {
                        let change = ChangeId { change: row.change, ..known };
                        let news = news(&reader, row).await?;
                        yield FeedEvent::News(change, FeedData::News(news));
                    }
                }
                Some(_) | None => {
                    yield FeedEvent::Reset(ChangeId { change: seen.change, ..known });
                }
            }
        }
    })
}

/// The last reported change, and the tail of its thread then.
struct SeenChanges {
    change: u64,
    tail: Option<Seq>,
}

impl SeenChanges {
    /// The last change until now.
    async fn now(api: &Api, caller: &Caller) -> Result<Self, ApiError> {
        let page = ThreadRows {
            limit: 1,
            ..ThreadRows::default()
        };
        let (rows, _) = listing::visible(api, caller, page).await?;
        let newest = rows.first();
        Ok(Self {
            change: newest.map_or(0, |row| row.change),
            tail: newest.map(|row| row.tail),
        })
    }

    /// The threads that have changed since, in the order of their changes; `None` if they are too many.
    async fn changed(
        &mut self,
        api: &Api,
        caller: &Caller,
    ) -> Result<Option<Vec<ThreadRow>>, ApiError> {
        let mut found: Vec<ThreadRow> = Vec::new();
        loop {
            let page = ThreadRows {
                after: found.last().map(|row| row.change),
                limit: BATCH,
                ..ThreadRows::default()
            };
            let (rows, next) = listing::visible(api, caller, page).await?;
            let newer = rows.into_iter();
            let n_before = found.len();
            found.extend(newer.take_while(|row| row.change >= self.change));
            let is_end = next.is_none() || found.len() - n_before < BATCH;
            if is_end || found.len() > REPORTED {
                break;
            }
        }
        let Some(newest) = found.first() else {
            // The newest thread was deleted.
            *self = Self::now(api, caller).await?;
            return Ok(Some(Vec::new()));
        };
        let (change, tail) = (newest.change, newest.tail);
        let known = (self.change, self.tail);
        (self.change, self.tail) = (change, Some(tail));
        if found.len() > REPORTED {
            return Ok(None);
        }
        // A thread keeps its place while it is the newest one.
        found.retain(|row| (row.change, Some(row.tail)) != known);
        found.reverse();
        Ok(Some(found))
    }
}

async fn news(reader: &WaitingReader, row: ThreadRow) -> Result<ThreadNews, ApiError> {
    Ok(ThreadNews {
        waits: reader.waits(&row).await?,
        thread: key_of(&row).to_owned(),
        seq: row.tail,
        status: row.thread.status,
    })
}

/// Writes the events.
struct FeedFrames;

impl View<FeedEvent> for FeedFrames {
    fn write(&mut self, event: &FeedEvent, out: &mut FrameBuffer) -> ControlFlow<()> {
        let (id, name, data) = match event {
            FeedEvent::Ready(id) => (id, "ready", &FeedData::Nothing(NoNews {})),
            FeedEvent::Reset(id) => (id, "reset", &FeedData::Nothing(NoNews {})),
            FeedEvent::News(id, news) => (id, "thread", news),
        };
        // A struct of texts and numbers can always be written.
        let data = serde_json::to_string(data).unwrap_or_default();
        interop::sse::write_id(*id, out);
        interop::sse::write_named(name, data, out);
        ControlFlow::Continue(())
    }

    fn fail(&mut self, error: &ApiError, out: &mut String) {
        sse::failure_frame(error, out);
    }
}
