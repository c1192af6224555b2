//! Searches for threads.

use super::find;
use super::{Standing, object, threads};
use crate::auth::Caller;
use crate::body::OptionalBody;
use crate::error::{ApiError, ErrorBody};
use crate::state::Api;
use crate::threads::ThreadRef;
use crate::threads::listing::{read_cursor, visible};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, HeaderName};
use interop::langgraph::{RequestError, ThreadSearch, ThreadStatus, matches_metadata, values_of};
use runtime::{Filter, ThreadRow, ThreadRows};
use serde_json::Value;
use timeline::ThreadStatus as Stands;

/// Number of threads looked up at once.
const ROWS: usize = 100;
/// Maximum number of threads that a request looks at.
const MAX_LOOKS: usize = 10_000;
/// Maximum total size of the logs whose values a page shows, in bytes.
const MAX_VALUES_BYTES: u64 = 16 << 20;

/// The headers of a page. The total is exact on the last page; before that it is the next page's offset
/// plus one.
pub(super) fn pagination(n_found: usize, next: Option<usize>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let mut put = |name, number: usize| {
        headers.insert(HeaderName::from_static(name), number.into());
    };
    put("x-pagination-total", next.map_or(n_found, |next| next + 1));
    if let Some(next) = next {
        put("x-pagination-next", next);
    }
    headers
}

/// The matching threads, one after the other; last changed first.
struct Looking<'a> {
    api: &'a Api,
    caller: &'a Caller,
    asked: &'a ThreadSearch,
    rows: std::vec::IntoIter<ThreadRow>,
    next: Option<ThreadRows>,
    n_looks: usize,
}

impl<'a> Looking<'a> {
    async fn new(
        api: &'a Api,
        caller: &'a Caller,
        asked: &'a ThreadSearch,
    ) -> Result<Self, ApiError> {
        let first = ThreadRows {
            limit: ROWS,
            ..ThreadRows::default()
        };
        let mut looking = Self {
            api,
            caller,
            asked,
            rows: Vec::new().into_iter(),
            next: asked.ids.is_none().then_some(first),
            n_looks: 0,
        };
        if let Some(ids) = &asked.ids {
            let mut rows = Vec::new();
            for id in ids {
                let found = find(api, caller, id).await?;
                rows.extend(found.map(ThreadRef::into_row));
            }
            rows.sort_by_key(|row| std::cmp::Reverse(row.change));
            rows.dedup_by(|one, other| one.thread.id == other.thread.id);
            looking.rows = rows.into_iter();
        }
        Ok(looking)
    }

    /// The next thread, and its state if that was looked up. Costs time proportional to the threads
    /// skipped.
    async fn next(&mut self) -> Result<Option<(ThreadRef, Option<Standing>)>, ApiError> {
        loop {
            let Some(row) = self.rows.next() else {
                let Some(page) = self.next.take() else {
                    return Ok(None);
                };
                let (rows, next) = visible(self.api, self.caller, page).await?;
                self.rows = rows.into_iter();
                self.next = next
                    .map(|next| {
                        Ok::<_, ApiError>(ThreadRows {
                            after: Some(read_cursor(&next)?),
                            limit: ROWS,
                            ..ThreadRows::default()
                        })
                    })
                    .transpose()?;
                continue;
            };
            self.n_looks += 1;
            if self.n_looks > MAX_LOOKS {
                let what = format!(
                    "there are more than {MAX_LOOKS} threads to be looked at: ask for fewer by their ids"
                );
                return Err(RequestError::at("", what).into());
            }
            if !matches_metadata(row.thread.metadata.as_ref(), &self.asked.metadata) {
                continue;
            }
            let found =
                ThreadRef::authorise(self.api.runtime(&self.caller.tenant), self.caller, row)?;
            let Some(wanted) = self.asked.status else {
                return Ok(Some((found, None)));
            };
            // Only what is open may wait for something, which its row does not say.
            let (status, standing) = match found.row().thread.status {
                stands @ (Stands::Streaming | Stands::Failed | Stands::Closed) => {
                    (ThreadStatus::of(stands, false, false), None)
                }
                Stands::Open => {
                    let standing = Standing::of(&found).await?;
                    (standing.status, Some(standing))
                }
            };
            if status == wanted {
                return Ok(Some((found, standing)));
            }
        }
    }
}

/// The size of a thread's log in bytes, with the logs of its parents. Sizes above `left` are not exact.
async fn log_bytes(found: &ThreadRef, left: u64) -> Result<u64, ApiError> {
    let store = found.runtime().store();
    let (mut n_bytes, mut fork) = (found.row().bytes, found.row().thread.fork.clone());
    while let Some(parent) = fork.filter(|_| n_bytes <= left) {
        let row = store.row(&parent.thread_id).await?;
        n_bytes = n_bytes.saturating_add(row.bytes);
        fork = row.thread.fork;
    }
    Ok(n_bytes)
}

/// Searches threads by metadata and status, last changed first.
///
/// Values are included until their total size reaches the limit.
#[utoipa::path(post, path = "/threads/search", operation_id = "langgraphSearchThreads", tag = "langgraph", security(("key" = [])),
    request_body = Option<Object>, responses((status = 200, body = Vec<Object>), (status = "default", body = ErrorBody)))]
pub(super) async fn search(
    State(api): State<Api>,
    caller: Caller,
    OptionalBody(body): OptionalBody<Value>,
) -> Result<Response, ApiError> {
    let asked = ThreadSearch::read(&object(body))?;
    let mut looking = Looking::new(&api, &caller, &asked).await?;
    let (mut page, mut n_found, mut next, mut n_bytes) = (Vec::new(), 0, None, 0u64);
    while let Some((found, standing)) = looking.next().await? {
        if page.len() == asked.limit {
            next = Some(n_found);
            break;
        }
        n_found += 1;
        if n_found <= asked.offset {
            continue;
        }
        let mut values = None;
        if asked.select.shows("values") {
            let left = MAX_VALUES_BYTES.saturating_sub(n_bytes);
            n_bytes = n_bytes.saturating_add(log_bytes(&found, left).await?);
            if n_bytes <= MAX_VALUES_BYTES {
                let transcript = found.transcript(Filter::Facts);
                values = Some(values_of(&transcript.await?));
            }
        }
        let standing = match standing {
            Some(standing) => standing,
            None => Standing::of(&found).await?,
        };
        page.push(
            asked
                .select
                .of(threads::with(&found.row().thread, &standing, values)),
        );
    }
    Ok((pagination(n_found, next), Json(page)).into_response())
}

/// Counts the threads that a search would find.
#[utoipa::path(post, path = "/threads/count", operation_id = "langgraphCountThreads", tag = "langgraph", security(("key" = [])),
    request_body = Option<Object>, responses((status = 200, body = usize, content_type = "application/json"), (status = "default", body = ErrorBody)))]
pub(super) async fn count(
    State(api): State<Api>,
    caller: Caller,
    OptionalBody(body): OptionalBody<Value>,
) -> Result<Json<usize>, ApiError> {
    let asked = ThreadSearch::read(&object(body))?;
    let mut looking = Looking::new(&api, &caller, &asked).await?;
    let mut n_found = 0;
    while looking.next().await?.is_some() {
        n_found += 1;
    }
    Ok(Json(n_found))
}
