//! The live stream of a thread's log: the rows of new events.

use super::events::{selection, shown_json};
use crate::auth::Caller;
use crate::body::Query;
use crate::error::ApiError;
use crate::event_id::{EventId, Incarnation};
use crate::routes::web::live::{fail_page, shown_event};
use crate::sse::{self, FrameBuffer, View};
use crate::state::Api;
use crate::threads::ThreadKey;
use axum::extract::State;
use axum::response::Response;
use futures_util::StreamExt as _;
use futures_util::stream::{BoxStream, once};
use http::HeaderMap;
use runtime::{FollowedRecord, StoreError, Until};
use serde::Deserialize;
use std::ops::ControlFlow;
use web::{EventTable, Patch, write_patches};

/// Maximum number of events between the page's last one and the end, for a page that continues.
const MAX_MISSED: u64 = 2_000;

/// Where the page is, and what it shows.
#[derive(Deserialize)]
pub(in crate::routes::web) struct LiveEventsQuery {
    /// The key of the thread.
    thread: String,
    /// The id of the event after which rows are sent.
    after: String,
    #[serde(default)]
    view: String,
    #[serde(default, rename = "type")]
    event_type: String,
}

/// An input of the stream.
enum Sent {
    /// The page loads again: its thread is another one, or it missed too much.
    Reload,
    /// A record.
    Record(FollowedRecord),
}

/// Streams the rows of a log that are new on an open page.
pub(in crate::routes::web) async fn live(
    State(api): State<Api>,
    caller: Caller,
    headers: HeaderMap,
    Query(query): Query<LiveEventsQuery>,
) -> Result<Response, ApiError> {
    let thread = ThreadKey::new(&api, &caller, &query.thread)?;
    let selection = selection(&query.view, &query.event_type)?;
    let open = api.open_stream(&caller)?;
    let after = shown_event(&headers, &query.after)?;
    let found = thread.find().await?;
    let incarnation = Incarnation::of(found.id());
    let tail = found.row().tail;
    let is_lost = !after.fits(incarnation)
        || after.position.seq > tail
        || tail.0.saturating_sub(after.position.seq.0) > MAX_MISSED;
    let sent: BoxStream<'static, Result<Sent, StoreError>> = if is_lost {
        once(async { Ok(Sent::Reload) }).boxed()
    } else {
        let records = thread.follow(after.position, Until::Forever).await?;
        records.map(|followed| followed.map(Sent::Record)).boxed()
    };
    let view = LiveLog {
        table: EventTable::new(thread.key(), selection),
        incarnation,
    };
    Ok(sse::response(sent, view, open))
}

/// Writes the changes of rows as frames.
struct LiveLog {
    table: EventTable,
    incarnation: Incarnation,
}

impl View<Sent> for LiveLog {
    fn write(&mut self, sent: &Sent, out: &mut FrameBuffer) -> ControlFlow<()> {
        match sent {
            Sent::Reload => {
                interop::sse::write_named("patch", write_patches(&[Patch::Reload]), out);
                ControlFlow::Break(())
            }
            Sent::Record(followed) => {
                let record = &followed.record;
                if let Some(patch) = self.table.apply(record, || shown_json(followed)) {
                    let id = EventId {
                        position: followed.position,
                        incarnation: Some(self.incarnation),
                    };
                    interop::sse::write_id(id, out);
                    interop::sse::write_named("patch", write_patches(&[patch]), out);
                }
                ControlFlow::Continue(())
            }
        }
    }

    fn fail(&mut self, error: &ApiError, out: &mut String) {
        fail_page(error, out);
    }
}
