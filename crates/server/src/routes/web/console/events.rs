//! The log of a thread.

use super::super::pages::PageParts;
use super::super::reply::page;
use crate::auth::Caller;
use crate::body::Query;
use crate::error::ApiError;
use crate::event_id::Incarnation;
use crate::sse::record_json;
use crate::state::Api;
use crate::threads::ThreadKey;
use axum::extract::State;
use axum::response::Response;
use runtime::Logged;
use serde::Deserialize;
use timeline::{EventType, Seq};
use web::{
    ConsoleSection, EventDetail, EventSelection, EventTable, EventsPage, TableChange, ThreadSection,
};

/// Number of rows on a page.
const ROWS: usize = 200;
/// Maximum number of events that are read for a page.
const MAX_READ: u64 = 2_000;
/// Number of events that are read at once.
const AT_ONCE: u64 = 250;

/// Which events are shown, and how.
#[derive(Deserialize)]
pub(in crate::routes::web) struct EventsForm {
    #[serde(default)]
    view: String,
    #[serde(default, rename = "type")]
    event_type: String,
    /// Only events after this one.
    after: Option<u64>,
    /// Only events before this one.
    before: Option<u64>,
}

/// The page of a thread's log: its newest events, or those before or after one.
pub(in crate::routes::web) async fn events(
    State(api): State<Api>,
    caller: Caller,
    thread: ThreadKey,
    Query(form): Query<EventsForm>,
) -> Result<Response, ApiError> {
    let selection = selection(&form.view, &form.event_type)?;
    let found = thread.find().await?;
    let mut tail = found.row().tail.0;
    let (table, range) = match (form.after, form.before) {
        (Some(_), Some(_)) => {
            let what = "expected either after or before".to_owned();
            return Err(ApiError::InvalidQuery { what });
        }
        (Some(after), None) if after > tail => {
            let what = format!("after is {after}, and the last event is {tail}");
            return Err(ApiError::InvalidQuery { what });
        }
        (Some(after), None) => forwards(&thread, selection, after).await?,
        (None, Some(before)) => {
            let end = before.min(tail.saturating_add(1));
            backwards(&thread, selection, end).await?
        }
        (None, None) => {
            // A reading beyond the end has the chunks that clients have seen of a running answer.
            let newest = read(&thread, tail, u64::MAX).await?;
            tail = newest.last().map_or(tail, |last| last.record.seq.0);
            backwards(&thread, selection, tail.saturating_add(1)).await?
        }
    };
    let parts = PageParts::read(&api, &caller).await?;
    let title = found.row().thread.title.as_deref();
    let place = ConsoleSection::Thread {
        key: thread.key(),
        title,
        section: ThreadSection::Events,
    };
    let (after, n) = (
        range.0.saturating_sub(1),
        range.1.saturating_sub(range.0).saturating_add(1),
    );
    let key = web::path_segment(thread.key());
    let api_path = format!("/api/v1/threads/{key}/events?after={after}&limit={n}");
    let incarnation = Incarnation::of(found.id()).to_string();
    let shown = EventsPage {
        frame: parts.console(title.unwrap_or(thread.key()), place, Some(&api_path)),
        thread_key: thread.key(),
        table: &table,
        range,
        tail,
        incarnation: &incarnation,
    };
    Ok(page(shown.html()))
}

/// Reads a view and a type; empty texts are the defaults.
pub(super) fn selection(view: &str, event_type: &str) -> Result<EventSelection, ApiError> {
    let detail = match view {
        "" => EventDetail::default(),
        _ => EventDetail::from_name(view).ok_or_else(|| ApiError::InvalidQuery {
            what: format!("view is {view:?}: expected compact, full or raw"),
        })?,
    };
    let event_type = match event_type {
        "" => None,
        name => Some(
            EventType::from_name(name).ok_or_else(|| ApiError::InvalidQuery {
                what: format!("type is {name:?}: expected the type of an event"),
            })?,
        ),
    };
    Ok(EventSelection { detail, event_type })
}

/// Adds an event to a table.
fn push(table: &mut EventTable, logged: &Logged) -> TableChange {
    table.push(&logged.record, || shown_json(logged))
}

/// The event's JSON, as clients may see it.
pub(super) fn shown_json(logged: &Logged) -> String {
    let mut json = String::new();
    record_json(logged, &mut json);
    json
}

/// A page with its first and its last event.
type ReadEvents = (EventTable, (u64, u64));

/// Reads the events between two, the second one included; not more than `AT_ONCE`.
async fn read(thread: &ThreadKey, after: u64, last: u64) -> Result<Vec<Logged>, ApiError> {
    let n = last.saturating_sub(after).min(AT_ONCE);
    let n = usize::try_from(n).unwrap_or(usize::MAX);
    Ok(thread.read(Seq(after), n).await?)
}

/// The page after an event.
async fn forwards(
    thread: &ThreadKey,
    selection: EventSelection,
    after: u64,
) -> Result<ReadEvents, ApiError> {
    let mut table = EventTable::new(thread.key(), selection);
    let (mut last, end) = (after, after.saturating_add(MAX_READ));
    loop {
        let page = read(thread, last, end).await?;
        for logged in &page {
            if table.n_rows() == ROWS && table.begins_row(&logged.record.event) {
                return Ok((table, (after.saturating_add(1), last)));
            }
            push(&mut table, logged);
            last = logged.record.seq.0;
        }
        if page.is_empty() || last >= end {
            return Ok((table, (after.saturating_add(1), last)));
        }
    }
}

/// The page before an event: the events whose rows fill it, counted from its end.
async fn backwards(
    thread: &ThreadKey,
    selection: EventSelection,
    before: u64,
) -> Result<ReadEvents, ApiError> {
    let end = before.saturating_sub(1);
    let mut counted = EventTable::new(thread.key(), selection);
    // The newest first.
    let mut found: Vec<Logged> = Vec::new();
    let mut after = end;
    'pages: while after > end.saturating_sub(MAX_READ) {
        let page = read(thread, after.saturating_sub(AT_ONCE), after).await?;
        if page.is_empty() {
            break;
        }
        for logged in page.into_iter().rev() {
            if counted.n_rows() == ROWS && counted.begins_row(&logged.record.event) {
                break 'pages;
            }
            counted.push(&logged.record, String::new);
            after = logged.record.seq.0.saturating_sub(1);
            found.push(logged);
        }
    }
    let last = found.first().map_or(after, |newest| newest.record.seq.0);
    let mut table = EventTable::new(thread.key(), selection);
    for logged in found.iter().rev() {
        push(&mut table, logged);
    }
    Ok((table, (after.saturating_add(1), last)))
}
