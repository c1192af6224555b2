//! The actors of a thread: joining, declaring capabilities, leaving. Each change is an event of the
//! thread.

use super::looked;
use super::view::ActorView;
use crate::aitp::{BodyPointers, MessagePost};
use crate::auth::Caller;
use crate::body::{JsonBody, PathOf};
use crate::error::{ApiError, ErrorBody};
use crate::state::Api;
use crate::threads::ThreadKey;
use axum::Json;
use axum::extract::State;
use http::StatusCode;
use interop::aitp::{Actor, MessageViolation, ParticipantChange, read_capabilities};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// The actors of a thread.
#[derive(Serialize, ToSchema)]
pub(crate) struct ActorList {
    /// By their ids.
    actors: Vec<ActorView>,
    /// The last event that the list covers.
    seq: u64,
}

/// An actor that joins.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewActor {
    /// `{"id", "client_id"?, "capabilities": [{"schema"}], …}`. The id is unique in the thread, and only
    /// there.
    #[schema(value_type = Object)]
    actor: Value,
    /// Whether it is the thread's initiator.
    #[serde(default)]
    initiator: bool,
}

/// The new capabilities of an actor.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Declared {
    /// All of its capabilities: `[{"schema"}]`, or the URLs of the schemas.
    #[schema(value_type = Vec<Value>)]
    capabilities: Value,
}

/// An actor after a change.
#[derive(Serialize, ToSchema)]
pub(crate) struct ActorChanged {
    /// The actor; absent if it left.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    actor: Option<ActorView>,
    /// The event of the change.
    seq: u64,
}

/// The event with which an actor left.
#[derive(Serialize, ToSchema)]
pub(crate) struct ActorLeft {
    /// Its position in the log.
    seq: u64,
}

/// Lists the actors.
#[utoipa::path(get, path = "/threads/{key}/actors", operation_id = "listActors", tag = "aitp", security(("key" = [])), params(("key" = String, Path)),
    responses((status = 200, body = ActorList), (status = "default", body = ErrorBody)))]
pub(crate) async fn list(
    State(api): State<Api>,
    caller: Caller,
    thread: ThreadKey,
) -> Result<Json<ActorList>, ApiError> {
    let found = thread.find().await?;
    let list = looked(&api, &found, |desk| {
        let present = desk.participants().present();
        ActorList {
            actors: present
                .map(|member| ActorView::of(member, desk, &caller))
                .collect(),
            seq: found.row().tail.0,
        }
    });
    Ok(Json(list.await?))
}

/// Adds an actor to the thread and binds it to the caller's key.
///
/// From then on, only this key may speak as the actor. An actor that came with the thread's metadata and
/// has no key is bound the same way.
#[utoipa::path(post, path = "/threads/{key}/actors", operation_id = "joinThread", tag = "aitp", security(("key" = [])), params(("key" = String, Path)),
    request_body = NewActor, responses((status = 201, body = ActorChanged), (status = "default", body = ErrorBody)))]
pub(crate) async fn join(
    State(api): State<Api>,
    thread: ThreadKey,
    JsonBody(body): JsonBody<NewActor>,
) -> Result<(StatusCode, Json<ActorChanged>), ApiError> {
    let actor = Actor::read(&body.actor, "/actor").map_err(|wrong| unreadable(&wrong))?;
    let id = actor.id.clone();
    let change = ParticipantChange::Join {
        actor,
        principal: None,
        initiator: body.initiator,
    };
    let changed = changed(&api, &thread, change, &id, "/actor/id").await?;
    Ok((StatusCode::CREATED, Json(changed)))
}

/// Replaces the capabilities of an actor.
#[utoipa::path(patch, path = "/threads/{key}/actors/{actor}", operation_id = "declareCapabilities", tag = "aitp", security(("key" = [])),
    params(("key" = String, Path), ("actor" = String, Path)), request_body = Declared,
    responses((status = 200, body = ActorChanged), (status = "default", body = ErrorBody)))]
pub(crate) async fn declare(
    State(api): State<Api>,
    thread: ThreadKey,
    PathOf((_thread, actor_id)): PathOf<(String, String)>,
    JsonBody(body): JsonBody<Declared>,
) -> Result<Json<ActorChanged>, ApiError> {
    let read = read_capabilities(&body.capabilities, "/capabilities");
    let capabilities = read.map_err(|wrong| unreadable(&wrong))?;
    let id = actor_id.clone();
    let change = ParticipantChange::Declare {
        actor_id,
        capabilities,
    };
    let changed = changed(&api, &thread, change, &id, "").await?;
    Ok(Json(changed))
}

/// Removes an actor.
///
/// Its open requests are cancelled, and its id remains reserved for its key.
#[utoipa::path(delete, path = "/threads/{key}/actors/{actor}", operation_id = "leaveThread", tag = "aitp", security(("key" = [])),
    params(("key" = String, Path), ("actor" = String, Path)),
    responses((status = 200, body = ActorLeft), (status = "default", body = ErrorBody)))]
pub(crate) async fn leave(
    State(api): State<Api>,
    thread: ThreadKey,
    PathOf((_thread, actor_id)): PathOf<(String, String)>,
) -> Result<Json<ActorLeft>, ApiError> {
    let id = actor_id.clone();
    let change = ParticipantChange::Leave { actor_id };
    let changed = changed(&api, &thread, change, &id, "").await?;
    Ok(Json(ActorLeft { seq: changed.seq }))
}

async fn changed(
    api: &Api,
    thread: &ThreadKey,
    change: ParticipantChange,
    id: &str,
    pointer: &str,
) -> Result<ActorChanged, ApiError> {
    let found = thread.find().await?;
    let changes = vec![(change, thread.runtime().mint())];
    let place = |_| BodyPointers::text(pointer).by(pointer);
    let caller = thread.caller();
    let speech = MessagePost::new(api, caller);
    let seq = speech.change(&found, changes, place).await?;
    let found = found.at_tail(seq);
    let actor = looked(api, &found, |desk| {
        let member = desk.participants().member(id);
        member.map(|member| ActorView::of(member, desk, caller))
    });
    Ok(ActorChanged {
        actor: actor.await?,
        seq: seq.0,
    })
}

fn unreadable(wrong: &MessageViolation) -> ApiError {
    let what = format!("expected {}", wrong.expected);
    ApiError::field(wrong.pointer.as_str(), what)
}
