//! `POST /v1/responses/input_tokens` and `POST /v1/responses/compact`.

use super::past::find;
use super::start::begin;
use super::stream::finished;
use crate::auth::Caller;
use crate::body::JsonBody;
use crate::error::{ApiError, ErrorBody};
use crate::state::Api;
use crate::threads::ThreadRef;
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use interop::ids::CONVERSATION;
use interop::options::RunToolChoice;
use interop::responses::{
    CompactRequest, Continues, CreateRequest, RequestError, compaction, input_tokens, n_tokens,
    outcome, read_input_tokens,
};
use jiff::Timestamp;
use runtime::Filter;
use serde_json::Value;

/// The prompt at the end of the conversation that requests the summary.
const IN_BRIEF: &str = "Now write a summary of everything above, for a reader who continues from it \
without having seen it. Name what was asked for, what was found, decided and done, with all names \
and numbers that may matter, and what is still to be done. Write nothing but the summary.";

/// Estimates the tokens of an input: a quarter of its bytes, for every model.
///
/// The history of `previous_response_id` or `conversation` is included; images and files are not.
#[utoipa::path(post, path = "/v1/responses/input_tokens", operation_id = "countInputTokens", tag = "responses", security(("key" = [])),
    request_body = Object,
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(crate) async fn count(
    State(api): State<Api>,
    caller: Caller,
    JsonBody(body): JsonBody<Value>,
) -> Result<Json<Value>, ApiError> {
    let request = read_input_tokens(&body)?;
    let request = with_past(&api, &caller, request).await?;
    Ok(Json(input_tokens(n_tokens(&request))))
}

/// The request with the history that it continues added to its input.
async fn with_past(
    api: &Api,
    caller: &Caller,
    request: CreateRequest,
) -> Result<CreateRequest, ApiError> {
    let transcript = match &request.continues {
        Continues::Nothing => return Ok(request),
        Continues::Response { id, .. } => {
            let not_found = || RequestError::previous_response_not_found(id);
            let found = find(api, caller, id).await?.ok_or_else(not_found)?;
            caller.check_read()?;
            let past = found.past().await?;
            past.ok_or_else(not_found)?
        }
        Continues::Conversation { id, .. } => {
            let found = ThreadRef::find(api, caller, CONVERSATION, id).await?;
            let found = found.ok_or_else(|| RequestError::conversation_not_found(id))?;
            caller.check_read()?;
            found.transcript(Filter::All).await?
        }
    };
    Ok(request.with_past(&transcript)?)
}

/// Compacts a conversation: the model writes a summary, and the request's user messages stay next to it.
/// The answer is the input for a new conversation that continues from there.
#[utoipa::path(post, path = "/v1/responses/compact", operation_id = "compactResponse", tag = "responses", security(("key" = [])),
    request_body = Object,
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(crate) async fn post(
    State(api): State<Api>,
    caller: Caller,
    JsonBody(body): JsonBody<Value>,
) -> Result<Response, ApiError> {
    let request = CompactRequest::read(&body)?;
    // With the prompt, so that calls that nobody has answered have been gone on from.
    let asked = request.as_create().with_prompt(IN_BRIEF);
    let mut asked = with_past(&api, &caller, asked).await?;
    asked.options.only_these_tools = true;
    asked.options.tool_choice = Some(RunToolChoice::None);
    let open = api.open_stream(&caller)?;
    let begun = Box::pin(begin(&api, &caller, asked, None, &mut None)).await?;
    let made = finished(&begun, &open).await?;
    let (summary, usage) = outcome(&made)?;
    let runtime = api.runtime(&caller.tenant);
    let kept = request.user_messages(Timestamp::now(), &mut || runtime.mint());
    let (id, at) = (runtime.mint(), Timestamp::now());
    Ok(super::json(compaction(&id, at, &kept, &summary, usage)))
}
