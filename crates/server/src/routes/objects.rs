//! Objects of a thread: JSON values that clients store with it.

use crate::body::{JsonText, PathOf, Query};
use crate::error::{ApiError, ErrorBody, render_error};
use crate::state::Api;
use crate::threads::{ThreadKey, ThreadRef};
use axum::Json;
use axum::extract::State;
use http::StatusCode;
use jiff::Timestamp;
use runtime::objects::{NewObject, ObjectPage, SidecarObject};
use runtime::{RuntimeError, StoreError, ViewShare};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeSet;
use utoipa::{IntoParams, ToSchema};

/// Maximum size of a value, in bytes of its JSON text.
const MAX_VALUE: usize = 4 << 20;
/// Maximum length of a kind, in characters.
const MAX_KIND: usize = 64;
/// Maximum length of an id, in bytes.
const MAX_ID: usize = 256;
/// Number of objects of a page.
const MAX_PAGE: usize = 100;
/// Size of a page, in bytes of its values; a single larger value is a page of its own.
const MAX_PAGE_BYTES: usize = 8 << 20;
/// Number of objects that are read at once; each has up to [`MAX_VALUE`].
const BATCH: usize = 4;

/// A value to store.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewThreadObject {
    /// Any JSON of at most 4 MiB. It is stored byte for byte.
    #[schema(value_type = serde_json::Value)]
    value: Box<RawValue>,
}

/// A stored value of a thread.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ThreadObject {
    /// Its id, unique among the thread's objects of its kind.
    id: String,
    /// When it was first stored.
    created_at: Timestamp,
    /// When its value was stored.
    updated_at: Timestamp,
    /// The value.
    #[schema(value_type = serde_json::Value)]
    value: Box<RawValue>,
}

/// Objects of one kind.
#[derive(Serialize, ToSchema)]
pub(crate) struct ThreadObjectList {
    /// The objects.
    objects: Vec<ThreadObject>,
    /// The `after` of the next page; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// The order of a list.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Order {
    #[default]
    Asc,
    Desc,
}

/// The objects to list.
#[derive(Default, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ObjectQuery {
    /// Only the object with this id; repeat it for more, at most 100 in all. The response then has the
    /// ones that exist, in the order of the ids, and `next` if the rest exceeds the page.
    #[param(rename = "id")]
    ids: Option<Vec<String>>,
    /// Only objects after the one with this id, in the order of the list.
    after: Option<String>,
    /// Maximum number of objects. Default and maximum: 100.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
    /// `asc` (the default) or `desc`: by the time of the first storage.
    #[param(value_type = Option<String>)]
    order: Order,
}

impl ObjectQuery {
    fn read(pairs: Vec<(String, String)>) -> Result<Self, ApiError> {
        let mut query = Self::default();
        let invalid = |what: String| ApiError::InvalidQuery { what };
        for (name, value) in pairs {
            match name.as_str() {
                "id" => query.ids.get_or_insert_default().push(value),
                "after" => query.after = Some(value),
                "limit" => {
                    let limit = value.parse::<usize>();
                    let limit =
                        limit.map_err(|_| invalid(format!("limit is no number: {value:?}")))?;
                    query.limit = Some(limit);
                }
                "order" => {
                    query.order = match value.as_str() {
                        "asc" => Order::Asc,
                        "desc" => Order::Desc,
                        _ => return Err(invalid(format!("order is asc or desc, not {value:?}"))),
                    };
                }
                _ => return Err(invalid(format!("there is no parameter {name:?}"))),
            }
        }
        let n_ids = query.ids.as_ref().map_or(0, Vec::len);
        if n_ids > MAX_PAGE {
            return Err(invalid(format!("{n_ids} ids, and {MAX_PAGE} are allowed")));
        }
        Ok(query)
    }
}

/// An object as the store has it, without what is in the table's columns.
#[derive(Serialize, Deserialize)]
struct Stored {
    updated_at: Timestamp,
    value: Box<RawValue>,
}

/// The objects of one kind on one thread.
struct Shelf {
    thread: ThreadRef,
    /// The kind that the client names.
    name: String,
    /// The kind in the table of sidecar objects, which has the thread's id.
    kind: String,
}

impl Shelf {
    async fn of(thread: &ThreadKey, kind: &str) -> Result<Self, ApiError> {
        let is_allowed =
            |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-._".contains(c);
        if kind.is_empty() || kind.len() > MAX_KIND || !kind.chars().all(is_allowed) {
            return Err(ApiError::InvalidPath {
                what: format!("a kind has 1 to {MAX_KIND} of the characters a-z 0-9 - . _"),
            });
        }
        let (thread, name) = (thread.find().await?, kind.to_owned());
        let kind = format!("client:{}:{name}", thread.id());
        Ok(Self { thread, name, kind })
    }

    fn table(&self) -> &dyn runtime::objects::ObjectTable {
        self.thread.runtime().objects()
    }

    async fn list(&self, page: ObjectPage) -> Result<Vec<SidecarObject>, ApiError> {
        let found = self.table().list(self.thread.tenant(), &self.kind, page);
        match found.await {
            Err(StoreError::NoSuchObject { id, .. }) => Err(self.missing(&id)),
            found => Ok(found.map_err(RuntimeError::from)?),
        }
    }

    async fn find(&self, id: &str) -> Result<Option<SidecarObject>, ApiError> {
        Ok(self
            .table()
            .get(self.thread.tenant(), &self.kind, id)
            .await?)
    }

    fn missing(&self, id: &str) -> ApiError {
        let (kind, id) = (self.name.clone(), id.to_owned());
        RuntimeError::Store(StoreError::NoSuchObject { kind, id }).into()
    }
}

/// A page of objects that is being filled.
#[derive(Default)]
struct Filling {
    objects: Vec<ThreadObject>,
    n_bytes: usize,
}

impl Filling {
    /// Adds an object, unless it is too large for the rest of the page. Holds the memory of the response.
    fn take(&mut self, object: SidecarObject) -> Result<bool, ApiError> {
        let n_bytes = self.n_bytes + object.json.len();
        if n_bytes > MAX_PAGE_BYTES && !self.objects.is_empty() {
            return Ok(false);
        }
        if let Some(share) = ViewShare::current() {
            share.try_hold(n_bytes).map_err(RuntimeError::from)?;
        }
        self.n_bytes = n_bytes;
        self.objects.push(ThreadObject::read(object)?);
        Ok(true)
    }

    /// The page, which is followed by others if there is `more`.
    fn page(self, more: bool) -> ThreadObjectList {
        let next = self.objects.last().filter(|_| more);
        ThreadObjectList {
            next: next.map(|last| last.id.clone()),
            objects: self.objects,
        }
    }
}

impl ThreadObject {
    fn read(object: SidecarObject) -> Result<Self, ApiError> {
        let stored: Stored = serde_json::from_str(&object.json).map_err(RuntimeError::from)?;
        Ok(Self {
            id: object.id,
            created_at: object.created_at,
            updated_at: stored.updated_at,
            value: stored.value,
        })
    }
}

fn check_id(id: &str) -> Result<(), ApiError> {
    if id.is_empty() || id.len() > MAX_ID || id.chars().any(char::is_control) {
        return Err(ApiError::InvalidPath {
            what: format!("an id has 1 to {MAX_ID} bytes and no control characters"),
        });
    }
    Ok(())
}

/// Lists the objects of a kind, or reads some of them by their ids.
///
/// A page has at most 100 objects and 8 MiB, or one larger object.
#[utoipa::path(get, path = "/threads/{key}/objects/{kind}", operation_id = "listObjects", tag = "objects", security(("key" = [])),
    params(("key" = String, Path), ("kind" = String, Path), ObjectQuery),
    responses((status = 200, body = ThreadObjectList), (status = "default", body = ErrorBody)))]
pub(crate) async fn list(
    thread: ThreadKey,
    PathOf((_thread, kind)): PathOf<(String, String)>,
    Query(query): Query<Vec<(String, String)>>,
) -> Result<Json<ThreadObjectList>, ApiError> {
    let query = ObjectQuery::read(query)?;
    let shelf = Shelf::of(&thread, &kind).await?;
    let mut page = Filling::default();
    if let Some(ids) = query.ids {
        let mut seen = BTreeSet::new();
        for id in ids {
            if let Some(found) = shelf.find(&id).await?
                && seen.insert(id)
                && !page.take(found)?
            {
                return Ok(Json(page.page(true)));
            }
        }
        return Ok(Json(page.page(false)));
    }
    let limit = query.limit.unwrap_or(MAX_PAGE).clamp(1, MAX_PAGE);
    let mut after = query.after;
    loop {
        let wanted = ObjectPage {
            after: after.take(),
            newest_first: query.order == Order::Desc,
            limit: BATCH,
            ..ObjectPage::default()
        };
        let batch = shelf.list(wanted).await?;
        let is_last = batch.len() < BATCH;
        after = batch.last().map(|last| last.id.clone());
        for object in batch {
            if page.objects.len() == limit || !page.take(object)? {
                return Ok(Json(page.page(true)));
            }
        }
        if is_last {
            return Ok(Json(page.page(false)));
        }
    }
}

/// Reads an object.
#[utoipa::path(get, path = "/threads/{key}/objects/{kind}/{id}", operation_id = "readObject", tag = "objects", security(("key" = [])),
    params(("key" = String, Path), ("kind" = String, Path), ("id" = String, Path)),
    responses((status = 200, body = ThreadObject), (status = "default", body = ErrorBody)))]
pub(crate) async fn read(
    thread: ThreadKey,
    PathOf((_thread, kind, id)): PathOf<(String, String, String)>,
) -> Result<Json<ThreadObject>, ApiError> {
    let shelf = Shelf::of(&thread, &kind).await?;
    let found = shelf.find(&id).await?;
    let found = found.ok_or_else(|| shelf.missing(&id))?;
    Ok(Json(ThreadObject::read(found)?))
}

/// Stores an object, and replaces the one with its kind and id.
#[utoipa::path(put, path = "/threads/{key}/objects/{kind}/{id}", operation_id = "putObject", tag = "objects", security(("key" = [])),
    params(("key" = String, Path), ("kind" = String, Path), ("id" = String, Path)), request_body = NewThreadObject,
    responses((status = 200, body = ThreadObject), (status = "default", body = ErrorBody)))]
pub(crate) async fn put(
    State(api): State<Api>,
    thread: ThreadKey,
    PathOf((_thread, kind, id)): PathOf<(String, String, String)>,
    JsonText(body): JsonText,
) -> Result<Json<ThreadObject>, ApiError> {
    check_id(&id)?;
    let NewThreadObject { value } =
        serde_json::from_str(&body).map_err(|error| ApiError::field("", render_error(&error)))?;
    if value.get().len() > MAX_VALUE {
        let bytes = value.get().len();
        return Err(ApiError::ObjectTooLarge {
            bytes,
            max: MAX_VALUE,
        });
    }
    let shelf = Shelf::of(&thread, &kind).await?;
    let _turn = api.turns().of(shelf.thread.id()).await;
    let now = Timestamp::now();
    let created_at = shelf
        .find(&id)
        .await?
        .map_or(now, |before| before.created_at);
    let stored = Stored {
        updated_at: now,
        value,
    };
    let object = NewObject {
        kind: shelf.kind.clone(),
        id: id.clone(),
        created_at,
        json: serde_json::to_string(&stored).map_err(RuntimeError::from)?,
        content: None,
        thread: Some(shelf.thread.id().clone()),
        is_limited: true,
    };
    shelf.table().put(shelf.thread.tenant(), object).await?;
    Ok(Json(ThreadObject {
        id,
        created_at,
        updated_at: now,
        value: stored.value,
    }))
}

/// Deletes an object.
#[utoipa::path(delete, path = "/threads/{key}/objects/{kind}/{id}", operation_id = "deleteObject", tag = "objects", security(("key" = [])),
    params(("key" = String, Path), ("kind" = String, Path), ("id" = String, Path)),
    responses((status = 204), (status = "default", body = ErrorBody)))]
pub(crate) async fn delete(
    thread: ThreadKey,
    PathOf((_thread, kind, id)): PathOf<(String, String, String)>,
) -> Result<StatusCode, ApiError> {
    let shelf = Shelf::of(&thread, &kind).await?;
    let deleted = shelf
        .table()
        .delete(shelf.thread.tenant(), &shelf.kind, &id, None);
    if deleted.await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(shelf.missing(&id))
    }
}
