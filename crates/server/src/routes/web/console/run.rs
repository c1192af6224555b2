//! The page of one run.

use super::super::inherited::own_seq;
use super::super::pages::PageParts;
use super::super::reply::page;
use super::timeline::open_execution;
use crate::auth::{Caller, Scope};
use crate::body::{PathOf, Query};
use crate::error::ApiError;
use crate::routes::runs::ReadRun;
use crate::state::Api;
use crate::threads::{ThreadKey, ThreadRef, key_of};
use axum::extract::State;
use axum::response::{Redirect, Response};
use jiff::Timestamp;
use runtime::{Filter, Landmark, PageRequest};
use serde::Deserialize;
use timeline::{Entry, ExecutionId, Reaction, Record, Seq};
use web::{ConsoleRun, ConsoleSection, EventPoint, RunContinuation, RunPage, ThreadSection};

/// The point at which a reader looks.
#[derive(Deserialize)]
pub(in crate::routes::web) struct RunQuery {
    /// An event of the thread.
    at: Option<u64>,
}

/// The page of a run.
pub(in crate::routes::web) async fn run(
    State(api): State<Api>,
    caller: Caller,
    thread: ThreadKey,
    PathOf((_thread, execution)): PathOf<(String, String)>,
    Query(query): Query<RunQuery>,
) -> Result<Response, ApiError> {
    let found = thread.find().await?;
    let id = ExecutionId::from(execution);
    let read = ReadRun::of(&thread, &id).await?;
    let place = thread.position_of(Landmark::Execution(&id)).await?;
    let inherited = thread.inherited_events().await?;
    let seq = place.and_then(|position| own_seq(position, inherited));
    let continuation = continuation(&thread, &read.reaction).await?;
    let is_waiting = open_execution(&thread).await?.as_ref() == Some(&id);
    let tail = found.row().tail.0;
    let record = match seq {
        Some(seq) => Some(record_at(&thread, query.at.unwrap_or(seq), tail).await?),
        None => None,
    };
    let may_write = caller.check_scope(Scope::Write).is_ok();
    let is_forkable = match &record {
        Some(record) if may_write => {
            let row = found.row().clone();
            let point = api
                .runtime(&caller.tenant)
                .fork_point(row, Some(record.seq))
                .await;
            point.is_ok()
        }
        Some(_) | None => false,
    };
    let parts = PageParts::read(&api, &caller).await?;
    let title = found.row().thread.title.as_deref();
    let key = web::path_segment(thread.key());
    let api_path = format!(
        "/api/v1/threads/{key}/runs/{}",
        web::path_segment(id.as_str())
    );
    let place = ConsoleSection::Thread {
        key: thread.key(),
        title,
        section: ThreadSection::Timeline,
    };
    let shown = RunPage {
        frame: parts.console(title.unwrap_or(thread.key()), place, Some(&api_path)),
        run: ConsoleRun {
            thread_key: thread.key(),
            reaction: &read.reaction,
            times: &read.times,
            trigger: &read.trigger,
            continuation: continuation.as_ref(),
            is_waiting,
            seq,
        },
        point: record.as_ref().map(|record| EventPoint {
            record,
            tail,
            is_forkable,
        }),
        may_write,
        now: Timestamp::now(),
    };
    Ok(page(shown.html()))
}

/// The run that continues a run whose agent handed over, or whose calls were answered.
async fn continuation(
    thread: &ThreadKey,
    reaction: &Reaction,
) -> Result<Option<RunContinuation>, ApiError> {
    let is_open = !reaction.open_calls().is_empty();
    if !is_open && !interop::run::hands_over(reaction) {
        return Ok(None);
    }
    let id = &reaction.execution.id;
    let run = PageRequest::Run(id.clone());
    let run = thread.page(run, Filter::Facts).await?;
    let reactions = run.transcript.entries.into_iter();
    let mut after = reactions
        .filter_map(|entry| match entry {
            Entry::Reaction(reaction) => Some(reaction.execution),
            Entry::Item(_) => None,
        })
        .skip_while(|execution| execution.id != *id)
        .skip(1);
    Ok(after.next().map(|execution| RunContinuation {
        execution_id: execution.id.as_str().to_owned(),
        created_at: execution.created_at,
    }))
}

/// The record of an event of the thread's own log.
async fn record_at(thread: &ThreadKey, at: u64, tail: u64) -> Result<Record, ApiError> {
    let beyond = || ApiError::InvalidQuery {
        what: format!("at is {at}: expected an event from 1 to {tail}"),
    };
    let before = at.checked_sub(1).ok_or_else(beyond)?;
    let read = thread.read(Seq(before), 1).await?;
    let logged = read.into_iter().next().ok_or_else(beyond)?;
    Ok(logged.record)
}

/// The runs of the thread with this id, such as that of a sub-agent.
pub(in crate::routes::web) async fn by_id(
    State(api): State<Api>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Result<Redirect, ApiError> {
    let found = ThreadRef::find_by_id(&api, &caller, &id.as_str().into()).await?;
    let found = found.ok_or(ApiError::UnknownRoute)?;
    let key = web::path_segment(key_of(found.row()));
    Ok(Redirect::to(&format!("/console/t/{key}")))
}
