//! The page of a thread's branches.

use super::shown_section::ShownSection;
use crate::auth::Caller;
use crate::body::Query;
use crate::error::ApiError;
use crate::routes::relatives::{RelativeView, ThreadTreeQuery, relatives};
use crate::routes::web::pages::PageParts;
use crate::routes::web::reply::page;
use crate::state::Api;
use crate::threads::ThreadKey;
use axum::extract::State;
use axum::response::Response;
use web::{BranchesPage, RelatedThread, ThreadSection};

/// Number of threads on a page, unless the reader chooses more.
const THREADS: usize = 200;

/// Shows the threads around a thread.
pub(in crate::routes::web) async fn read(
    State(api): State<Api>,
    caller: Caller,
    thread: ThreadKey,
    Query(query): Query<ThreadTreeQuery>,
) -> Result<Response, ApiError> {
    let words = ("Branches", "tree");
    let section = ShownSection::find(&thread, ThreadSection::Branches, words).await?;
    let limit = query.limit.unwrap_or(THREADS);
    let tree = relatives(&thread, ThreadTreeQuery { limit: Some(limit) }).await?;
    let threads: Vec<RelatedThread> = tree.threads.into_iter().map(related).collect();
    let parts = PageParts::read(&api, &caller).await?;
    let shown = BranchesPage {
        frame: section.frame(&parts),
        key: thread.key(),
        threads: &threads,
        more: tree.more,
    };
    Ok(page(shown.html()))
}

fn related(thread: RelativeView) -> RelatedThread {
    RelatedThread {
        key: thread.key,
        title: thread.title,
        parent: thread.parent,
        forked_at: thread.forked_at.map(|seq| seq.0),
        tool_call_id: thread.tool_call_id,
        is_current: thread.current,
        status: thread.status,
        changed_at: thread.updated_at.unwrap_or(thread.created_at),
        n_events: thread.seq.0,
    }
}
