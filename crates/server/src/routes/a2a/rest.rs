//! The HTTP+JSON binding.

use super::lookup::{Task, Wanted};
use super::stream::{self, Binding};
use super::{Agent, Body, cancel, card as cards, list as lists, start as sends, version};
use crate::auth::Caller;
use crate::body::{JsonBody, OptionalBody, PathOf, Query};
use crate::error::{ApiError, ErrorBody};
use crate::state::Api;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, Uri, header};
use interop::a2a::{ListTasks, RequestError, SendMessage, TaskId};
use serde::Deserialize;
use serde_json::{Map, Value};

/// The media type of the binding.
const MEDIA_TYPE: &str = "application/a2a+json";

/// The last part of a path: a task's id with an action after a colon.
#[derive(Deserialize)]
pub(crate) struct Named {
    id: String,
}

/// The action on a task.
enum Act {
    Cancel,
    Subscribe,
}

impl Named {
    /// The task's id and the action.
    fn act(&self) -> Result<(TaskId, Act), ApiError> {
        let (id, act) = match self.id.rsplit_once(':') {
            Some((id, "cancel")) => (id, Act::Cancel),
            Some((id, "subscribe")) => (id, Act::Subscribe),
            Some(_) | None => return Err(ApiError::UnknownRoute),
        };
        let id = TaskId {
            id: id.to_owned(),
            history_length: None,
        };
        Ok((id, act))
    }
}

fn answered(answer: &Value) -> Response {
    ([(header::CONTENT_TYPE, MEDIA_TYPE)], answer.to_string()).into_response()
}

/// The parameters of a query as the object that the JSON-RPC binding has.
fn object(query: Vec<(String, String)>) -> Value {
    let members = query
        .into_iter()
        .map(|(name, text)| (name, Value::String(text)));
    Value::Object(members.collect::<Map<_, _>>())
}

fn message(JsonBody(body): &JsonBody<Value>) -> Result<SendMessage, ApiError> {
    Ok(SendMessage::read(body, "")?)
}

/// Posts a message to the default agent, and responds with the task.
///
/// The response comes when the task is over or waits for an answer. If the request wants that, it comes
/// at once. The paths of the other agents are below `/a2a/{agent}/v1`.
#[utoipa::path(post, path = "/a2a/v1/message:send", operation_id = "a2aSendMessage", tag = "a2a", security(("key" = [])),
    params(("a2a-version" = String, Header)), request_body = Object,
    responses((status = 200, body = Object, content_type = "application/a2a+json"), (status = "default", body = ErrorBody)))]
pub(crate) async fn send(
    State(api): State<Api>,
    caller: Caller,
    agent: Agent,
    headers: HeaderMap,
    uri: Uri,
    Body(body): Body<JsonBody<Value>>,
) -> Result<Response, ApiError> {
    version(&headers, &uri)?;
    let request = message(&body)?;
    let task = sends::send(&api, &caller, agent, request).await?;
    Ok(answered(&task))
}

/// Posts a message to the default agent, and streams the task's events.
#[utoipa::path(post, path = "/a2a/v1/message:stream", operation_id = "a2aSendStreamingMessage", tag = "a2a", security(("key" = [])),
    params(("a2a-version" = String, Header)), request_body = Object,
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = "default", body = ErrorBody)))]
pub(crate) async fn stream(
    State(api): State<Api>,
    caller: Caller,
    agent: Agent,
    headers: HeaderMap,
    uri: Uri,
    Body(body): Body<JsonBody<Value>>,
) -> Result<Response, ApiError> {
    version(&headers, &uri)?;
    let request = message(&body)?;
    let open = api.open_stream(&caller)?;
    let stream = sends::stream(&api, &caller, agent, request).await?;
    Ok(stream.response(Binding::Rest, open))
}

/// Lists tasks, ordered by context; the context that changed last comes first.
#[utoipa::path(get, path = "/a2a/v1/tasks", operation_id = "a2aListTasks", tag = "a2a", security(("key" = [])),
    params(("a2a-version" = String, Header), ("contextId" = Option<String>, Query), ("status" = Option<String>, Query), ("pageSize" = Option<usize>, Query),
        ("pageToken" = Option<String>, Query), ("historyLength" = Option<usize>, Query), ("statusTimestampAfter" = Option<String>, Query), ("includeArtifacts" = Option<bool>, Query)),
    responses((status = 200, body = Object, content_type = "application/a2a+json"), (status = "default", body = ErrorBody)))]
pub(crate) async fn list(
    State(api): State<Api>,
    caller: Caller,
    _: Agent,
    headers: HeaderMap,
    uri: Uri,
    Query(query): Query<Vec<(String, String)>>,
) -> Result<Response, ApiError> {
    version(&headers, &uri)?;
    let request = ListTasks::read(&object(query), "")?;
    Ok(answered(&lists::list(&api, &caller, &request, "").await?))
}

/// Reads a task; with `:subscribe` after its id, streams its events.
#[utoipa::path(get, path = "/a2a/v1/tasks/{id}", operation_id = "a2aGetTask", tag = "a2a", security(("key" = [])),
    params(("a2a-version" = String, Header), ("id" = String, Path), ("historyLength" = Option<usize>, Query)),
    responses((status = 200, content((Object = "application/a2a+json"), (String = "text/event-stream"))), (status = "default", body = ErrorBody)))]
pub(crate) async fn read(
    State(api): State<Api>,
    caller: Caller,
    _: Agent,
    PathOf(named): PathOf<Named>,
    headers: HeaderMap,
    uri: Uri,
    Query(query): Query<Vec<(String, String)>>,
) -> Result<Response, ApiError> {
    version(&headers, &uri)?;
    if let Ok((id, Act::Subscribe)) = named.act() {
        return subscribed(&api, &caller, &id).await;
    }
    let mut query = object(query);
    query["id"] = named.id.into();
    let request = TaskId::read(&query, "")?;
    let task = Task::find(&api, &caller, &request.id).await?;
    let wanted = Wanted {
        history_length: request.history_length,
    };
    Ok(answered(&task.read(&api, wanted).await?.json))
}

/// Cancels a task (`:cancel` after its id) or streams its events (`:subscribe`). The body is ignored.
#[utoipa::path(post, path = "/a2a/v1/tasks/{id}", operation_id = "a2aTask", tag = "a2a", security(("key" = [])),
    params(("a2a-version" = String, Header), ("id" = String, Path, description = "`TASK:cancel` or `TASK:subscribe`")),
    responses((status = 200, content((Object = "application/a2a+json"), (String = "text/event-stream"))), (status = "default", body = ErrorBody)))]
pub(crate) async fn act(
    State(api): State<Api>,
    caller: Caller,
    _: Agent,
    PathOf(named): PathOf<Named>,
    headers: HeaderMap,
    uri: Uri,
    _: Body<OptionalBody<Value>>,
) -> Result<Response, ApiError> {
    version(&headers, &uri)?;
    match named.act()? {
        (id, Act::Cancel) => Ok(answered(&cancel::cancel(&api, &caller, &id).await?)),
        (id, Act::Subscribe) => subscribed(&api, &caller, &id).await,
    }
}

async fn subscribed(api: &Api, caller: &Caller, id: &TaskId) -> Result<Response, ApiError> {
    let open = api.open_stream(caller)?;
    let stream = stream::subscribe(api, caller, id).await?;
    Ok(stream.response(Binding::Rest, open))
}

/// Refused: the server has no push notifications.
#[utoipa::path(get, path = "/a2a/v1/tasks/{id}/pushNotificationConfigs", operation_id = "a2aPushNotificationConfigs", tag = "a2a", security(("key" = [])),
    params(("id" = String, Path)), responses((status = "default", body = ErrorBody)))]
pub(crate) async fn push(headers: HeaderMap, uri: Uri) -> ApiError {
    match version(&headers, &uri) {
        Ok(()) => RequestError::no_push().into(),
        Err(error) => error,
    }
}

/// Refused: the server has no push notifications.
#[utoipa::path(post, path = "/a2a/v1/tasks/{id}/pushNotificationConfigs", operation_id = "a2aCreatePushNotificationConfig", tag = "a2a", security(("key" = [])),
    params(("id" = String, Path)), responses((status = "default", body = ErrorBody)))]
pub(crate) async fn push_made(
    headers: HeaderMap,
    uri: Uri,
    // Read, or the connection could not be used again.
    body: Result<Body<OptionalBody<Value>>, ApiError>,
) -> ApiError {
    match body {
        Ok(_) => push(headers, uri).await,
        Err(error) => error,
    }
}

/// Reads the extended card of the default agent, with its tools; needs a key.
#[utoipa::path(get, path = "/a2a/v1/extendedAgentCard", operation_id = "a2aExtendedAgentCard", tag = "a2a", security(("key" = [])),
    params(("a2a-version" = String, Header)),
    responses((status = 200, body = Object, content_type = "application/a2a+json"), (status = "default", body = ErrorBody)))]
pub(crate) async fn card(
    State(api): State<Api>,
    agent: Agent,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, ApiError> {
    version(&headers, &uri)?;
    Ok(answered(&cards::card(&api, &agent, &headers, &uri, true)?))
}
