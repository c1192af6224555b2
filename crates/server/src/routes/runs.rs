//! Runs: the executions that respond to messages.

use super::page_query::PieceQuery;
use super::run_times::times_of;
use super::threads::{Cancel, CancelledView, reason_of};
use super::view::RunView;
use crate::body::{OptionalBody, PathOf, Query};
use crate::error::{ApiError, ErrorBody};
use crate::state::Api;
use crate::threads::ThreadKey;
use axum::Json;
use axum::extract::State;
use interop::ag_ui::was_cut_off;
use interop::run::ExecutionTimes;
use runtime::{Filter, Landmark, PageRequest, RuntimeError};
use serde::Serialize;
use timeline::{Entry, ExecutionId, Item, Reaction, Transcript};
use utoipa::ToSchema;

/// The runs of a thread, oldest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct RunList {
    /// The runs.
    runs: Vec<RunView>,
    /// The cursor of the previous page, for `before`; absent if this page begins with the thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<u64>,
}

fn reactions(transcript: Transcript) -> impl Iterator<Item = Reaction> {
    let entries = transcript.entries.into_iter();
    entries.filter_map(|entry| match entry {
        Entry::Reaction(reaction) => Some(reaction),
        Entry::Item(_) => None,
    })
}

/// Lists the runs of a thread, or of a page of it.
#[utoipa::path(get, path = "/threads/{key}/runs", operation_id = "listRuns", tag = "runs", security(("key" = [])), params(("key" = String, Path), PieceQuery),
    responses((status = 200, body = RunList), (status = "default", body = ErrorBody)))]
pub(crate) async fn list(
    thread: ThreadKey,
    Query(query): Query<PieceQuery>,
) -> Result<Json<RunList>, ApiError> {
    let piece = query.read(&thread, Filter::Facts).await?;
    Ok(Json(RunList {
        runs: reactions(piece.transcript).map(RunView::brief).collect(),
        before: piece.before,
    }))
}

/// Reads a run with its steps, their times and the tokens used.
#[utoipa::path(get, path = "/threads/{key}/runs/{executionId}", operation_id = "readRun", tag = "runs", security(("key" = [])),
    params(("key" = String, Path), ("executionId" = String, Path)),
    responses((status = 200, body = RunView), (status = "default", body = ErrorBody)))]
pub(crate) async fn read(
    State(api): State<Api>,
    thread: ThreadKey,
    PathOf((_thread, execution)): PathOf<(String, String)>,
) -> Result<Json<RunView>, ApiError> {
    Ok(Json(run(&api, &thread, &execution.into()).await?))
}

/// A run with its steps, their times and the tokens used.
pub(crate) async fn run(
    api: &Api,
    thread: &ThreadKey,
    id: &ExecutionId,
) -> Result<RunView, ApiError> {
    let ReadRun {
        reaction,
        times,
        trigger,
    } = ReadRun::of(thread, id).await?;
    Ok(RunView::whole(api, reaction, times, trigger.created_at))
}

/// A run as the log has it.
pub(super) struct ReadRun {
    /// Its execution with its steps.
    pub(super) reaction: Reaction,
    /// The times of its attempts, calls and restarts.
    pub(super) times: ExecutionTimes,
    /// The item that it responds to.
    pub(super) trigger: Item,
}

impl ReadRun {
    /// Reads a run. Costs time proportional to its records.
    pub(super) async fn of(thread: &ThreadKey, id: &ExecutionId) -> Result<Self, ApiError> {
        let read = |filter| {
            let piece = PageRequest::Execution(id.clone());
            thread.page(piece, filter)
        };
        let mut transcript = read(Filter::Facts).await?.transcript;
        if was_cut_off(&transcript) {
            transcript = read(Filter::All).await?.transcript;
        }
        let found = reactions(transcript).find(|reaction| reaction.execution.id == *id);
        let reaction = found.ok_or(ApiError::RunNotFound)?;
        let times = times_of(thread, id).await?;
        let trigger = thread.item(&reaction.execution.trigger_item_id).await?;
        Ok(Self {
            reaction,
            times,
            trigger,
        })
    }
}

/// Stops a run, if it runs; the next queued message starts.
#[utoipa::path(post, path = "/threads/{key}/runs/{executionId}/cancel", operation_id = "cancelRun", tag = "runs", security(("key" = [])),
    params(("key" = String, Path), ("executionId" = String, Path)), request_body = Option<Cancel>,
    responses((status = 200, body = CancelledView), (status = "default", body = ErrorBody)))]
pub(crate) async fn cancel(
    thread: ThreadKey,
    PathOf((_thread, execution)): PathOf<(String, String)>,
    OptionalBody(cancel): OptionalBody<Cancel>,
) -> Result<Json<CancelledView>, ApiError> {
    let id = ExecutionId::from(execution);
    match thread.cancel(Some(&id), reason_of(&cancel)).await {
        Ok(cancelled) => Ok(Json(cancelled.into())),
        Err(error @ RuntimeError::NotRunning(_)) => {
            let run = Landmark::Execution(&id);
            match thread.position_of(run).await? {
                Some(_) => Err(error.into()),
                None => Err(ApiError::RunNotFound),
            }
        }
        Err(error) => Err(error.into()),
    }
}
