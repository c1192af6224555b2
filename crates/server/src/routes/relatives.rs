//! The threads around a thread: where it comes from, its forks, and its sub-agents' threads.

use crate::body::Query;
use crate::error::{ApiError, ErrorBody};
use crate::threads::{ThreadKey, key_of};
use axum::Json;
use jiff::Timestamp;
use runtime::{Relative, Relatives};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use timeline::{Seq, ThreadId, ThreadStatus};
use utoipa::{IntoParams, ToSchema};

const DEFAULT_LIMIT: usize = 1_000;

/// How much of a tree is read.
#[derive(Clone, Copy, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ThreadTreeQuery {
    /// Maximum number of threads, default and at most 1,000.
    pub(crate) limit: Option<usize>,
}

/// The threads around a thread, each after its parent.
#[derive(Serialize, ToSchema)]
pub(crate) struct ThreadTreeView {
    /// The threads, the root first: the path to the thread, then its forks and sub-agents' threads, then
    /// those of the others.
    pub(crate) threads: Vec<RelativeView>,
    /// Whether there are more.
    pub(crate) more: bool,
}

/// A thread in a tree.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RelativeView {
    /// The thread's key.
    pub(crate) key: String,
    /// The thread's id.
    pub(crate) id: ThreadId,
    /// The thread's title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    /// The key of the thread that it was forked from, or that has the calling tool call; absent for the
    /// root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parent: Option<String>,
    /// The last event that a fork shares with its parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) forked_at: Option<Seq>,
    /// The calling tool call of a sub-agent's thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_call_id: Option<String>,
    /// Whether it is the requested thread.
    pub(crate) current: bool,
    /// `open`, `streaming`, `closed` or `failed`.
    pub(crate) status: ThreadStatus,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) created_at: Timestamp,
    /// When it last changed.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) updated_at: Option<Timestamp>,
    /// The last event.
    pub(crate) seq: Seq,
}

/// Reads the threads around a thread: those that it was forked from, its forks, and its sub-agents'
/// threads, with the status of each.
///
/// Threads that the key may not access are left out, with everything below them.
#[utoipa::path(get, path = "/threads/{key}/tree", operation_id = "readTree", tag = "threads", security(("key" = [])), params(("key" = String, Path), ThreadTreeQuery),
    responses((status = 200, body = ThreadTreeView), (status = "default", body = ErrorBody)))]
pub(crate) async fn read(
    thread: ThreadKey,
    Query(query): Query<ThreadTreeQuery>,
) -> Result<Json<ThreadTreeView>, ApiError> {
    Ok(Json(relatives(&thread, query).await?))
}

/// The threads around a thread.
pub(crate) async fn relatives(
    thread: &ThreadKey,
    query: ThreadTreeQuery,
) -> Result<ThreadTreeView, ApiError> {
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, DEFAULT_LIMIT);
    let may_see = |key: &str| thread.caller().check(key).is_ok();
    let Relatives { list, more } = thread.relatives(limit, &may_see).await?;
    let keys: BTreeMap<ThreadId, String> = list
        .iter()
        .map(|it| (it.row.thread.id.clone(), key_of(&it.row).to_owned()))
        .collect();
    let threads = list.into_iter().map(|relative| {
        let Relative { row, parent, call } = relative;
        let key = key_of(&row).to_owned();
        let parent = parent.and_then(|parent| keys.get(&parent).cloned());
        let fork = row.thread.fork.filter(|_| parent.is_some());
        RelativeView {
            current: key == thread.key(),
            tool_call_id: call.filter(|_| parent.is_some()),
            parent,
            forked_at: fork.map(|fork| fork.seq),
            key,
            id: row.thread.id,
            title: row.thread.title,
            status: row.thread.status,
            created_at: row.thread.created_at,
            updated_at: row.thread.updated_at,
            seq: row.tail,
        }
    });
    Ok(ThreadTreeView {
        threads: threads.collect(),
        more,
    })
}
