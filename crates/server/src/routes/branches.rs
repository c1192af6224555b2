//! The branches of a conversation: a thread, its forks, and their forks.

use crate::auth::Caller;
use crate::error::{ApiError, ErrorBody};
use crate::threads::{ThreadKey, key_of};
use axum::Json;
use runtime::tree::Branch;
use serde::Serialize;
use std::collections::BTreeMap;
use timeline::{Seq, ThreadId, ThreadStatus};
use utoipa::ToSchema;

/// The branches of a conversation, the root first.
#[derive(Serialize, ToSchema)]
pub(crate) struct BranchList {
    /// The branches.
    branches: Vec<BranchView>,
}

/// A branch of a conversation, and its thread.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BranchView {
    /// The thread's key.
    key: String,
    /// The thread's id.
    id: ThreadId,
    /// The id of the tree's node.
    node: String,
    /// The name of the branch.
    name: Option<String>,
    /// The key of the thread that it was forked from.
    parent: Option<String>,
    /// The last event that it shares with that thread.
    forked_at: Option<Seq>,
    /// Whether it is the current branch.
    current: bool,
    /// `open`, `streaming`, `closed` or `failed`.
    status: ThreadStatus,
    /// The last event.
    seq: Seq,
}

/// Lists the branches of a thread's conversation. A restricted key needs access to all of them.
#[utoipa::path(get, path = "/threads/{key}/branches", operation_id = "listBranches", tag = "threads", security(("key" = [])),
    params(("key" = String, Path)), responses((status = 200, body = BranchList), (status = "default", body = ErrorBody)))]
pub(crate) async fn list(caller: Caller, thread: ThreadKey) -> Result<Json<BranchList>, ApiError> {
    let branches = thread.branches().await?;
    let mut keys = BTreeMap::new();
    for branch in &branches {
        let key = key_of(&branch.row);
        caller.check(key)?;
        keys.insert(&*branch.node_id, key);
    }
    let branches = branches.iter().map(|branch| view(branch, &keys)).collect();
    Ok(Json(BranchList { branches }))
}

fn view(branch: &Branch, keys: &BTreeMap<&str, &str>) -> BranchView {
    let thread = &branch.row.thread;
    let parent = branch.parent_id.as_deref();
    BranchView {
        key: key_of(&branch.row).to_owned(),
        id: thread.id.clone(),
        node: branch.node_id.to_string(),
        name: branch.name().map(str::to_owned),
        parent: parent
            .and_then(|parent| keys.get(parent))
            .map(|&key| key.to_owned()),
        forked_at: thread.fork.as_ref().map(|fork| fork.seq),
        current: branch.is_current,
        status: thread.status,
        seq: branch.row.tail,
    }
}
