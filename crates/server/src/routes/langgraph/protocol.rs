//! The streaming protocol of `LangChain`'s clients: commands, and the events of a thread.

use super::found;
use super::run::{Run, newest_first};
use super::start::begin;
use super::stream::{left_by, values_then};
use crate::auth::Caller;
use crate::body::JsonBody;
use crate::error::{ApiError, ErrorBody};
use crate::idempotency::KeyedBody;
use crate::sse::{self, FrameBuffer, View};
use crate::state::Api;
use crate::threads::{NamedThread, ThreadRef};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use interop::langgraph::{
    Answered, CommandError, ErrorKind, EventRequest, FrameId, Moment, ProtocolCommand,
    ProtocolEvent, ProtocolRun, RequestError, shown_id,
};
use interop::run::Selected;
use runtime::{Follow, FollowedRecord, Until};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use timeline::{Event, Execution, Seq};

/// Maximum number of runs that a resumed stream goes back.
const MAX_RUNS: usize = 64;

/// Runs a command: `run.start` starts a run, `input.respond` answers pending calls.
///
/// If the server refuses the command, the response has the status 200 and contains the error.
#[utoipa::path(post, path = "/threads/{thread_id}/commands", operation_id = "langgraphCommand", tag = "langgraph", security(("key" = [])),
    params(("thread_id" = String, Path), ("idempotency-key" = Option<String>, Header)), request_body = Object,
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn command(
    State(api): State<Api>,
    caller: Caller,
    named: NamedThread,
    KeyedBody(body, idempotency): KeyedBody<Value>,
) -> Result<Response, ApiError> {
    let command = match ProtocolCommand::read(&body) {
        Ok(command) => command,
        Err(error) if error.id.is_some() => return Ok(Json(error.to_json()).into_response()),
        Err(error) => return Err(RequestError::new(ErrorKind::Invalid, error.message).into()),
    };
    let ProtocolCommand { id, run } = command;
    if !run.makes_thread {
        // Nothing waits on a thread that is not there.
        found(&api, &caller, named.id()).await?;
    }
    // An answer may wait for what goes on with it.
    let open = run
        .is_resumed()
        .then(|| api.open_stream(&caller))
        .transpose()?;
    let asked = (*run, open.as_ref());
    let answer = match begin(&api, &caller, idempotency, Some(named.id()), asked).await {
        Ok(begun) => {
            let answered = Answered {
                id,
                run_id: begun.id.to_string(),
                after: FrameId::after(begun.after.0),
            };
            answered.to_json()
        }
        Err(ApiError::LangGraph(error)) => CommandError::of(Some(id), &error).to_json(),
        Err(error) => return Err(error),
    };
    Ok(Json(answer).into_response())
}

/// Streams the events of a thread, live. Starts with its last run, or after the event `since`.
#[utoipa::path(post, path = "/threads/{thread_id}/stream/events", operation_id = "langgraphStreamEvents", tag = "langgraph", security(("key" = [])),
    params(("thread_id" = String, Path)), request_body = Object,
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = "default", body = ErrorBody)))]
pub(super) async fn events(
    State(api): State<Api>,
    caller: Caller,
    named: NamedThread,
    JsonBody(body): JsonBody<Value>,
) -> Result<Response, ApiError> {
    let request = EventRequest::read(&body)?;
    let found = found(&api, &caller, named.id()).await?;
    let open = api.open_stream(&caller)?;
    let after = begins(&found, request.since).await?;
    let follow = found.follow(after, Until::Forever);
    let follow = follow.await?;
    Ok(sse::response(
        protocol_events(found, follow, request),
        Events,
        open,
    ))
}

/// The event after which a stream begins: the last one before the run that contains `since`, or before
/// the last run. Costs time proportional to the number of runs since.
async fn begins(found: &ThreadRef, since: Option<FrameId>) -> Result<Seq, ApiError> {
    let (_, tail) = found.state().await?;
    if since.is_some_and(|since| since.seq() > tail.0) {
        let what = "expected the seq of an event of this thread";
        return Err(RequestError::at("/since", what).into());
    }
    let (mut n_runs, mut begins) = (0, None);
    newest_first(found, |_, place| {
        let Some(place) = place else { return true };
        n_runs += 1;
        if since.is_none_or(|since| place.0 <= since.seq()) {
            begins = Some(Seq(place.0.saturating_sub(1)));
        }
        begins.is_none() && n_runs < MAX_RUNS
    })
    .await?;
    match (begins, since) {
        (Some(begins), _) => Ok(begins),
        (None, None) => Ok(tail),
        (None, Some(since)) if n_runs < MAX_RUNS => Ok(Seq(since.seq())),
        (None, Some(_)) => {
            let what = format!(
                "lies more than {MAX_RUNS} runs back: read the thread's state, and follow it from now on"
            );
            Err(RequestError::at("/since", what).into())
        }
    }
}

/// The protocol's events, made from the log. Values are read when they are needed.
fn protocol_events(
    found: ThreadRef,
    mut follow: Follow,
    request: EventRequest,
) -> BoxStream<'static, Result<Vec<ProtocolEvent>, ApiError>> {
    let told = async_stream::try_stream! {
        let mut current = None;
        while let Some(followed) = follow.next().await {
            let events = tell(&found, &request, &mut current, &followed?).await?;
            if !events.is_empty() {
                yield events;
            }
        }
    };
    Box::pin(told)
}

/// The events of a record; none for records between runs.
async fn tell(
    found: &ThreadRef,
    request: &EventRequest,
    current: &mut Option<ProtocolRun>,
    followed: &FollowedRecord,
) -> Result<Vec<ProtocolEvent>, ApiError> {
    let record = &followed.record;
    if current.is_none()
        && let Event::ExecutionCreated { execution } = &record.event
    {
        *current = begun(found, execution, request).await?;
    }
    let Some(view) = current else {
        return Ok(Vec::new());
    };
    let (selected, mut events) = view.select_at(record, followed.position);
    events.extend(more(found, view, selected).await?);
    if selected.flow().is_break() {
        *current = None;
    }
    Ok(events)
}

/// The run that begins with this execution; none if the execution only withdraws a call. Costs time
/// proportional to the execution.
async fn begun(
    found: &ThreadRef,
    execution: &Execution,
    request: &EventRequest,
) -> Result<Option<ProtocolRun>, ApiError> {
    let run = match Run::find(found, execution.id.as_str()).await {
        Ok(run) => run.record,
        Err(ApiError::LangGraph(error)) if error.kind == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let (thread, id) = (shown_id(&found.row().thread), run.id.as_str());
    let view = ProtocolRun::new(thread, id, run.trigger, request.clone());
    Ok(Some(if run.is_resumed { view.resumed() } else { view }))
}

/// The events that the log does not have: the values when a run starts, and the values and interrupts at
/// its end.
async fn more(
    found: &ThreadRef,
    view: &mut ProtocolRun,
    selected: Selected,
) -> Result<Vec<ProtocolEvent>, ApiError> {
    let mut events = Vec::new();
    if view.wants_values()
        && let Some(execution) = view.execution()
        && let Some(values) = values_then(found, execution, Moment::Begin).await?
    {
        events.extend(view.begin(values));
    }
    if selected == Selected::Last
        && view.wants_end()
        && let Some(execution) = view.execution().cloned()
    {
        let beneath = left_by(found, &execution).await?;
        let values = if view.wants_last_values() {
            values_then(found, &execution, Moment::End).await?
        } else {
            None
        };
        events.extend(view.end(found.key(), values, &beneath));
    }
    Ok(events)
}

/// Writes events.
struct Events;

impl View<Vec<ProtocolEvent>> for Events {
    fn write(&mut self, events: &Vec<ProtocolEvent>, out: &mut FrameBuffer) -> ControlFlow<()> {
        for event in events {
            event.write(out);
        }
        ControlFlow::Continue(())
    }

    fn fail(&mut self, error: &ApiError, out: &mut String) {
        let failure = error.failure();
        let message = failure.message;
        let data =
            json!({"type": "error", "id": null, "error": "unknown_error", "message": message});
        interop::sse::write_named("error", data, out);
    }
}
