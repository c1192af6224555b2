//! The outputs of a client's tools, for a waiting run.

use super::find;
use super::lookup;
use super::stream::RunView;
use crate::aitp::{BodyPointers, MessagePost};
use crate::body::PathOf;
use crate::error::{ApiError, ErrorBody};
use crate::idempotency::KeyedBody;
use crate::state::Api;
use crate::threads::{NamedThread, ThreadRef, answered};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use interop::threads::{RequestError, Run, RunStream, SubmitToolOutputs};
use jiff::Timestamp;
use runtime::{Accepted, AnswerRequest, RequestToken, RuntimeError};
use serde_json::Value;

/// Posts the outputs of a run's pending calls; the run continues.
///
/// There must be an output for each pending call. With `"stream": true` the response streams the run's
/// events.
#[utoipa::path(post, path = "/v1/threads/{thread_id}/runs/{run_id}/submit_tool_outputs", operation_id = "openaiSubmitToolOutputs", tag = "threads-api", security(("key" = [])),
    params(("thread_id" = String, Path), ("run_id" = String, Path), ("idempotency-key" = Option<String>, Header)), request_body = Object,
    responses((status = 200, content((Object = "application/json"), (String = "text/event-stream"))), (status = "default", body = ErrorBody)))]
pub(super) async fn submit(
    State(api): State<Api>,
    named: NamedThread,
    PathOf((_thread, run_id)): PathOf<(String, String)>,
    KeyedBody(body, idempotency): KeyedBody<Value>,
) -> Result<Response, ApiError> {
    let found = find(&api, &named).await?;
    // The run's object has what it was begun with.
    found.caller().check_read()?;
    let asked = SubmitToolOutputs::read(&body)?;
    let token = idempotency.token("threads.outputs")?;
    let open = asked
        .stream
        .then(|| api.open_stream(found.caller()))
        .transpose()?;
    let _turn = api.turns().of(found.id()).await;
    let (run, accepted) = match answered(found.runtime(), found.id(), token.as_ref()).await? {
        Some(accepted) => {
            let run = lookup::run_at(&found, &run_id, accepted.after).await?;
            (run, accepted)
        }
        None => write_outputs(&api, &found, &run_id, asked, token).await?,
    };
    let Some(open) = open else {
        return Ok(Json(run.as_queued_again()).into_response());
    };
    let stream = RunStream::continuing(found.id().as_str(), run, accepted.item_id);
    RunView(stream).response(&found, accepted.after, open).await
}

/// Posts the outputs, and returns the run in its state before them.
async fn write_outputs(
    api: &Api,
    found: &ThreadRef,
    run_id: &str,
    asked: SubmitToolOutputs,
    token: Option<RequestToken>,
) -> Result<(Run, Accepted), ApiError> {
    let runtime = api.runtime(found.tenant());
    let (run, now) = (lookup::run(found, run_id).await?, Timestamp::now());
    let item = asked.item(&runtime.mint(), &run, now)?;
    let request = AnswerRequest {
        tenant: found.tenant().clone(),
        key: found.key().to_owned(),
        item,
        run: continues(found, &run, now).await?,
        token,
    };
    let speech = MessagePost::new(api, found.caller());
    let place = |_| BodyPointers::text("/tool_outputs");
    match speech.answer(request, (None, None), place).await {
        Ok(accepted) => Ok((run, accepted)),
        // Somebody else was faster.
        Err(RuntimeError::Rejected(rejected)) => {
            let status = lookup::run(found, run_id).await?.status(Timestamp::now());
            tracing::debug!(%rejected, "outputs that nobody waits for any more");
            Err(RequestError::NotWaiting { status }.into())
        }
        Err(error) => Err(error.into()),
    }
}

/// The options of the continuation: those of the run, with the rest of its time.
async fn continues(
    found: &ThreadRef,
    run: &Run,
    now: Timestamp,
) -> Result<Option<runtime::Run>, ApiError> {
    let (open, _) = found.open_calls().await?;
    let (Some(open), Some(ends)) = (open, run.object(now).expires_at) else {
        return Ok(None);
    };
    let left = ends.saturating_sub(now.as_second()).max(1);
    let left = u64::try_from(left)
        .unwrap_or_default()
        .saturating_mul(1_000);
    let began = runtime::continued_run(open.execution.run.as_ref());
    Ok(Some(runtime::Run {
        timeout_ms: Some(began.timeout_ms.map_or(left, |limit| limit.min(left))),
        ..began
    }))
}
