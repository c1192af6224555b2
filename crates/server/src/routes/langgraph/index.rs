//! An index of runs, stored as sidecar objects. It has the thread of each run, because paths of the
//! Agent Protocol do not name it. It also has whether the run was deleted.

use crate::error::ApiError;
use crate::threads::ThreadRef;
use jiff::Timestamp;
use runtime::objects::NewObject;
use runtime::{Runtime, RuntimeError, TenantId};
use serde::{Deserialize, Serialize};
use timeline::ExecutionId;

/// The kind of index entries in the table of sidecar objects.
const KIND: &str = "langgraph.run";

/// The index entry of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Noted {
    pub(super) thread_id: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_deleted: bool,
}

/// The index entry of the run with this id, if any.
pub(super) async fn noted(
    runtime: &Runtime,
    tenant: &TenantId,
    run: &str,
) -> Result<Option<Noted>, ApiError> {
    let object = runtime.objects().get(tenant, KIND, run).await?;
    let read = object.map(|object| serde_json::from_str(&object.json));
    Ok(read.transpose().map_err(RuntimeError::from)?)
}

/// Stores the thread of a run.
pub(super) async fn note(found: &ThreadRef, run: &ExecutionId) -> Result<(), ApiError> {
    let known = noted(found.runtime(), found.tenant(), run.as_str()).await?;
    match known {
        Some(_) => Ok(()),
        None => put(found, run, false).await,
    }
}

/// Marks a run as deleted.
pub(super) async fn note_deleted(found: &ThreadRef, run: &ExecutionId) -> Result<(), ApiError> {
    put(found, run, true).await
}

async fn put(found: &ThreadRef, run: &ExecutionId, is_deleted: bool) -> Result<(), ApiError> {
    let noted = Noted {
        thread_id: found.id().as_str().to_owned(),
        is_deleted,
    };
    let object = NewObject {
        kind: KIND.to_owned(),
        id: run.to_string(),
        created_at: Timestamp::now(),
        json: serde_json::to_string(&noted).map_err(RuntimeError::from)?,
        content: None,
        thread: Some(found.id().clone()),
        is_limited: false,
    };
    Ok(found
        .runtime()
        .objects()
        .put(found.tenant(), object)
        .await?)
}
