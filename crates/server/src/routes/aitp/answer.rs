//! Answers to AITP requests, from clients that don't speak AITP.

use super::looked;
use super::view::RequestView;
use crate::aitp::{BodyPointers, MessagePost, asking, filled, over};
use crate::auth::Caller;
use crate::body::PathOf;
use crate::error::{ApiError, ErrorBody};
use crate::idempotency::{KeyedBody, KeyedOptionalBody};
use crate::routes::messages::replayed;
use crate::state::Api;
use crate::threads::{ThreadKey, ThreadRef, id_for};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use interop::aitp::{self, AitpState, Key, Message, Party, RequestQuestion};
use jiff::Timestamp;
use runtime::{ReactRequest, RequestToken, Run, RuntimeError, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use timeline::{ExecutionId, ItemId, ItemType, NewItem, Role};
use utoipa::ToSchema;

/// An answer.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewAnswer {
    /// The answer's value, valid against the request's `answerSchema`.
    #[schema(value_type = Object)]
    pub(crate) value: Value,
    /// The actor that answers. Default: the actor that is bound to the key, else the thread's initiator.
    pub(crate) actor: Option<String>,
    /// The agent to continue with. Default: the agent that made the request, if it is one of this
    /// server.
    pub(crate) agent: Option<String>,
}

/// Why a request is declined.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Declining {
    /// The reason, for people.
    pub(crate) reason: Option<String>,
    /// A code for programs if nobody can answer: `unsupported`, `failed` or another word.
    pub(crate) code: Option<String>,
    /// The actor that declines, as for answers.
    pub(crate) actor: Option<String>,
    /// The agent to continue with, as for answers.
    pub(crate) agent: Option<String>,
}

/// Why a request is cancelled.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cancelling {
    /// The reason, for people.
    reason: Option<String>,
    /// The actor that cancels, as for answers.
    actor: Option<String>,
}

/// The result of an answer, a refusal or a cancellation.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AnsweredView {
    /// The request in its new state; absent if the key has no right to read.
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<RequestView>,
    /// The message that was posted.
    item_id: ItemId,
    /// The execution that the message started; absent if there is none or it is queued.
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_id: Option<ExecutionId>,
    /// Whether the message is queued behind a running agent.
    queued: bool,
}

/// A posted message about a request.
pub(crate) struct PostedAnswer {
    view: AnsweredView,
    /// Whether an earlier request with the same token has posted it.
    is_repeated: bool,
}

impl PostedAnswer {
    fn response(self) -> Response {
        replayed(Json(self.view).into_response(), self.is_repeated)
    }
}

/// A message to be posted about a request.
struct Saying {
    api: Api,
    thread: ThreadRef,
    request: Key,
    token: Option<RequestToken>,
}

/// A request with its state.
struct Asked {
    question: RequestQuestion,
    state: aitp::RequestState,
    actor: Option<String>,
}

/// Answers a request; the value becomes a capability message of the thread.
///
/// If an agent of this server made the request, it continues. A repetition with the same
/// `idempotency-key` gets the first answer.
#[utoipa::path(post, path = "/threads/{key}/requests/{request}/answer", operation_id = "answerRequest", tag = "aitp", security(("key" = [])),
    params(("key" = String, Path), ("request" = String, Path), ("idempotency-key" = Option<String>, Header)), request_body = NewAnswer,
    responses((status = 200, body = AnsweredView), (status = "default", body = ErrorBody)))]
pub(crate) async fn answer(
    State(api): State<Api>,
    thread: ThreadKey,
    PathOf((_thread, request)): PathOf<(String, String)>,
    KeyedBody(body, idempotency): KeyedBody<NewAnswer>,
) -> Result<Response, ApiError> {
    let token = idempotency.token("requests.answer")?;
    Ok(post_answer(api, thread, &request, (body, token))
        .await?
        .response())
}

/// Posts the answer to a request.
pub(crate) async fn post_answer(
    api: Api,
    thread: ThreadKey,
    request: &str,
    (body, token): (NewAnswer, Option<RequestToken>),
) -> Result<PostedAnswer, ApiError> {
    let saying = Saying::of(api, thread, request, token).await?;
    let found = saying.found().await?;
    // What repeats a request may come when the other's answer has long been taken.
    let over = over(found.state).filter(|_| saying.token.is_none());
    let message = filled(&found.question, over, &body.value, "/value")?;
    let actor = body.actor.or_else(|| found.actor.clone());
    let item = saying.item(&message, actor, Role::User);
    let agent = body.agent.or_else(|| asking(&saying.api, &found.question));
    saying.say(item, agent, "/value").await
}

/// Declines a request; a `code` states that nobody can answer it.
#[utoipa::path(post, path = "/threads/{key}/requests/{request}/decline", operation_id = "declineRequest", tag = "aitp", security(("key" = [])),
    params(("key" = String, Path), ("request" = String, Path), ("idempotency-key" = Option<String>, Header)), request_body = Option<Declining>,
    responses((status = 200, body = AnsweredView), (status = "default", body = ErrorBody)))]
pub(crate) async fn decline(
    State(api): State<Api>,
    thread: ThreadKey,
    PathOf((_thread, request)): PathOf<(String, String)>,
    KeyedOptionalBody(body, idempotency): KeyedOptionalBody<Declining>,
) -> Result<Response, ApiError> {
    let token = idempotency.token("requests.decline")?;
    Ok(post_refusal(api, thread, &request, (body, token))
        .await?
        .response())
}

/// Posts the refusal of a request.
pub(crate) async fn post_refusal(
    api: Api,
    thread: ThreadKey,
    request: &str,
    (body, token): (Declining, Option<RequestToken>),
) -> Result<PostedAnswer, ApiError> {
    let saying = Saying::of(api, thread, request, token).await?;
    let found = saying.found().await?;
    let reason = body.reason.as_deref();
    let message = match &body.code {
        Some(code) => found.question.fail(code, reason.unwrap_or_default()),
        None => found.question.decline(reason),
    };
    let pointer = place_of(body.code.as_deref(), reason);
    let actor = body.actor.or_else(|| found.actor.clone());
    let item = saying.item(&message, actor, Role::User);
    let agent = body.agent.or_else(|| asking(&saying.api, &found.question));
    saying.say(item, agent, pointer).await
}

/// Cancels a request; only the party that made it may do so.
#[utoipa::path(post, path = "/threads/{key}/requests/{request}/cancel", operation_id = "cancelRequest", tag = "aitp", security(("key" = [])),
    params(("key" = String, Path), ("request" = String, Path), ("idempotency-key" = Option<String>, Header)), request_body = Option<Cancelling>,
    responses((status = 200, body = AnsweredView), (status = "default", body = ErrorBody)))]
pub(crate) async fn cancel(
    State(api): State<Api>,
    thread: ThreadKey,
    PathOf((_thread, request)): PathOf<(String, String)>,
    KeyedOptionalBody(body, idempotency): KeyedOptionalBody<Cancelling>,
) -> Result<Response, ApiError> {
    let token = idempotency.token("requests.cancel")?;
    let saying = Saying::of(api, thread, &request, token).await?;
    let found = saying.found().await?;
    let message = found.question.cancel(body.reason.as_deref());
    let role = match found.question.ask.by {
        Party::Assistant => Role::Assistant,
        Party::Initiator | Party::Actor(_) | Party::Agent(_) => Role::User,
    };
    let pointer = place_of(None, body.reason.as_deref());
    let actor = body.actor.or_else(|| found.actor.clone());
    let item = saying.item(&message, actor, role);
    Ok(saying.say(item, None, pointer).await?.response())
}

/// The JSON pointer of the code or reason in the body; empty if the body has neither.
fn place_of(code: Option<&str>, reason: Option<&str>) -> &'static str {
    match (code, reason) {
        (Some(_), _) => "/code",
        (None, Some(_)) => "/reason",
        (None, None) => "",
    }
}

/// The actors of a thread that are bound to a caller's key.
pub(crate) fn own_actors(desk: &AitpState, caller: &Caller) -> Vec<String> {
    let principal = Some(caller.principal());
    let own = desk.participants().present();
    let own = own.filter(|member| member.principal.as_deref() == principal);
    own.map(|member| member.actor.id.clone()).collect()
}

/// The actor that a caller answers as if it names none: the only one that is bound to its key.
fn own_actor(desk: &AitpState, caller: &Caller) -> Option<String> {
    match own_actors(desk, caller).as_slice() {
        [own] => Some(own.clone()),
        [] | [_, _, ..] => None,
    }
}

impl Saying {
    async fn of(
        api: Api,
        thread: ThreadKey,
        request: &str,
        token: Option<RequestToken>,
    ) -> Result<Self, ApiError> {
        let thread = thread.find().await?;
        let request = Key::read(request).ok_or(ApiError::RequestNotFound)?;
        Ok(Self {
            api,
            thread,
            request,
            token,
        })
    }

    async fn found(&self) -> Result<Asked, ApiError> {
        let now = Timestamp::now();
        let found = looked(&self.api, &self.thread, |desk| {
            Some(Asked {
                question: desk.question(&self.request)?,
                state: desk.ledger().request(&self.request)?.state(now),
                actor: own_actor(desk, self.thread.caller()),
            })
        });
        found.await?.ok_or(ApiError::RequestNotFound)
    }

    /// The message as an item of this actor, or without an actor in this role.
    fn item(&self, message: &Message, actor: Option<String>, role: Role) -> NewItem {
        let request = self.request.text();
        let parts = [self.thread.id().as_str(), request.as_str()];
        NewItem {
            id: id_for(&self.api, &parts, self.token.as_deref()).into(),
            item_type: ItemType::Message,
            role: actor.is_none().then_some(role),
            channel: None,
            content: Some(json!([message.input_part()]).into()),
            metadata: actor.map(|actor| json!({ "actor": actor }).into()),
        }
    }

    async fn say(
        self,
        item: NewItem,
        agent: Option<String>,
        pointer: &str,
    ) -> Result<PostedAnswer, ApiError> {
        let speech = MessagePost::new(&self.api, self.thread.caller());
        let place = |_| BodyPointers::text(pointer).by("/actor");
        let item_id = item.id.clone();
        let (execution_id, queued, repeated) = if agent.is_some() {
            let react = ReactRequest {
                run: Run {
                    agent,
                    ..Run::default()
                },
                token: self.token.clone(),
                must_exist: true,
                ..ReactRequest::new(self.thread.tenant().clone(), self.thread.key(), item)
            };
            let accepted = speech.react(react, None, place).await?;
            (accepted.execution_id, accepted.queued, accepted.repeated)
        } else {
            match speech.record(&self.thread, vec![item], None, place).await {
                Ok(_) => (None, false, false),
                // It was said by the request that this one repeats.
                Err(RuntimeError::Store(StoreError::Duplicate(id)))
                    if self.token.is_some() && id == item_id.as_str() =>
                {
                    (None, false, true)
                }
                Err(error) => return Err(error.into()),
            }
        };
        let found = self.thread.find().await?;
        let now = Timestamp::now();
        let request = looked(&self.api, &found, |desk| {
            RequestView::find(desk, &self.request, now)
        });
        let view = AnsweredView {
            request: Some(request.await?.ok_or(ApiError::RequestNotFound)?)
                .filter(|_| self.thread.caller().may_read()),
            item_id,
            execution_id,
            queued,
        };
        Ok(PostedAnswer {
            view,
            is_repeated: repeated,
        })
    }
}
