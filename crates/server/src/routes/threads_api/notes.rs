//! What clients note on messages and runs after these were made. The log keeps what was said when it
//! was said; later notes lie beside it and are shown in its place.

use super::{Found, attach};
use crate::error::ApiError;
use crate::state::Api;
use interop::threads::Metadata;
use jiff::Timestamp;
use runtime::objects::{NewObject, ObjectPage};
use runtime::{RuntimeError, StoreError, TenantId};

/// How many objects are looked at or deleted at a time.
const PAGE: usize = 100;

/// The kind of a thread's notes; each thread has its own, so that they go with it.
fn kind_of(thread: &str) -> String {
    format!("threads.notes:{thread}")
}

/// Keeps what a client notes on the message or run of this id, in place of what was noted. It is done in
/// the thread's turn, and to its end: what is deleted meanwhile gets no notes that nobody would find.
pub(super) async fn put(
    api: &Api,
    found: &Found,
    id: &str,
    metadata: &Metadata,
) -> Result<(), ApiError> {
    let object = NewObject {
        kind: kind_of(found.id()),
        id: id.to_owned(),
        created_at: Timestamp::now(),
        json: serde_json::to_string(metadata).map_err(RuntimeError::from)?,
        content: None,
    };
    let (own, tenant) = (api.clone(), found.caller.tenant.clone());
    let thread = found.row.thread.id.clone();
    let put = api.runtime().owned(async move {
        let _turn = own.turns().of(&thread).await;
        own.runtime().find_by_id(&tenant, &thread).await?;
        Ok(own.runtime().objects().put(&tenant, object).await?)
    });
    put.await
}

/// What was noted on the message or run of this id; none where it is as it was made.
pub(super) async fn of(api: &Api, found: &Found, id: &str) -> Result<Option<Metadata>, ApiError> {
    let (kind, objects) = (kind_of(found.id()), api.runtime().objects());
    let object = objects.get(&found.caller.tenant, &kind, id).await?;
    let read = object.map(|object| serde_json::from_str(&object.json));
    Ok(read.transpose().map_err(RuntimeError::from)?)
}

/// The same of many, in their order. Costs one look where nothing was noted on the thread.
pub(super) async fn of_all(
    api: &Api,
    found: &Found,
    ids: Vec<String>,
) -> Result<Vec<Option<Metadata>>, ApiError> {
    let (kind, objects) = (kind_of(found.id()), api.runtime().objects());
    let one = ObjectPage {
        limit: 1,
        ..ObjectPage::default()
    };
    if objects
        .list(&found.caller.tenant, &kind, one)
        .await?
        .is_empty()
    {
        return Ok(vec![None; ids.len()]);
    }
    let mut noted = Vec::with_capacity(ids.len());
    for id in ids {
        noted.push(of(api, found, &id).await?);
    }
    Ok(noted)
}

/// Deletes the notes of a thread that is deleted, and what else was kept beside it.
pub(in crate::routes) async fn forget(
    api: &Api,
    tenant: &TenantId,
    thread: &str,
) -> Result<(), StoreError> {
    for kind in [kind_of(thread), attach::kind_of(thread)] {
        forget_all(api, tenant, &kind).await?;
    }
    Ok(())
}

async fn forget_all(api: &Api, tenant: &TenantId, kind: &str) -> Result<(), StoreError> {
    let objects = api.runtime().objects();
    loop {
        let page = ObjectPage {
            limit: PAGE,
            ..ObjectPage::default()
        };
        let page = objects.list(tenant, kind, page).await?;
        if page.is_empty() {
            return Ok(());
        }
        for object in page {
            objects.delete(tenant, kind, &object.id).await?;
        }
    }
}
