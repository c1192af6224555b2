//! Compactions: summaries that replace older runs when a model reads a thread.

use super::threads::Changed;
use crate::auth::Caller;
use crate::body::{JsonBody, PathOf};
use crate::error::{ApiError, ErrorBody};
use crate::threads::ThreadKey;
use axum::Json;
use http::StatusCode;
use jiff::Timestamp;
use runtime::{Cut, NewCompaction, RuntimeError, ThreadCompaction};
use serde::{Deserialize, Serialize};
use timeline::{CompactionId, ExecutionId, Replaced, Seq, SummaryAuthor};
use utoipa::ToSchema;

/// A compaction to make. Exactly one of `executionId`, `event` and `keepRuns` says where it ends.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CompactionRequest {
    /// The text that a model reads in place of the older runs.
    summary: String,
    /// The last execution that the summary replaces.
    execution_id: Option<String>,
    /// The last event that the summary replaces; it ends a run.
    event: Option<u64>,
    /// The number of finished runs that a model still reads; the summary replaces the older ones.
    keep_runs: Option<u32>,
}

impl CompactionRequest {
    fn read(self, author: SummaryAuthor) -> Result<NewCompaction, ApiError> {
        let cut = match (self.execution_id, self.event, self.keep_runs) {
            (Some(id), None, None) => Cut::Through(id.into()),
            (None, Some(event), None) => Cut::At(Seq(event)),
            (None, None, Some(n)) => Cut::KeepRuns(usize::try_from(n).unwrap_or(usize::MAX)),
            _ => {
                let what = "expected exactly one of executionId, event and keepRuns";
                return Err(ApiError::field("", what));
            }
        };
        if self.summary.trim().is_empty() {
            return Err(ApiError::field(
                "/summary",
                "expected a text that is not empty",
            ));
        }
        Ok(NewCompaction {
            cut,
            summary: self.summary,
            author,
        })
    }
}

/// A summary that replaces the oldest runs of a thread when a model reads it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CompactionView {
    /// Its id.
    id: CompactionId,
    /// The last execution that it replaces.
    execution_id: ExecutionId,
    /// The last event that it replaces; absent if it is in the log of an ancestor.
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<Seq>,
    /// The text for the model.
    summary: String,
    /// The author of the text.
    author: SummaryAuthor,
    /// The size of what it replaces.
    replaced: Replaced,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// The event that made it; absent if it is in the log of an ancestor.
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<Seq>,
    /// Whether it was withdrawn.
    withdrawn: bool,
    /// Whether models read it: it is the newest one that is not withdrawn.
    counts: bool,
}

impl From<ThreadCompaction> for CompactionView {
    fn from(found: ThreadCompaction) -> Self {
        let compaction = found.compaction;
        Self {
            id: compaction.id,
            execution_id: compaction.execution_id,
            event: found.through,
            summary: compaction.summary,
            author: compaction.author,
            replaced: compaction.replaced,
            created_at: found.at,
            seq: found.seq,
            withdrawn: found.is_withdrawn,
            counts: found.counts,
        }
    }
}

/// The compactions of a thread, newest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct CompactionList {
    /// The compactions.
    compactions: Vec<CompactionView>,
}

/// Represents the oldest runs of a thread by a summary when a model reads the thread.
///
/// Messages, runs, events and documents still have the runs. A compaction ends where a run ends and no
/// call waits. Else the request fails with `illegal_cut`, and `details.next` names the next possible end. If
/// the compaction that counts has the same end and the same summary, nothing changes.
#[utoipa::path(post, path = "/threads/{key}/compactions", operation_id = "compactThread", tag = "threads", security(("key" = [])),
    params(("key" = String, Path)), request_body = CompactionRequest,
    responses((status = 201, body = CompactionView), (status = "default", body = ErrorBody)))]
pub(crate) async fn create(
    caller: Caller,
    thread: ThreadKey,
    JsonBody(request): JsonBody<CompactionRequest>,
) -> Result<(StatusCode, Json<CompactionView>), ApiError> {
    let author = SummaryAuthor {
        client: Some(caller.name.to_string()),
        ..SummaryAuthor::default()
    };
    let made = match thread.compact(request.read(author)?).await {
        Err(RuntimeError::MessageTooLarge { bytes, max }) => {
            let what = format!("expected a text of at most {max} bytes, not {bytes}");
            return Err(ApiError::field("/summary", what));
        }
        made => made?,
    };
    Ok((StatusCode::CREATED, Json(made.into())))
}

/// Lists the compactions of a thread, newest first, those that are withdrawn included.
#[utoipa::path(get, path = "/threads/{key}/compactions", operation_id = "listCompactions", tag = "threads", security(("key" = [])),
    params(("key" = String, Path)),
    responses((status = 200, body = CompactionList), (status = "default", body = ErrorBody)))]
pub(crate) async fn list(thread: ThreadKey) -> Result<Json<CompactionList>, ApiError> {
    let all = thread.compactions().await?;
    Ok(Json(CompactionList {
        compactions: all.into_iter().map(Into::into).collect(),
    }))
}

/// Withdraws a compaction: models read the one before it, or the runs themselves.
#[utoipa::path(delete, path = "/threads/{key}/compactions/{id}", operation_id = "withdrawCompaction", tag = "threads", security(("key" = [])),
    params(("key" = String, Path), ("id" = String, Path)),
    responses((status = 200, body = Changed), (status = "default", body = ErrorBody)))]
pub(crate) async fn withdraw(
    thread: ThreadKey,
    PathOf((_thread, id)): PathOf<(String, String)>,
) -> Result<Json<Changed>, ApiError> {
    let seq = thread.withdraw_compaction(id.into()).await?;
    Ok(Json(Changed { seq: seq.0 }))
}
