//! Metadata that clients change on messages and runs later. The log remains unchanged; the new metadata
//! is stored as sidecar objects and replaces the original in responses.

use crate::error::ApiError;
use crate::threads::ThreadRef;
use interop::threads::{Metadata, without_attempt};
use jiff::Timestamp;
use runtime::RuntimeError;
use runtime::objects::{NewObject, ObjectPage};

/// The kind of a thread's notes. Each thread has its own kind, so that one look-up shows whether it has
/// any.
fn kind_of(thread: &str) -> String {
    format!("threads.notes:{thread}")
}

/// Stores the metadata of the message or run with this id, and replaces the earlier one. Does nothing if
/// the thread has been deleted.
pub(super) async fn put(found: &ThreadRef, id: &str, metadata: &Metadata) -> Result<(), ApiError> {
    let object = NewObject {
        kind: kind_of(found.id().as_str()),
        id: without_attempt(id).to_owned(),
        created_at: Timestamp::now(),
        json: serde_json::to_string(metadata).map_err(RuntimeError::from)?,
        content: None,
        thread: Some(found.id().clone()),
        is_limited: false,
    };
    let objects = found.runtime().objects();
    Ok(objects.put(found.tenant(), object).await?)
}

/// The changed metadata of the message or run with this id; none if it was not changed.
pub(super) async fn of(found: &ThreadRef, id: &str) -> Result<Option<Metadata>, ApiError> {
    let (kind, objects) = (kind_of(found.id().as_str()), found.runtime().objects());
    let id = without_attempt(id);
    let object = objects.get(found.tenant(), &kind, id).await?;
    let read = object.map(|object| serde_json::from_str(&object.json));
    Ok(read.transpose().map_err(RuntimeError::from)?)
}

/// The notes on many messages or runs, in their order. Costs one read if the thread has no notes.
pub(super) async fn of_all(
    found: &ThreadRef,
    ids: Vec<String>,
) -> Result<Vec<Option<Metadata>>, ApiError> {
    let (kind, objects) = (kind_of(found.id().as_str()), found.runtime().objects());
    let one = ObjectPage {
        limit: 1,
        ..ObjectPage::default()
    };
    if objects.list(found.tenant(), &kind, one).await?.is_empty() {
        return Ok(vec![None; ids.len()]);
    }
    let mut noted = Vec::with_capacity(ids.len());
    for id in ids {
        noted.push(of(found, &id).await?);
    }
    Ok(noted)
}
