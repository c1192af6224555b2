//! The runs of a thread.

use super::super::inherited::own_seq;
use super::super::pages::PageParts;
use super::super::reply::page;
use crate::auth::Caller;
use crate::body::Query;
use crate::error::ApiError;
use crate::state::Api;
use crate::threads::ThreadKey;
use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use runtime::{Filter, Landmark, PageRequest, Position};
use serde::Deserialize;
use timeline::{Entry, ExecutionId, Item, Reaction};
use web::{ConsoleSection, ThreadSection, TimelinePage, TimelineRun};

/// Number of messages whose runs are on a page.
const MESSAGES: usize = 25;

/// The page of the timeline.
#[derive(Deserialize)]
pub(in crate::routes::web) struct TimelineQuery {
    /// The cursor of the page before.
    before: Option<u64>,
}

/// The page of a thread's runs: the newest ones, or those before a cursor.
pub(in crate::routes::web) async fn timeline(
    State(api): State<Api>,
    caller: Caller,
    thread: ThreadKey,
    Query(query): Query<TimelineQuery>,
) -> Result<Response, ApiError> {
    let found = thread.find().await?;
    let request = PageRequest::Before {
        before: query.before.map_or(Position::END, Position),
        n: MESSAGES,
    };
    let read = thread.page(request, Filter::Facts).await?;
    let runs = reactions(read.transcript.entries);
    let landmarks: Vec<Vec<Landmark<'_>>> = runs
        .iter()
        .map(|(_, run)| vec![Landmark::Execution(&run.execution.id)])
        .collect();
    let positions = thread.positions_of(&landmarks).await?;
    let inherited = thread.inherited_events().await?;
    let open = open_execution(&thread).await?;
    let runs = runs.into_iter().zip(positions);
    let runs: Vec<TimelineRun> = runs
        .map(|((trigger, reaction), position)| TimelineRun {
            is_waiting: open.as_ref() == Some(&reaction.execution.id),
            seq: position.and_then(|position| own_seq(position, inherited)),
            reaction,
            trigger,
        })
        .collect();
    let parts = PageParts::read(&api, &caller).await?;
    let title = found.row().thread.title.as_deref();
    let place = ConsoleSection::Thread {
        key: thread.key(),
        title,
        section: ThreadSection::Timeline,
    };
    let api_path = format!("/api/v1/threads/{}/runs", web::path_segment(thread.key()));
    let shown = TimelinePage {
        frame: parts.console(title.unwrap_or(thread.key()), place, Some(&api_path)),
        thread_key: thread.key(),
        runs: &runs,
        before: read.more.then_some(read.first.0),
        is_last: query.before.is_none(),
        now: Timestamp::now(),
    };
    Ok(page(shown.html()))
}

/// The runs of a page with their triggers.
fn reactions(entries: Vec<Entry>) -> Vec<(Option<Item>, Reaction)> {
    let mut items: Vec<Item> = Vec::new();
    let mut runs = Vec::new();
    for entry in entries {
        match entry {
            Entry::Item(item) => items.push(item),
            Entry::Reaction(reaction) => {
                let id = &reaction.execution.trigger_item_id;
                let trigger = items.iter().rev().find(|item| item.id == *id);
                runs.push((trigger.cloned(), reaction));
            }
        }
    }
    runs
}

/// The execution whose calls wait for answers.
pub(super) async fn open_execution(thread: &ThreadKey) -> Result<Option<ExecutionId>, ApiError> {
    let (open, _) = thread.open_calls().await?;
    Ok(open.map(|open| open.execution.id))
}
