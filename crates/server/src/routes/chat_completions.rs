//! `OpenAI`'s Chat Completions: agents as models.
//!
//! A request runs on a thread that is not stored, or on the durable one that it names.
//! [`interop::chat_completions`] decides which messages are new and formats the run. The start of a run
//! is shared with Responses.

mod routes;
mod start;
mod stream;

use super::messages::replayed;
use crate::auth::Caller;
use crate::body::BodyLease;
use crate::error::{ApiError, ErrorBody};
use crate::idempotency::KeyedBody;
use crate::state::Api;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode};
use interop::chat_completions::{ChatCompletion, ChatCompletionChunk, CompletionRequest};
use interop::responses::RequestError;
pub(crate) use routes::PROTOCOL;
use serde_json::Value;

/// The prefix of clients' idempotency tokens.
const TOKEN: &str = "chat-completions";
/// Names the thread of a request.
const THREAD: &str = "loomline-thread";

/// Creates a completion.
///
/// `model` names an agent or a configured model. Without a thread nothing is stored: the messages are
/// the whole conversation. `metadata.thread` or the header `Loomline-Thread` names a durable thread,
/// which is created if it does not exist. Its messages must equal the request's up to the last answer;
/// the rest is added. The run continues even if the client disconnects.
#[utoipa::path(post, path = "/v1/chat/completions", operation_id = "createChatCompletion", tag = "chat-completions", security(("key" = [])),
    params(("idempotency-key" = Option<String>, Header), ("loomline-thread" = Option<String>, Header)), request_body = Object,
    responses((status = 200, content((ChatCompletion = "application/json"), (ChatCompletionChunk<'static> = "text/event-stream"))),
        (status = "default", body = ErrorBody)))]
async fn post(
    state: State<Api>,
    caller: Caller,
    headers: HeaderMap,
    lease: BodyLease,
    body: KeyedBody<Value>,
) -> Response {
    let refused = match complete(state, caller, &headers, &lease, body).await {
        Ok(response) => return response,
        Err(error) => error,
    };
    let differs = matches!(refused, ApiError::HistoryDiffers { .. });
    let mut response = refused.into_response();
    if differs {
        // Clients of this API send a request again after a conflict, unless they are told not to.
        let headers = response.headers_mut();
        headers.insert("x-should-retry", HeaderValue::from_static("false"));
    }
    response
}

async fn complete(
    State(api): State<Api>,
    caller: Caller,
    headers: &HeaderMap,
    lease: &BodyLease,
    KeyedBody(body, idempotency): KeyedBody<Value>,
) -> Result<Response, ApiError> {
    let token = idempotency.token(TOKEN)?;
    let request = CompletionRequest::read(&body)?;
    drop(body);
    let thread = named_thread(headers, &request)?;
    // Before anything is written: a client that can't be served has changed nothing.
    let open = api.open_stream(&caller)?;
    let begun = match thread {
        None => start::forgotten(&api, &caller, &request).await,
        Some(thread) => start::durable(&api, &caller, &request, thread, token).await,
    };
    let begun = begun.map_err(model_is_missing)?;
    // What was asked is in the log now. The answer may be waited for long.
    lease.free_all();
    let repeated = begun.repeated;
    let response = if request.stream {
        stream::streamed(begun, request.include_usage, open).await?
    } else {
        Json(stream::finished(&begun, &open).await?).into_response()
    };
    Ok(replayed(response, repeated))
}

/// The thread that a request names, and the place of its name.
struct NamedAt {
    key: String,
    pointer: &'static str,
}

fn named_thread(
    headers: &HeaderMap,
    request: &CompletionRequest,
) -> Result<Option<NamedAt>, ApiError> {
    let header = headers.get(THREAD).map(HeaderValue::to_str).transpose();
    let header = header.map_err(|_| ApiError::InvalidHeader {
        name: THREAD,
        expected: "the key of a thread, in ASCII",
    })?;
    let pointer = "/metadata/thread";
    match (request.thread.as_deref(), header) {
        (Some(named), Some(header)) if named != header => {
            let message =
                "/metadata/thread: expected the thread of the header Loomline-Thread, or no value.";
            Err(RequestError::at(pointer, "invalid_value", message).into())
        }
        (Some(key), _) => Ok(Some(NamedAt {
            key: key.to_owned(),
            pointer,
        })),
        (None, Some(key)) => Ok(Some(NamedAt {
            key: key.to_owned(),
            pointer: "",
        })),
        (None, None) if request.store => {
            let message = "/store: expected false, or a thread in \"metadata.thread\", which keeps the completion.";
            Err(RequestError::at("/store", "unsupported_value", message).into())
        }
        (None, None) => Ok(None),
    }
}

/// A model that is missing is not found, by the status of this API.
fn model_is_missing(error: ApiError) -> ApiError {
    let ApiError::Worded(mut worded) = error else {
        return error;
    };
    if worded.code == Some("model_not_found") {
        worded.status = StatusCode::NOT_FOUND;
    }
    ApiError::Worded(worded)
}
