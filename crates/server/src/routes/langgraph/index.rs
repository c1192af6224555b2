//! What is noted of runs beside their threads: which thread a run is of, for paths of the Agent Protocol name none, and
//! whether it was deleted.

use crate::error::ApiError;
use crate::threads::ThreadRef;
use jiff::Timestamp;
use runtime::objects::NewObject;
use runtime::{Runtime, RuntimeError, TenantId};
use serde::{Deserialize, Serialize};
use timeline::ExecutionId;

/// What the table of objects calls them.
const KIND: &str = "langgraph.run";

/// What is noted of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Noted {
    pub(super) thread_id: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_deleted: bool,
}

/// What is noted of the run of this id; none where nothing is.
pub(super) async fn noted(
    runtime: &Runtime,
    tenant: &TenantId,
    run: &str,
) -> Result<Option<Noted>, ApiError> {
    let object = runtime.objects().get(tenant, KIND, run).await?;
    let read = object.map(|object| serde_json::from_str(&object.json));
    Ok(read.transpose().map_err(RuntimeError::from)?)
}

/// Notes of which thread a run is.
pub(super) async fn note(found: &ThreadRef, run: &ExecutionId) -> Result<(), ApiError> {
    let known = noted(found.runtime(), found.tenant(), run.as_str()).await?;
    match known {
        Some(_) => Ok(()),
        None => put(found, run, false).await,
    }
}

/// Notes that a run was deleted.
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
    };
    Ok(found
        .runtime()
        .objects()
        .put(found.tenant(), object)
        .await?)
}
