//! Pages of the threads that a caller may see.

use crate::auth::{Caller, Sought, ThreadPattern};
use crate::error::ApiError;
use crate::state::Api;
use runtime::{StoreError, ThreadRow, ThreadRows};
use std::cmp::Reverse;

/// A page of the threads that the caller may see, and the cursor of the next page if there is one. Other
/// threads are neither on the page nor in the cursor.
///
/// If the key is restricted to some threads, the server looks up each of its patterns; a pattern costs
/// as much as a page.
pub(crate) async fn visible(
    api: &Api,
    caller: &Caller,
    page: ThreadRows,
) -> Result<(Vec<ThreadRow>, Option<String>), ApiError> {
    let limit = page.limit;
    // One more, to know whether there is more.
    let page = ThreadRows {
        limit: limit + 1,
        ..page
    };
    let mut rows = match &caller.rights.threads {
        None => api.runtime().list(&caller.tenant, page).await?,
        Some(patterns) => of_patterns(api, caller, patterns, &page).await?,
    };
    let is_more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| is_more).map(cursor);
    Ok((rows, next))
}

async fn of_patterns(
    api: &Api,
    caller: &Caller,
    patterns: &[ThreadPattern],
    page: &ThreadRows,
) -> Result<Vec<ThreadRow>, ApiError> {
    let prefix = page.prefix.as_deref().unwrap_or_default();
    let mut rows = Vec::new();
    for sought in patterns.iter().filter_map(|pattern| pattern.within(prefix)) {
        match sought {
            Sought::Prefix(prefix) => {
                let prefix = Some(prefix);
                let page = ThreadRows {
                    prefix,
                    ..page.clone()
                };
                rows.extend(api.runtime().list(&caller.tenant, page).await?);
            }
            Sought::Key(key) => rows.extend(of_key(api, caller, &key, page).await?),
        }
    }
    rows.sort_by_key(|row| Reverse(row.change));
    // Patterns may mean the same threads.
    rows.dedup_by(|one, other| one.thread.id == other.thread.id);
    rows.truncate(page.limit);
    Ok(rows)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the key is one of the caller's patterns"
)]
async fn of_key(
    api: &Api,
    caller: &Caller,
    key: &str,
    page: &ThreadRows,
) -> Result<Option<ThreadRow>, ApiError> {
    let row = match api.runtime().find(&caller.tenant, key).await {
        Err(runtime::RuntimeError::Store(StoreError::NotFound)) => return Ok(None),
        found => found?,
    };
    let is_after = page.after.is_none_or(|after| row.change < after);
    Ok(Some(row).filter(|_| is_after))
}

fn cursor(row: &ThreadRow) -> String {
    row.change.to_string()
}

/// Parses the `next` of a page.
pub(crate) fn read_cursor(text: &str) -> Result<u64, ApiError> {
    text.parse().map_err(|_| ApiError::InvalidQuery {
        what: "cursor is not the \"next\" of a page".into(),
    })
}
