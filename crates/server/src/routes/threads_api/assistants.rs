//! Assistants: those that clients create, and the configured agents.

use super::{Pairs, not_found, pairs};
use crate::auth::Caller;
use crate::body::{OptionalBody, PathOf, Query};
use crate::error::openai::Worded;
use crate::error::{ApiError, ErrorBody};
use crate::idempotency::{KeyedBody, check_made, note_made};
use crate::state::Api;
use crate::threads::id_for;
use axum::Json;
use axum::extract::State;
use interop::options::RunOptions;
use interop::threads::{
    Assistant, AssistantChange, CreateAssistant, Deleted, List, ListQuery, ObjectKind, Order, Page,
};
use jiff::Timestamp;
use runtime::objects::{NewObject, ObjectPage, SidecarObject};
use runtime::{OptionsRefused, RuntimeError, StoreError, TenantId};
use serde_json::{Map, Value};

/// The kind of assistants in the table of sidecar objects.
const KIND: &str = "assistant";
/// Maximum number of attempts to change an assistant that others change at the same time.
const MAX_TRIES: u32 = 8;

/// The assistant with this id: one that a client created, or the configured agent with this name. A key
/// that is restricted to some threads finds only agents.
pub(super) async fn find(
    api: &Api,
    tenant: &TenantId,
    is_restricted: bool,
    id: &str,
) -> Result<Assistant, ApiError> {
    if !is_restricted && let Some(assistant) = stored(api, tenant, id).await? {
        return Ok(assistant);
    }
    let agent = configured(api).into_iter().find(|agent| agent.id == id);
    agent.ok_or_else(|| not_found(ObjectKind::Assistant, id))
}

async fn stored(api: &Api, tenant: &TenantId, id: &str) -> Result<Option<Assistant>, ApiError> {
    let object = api.runtime(tenant).objects().get(tenant, KIND, id).await?;
    let read = object.map(|object| serde_json::from_str(&object.json));
    Ok(read.transpose().map_err(RuntimeError::from)?)
}

/// The configured agents, by name. They have no creation time, so they count as older than all other
/// assistants.
fn configured(api: &Api) -> Vec<Assistant> {
    let agents = api.app().agents().into_iter();
    agents
        .map(|agent| Assistant::of_agent(&agent.name, &agent.model, None, Timestamp::UNIX_EPOCH))
        .collect()
}

/// The error of a model that is not configured.
pub(super) fn unknown_model(model: &str) -> ApiError {
    let message = format!("The requested model '{model}' does not exist.");
    Worded::invalid(Some("model"), Some("model_not_found"), message).into()
}

fn check(api: &Api, assistant: &Assistant) -> Result<(), ApiError> {
    let options = RunOptions {
        model: Some(assistant.model.clone()),
        ..RunOptions::default()
    };
    let params = serde_json::to_value(&options).map_err(RuntimeError::from)?;
    match api.app().check_params(None, Some(&params)) {
        Err(OptionsRefused::UnknownModel(model)) => Err(unknown_model(&model)),
        Ok(())
        | Err(
            OptionsRefused::Tool(_)
            | OptionsRefused::Unsupported(_)
            | OptionsRefused::UnknownTool(_)
            | OptionsRefused::Unreadable(_),
        ) => Ok(()),
    }
}

fn object(assistant: &Assistant, created_at: Timestamp) -> Result<NewObject, ApiError> {
    Ok(NewObject {
        kind: KIND.to_owned(),
        id: assistant.id.clone(),
        created_at,
        json: serde_json::to_string(assistant).map_err(RuntimeError::from)?,
        content: None,
        thread: None,
        is_limited: true,
    })
}

/// Lists the assistants: the configured agents, and those that clients created.
#[utoipa::path(get, path = "/v1/assistants", operation_id = "openaiListAssistants", tag = "threads-api", security(("key" = [])),
    params(("limit" = Option<u32>, Query), ("order" = Option<String>, Query), ("after" = Option<String>, Query), ("before" = Option<String>, Query)),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn list(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<Pairs>,
) -> Result<Json<List<Value>>, ApiError> {
    let query = ListQuery::read(pairs(&query))?;
    let sees_all = !caller.is_restricted();
    let walk = query.walk();
    let mut page = Page::new(&query);
    let agents = configured(&api);
    let from_agent = walk.from.as_ref().and_then(|from| {
        let mut agents = agents.iter();
        agents.position(|agent| agent.id == *from)
    });
    let newest_first = walk.direction == Order::Descending;
    if newest_first {
        let more = match from_agent {
            Some(_) => true,
            None if !sees_all => true,
            None => push_stored(&api, &caller.tenant, &query, walk.from, true, &mut page).await?,
        };
        let end = from_agent.unwrap_or(agents.len());
        let rest = agents.into_iter().take(end).rev();
        if more {
            push(rest, &mut page);
        }
    } else {
        let skipped = match (&walk.from, from_agent) {
            (Some(_), None) => agents.len(),
            (_, Some(place)) => place + 1,
            (None, None) => 0,
        };
        if push(agents.into_iter().skip(skipped), &mut page) && sees_all {
            let from = walk.from.filter(|_| from_agent.is_none());
            push_stored(&api, &caller.tenant, &query, from, false, &mut page).await?;
        }
    }
    let List {
        object,
        data,
        first_id,
        last_id,
        has_more,
    } = page.list();
    Ok(Json(List {
        object,
        data: data.iter().map(Assistant::object).collect(),
        first_id,
        last_id,
        has_more,
    }))
}

/// Adds assistants to a page; returns whether the page has room for more.
fn push(assistants: impl Iterator<Item = Assistant>, page: &mut Page<Assistant>) -> bool {
    let mut assistants = assistants;
    !assistants.any(|assistant| page.push(assistant).is_break())
}

async fn push_stored(
    api: &Api,
    tenant: &TenantId,
    query: &ListQuery,
    from: Option<String>,
    newest_first: bool,
    page: &mut Page<Assistant>,
) -> Result<bool, ApiError> {
    let wanted = ObjectPage {
        after: from,
        newest_first,
        limit: query.limit + 1,
        ..ObjectPage::default()
    };
    let objects = match api
        .runtime(tenant)
        .objects()
        .list(tenant, KIND, wanted)
        .await
    {
        Err(StoreError::NoSuchObject { id, .. }) => {
            return Err(not_found(ObjectKind::Assistant, &id));
        }
        objects => objects?,
    };
    for object in objects {
        let assistant = serde_json::from_str(&object.json).map_err(RuntimeError::from)?;
        if page.push(assistant).is_break() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Creates an assistant. Its model is one of the configured ones, by its name in the configuration.
#[utoipa::path(post, path = "/v1/assistants", operation_id = "openaiCreateAssistant", tag = "threads-api", security(("key" = [])),
    params(("idempotency-key" = Option<String>, Header)), request_body = Object,
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn create(
    State(api): State<Api>,
    caller: Caller,
    KeyedBody(body, idempotency): KeyedBody<Value>,
) -> Result<Json<Value>, ApiError> {
    caller.check_sidecar()?;
    let asked = CreateAssistant::read(&body)?;
    let token = idempotency.token("assistants")?;
    let tenant = caller.tenant;
    let id = id_for(&api, &[tenant.as_str()], token.as_deref());
    let now = Timestamp::now();
    let assistant = asked.assistant(&id, now);
    check(&api, &assistant)?;
    if let Some(before) = stored(&api, &tenant, &assistant.id).await? {
        if let Some(token) = &token {
            check_made(&api, &tenant, &id, token).await?;
        }
        return Ok(Json(before.object()));
    }
    let objects = api.runtime(&tenant).objects();
    objects.put(&tenant, object(&assistant, now)?).await?;
    if let Some(token) = &token {
        note_made(&api, &tenant, &id, token, None).await?;
    }
    Ok(Json(assistant.object()))
}

/// Reads an assistant.
#[utoipa::path(get, path = "/v1/assistants/{assistant_id}", operation_id = "openaiReadAssistant", tag = "threads-api", security(("key" = [])), params(("assistant_id" = String, Path)),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn read(
    State(api): State<Api>,
    caller: Caller,
    PathOf(assistant_id): PathOf<String>,
) -> Result<Json<Value>, ApiError> {
    let is_restricted = caller.is_restricted();
    let assistant = find(&api, &caller.tenant, is_restricted, &assistant_id).await?;
    Ok(Json(assistant.object()))
}

/// Changes an assistant that a client created; started runs continue unchanged.
#[utoipa::path(post, path = "/v1/assistants/{assistant_id}", operation_id = "openaiModifyAssistant", tag = "threads-api", security(("key" = [])), params(("assistant_id" = String, Path)),
    request_body = Option<Object>, responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn modify(
    State(api): State<Api>,
    caller: Caller,
    PathOf(assistant_id): PathOf<String>,
    OptionalBody(body): OptionalBody<Option<Value>>,
) -> Result<Json<Value>, ApiError> {
    caller.check_sidecar()?;
    caller.check_read()?;
    let body = body.unwrap_or_else(|| Value::Object(Map::new()));
    let change = AssistantChange::read(&body)?;
    let tenant = &caller.tenant;
    let changed = tried(&assistant_id, || {
        changed(&api, tenant, &assistant_id, change.clone())
    });
    Ok(Json(changed.await?.object()))
}

/// Changes an assistant, unless another request has changed or deleted it meanwhile.
async fn changed(
    api: &Api,
    tenant: &TenantId,
    id: &str,
    change: AssistantChange,
) -> Result<Option<Assistant>, ApiError> {
    let (before, mut assistant) = own(api, tenant, id).await?;
    change.apply(&mut assistant);
    check(api, &assistant)?;
    let changed = object(&assistant, before.created_at)?;
    let objects = api.runtime(tenant).objects();
    let is_changed = objects.replace(tenant, &before, changed).await?;
    Ok(is_changed.then_some(assistant))
}

/// Retries a change until no other request interferes, or the attempts are used up.
async fn tried<F>(id: &str, change: impl Fn() -> F) -> Result<Assistant, ApiError>
where
    F: Future<Output = Result<Option<Assistant>, ApiError>>,
{
    for _ in 0..MAX_TRIES {
        if let Some(changed) = change().await? {
            return Ok(changed);
        }
    }
    let message =
        format!("The assistant '{id}' is being changed by others all the time; try again later.");
    Err(Worded::conflict("conflict", message).into())
}

/// Deletes an assistant that a client created; its messages remain.
#[utoipa::path(delete, path = "/v1/assistants/{assistant_id}", operation_id = "openaiDeleteAssistant", tag = "threads-api", security(("key" = [])), params(("assistant_id" = String, Path)),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn delete(
    State(api): State<Api>,
    caller: Caller,
    PathOf(assistant_id): PathOf<String>,
) -> Result<Json<Deleted>, ApiError> {
    caller.check_sidecar()?;
    own(&api, &caller.tenant, &assistant_id).await?;
    let objects = api.runtime(&caller.tenant).objects();
    objects
        .delete(&caller.tenant, KIND, &assistant_id, None)
        .await?;
    Ok(Json(Deleted::new("assistant.deleted", assistant_id)))
}

/// An assistant that a client created, and its sidecar object.
async fn own(
    api: &Api,
    tenant: &TenantId,
    id: &str,
) -> Result<(SidecarObject, Assistant), ApiError> {
    if let Some(object) = api.runtime(tenant).objects().get(tenant, KIND, id).await? {
        let assistant = serde_json::from_str(&object.json).map_err(RuntimeError::from)?;
        return Ok((object, assistant));
    }
    find(api, tenant, false, id).await?;
    let message = format!(
        "The assistant '{id}' is an agent of the server's configuration, and can't be changed or deleted here."
    );
    Err(Worded::invalid(None, None, message).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::openai::error_body;
    use http::StatusCode;
    use std::cell::Cell;

    #[tokio::test]
    async fn a_change_that_others_always_come_before_is_given_up() {
        let n_tries = Cell::new(0);
        let change = || {
            n_tries.set(n_tries.get() + 1);
            assert!(n_tries.get() <= MAX_TRIES, "it is tried for ever");
            std::future::ready(Ok(None))
        };
        let error = tried("a", change).await.unwrap_err();
        assert_eq!(n_tries.get(), MAX_TRIES);
        let (status, object) = error_body(&error);
        assert_eq!(
            (status, &object["code"]),
            (StatusCode::CONFLICT, &"conflict".into())
        );
    }
}
