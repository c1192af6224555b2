//! `POST /v1/responses`.

use super::super::messages::replayed;
use super::start::begin;
use super::stream::{finished, started, streamed};
use crate::auth::Caller;
use crate::body::BodyLease;
use crate::error::{ApiError, ErrorBody};
use crate::idempotency::KeyedBody;
use crate::state::Api;
use axum::extract::State;
use axum::response::Response;
use futures_util::FutureExt as _;
use interop::Converted;
use interop::responses::{CreateRequest, RequestError};
use serde_json::Value;

/// Prefix of the clients' tokens.
const TOKEN: &str = "responses";

/// Creates a response.
///
/// Without `previous_response_id` and `conversation` it creates a thread; all input items except the
/// last are its history. A conversation, or the last response of a thread, is continued on its thread.
/// An older response is continued on a fork of its thread. With `"store": false` nothing is stored. The
/// response is made even if the client disconnects.
#[utoipa::path(post, path = "/v1/responses", operation_id = "createResponse", tag = "responses", security(("key" = [])),
    params(("idempotency-key" = Option<String>, Header)), request_body = Object,
    responses((status = 200, content((Object = "application/json"), (String = "text/event-stream"))),
        (status = "default", body = ErrorBody)))]
pub(crate) async fn post(
    State(api): State<Api>,
    caller: Caller,
    lease: BodyLease,
    KeyedBody(body, idempotency): KeyedBody<Value>,
) -> Result<Response, ApiError> {
    let token = idempotency.token(TOKEN)?;
    let request = read(CreateRequest::read(&body)?);
    drop(body);
    if request.background && !request.store {
        let message = "/background: a response that is made in the background is stored.";
        return Err(RequestError::at("/background", "invalid_value", message).into());
    }
    // Before anything is written: a client that can't be served has changed nothing.
    let open = api.open_stream(&caller)?;
    let (stream, background) = (request.stream, request.background);
    let begun = begin(&api, &caller, request, token, &mut None)
        .boxed()
        .await?;
    // What was asked is in the log now. The answer may be waited for long.
    lease.free_all();
    let repeated = begun.repeated;
    let response = if stream {
        streamed(begun, open).boxed().await?
    } else if background {
        super::json(started(&begun).boxed().await?.json)
    } else {
        super::json(finished(&begun, &open).boxed().await?.json)
    };
    Ok(replayed(response, repeated))
}

/// The parsed request. Options that the server can't honor are logged and ignored.
pub(super) fn read(read: Converted<CreateRequest>) -> CreateRequest {
    for loss in &read.losses {
        tracing::debug!(at = %loss.pointer, what = %loss.what, "a wish of a request is not met");
    }
    read.value
}
