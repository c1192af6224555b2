//! Pages of the threads that a caller may see.

use crate::auth::{Caller, ThreadPattern};
use crate::error::ApiError;
use crate::state::Api;
use runtime::search::{FoundThread, Search};
use runtime::{KeyPattern, ThreadRow, ThreadRows, WaitingRow, WaitingRows};
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
        None => {
            api.runtime(&caller.tenant)
                .list(&caller.tenant, page)
                .await?
        }
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
    let prefix = match &page.key {
        Some(KeyPattern::Prefix(prefix) | KeyPattern::Key(prefix)) => prefix,
        None => "",
    };
    let mut rows = Vec::new();
    for key in patterns.iter().filter_map(|pattern| pattern.within(prefix)) {
        let page = ThreadRows {
            key: Some(key),
            ..page.clone()
        };
        rows.extend(
            api.runtime(&caller.tenant)
                .list(&caller.tenant, page)
                .await?,
        );
    }
    rows.sort_by_key(|row| Reverse(row.change));
    // Patterns may mean the same threads.
    rows.dedup_by(|one, other| one.thread.id == other.thread.id);
    rows.truncate(page.limit);
    Ok(rows)
}

/// A page of the found threads that the caller may see, and the cursor of the next page if there is one.
pub(crate) async fn found(
    api: &Api,
    caller: &Caller,
    (search, prefix): (Search, Option<String>),
) -> Result<(Vec<FoundThread>, Option<String>), ApiError> {
    let keys = match &caller.rights.threads {
        None => prefix.map(|prefix| vec![KeyPattern::Prefix(prefix)]),
        Some(patterns) => {
            let prefix = prefix.unwrap_or_default();
            let keys = patterns.iter().filter_map(|it| it.within(&prefix));
            Some(keys.collect())
        }
    };
    let search = Search { keys, ..search };
    let found = api
        .runtime(&caller.tenant)
        .search(&caller.tenant, search)
        .await?;
    Ok((found.threads, found.next.map(|next| next.to_string())))
}

/// A page of the threads that the caller may see and in which something waits, the one with the oldest
/// event first.
pub(crate) async fn waiting(
    api: &Api,
    caller: &Caller,
    page: WaitingRows,
) -> Result<Vec<WaitingRow>, ApiError> {
    let Some(patterns) = &caller.rights.threads else {
        return Ok(api
            .runtime(&caller.tenant)
            .waiting(&caller.tenant, page)
            .await?);
    };
    let prefix = match &page.key {
        Some(KeyPattern::Key(key)) if caller.rights.cover(key) => {
            return Ok(api
                .runtime(&caller.tenant)
                .waiting(&caller.tenant, page)
                .await?);
        }
        Some(KeyPattern::Key(_)) => return Ok(Vec::new()),
        Some(KeyPattern::Prefix(prefix)) => prefix,
        None => "",
    };
    let mut rows = Vec::new();
    for key in patterns.iter().filter_map(|pattern| pattern.within(prefix)) {
        let page = WaitingRows {
            key: Some(key),
            ..page.clone()
        };
        rows.extend(
            api.runtime(&caller.tenant)
                .waiting(&caller.tenant, page)
                .await?,
        );
    }
    rows.sort_by_key(|row| row.number);
    rows.dedup_by_key(|row| row.number);
    rows.truncate(page.limit);
    Ok(rows)
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
