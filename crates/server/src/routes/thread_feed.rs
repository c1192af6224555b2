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
use runtime::{ThreadRow, ThreadRows};
use serde::Serialize;
use std::ops::ControlFlow;
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

/// An event of the feed.
enum FeedEvent {
    /// The feed begins after this change.
    Ready(u64),
    /// Too much has changed: the client reads the list of threads again.
    Reset(u64),
    /// A thread has changed.
    News(u64, FeedData),
}

/// Follows the changes of all threads that the key may see.
///
/// The first event is `ready`. Each change of a thread is an event `thread`; changes within 200 ms are one.
/// Text that an agent is writing is no change. The id of an event is a place in the list of threads. A
/// client that reconnects with `Last-Event-ID` gets each thread that has changed since, with its state by
/// then; the last one may be repeated. An event `reset` means that more has changed than the stream reports:
/// read the list again. A deletion alone is not reported.
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

fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, ApiError> {
    let Some(value) = headers.get("last-event-id") else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default().trim();
    let error = ApiError::InvalidHeader {
        name: "last-event-id",
        expected: "the id of an event",
    };
    text.parse().map(Some).map_err(|_| error)
}

fn feed(
    api: Api,
    caller: Caller,
    last: Option<u64>,
) -> BoxStream<'static, Result<FeedEvent, ApiError>> {
    Box::pin(async_stream::try_stream! {
        // The subscription comes first, so no change falls between it and the list.
        let mut changes = api.runtime().thread_changes(&caller.tenant);
        let mut seen = SeenChanges::now(&api, &caller).await?;
        let mut is_behind = false;
        match last {
            None => yield FeedEvent::Ready(seen.change),
            // The place is of a store that is gone, or of threads that were deleted.
            Some(last) if last > seen.change => yield FeedEvent::Reset(seen.change),
            Some(last) => {
                yield FeedEvent::Ready(last);
                seen = SeenChanges { change: last, tail: None };
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
            match seen.changed(&api, &caller).await? {
                None => yield FeedEvent::Reset(seen.change),
                Some(rows) => {
                    for row in rows {
                        let change = row.change;
                        let news = news(&api, &caller, row).await?;
                        yield FeedEvent::News(change, FeedData::News(news));
                    }
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

    /// The threads that have changed since, in the order of their changes; `None` if they are too many, or
    /// if the order has gaps because threads were deleted.
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
            let is_less = self.change > 0;
            *self = Self::now(api, caller).await?;
            return Ok((!is_less).then(Vec::new));
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

async fn news(api: &Api, caller: &Caller, row: ThreadRow) -> Result<ThreadNews, ApiError> {
    let reader = WaitingReader::new(api, caller);
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
