//! Runs: starting, reading, cancelling.

mod started;

use super::find;
use super::threads::{items, known, parent, thread_view};
use super::{Pairs, assistants, attach, lookup, message_pointers, notes};
use crate::aitp::{BodyPointers, MessagePost};
use crate::auth::Caller;
use crate::body::{OptionalBody, PathOf, Query};
use crate::error::openai::Worded;
use crate::error::{ApiError, ErrorBody};
use crate::idempotency::KeyedBody;
use crate::state::{Api, OpenStream};
use crate::threads::{NamedThread, ThreadRef, answered, check_new_key, id_for};
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use futures_util::FutureExt as _;
use interop::ids::{RUN, THREAD};
use interop::threads::{
    Assistant, CreateRun, CreateThread, CreateThreadAndRun, List, RequestError, Run, RunObject,
    ThreadObject, metadata_of, trigger,
};
use jiff::Timestamp;
use runtime::{
    Accepted, NewThreadRequest, OptionsRefused, Policy, ReactRequest, RequestToken, RuntimeError,
};
use serde_json::Value;
use started::run_events;
use std::time::Duration;
use timeline::{Command, Interruption};

/// A run to start.
struct Begin {
    asked: CreateRun,
    assistant: Assistant,
    params: Value,
    /// Bytes of the attachments of its messages.
    n_bytes: u64,
    token: Option<RequestToken>,
}

/// Lists the runs, newest first unless `order=asc`.
#[utoipa::path(get, path = "/v1/threads/{thread_id}/runs", operation_id = "openaiListRuns", tag = "threads-api", security(("key" = [])),
    params(("thread_id" = String, Path), ("limit" = Option<u32>, Query), ("order" = Option<String>, Query), ("after" = Option<String>, Query), ("before" = Option<String>, Query)),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn list(
    State(api): State<Api>,
    named: NamedThread,
    Query(query): Query<Pairs>,
) -> Result<Json<List<RunObject>>, ApiError> {
    let found = find(&api, &named).await?;
    lookup::runs(&found, &query).await.map(Json)
}

/// Starts a run: an assistant answers the thread.
///
/// With `"stream": true` the response streams the run's events until the run ends or waits for its
/// client. Refused while another run of the thread is active.
#[utoipa::path(post, path = "/v1/threads/{thread_id}/runs", operation_id = "openaiCreateRun", tag = "threads-api", security(("key" = [])),
    params(("thread_id" = String, Path), ("idempotency-key" = Option<String>, Header)), request_body = Object,
    responses((status = 200, content((Object = "application/json"), (String = "text/event-stream"))), (status = "default", body = ErrorBody)))]
pub(super) async fn create(
    State(api): State<Api>,
    named: NamedThread,
    KeyedBody(body, idempotency): KeyedBody<Value>,
) -> Result<Response, ApiError> {
    let found = find(&api, &named).await?;
    let asked = CreateRun::read(&body)?;
    let token = idempotency.token("threads.runs")?;
    let open = opened(&api, found.caller(), &asked)?;
    if let Some(first) = answered(found.runtime(), found.id(), token.as_ref()).await? {
        return run_events(&found, None, (first, open)).boxed().await;
    }
    let begin = Begin::of(&api, found.caller(), asked, token)
        .boxed()
        .await?;
    begin.on(&api, found, None, (body, open)).boxed().await
}

/// Creates a thread and starts a run on it.
#[utoipa::path(post, path = "/v1/threads/runs", operation_id = "openaiCreateThreadAndRun", tag = "threads-api", security(("key" = [])),
    params(("idempotency-key" = Option<String>, Header)), request_body = Object,
    responses((status = 200, content((Object = "application/json"), (String = "text/event-stream"))), (status = "default", body = ErrorBody)))]
pub(super) async fn create_with_thread(
    State(api): State<Api>,
    caller: Caller,
    KeyedBody(body, idempotency): KeyedBody<Value>,
) -> Result<Response, ApiError> {
    let CreateThreadAndRun { thread, run } = CreateThreadAndRun::read(&body)?;
    check_new_key(&caller, None, "")?;
    let token = idempotency.token("threads.with_run")?;
    let key = token.as_deref();
    let key = key.map(|token| id_for(&api, &[caller.tenant.as_str()], Some(token)));
    // Before the thread is made: who can't be answered has changed nothing.
    let asked = CreateRun {
        additional_messages: thread.messages.clone(),
        ..run
    };
    let open = opened(&api, &caller, &asked)?;
    let known = known(&api, &caller, key.as_deref()).await?;
    if let Some(found) = &known
        && let Some(first) =
            answered(api.runtime(&caller.tenant), found.id(), token.as_ref()).await?
    {
        let object = thread_view(&api, found).await?;
        return run_events(found, Some(object), (first, open)).boxed().await;
    }
    let begin = Begin::of(&api, &caller, asked, token).boxed().await?;
    let found = match known {
        Some(found) => found,
        None => {
            begin
                .made(&api, &caller, key, &thread, &body)
                .boxed()
                .await?
        }
    };
    let object = thread_view(&api, &found).await?;
    begin
        .on(&api, found, Some(object), (body, open))
        .boxed()
        .await
}

/// Opens the stream for a run's events, if the request wants one.
fn opened(api: &Api, caller: &Caller, asked: &CreateRun) -> Result<Option<OpenStream>, ApiError> {
    asked.stream.then(|| api.open_stream(caller)).transpose()
}

impl Begin {
    async fn of(
        api: &Api,
        caller: &Caller,
        mut asked: CreateRun,
        token: Option<RequestToken>,
    ) -> Result<Self, ApiError> {
        let (tenant, is_restricted) = (&caller.tenant, caller.is_restricted());
        let messages = &mut asked.additional_messages;
        let n_bytes = attach::attach(api, tenant, is_restricted, messages).await?;
        let assistant = assistants::find(api, tenant, is_restricted, &asked.assistant_id).await?;
        let limit = api.app().config().server.run_timeout;
        asked.time = asked.time.min(limit.unwrap_or(Duration::MAX));
        let options = asked.options(&assistant);
        for loss in &options.losses {
            tracing::debug!(
                at = loss.pointer,
                what = loss.what,
                "a run asks for what no agent does"
            );
        }
        let params = serde_json::to_value(&options.value).map_err(RuntimeError::from)?;
        let agent = assistant.agent.as_deref();
        let checked = api.app().check_params(agent, Some(&params));
        checked.map_err(|refused| refusal(&refused))?;
        Ok(Self {
            asked,
            assistant,
            params,
            n_bytes,
            token,
        })
    }

    /// Creates the run's thread, after checking its first messages.
    async fn made(
        &self,
        api: &Api,
        caller: &Caller,
        key: Option<String>,
        thread: &CreateThread,
        body: &Value,
    ) -> Result<ThreadRef, ApiError> {
        let fork = parent(api, caller, thread).await?;
        let (metadata, speech) = (thread.stored(), MessagePost::new(api, caller));
        let said = items(api, self.asked.additional_messages.clone()).into_iter();
        let said = said.map(|item| (Timestamp::now(), Command::Record { item }));
        let mut said: Vec<_> = said.collect();
        let place = |n| message_pointers(&format!("/thread/messages/{n}"), body);
        speech
            .begin(metadata.clone(), fork.as_ref(), &mut said, place)
            .await?;
        let new = NewThreadRequest {
            key,
            metadata,
            fork,
            ..NewThreadRequest::default()
        };
        let runtime = api.runtime(&caller.tenant);
        let (row, _) = runtime.get_or_create(&caller.tenant, new).await?;
        ThreadRef::authorise(runtime, caller, row)
    }

    /// Starts the run on a thread, and makes the response; `object` is the thread that was created for
    /// it.
    async fn on(
        self,
        api: &Api,
        found: ThreadRef,
        object: Option<ThreadObject>,
        (body, open): (Value, Option<OpenStream>),
    ) -> Result<Response, ApiError> {
        let list = match object {
            Some(_) => "/thread/messages",
            None => "/additional_messages",
        };
        let own = api.clone();
        let accepted = api.runtime(found.tenant()).run_to_completion(async move {
            let place = |n| message_pointers(&format!("{list}/{n}"), &body);
            let accepted = self.accepted(&own, &found, place).await?;
            Ok::<_, ApiError>((accepted, found))
        });
        let (accepted, found) = accepted.await?;
        run_events(&found, object, (accepted, open)).boxed().await
    }

    /// Starts the run, and counts its attachments. Both happen even if the client disconnects.
    async fn accepted(
        self,
        api: &Api,
        found: &ThreadRef,
        place: impl Fn(usize) -> BodyPointers,
    ) -> Result<Accepted, ApiError> {
        let runtime = api.runtime(found.tenant());
        let before = items(api, self.asked.additional_messages);
        let last = before.last().map(|item| item.id.clone());
        let item = trigger(&runtime.mint(), last.as_ref());
        let react = ReactRequest {
            before,
            run: runtime::Run {
                agent: self.assistant.agent,
                timeout_ms: u64::try_from(self.asked.time.as_millis()).ok(),
                params: Some(self.params),
                ..runtime::Run::default()
            },
            policy: Policy::Reject,
            must_exist: true,
            token: self.token,
            ..ReactRequest::new(found.tenant().clone(), found.key(), item)
        };
        let (tenant, thread) = (found.tenant(), found.id());
        let _turn = api.turns().of(thread).await;
        // The first of these may have come meanwhile; its run may be active.
        if let Some(first) = answered(runtime, found.id(), react.token.as_ref()).await? {
            return Ok(first);
        }
        lookup::check_free(found, Run::check_run).await?;
        let brought = attach::check(api, tenant, thread, self.n_bytes).await?;
        let speech = MessagePost::new(api, found.caller());
        let accepted = match speech.react(react, None, place).await {
            Err(RuntimeError::Busy(execution)) => {
                return Err(RequestError::ActiveRun {
                    thread: THREAD.write(found.id().as_str()),
                    run: RUN.write(execution.as_str()),
                }
                .into());
            }
            accepted => accepted?,
        };
        if let Some(brought) = brought {
            brought.count(api, tenant, accepted.after.next()).await?;
        }
        Ok(accepted)
    }
}

fn refusal(refused: &OptionsRefused) -> ApiError {
    match refused {
        OptionsRefused::UnknownModel(model) => assistants::unknown_model(model),
        OptionsRefused::Tool(_) | OptionsRefused::Unreadable(_) => {
            Worded::invalid(Some("tools"), Some("invalid_value"), refused.to_string()).into()
        }
        OptionsRefused::Unsupported(_) => {
            Worded::invalid(None, Some("invalid_value"), refused.to_string()).into()
        }
        OptionsRefused::UnknownTool(_) => {
            let param = Some("tool_choice");
            Worded::invalid(param, Some("invalid_value"), refused.to_string()).into()
        }
    }
}

/// Reads a run.
#[utoipa::path(get, path = "/v1/threads/{thread_id}/runs/{run_id}", operation_id = "openaiReadRun", tag = "threads-api", security(("key" = [])),
    params(("thread_id" = String, Path), ("run_id" = String, Path)),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn read(
    State(api): State<Api>,
    named: NamedThread,
    PathOf((_thread, run_id)): PathOf<(String, String)>,
) -> Result<Json<RunObject>, ApiError> {
    let found = find(&api, &named).await?;
    let run = lookup::run(&found, &run_id).await?;
    Ok(Json(run.object(Timestamp::now())))
}

/// Changes the metadata of a run.
#[utoipa::path(post, path = "/v1/threads/{thread_id}/runs/{run_id}", operation_id = "openaiModifyRun", tag = "threads-api", security(("key" = [])),
    params(("thread_id" = String, Path), ("run_id" = String, Path)), request_body = Option<Object>,
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn modify(
    State(api): State<Api>,
    named: NamedThread,
    PathOf((_thread, run_id)): PathOf<(String, String)>,
    OptionalBody(body): OptionalBody<Option<Value>>,
) -> Result<Json<RunObject>, ApiError> {
    let found = find(&api, &named).await?;
    found.caller().check_read()?;
    let mut run = lookup::run(&found, &run_id).await?;
    let body = body.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    if let Some(metadata) = metadata_of(&body, false)? {
        notes::put(&found, run.id(), &metadata).await?;
        run.set_metadata(metadata);
    }
    Ok(Json(run.object(Timestamp::now())))
}

/// Cancels a run; refused if it is over. Complete steps remain.
#[utoipa::path(post, path = "/v1/threads/{thread_id}/runs/{run_id}/cancel", operation_id = "openaiCancelRun", tag = "threads-api", security(("key" = [])),
    params(("thread_id" = String, Path), ("run_id" = String, Path)), request_body = Option<Object>,
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn cancel(
    State(api): State<Api>,
    named: NamedThread,
    PathOf((_thread, run_id)): PathOf<(String, String)>,
) -> Result<Json<RunObject>, ApiError> {
    let found = find(&api, &named).await?;
    found.caller().check_read()?;
    let _turn = api.turns().of(found.id()).await;
    // It may come to wait, or be over, between the look and the deed.
    let run = lookup::run(&found, &run_id).await?;
    run.check_cancel(Timestamp::now())?;
    let last = run.executions().last();
    let stopped = found.cancel(last, Interruption::USER_CANCELLED).await;
    match stopped {
        Ok(_) | Err(RuntimeError::NotRunning(_)) => {}
        Err(error) => return Err(error.into()),
    }
    let run = lookup::run(&found, &run_id).await?;
    Ok(Json(run.object(Timestamp::now())))
}
