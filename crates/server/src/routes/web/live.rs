//! The live stream of a page: patches from the records of its thread and of the sub-agents below it, and for
//! the other parts of the page.

use super::inbox::FilterQuery;
use super::live_requests::RequestWatch;
use super::live_side::{OpenInbox, PageSide};
use super::reading::ReadConversation;
use super::request_view::read_requests;
use crate::auth::Caller;
use crate::body::Query;
use crate::error::ApiError;
use crate::event_id::{EventId, Incarnation};
use crate::sse::{self, FrameBuffer, View};
use crate::state::Api;
use crate::threads::ThreadKey;
use axum::extract::State;
use axum::response::Response;
use futures_util::StreamExt as _;
use futures_util::stream::{BoxStream, once, select};
use http::HeaderMap;
use runtime::{Below, Cursor, Position, RuntimeError, Until};
use serde::Deserialize;
use serde_json::json;
use std::ops::ControlFlow;
use timeline::{Event, ReadPosition, Seq, ThreadStatus};
use web::{CapabilityRequest, Conversation, Patch, write_patches};

/// Number of messages that a page is brought up to date with after a pause.
const CATCH_UP: usize = 5;

/// Where the page is, and what it shows.
#[derive(Deserialize)]
pub(super) struct LiveQuery {
    /// The key of the thread; none on a page without one.
    thread: Option<String>,
    /// The id of the last event that the page shows.
    #[serde(default)]
    after: String,
    /// Whether the page has the list of threads.
    list: Option<String>,
    /// The ids of the entries that the page of the inbox shows; none on other pages.
    inbox: Option<String>,
    #[serde(flatten)]
    filter: FilterQuery,
}

/// An input of the stream.
enum Sent {
    /// Patches that are made already.
    Patches(Vec<Patch>),
    /// A later record, and the requests after it if it has changed them.
    Record(Box<Below>, Option<Vec<CapabilityRequest>>),
}

type SentStream = BoxStream<'static, Result<Sent, ApiError>>;

/// Streams the patches of a page. A page that comes back after a pause is brought up to date first: its
/// last messages are drawn anew, so the stream needs no state of the page.
pub(super) async fn live(
    State(api): State<Api>,
    caller: Caller,
    headers: HeaderMap,
    Query(query): Query<LiveQuery>,
) -> Result<Response, ApiError> {
    let inbox = match &query.inbox {
        Some(shown) => Some(OpenInbox::new(query.filter.read()?, shown)),
        None => None,
    };
    let open = api.open_stream(&caller)?;
    let (records, view) = match &query.thread {
        Some(key) => {
            let thread = ThreadKey::new(&api, &caller, key)?;
            let after = shown_event(&headers, &query.after)?;
            let (records, page) = thread_records(&api, &thread, after).await?;
            (records, LivePage(Some(page)))
        }
        None => (futures_util::stream::empty().boxed(), LivePage(None)),
    };
    let has_side = query.list.is_some() || inbox.is_some();
    if !has_side {
        return Ok(sse::response(records, view, open));
    }
    let side = PageSide {
        api,
        caller,
        current: query.thread,
        inbox,
    };
    let side = side.patches().map(|patches| patches.map(Sent::Patches));
    Ok(sse::response(select(records, side).boxed(), view, open))
}

/// The records of a thread behind what its page shows, and the page.
async fn thread_records(
    api: &Api,
    thread: &ThreadKey,
    after: EventId,
) -> Result<(SentStream, ThreadPatches), ApiError> {
    let found = thread.find().await?;
    let incarnation = Incarnation::of(found.id());
    let read = ReadConversation::before((api, thread), Position::END, CATCH_UP).await?;
    let seq = read.page.transcript.seq;
    let mut conversation = read.conversation;
    conversation.note_requests(read_requests(api, &found).await?);
    let is_running = conversation.status() == ThreadStatus::Streaming;
    let catch_up = if !after.fits(incarnation) || misses_messages(&read.page, after.position.seq) {
        vec![Patch::Reload]
    } else if after.position.seq < seq || is_running {
        conversation.redraw()
    } else {
        Vec::new()
    };
    let children = conversation.open_children().into_iter();
    let cursor = Cursor {
        own: seq.into(),
        below: children
            .map(|child| (child, ReadPosition::default()))
            .collect(),
    };
    let tree = thread.tree(cursor, Until::Forever).await?;
    let requests = RequestWatch::new(api, thread);
    let records = tree.then(move |below| {
        let requests = requests.clone();
        async move {
            let below = below.map_err(RuntimeError::from)?;
            let changed = match below.path.last() {
                None => requests.after(&below.followed.record).await,
                Some(_) => None,
            };
            Ok(Sent::Record(Box::new(below), changed))
        }
    });
    let first = once(async move { Ok(Sent::Patches(catch_up)) });
    let page = ThreadPatches {
        conversation,
        id: EventId {
            position: seq.into(),
            incarnation: Some(incarnation),
        },
    };
    Ok((first.chain(records).boxed(), page))
}

/// The last event that the page shows.
pub(super) fn shown_event(headers: &HeaderMap, after: &str) -> Result<EventId, ApiError> {
    let last = headers.get("last-event-id");
    let last = last.and_then(|last| last.to_str().ok());
    let text = last.unwrap_or(after);
    text.parse().map_err(|_| ApiError::InvalidQuery {
        what: "after: expected the id of an event".to_owned(),
    })
}

/// Whether messages lie between the page's end and the messages that were read.
fn misses_messages(page: &runtime::ThreadPage, after: Seq) -> bool {
    // Positions count the events of a fork's ancestors too.
    let ancestors = page.last.0.saturating_sub(page.transcript.seq.0);
    page.more && after.0 + ancestors < page.first.0
}

/// The thread of a page.
struct ThreadPatches {
    conversation: Conversation,
    id: EventId,
}

impl ThreadPatches {
    /// The patches of a record.
    fn patches(&mut self, below: &Below, requests: Option<&Vec<CapabilityRequest>>) -> Vec<Patch> {
        let mut patches = Vec::new();
        let record = &below.followed.record;
        match below.path.last() {
            None => {
                self.id.position = below.followed.position;
                self.conversation.apply(record, &mut patches);
                if matches!(record.event, Event::ExecutionCreated { .. }) {
                    self.conversation.forget_earlier();
                }
            }
            Some(call) => self.conversation.apply_child(
                (&below.thread_id, &below.key),
                (&call.thread_id, &call.tool_call_id),
                record,
                &mut patches,
            ),
        }
        if let Some(requests) = requests {
            self.conversation
                .update_requests(requests.clone(), &mut patches);
        }
        patches
    }
}

/// Writes patches as frames. A page without a thread has none.
struct LivePage(Option<ThreadPatches>);

impl View<Sent> for LivePage {
    fn write(&mut self, sent: &Sent, out: &mut FrameBuffer) -> ControlFlow<()> {
        match sent {
            Sent::Patches(patches) => self.frame(patches, out),
            Sent::Record(below, requests) => {
                let page = self.0.as_mut();
                let patches = page.map(|page| page.patches(below, requests.as_ref()));
                let patches = patches.unwrap_or_default();
                if !patches.is_empty() {
                    self.frame(&patches, out);
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn fail(&mut self, error: &ApiError, out: &mut String) {
        fail_page(error, out);
    }
}

/// Writes the error that ends the stream of a page.
pub(super) fn fail_page(error: &ApiError, out: &mut String) {
    let failure = error.failure();
    let data = json!({"code": failure.code, "message": failure.message});
    interop::sse::write_named("refused", data, out);
}

impl LivePage {
    fn frame(&self, patches: &[Patch], out: &mut FrameBuffer) {
        if let Some(page) = &self.0 {
            interop::sse::write_id(page.id, out);
        }
        interop::sse::write_named("patch", write_patches(patches), out);
    }
}
