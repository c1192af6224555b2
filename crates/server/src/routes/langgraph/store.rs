//! `LangGraph`'s store: items that belong to no thread.

use super::Pairs;
use crate::auth::Caller;
use crate::body::{JsonBody, OptionalBody, Query};
use crate::error::{ApiError, ErrorBody};
use crate::state::Api;
use axum::Json;
use axum::extract::State;
use http::StatusCode;
use interop::langgraph::{
    ErrorKind, RequestError, StoreDelete, StoreGet, StoreItem, StoreNamespaces, StorePut,
    StoreSearch,
};
use jiff::Timestamp;
use runtime::objects::{NewObject, ObjectPage, SidecarObject};
use runtime::{RuntimeError, TenantId};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// The kind of items in the table of sidecar objects.
const KIND: &str = "langgraph.store";
/// Maximum number of items that a search reads.
const MAX_ITEMS: usize = 10_000;
/// Maximum size of the items that a search reads, in bytes.
const MAX_READ: usize = 64 << 20;
/// Maximum size of the items of an answer, in bytes.
const MAX_ANSWER: usize = 8 << 20;
/// Number of items in memory at once during a search. One item has at most 256 KiB.
const PAGE: usize = 16;

fn read(object: &SidecarObject) -> Result<StoreItem, ApiError> {
    Ok(serde_json::from_str(&object.json).map_err(RuntimeError::from)?)
}

async fn find(api: &Api, tenant: &TenantId, id: &str) -> Result<Option<StoreItem>, ApiError> {
    let object = api.runtime(tenant).objects().get(tenant, KIND, id).await?;
    object.as_ref().map(read).transpose()
}

/// Reads all items page by page, in the order in which they were first stored. `each` receives an item
/// and its size in bytes.
async fn scan(
    api: &Api,
    tenant: &TenantId,
    mut each: impl FnMut(StoreItem, usize),
) -> Result<(), ApiError> {
    let (mut beyond, mut n_items, mut n_bytes) = (None, 0, 0);
    loop {
        let page = ObjectPage {
            beyond: beyond.take(),
            limit: PAGE,
            ..ObjectPage::default()
        };
        let objects = api
            .runtime(tenant)
            .objects()
            .list(tenant, KIND, page)
            .await?;
        for object in &objects {
            n_items += 1;
            n_bytes += object.json.len();
            if n_items > MAX_ITEMS || n_bytes > MAX_READ {
                let what = format!(
                    "a search reads {MAX_ITEMS} items and {MAX_READ} bytes at most, and the store has more: delete some"
                );
                return Err(RequestError::new(ErrorKind::Conflict, what).into());
            }
            each(read(object)?, object.json.len());
        }
        match objects.last() {
            Some(last) if objects.len() == PAGE => {
                beyond = Some((last.created_at, last.id.clone()));
            }
            Some(_) | None => return Ok(()),
        }
    }
}

/// Stores an item; replaces the one with the same namespace and key.
#[utoipa::path(put, path = "/store/items", operation_id = "langgraphPutItem", tag = "langgraph", security(("key" = [])),
    request_body = Object, responses((status = 204), (status = "default", body = ErrorBody)))]
pub(super) async fn put(
    State(api): State<Api>,
    caller: Caller,
    JsonBody(body): JsonBody<Value>,
) -> Result<StatusCode, ApiError> {
    caller.check_sidecar()?;
    let asked = StorePut::read(&body)?;
    let id = StoreItem::id(&asked.namespace, &asked.key);
    let now = Timestamp::now();
    let before = find(&api, &caller.tenant, &id).await?;
    let item = StoreItem {
        namespace: asked.namespace,
        key: asked.key,
        value: asked.value,
        created_at: before.map_or(now, |before| before.created_at),
        updated_at: now,
    };
    let object = NewObject {
        kind: KIND.to_owned(),
        id,
        created_at: item.created_at,
        json: serde_json::to_string(&item).map_err(RuntimeError::from)?,
        content: None,
        thread: None,
        is_limited: true,
    };
    api.runtime(&caller.tenant)
        .objects()
        .put(&caller.tenant, object)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Reads an item.
///
/// The namespace is joined by dots, or repeated. If it is joined, a missing item is null instead of an
/// error.
#[utoipa::path(get, path = "/store/items", operation_id = "langgraphGetItem", tag = "langgraph", security(("key" = [])),
    params(("namespace" = String, Query), ("key" = String, Query), ("refresh_ttl" = Option<bool>, Query)),
    responses((status = 200, body = Option<Object>), (status = "default", body = ErrorBody)))]
pub(super) async fn get(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<Pairs>,
) -> Result<Json<Value>, ApiError> {
    caller.check_sidecar()?;
    let asked = StoreGet::read(&query)?;
    let id = StoreItem::id(&asked.namespace, &asked.key);
    match find(&api, &caller.tenant, &id).await? {
        Some(item) => Ok(Json(item.to_json())),
        None if asked.is_null_if_missing => Ok(Json(Value::Null)),
        None => Err(StoreItem::missing(&asked.key).into()),
    }
}

/// Deletes an item, if it exists.
#[utoipa::path(delete, path = "/store/items", operation_id = "langgraphDeleteItem", tag = "langgraph", security(("key" = [])),
    request_body = Object, responses((status = 204), (status = "default", body = ErrorBody)))]
pub(super) async fn delete(
    State(api): State<Api>,
    caller: Caller,
    JsonBody(body): JsonBody<Value>,
) -> Result<StatusCode, ApiError> {
    caller.check_sidecar()?;
    let asked = StoreDelete::read(&body)?;
    let id = StoreItem::id(&asked.namespace, &asked.key);
    let objects = api.runtime(&caller.tenant).objects();
    objects.delete(&caller.tenant, KIND, &id, None).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Searches items by namespace prefix and by members of their values, last changed first.
#[utoipa::path(post, path = "/store/items/search", operation_id = "langgraphSearchItems", tag = "langgraph", security(("key" = [])),
    request_body = Option<Object>, responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn search(
    State(api): State<Api>,
    caller: Caller,
    OptionalBody(body): OptionalBody<Value>,
) -> Result<Json<Value>, ApiError> {
    caller.check_sidecar()?;
    let asked = StoreSearch::read(&super::object(body))?;
    let mut found = Vec::new();
    let wanted = |item: StoreItem, n_bytes| {
        if asked.wants(&item) {
            let id = StoreItem::id(&item.namespace, &item.key);
            found.push((item.updated_at, id, n_bytes));
        }
    };
    scan(&api, &caller.tenant, wanted).await?;
    found.sort_by_key(|(updated_at, ..)| Reverse(*updated_at));
    let page = found.into_iter().skip(asked.offset).take(asked.limit);
    let (mut items, mut left) = (Vec::new(), MAX_ANSWER);
    for (_, id, n_bytes) in page {
        left = left.checked_sub(n_bytes).ok_or_else(|| {
            let what = format!(
                "the items of this page exceed {MAX_ANSWER} bytes: expected a smaller limit"
            );
            RequestError::new(ErrorKind::Invalid, what)
        })?;
        // It may have been deleted meanwhile.
        items.extend(
            find(&api, &caller.tenant, &id)
                .await?
                .map(|item| item.to_json()),
        );
    }
    Ok(Json(json!({ "items": items })))
}

/// Lists the namespaces that have items, in order.
#[utoipa::path(post, path = "/store/namespaces", operation_id = "langgraphListNamespaces", tag = "langgraph", security(("key" = [])),
    request_body = Option<Object>, responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn namespaces(
    State(api): State<Api>,
    caller: Caller,
    OptionalBody(body): OptionalBody<Value>,
) -> Result<Json<Value>, ApiError> {
    caller.check_sidecar()?;
    let asked = StoreNamespaces::read(&super::object(body))?;
    let mut found = BTreeSet::new();
    scan(&api, &caller.tenant, |item, _| {
        found.extend(asked.of(&item));
    })
    .await?;
    let page = found.into_iter().skip(asked.offset).take(asked.limit);
    Ok(Json(json!({ "namespaces": page.collect::<Vec<_>>() })))
}
