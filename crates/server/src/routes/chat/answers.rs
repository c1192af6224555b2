//! Answers that a client puts into the message that asked.

use super::{UiStream, Wanted};
use crate::auth::Caller;
use crate::error::ApiError;
use crate::routes::answers::item;
use crate::state::Api;
use axum::response::Response;
use interop::ai_sdk::{ChatAnswer, ChatRequest, message_of};
use runtime::{AnswerRequest, Filter, TenantId};
use serde_json::{Value, json};
use timeline::{ExecutionId, OpenKind};

/// The answers to what was asked: questions, and calls of tools that clients run and whose results
/// are waited for. What else stands in the client's message was never asked.
pub(super) async fn recorded(
    api: &Api,
    tenant: &TenantId,
    request: &ChatRequest,
) -> Result<Vec<ChatAnswer>, ApiError> {
    if request.answers.is_empty() {
        return Ok(Vec::new());
    }
    let (open, _) = api.runtime().open_calls(tenant, &request.chat_id).await?;
    let open = open.map(|open| open.calls).unwrap_or_default();
    let is_open = |answer: &&ChatAnswer| {
        let kind = if answer.is_approval {
            OpenKind::Approval
        } else {
            OpenKind::External
        };
        open.iter()
            .any(|call| call.tool_call_id == answer.tool_call_id && call.kind == kind)
    };
    let found: Vec<ChatAnswer> = request.answers.iter().filter(is_open).cloned().collect();
    if !found.is_empty() {
        return Ok(found);
    }
    // Perhaps the same request again: the runtime knows it, or says what became of the calls.
    let approvals = request.answers.iter().filter(|answer| answer.is_approval);
    Ok(approvals.cloned().collect())
}

/// Answers calls, and streams what follows into the message that has them.
pub(super) async fn answered(
    api: &Api,
    caller: &Caller,
    key: String,
    answers: Vec<ChatAnswer>,
    wanted: Wanted,
) -> Result<Response, ApiError> {
    let open = api.open_stream(caller)?;
    let tenant = &caller.tenant;
    let ids: Vec<&str> = answers.iter().map(|it| it.tool_call_id.as_str()).collect();
    let token = format!("chat-answers:{}", json!(ids));
    let parts = answers.into_iter().map(|answer| answer.part);
    let content = Value::Array(parts.collect()).into();
    let metadata = json!({"tenant": tenant.as_str(), "via": "ai-sdk"});
    let request = AnswerRequest {
        run: None,
        tenant: tenant.clone(),
        key: key.clone(),
        item: item(api.runtime().mint(), content, metadata),
        token: Some(token),
    };
    let accepted = api.runtime().answer(request).await?;
    let message = match &accepted.execution_id {
        Some(execution) => message_id(api, tenant, &key, execution).await?,
        None => None,
    };
    let stream = UiStream::new(accepted.item_id, wanted).continuing(message);
    let after = accepted.after;
    stream.response(api, tenant, &key, after, open).await
}

/// The id of the message that an execution writes into.
pub(super) async fn message_id(
    api: &Api,
    tenant: &TenantId,
    key: &str,
    execution: &ExecutionId,
) -> Result<Option<String>, ApiError> {
    let transcript = api.runtime().transcript(tenant, key, Filter::Facts).await?;
    Ok(message_of(&transcript, execution))
}
