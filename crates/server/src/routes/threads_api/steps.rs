//! The steps of a run.

use super::find;
use super::{Pairs, lookup, not_found};
use crate::body::{PathOf, Query};
use crate::error::{ApiError, ErrorBody};
use crate::state::Api;
use crate::threads::NamedThread;
use axum::Json;
use axum::extract::State;
use interop::threads::{List, ObjectKind, RunStepId, StepObject};
use jiff::Timestamp;

/// Lists the steps of a run, newest first unless `order=asc`.
#[utoipa::path(get, path = "/v1/threads/{thread_id}/runs/{run_id}/steps", operation_id = "openaiListRunSteps", tag = "threads-api", security(("key" = [])),
    params(("thread_id" = String, Path), ("run_id" = String, Path), ("limit" = Option<u32>, Query), ("order" = Option<String>, Query),
        ("after" = Option<String>, Query), ("before" = Option<String>, Query)),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn list(
    State(api): State<Api>,
    named: NamedThread,
    PathOf((_thread, run_id)): PathOf<(String, String)>,
    Query(query): Query<Pairs>,
) -> Result<Json<List<StepObject>>, ApiError> {
    let found = find(&api, &named).await?;
    let run = lookup::run(&found, &run_id).await?;
    lookup::steps(&run, &query).map(Json)
}

/// Reads a step of a run.
#[utoipa::path(get, path = "/v1/threads/{thread_id}/runs/{run_id}/steps/{step_id}", operation_id = "openaiReadRunStep", tag = "threads-api", security(("key" = [])),
    params(("thread_id" = String, Path), ("run_id" = String, Path), ("step_id" = String, Path)),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn read(
    State(api): State<Api>,
    named: NamedThread,
    PathOf((_thread, run_id, step_id)): PathOf<(String, String, String)>,
) -> Result<Json<StepObject>, ApiError> {
    let found = find(&api, &named).await?;
    let run = lookup::run(&found, &run_id).await?;
    let step = run.step(&RunStepId::read(&step_id), Timestamp::now());
    let step = step.ok_or_else(|| not_found(ObjectKind::RunStep, &step_id))?;
    Ok(Json(step))
}
