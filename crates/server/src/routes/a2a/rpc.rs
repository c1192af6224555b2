//! The binding to JSON-RPC.

use super::lookup::{Task, Wanted};
use super::stream::{self, Binding};
use super::{Agent, Body, cancel, card, list, start, version};
use crate::auth::{Caller, Scope};
use crate::body::JsonBody;
use crate::error::{ApiError, ErrorBody, a2a};
use crate::state::Api;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;
use http::{HeaderMap, Uri};
use interop::a2a::{Call, ListTasks, Method, RequestError, SendMessage, TaskId, failure, result};
use serde_json::Value;

/// A JSON-RPC call of A2A.
struct Asked {
    api: Api,
    caller: Caller,
    agent: Agent,
    headers: HeaderMap,
    uri: Uri,
}

/// Answers a JSON-RPC call of A2A 1.0, with the default agent; the other agents are at `/a2a/{agent}`.
///
/// `SendStreamingMessage` and `SubscribeToTask` respond with a stream. Results and errors of calls have
/// the status 200; other statuses are for requests that are not valid calls.
#[utoipa::path(post, path = "/a2a", operation_id = "a2aCall", tag = "a2a", security(("key" = [])),
    params(("a2a-version" = String, Header)), request_body = Object,
    responses((status = 200, content((Object = "application/json"), (String = "text/event-stream"))), (status = "default", body = ErrorBody)))]
pub(crate) async fn call(
    State(api): State<Api>,
    caller: Caller,
    agent: Agent,
    headers: HeaderMap,
    uri: Uri,
    body: Result<Body<JsonBody<Value>>, ApiError>,
) -> Response {
    let (id, call) = match read(body) {
        Ok(read) => read,
        Err(error) => return refused(&Value::Null, &error),
    };
    let asked = Asked {
        api,
        caller,
        agent,
        headers,
        uri,
    };
    match asked.answer(&id, call).boxed().await {
        Ok(response) => response,
        Err(error) => refused(&id, &error),
    }
}

fn read(
    body: Result<Body<JsonBody<Value>>, ApiError>,
) -> Result<(Value, Result<Call, RequestError>), ApiError> {
    let Body(JsonBody(body)) = body?;
    Ok(Call::read(&body))
}

fn refused(id: &Value, error: &ApiError) -> Response {
    Json(failure(id, &a2a::rpc_error(error))).into_response()
}

impl Asked {
    async fn answer(
        self,
        id: &Value,
        call: Result<Call, RequestError>,
    ) -> Result<Response, ApiError> {
        let Call { method, params } = call?;
        self.caller.check_scope(if method.only_looks() {
            Scope::Read
        } else {
            Scope::Write
        })?;
        version(&self.headers, &self.uri)?;
        let (at, api, caller) = (Call::PARAMS, &self.api, &self.caller);
        let answer = match method {
            Method::SendMessage => {
                let request = SendMessage::read(&params, at)?;
                start::send(api, caller, self.agent, request).await?
            }
            Method::SendStreamingMessage => {
                let request = SendMessage::read(&params, at)?;
                let open = api.open_stream(caller)?;
                let stream = start::stream(api, caller, self.agent, request).await?;
                return Ok(stream.response(Binding::Rpc(id.clone()), open));
            }
            Method::SubscribeToTask => {
                let request = TaskId::read(&params, at)?;
                let open = api.open_stream(caller)?;
                let stream = stream::subscribe(api, caller, &request).await?;
                return Ok(stream.response(Binding::Rpc(id.clone()), open));
            }
            Method::GetTask => {
                let request = TaskId::read(&params, at)?;
                let task = Task::find(api, caller, &request.id).await?;
                let wanted = Wanted {
                    history_length: request.history_length,
                };
                task.read(api, wanted).await?.json
            }
            Method::ListTasks => {
                let request = ListTasks::read(&params, at)?;
                list::list(api, caller, &request, at).await?
            }
            Method::CancelTask => cancel::cancel(api, caller, &TaskId::read(&params, at)?).await?,
            Method::PushNotifications => return Err(RequestError::no_push().into()),
            Method::GetExtendedAgentCard => {
                card::card(api, &self.agent, &self.headers, &self.uri, true)?
            }
        };
        Ok(Json(result(id, &answer)).into_response())
    }
}
