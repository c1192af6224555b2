//! Files: uploading, listing, reading and deleting.

mod form;
mod sniff;

use super::{Pairs, not_found, pairs};
use crate::auth::Caller;
use crate::body::{PathOf, Query};
use crate::error::openai::Worded;
use crate::error::{ApiError, ErrorBody};
use crate::idempotency::token_of;
use crate::state::Api;
use crate::threads::id_for;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use form::UploadForm;
use http::{HeaderMap, HeaderValue, header};
use interop::threads::{Deleted, FileObject, FileQuery, FileUpload, List, ObjectKind, Order, Page};
use jiff::{SignedDuration, Timestamp};
use runtime::objects::{NewObject, ObjectPage, SidecarObject, sha256};
use runtime::{RuntimeError, StoreError, TenantId};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The kind of file objects in the table of sidecar objects.
const KIND: &str = "file";
/// Number of files read at once.
const BATCH: usize = 200;
/// How long the metadata of an expired file remains, hidden from clients: a client that lists the files
/// in pages may continue after it.
const STAYS: SignedDuration = SignedDuration::from_hours(24);

/// A stored file, as JSON in the table of sidecar objects.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StoredFile {
    /// The object that clients see.
    #[serde(flatten)]
    pub(super) file: FileObject,
    /// The media type of its content.
    pub(super) media_type: String,
}

impl StoredFile {
    fn read(object: &SidecarObject) -> Result<Self, ApiError> {
        Ok(serde_json::from_str(&object.json).map_err(RuntimeError::from)?)
    }

    /// Whether models can receive it as an image.
    pub(super) fn is_image(&self) -> bool {
        self.media_type.starts_with("image/")
    }

    /// Whether models can read it.
    pub(super) fn is_for_models(&self) -> bool {
        let is_text = self.media_type.starts_with("text/");
        self.is_image() || is_text || self.media_type == sniff::PDF
    }

    fn has_expired(&self, now: Timestamp) -> bool {
        self.had_expired(now, SignedDuration::ZERO)
    }

    /// Whether it expired at least this long ago.
    fn had_expired(&self, now: Timestamp, ago: SignedDuration) -> bool {
        let expires = self.file.expires_at;
        let passed = |expires: i64| now.as_second().saturating_sub(expires) >= ago.as_secs();
        expires.is_some_and(passed)
    }
}

/// Cleans up an expired file: deletes the content at once, and the metadata a day later.
async fn put_away(
    api: &Api,
    tenant: &TenantId,
    (object, kept): (SidecarObject, &StoredFile),
    now: Timestamp,
) -> Result<(), StoreError> {
    let objects = api.runtime(tenant).objects();
    if kept.had_expired(now, STAYS) {
        // Where somebody has uploaded it anew meanwhile, that stays.
        objects
            .delete(tenant, KIND, &object.id, Some(&object))
            .await?;
    } else if object.bytes.is_some() {
        let bare = NewObject {
            kind: KIND.to_owned(),
            id: object.id.clone(),
            created_at: object.created_at,
            json: object.json.clone(),
            content: None,
            thread: None,
            is_limited: true,
        };
        // Where somebody has deleted it meanwhile, it stays deleted.
        objects.replace(tenant, &object, bare).await?;
    }
    Ok(())
}

/// The file with this id; an error if it does not exist or has expired.
pub(super) async fn find(api: &Api, tenant: &TenantId, id: &str) -> Result<StoredFile, ApiError> {
    let objects = api.runtime(tenant).objects();
    let object = objects.get(tenant, KIND, id).await?;
    let object = object.ok_or_else(|| not_found(ObjectKind::File, id))?;
    let kept = StoredFile::read(&object)?;
    let now = Timestamp::now();
    if kept.has_expired(now) {
        put_away(api, tenant, (object, &kept), now).await?;
        return Err(not_found(ObjectKind::File, id));
    }
    Ok(kept)
}

/// The content of a file.
pub(super) async fn content_of(
    api: &Api,
    tenant: &TenantId,
    kept: &StoredFile,
) -> Result<Arc<[u8]>, ApiError> {
    let objects = api.runtime(tenant).objects();
    let content = objects.content(tenant, KIND, &kept.file.id).await?;
    content.ok_or_else(|| not_found(ObjectKind::File, &kept.file.id))
}

/// Uploads a file and stores it; equal contents are stored once.
///
/// The first bytes decide the media type. If they contradict the file name, models don't receive the
/// file and it is not an image.
#[utoipa::path(post, path = "/v1/files", operation_id = "openaiUploadFile", tag = "threads-api", security(("key" = [])),
    params(("idempotency-key" = Option<String>, Header)), request_body(content = Object, content_type = "multipart/form-data"),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn upload(
    State(api): State<Api>,
    caller: Caller,
    headers: HeaderMap,
    form: UploadForm,
) -> Result<Json<FileObject>, ApiError> {
    let token = token_of(&headers, "files")?;
    let upload = FileUpload::read(pairs(&form.fields))?;
    let tenant = caller.tenant;
    let id = id_for(&api, &[tenant.as_str()], token.as_deref());
    let (now, bytes) = (Timestamp::now(), form.content.len() as u64);
    let file = upload.file(&id, &form.filename, bytes, now)?;
    let mut media_type = sniff::media_type(&form.content);
    let is_image_wanted = file.purpose == "vision";
    if let Some(promised) = sniff::promised(&form.filename).filter(|it| *it != media_type) {
        if is_image_wanted {
            let message = format!(
                "Invalid 'file': the name '{}' says {promised}, but the content is {media_type}.",
                form.filename
            );
            return Err(refused(message));
        }
        media_type = sniff::UNKNOWN;
    }
    if is_image_wanted && !media_type.starts_with("image/") {
        let message =
            format!("Invalid 'file': expected an image, but the content is {media_type}.");
        return Err(refused(message));
    }
    let kept = StoredFile {
        file,
        media_type: media_type.to_owned(),
    };
    let objects = api.runtime(&tenant).objects();
    if token.is_some()
        && let Some(before) = objects.get(&tenant, KIND, &kept.file.id).await?
    {
        let is_same = before.sha256 == Some(sha256(&form.content));
        let before = StoredFile::read(&before)?.file;
        let named = (&before.filename, &before.purpose);
        if !is_same || named != (&kept.file.filename, &kept.file.purpose) {
            return Err(RuntimeError::TokenReused.into());
        }
        return Ok(Json(before));
    }
    let object = NewObject {
        kind: KIND.to_owned(),
        id: kept.file.id.clone(),
        created_at: now,
        json: serde_json::to_string(&kept).map_err(RuntimeError::from)?,
        content: Some(form.content),
        thread: None,
        is_limited: true,
    };
    objects.put(&tenant, object).await?;
    Ok(Json(kept.file))
}

fn refused(message: String) -> ApiError {
    Worded::invalid(Some("file"), Some("invalid_value"), message).into()
}

/// Lists the files, newest first unless `order=asc`.
///
/// The request also deletes the contents of expired files, and their metadata a day later.
#[utoipa::path(get, path = "/v1/files", operation_id = "openaiListFiles", tag = "threads-api", security(("key" = [])),
    params(("purpose" = Option<String>, Query), ("limit" = Option<u32>, Query), ("order" = Option<String>, Query), ("after" = Option<String>, Query), ("before" = Option<String>, Query)),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn list(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<Pairs>,
) -> Result<Json<List<FileObject>>, ApiError> {
    caller.check_sidecar()?;
    let FileQuery { list, purpose } = FileQuery::read(pairs(&query))?;
    let (objects, now) = (api.runtime(&caller.tenant).objects(), Timestamp::now());
    let (walk, mut page) = (list.walk(), Page::new(&list));
    let (mut after, mut beyond) = (walk.from, None);
    loop {
        let wanted = ObjectPage {
            after: after.take(),
            beyond: beyond.take(),
            newest_first: walk.direction == Order::Descending,
            limit: BATCH,
        };
        let batch = match objects.list(&caller.tenant, KIND, wanted).await {
            Err(StoreError::NoSuchObject { id, .. }) => {
                return Err(not_found(ObjectKind::File, &id));
            }
            batch => batch?,
        };
        // Whether or not the last one is still there by then.
        let last = batch.last().filter(|_| batch.len() == BATCH);
        beyond = last.map(|last| (last.created_at, last.id.clone()));
        for object in batch {
            let kept = StoredFile::read(&object)?;
            let wanted = purpose.as_ref();
            let is_wanted = wanted.is_none_or(|purpose| *purpose == kept.file.purpose);
            if kept.has_expired(now) {
                put_away(&api, &caller.tenant, (object, &kept), now).await?;
            } else if is_wanted && page.push(kept.file).is_break() {
                return Ok(Json(page.list()));
            }
        }
        if beyond.is_none() {
            return Ok(Json(page.list()));
        }
    }
}

/// Reads the metadata of a file.
#[utoipa::path(get, path = "/v1/files/{file_id}", operation_id = "openaiReadFile", tag = "threads-api", security(("key" = [])), params(("file_id" = String, Path)),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn read(
    State(api): State<Api>,
    caller: Caller,
    PathOf(file_id): PathOf<String>,
) -> Result<Json<FileObject>, ApiError> {
    caller.check_sidecar()?;
    let kept = find(&api, &caller.tenant, &file_id).await?;
    Ok(Json(kept.file))
}

/// Reads the content of a file.
#[utoipa::path(get, path = "/v1/files/{file_id}/content", operation_id = "openaiReadFileContent", tag = "threads-api", security(("key" = [])), params(("file_id" = String, Path)),
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream"), (status = "default", body = ErrorBody)))]
pub(super) async fn content(
    State(api): State<Api>,
    caller: Caller,
    PathOf(file_id): PathOf<String>,
) -> Result<Response, ApiError> {
    caller.check_sidecar()?;
    let kept = find(&api, &caller.tenant, &file_id).await?;
    let content = content_of(&api, &caller.tenant, &kept).await?;
    // Never of a type that a browser would run.
    let kind = HeaderValue::from_static("application/octet-stream");
    let disposition = HeaderValue::from_static("attachment");
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_DISPOSITION, disposition),
    ];
    Ok((headers, content.to_vec()).into_response())
}

/// Deletes a file. Messages that name it keep its content.
#[utoipa::path(delete, path = "/v1/files/{file_id}", operation_id = "openaiDeleteFile", tag = "threads-api", security(("key" = [])), params(("file_id" = String, Path)),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn delete(
    State(api): State<Api>,
    caller: Caller,
    PathOf(file_id): PathOf<String>,
) -> Result<Json<Deleted>, ApiError> {
    caller.check_sidecar()?;
    let objects = api.runtime(&caller.tenant).objects();
    if !objects.delete(&caller.tenant, KIND, &file_id, None).await? {
        return Err(not_found(ObjectKind::File, &file_id));
    }
    Ok(Json(Deleted::new("file", file_id)))
}
