//! Lists of threads: all of them, or those that have some words.

use super::view::ThreadView;
use super::waiting::WaitingReader;
use crate::auth::Caller;
use crate::body::Query;
use crate::error::{ApiError, ErrorBody};
use crate::state::Api;
use crate::threads::listing;
use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use runtime::search::{FoundThread, Search, SearchHit, SearchWords, ThreadPreview};
use runtime::{KeyPattern, ThreadFilter, ThreadRow, ThreadRows};
use serde::{Deserialize, Serialize};
use timeline::{Role, ThreadStatus};
use utoipa::{IntoParams, ToSchema};

const DEFAULT_LIMIT: usize = 50;
const MAX_LIMIT: usize = 500;
const MAX_FOUND: usize = 100;

/// Which threads are listed.
#[derive(Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Only threads with a text or a title that has all these words, at most 512 bytes and 16 words. The
    /// last word may be the beginning of a word.
    pub(super) q: Option<String>,
    /// Only threads whose key has this prefix.
    pub(super) prefix: Option<String>,
    /// Only threads of this status.
    pub(super) status: Option<ThreadStatus>,
    /// Only threads whose last run is this agent's.
    pub(super) agent: Option<String>,
    /// Only threads that changed at this instant or later.
    #[param(value_type = Option<String>, format = DateTime)]
    pub(super) since: Option<Timestamp>,
    /// Only threads in which a call or a request of their own waits for a person. A page may then have
    /// fewer threads than the limit, and a `next`.
    #[serde(default)]
    pub(super) waits: bool,
    /// Maximum number of threads, default 50, at most 500, with `q` at most 100.
    pub(super) limit: Option<usize>,
    /// The `next` of the previous page.
    pub(super) cursor: Option<String>,
}

/// A page of threads, last changed first. With `q`: first those whose title has the words, then the one
/// with the newest text.
#[derive(Serialize, ToSchema)]
pub(crate) struct ThreadList {
    /// The threads.
    threads: Vec<ListedThread>,
    /// The cursor of the next page; absent at the end. With `q`, a page with fewer threads than the limit
    /// can have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A thread in a list.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ListedThread {
    #[serde(flatten)]
    thread: ThreadView,
    /// The agent of its last own run.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    /// The first 200 characters of its newest own text. Absent if that text's event is larger than 256 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_text: Option<String>,
    /// The key of the thread that it was forked from, if the caller may access that.
    #[serde(skip_serializing_if = "Option::is_none")]
    forked_from: Option<String>,
    /// Whether a call or a request of its own waits for a person.
    waits: bool,
    /// With `q`: where the words are, the title first, then the newest text. At least 1, at most 3; older
    /// ones may be left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    snippets: Option<Vec<Snippet>>,
}

/// A piece of a text that has the words.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Snippet {
    /// The event with the text; absent for the title.
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    /// The role of the author, `assistant` for an agent; absent for the title.
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<Role>,
    /// The piece, about 160 characters. It begins or ends with `…` where the text continues.
    text: String,
    /// The start and the end of each found word in `text`, in UTF-16 code units, as JavaScript counts.
    matches: Vec<[usize; 2]>,
}

impl From<SearchHit> for Snippet {
    fn from(hit: SearchHit) -> Self {
        Self {
            seq: hit.seq.map(|seq| seq.0),
            role: hit.role,
            matches: hit.excerpt.utf16_matches(),
            text: hit.excerpt.text,
        }
    }
}

/// Lists the threads, or finds those that have some words.
#[utoipa::path(get, path = "/threads", operation_id = "listThreads", tag = "threads", security(("key" = [])), params(ListQuery),
    responses((status = 200, body = ThreadList), (status = "default", body = ErrorBody)))]
pub(crate) async fn list(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<ListQuery>,
) -> Result<Json<ThreadList>, ApiError> {
    let ListedRows { rows, next } = ListedRows::read(&api, &caller, query).await?;
    let threads = rows.into_iter().map(ListedThread::from).collect();
    Ok(Json(ThreadList { threads, next }))
}

/// A page of threads as the store has them.
pub(super) struct ListedRows {
    /// The threads, in order.
    pub(super) rows: Vec<ListedRow>,
    /// The cursor of the next page.
    pub(super) next: Option<String>,
}

/// A thread of a page.
pub(super) struct ListedRow {
    /// The thread.
    pub(super) row: ThreadRow,
    /// Its agent, its last text and its parent, as far as the caller may know that.
    pub(super) preview: ThreadPreview,
    /// Whether a call or a request of its own waits for a person.
    pub(super) waits: bool,
    /// The hits of a search.
    pub(super) hits: Option<Vec<SearchHit>>,
}

impl From<ListedRow> for ListedThread {
    fn from(listed: ListedRow) -> Self {
        let ThreadPreview {
            agent,
            forked_from,
            last_text,
            may_wait: _,
        } = listed.preview;
        let hits = listed.hits;
        Self {
            thread: listed.row.into(),
            agent,
            last_text,
            forked_from,
            waits: listed.waits,
            snippets: hits.map(|hits| hits.into_iter().map(Snippet::from).collect()),
        }
    }
}

impl ListedRows {
    /// Lists the threads that the caller may see, or finds those that have some words.
    pub(super) async fn read(
        api: &Api,
        caller: &Caller,
        query: ListQuery,
    ) -> Result<Self, ApiError> {
        let limit = query.limit.unwrap_or(DEFAULT_LIMIT);
        let cursor = query.cursor.as_deref();
        let after = cursor.map(listing::read_cursor).transpose()?;
        let filter = ThreadFilter {
            status: query.status,
            agent: query.agent,
            since: query.since,
            may_wait: query.waits,
        };
        let (rows, snippets, next) = if let Some(q) = query.q {
            let words = SearchWords::parse(&q).map_err(|error| ApiError::InvalidQuery {
                what: format!("q: {error}"),
            })?;
            let search = Search {
                words,
                keys: None,
                filter,
                after,
                limit: limit.clamp(1, MAX_FOUND),
            };
            let (found, next) = listing::found(api, caller, (search, query.prefix)).await?;
            let found = found
                .into_iter()
                .map(|FoundThread { row, hits }| (row, Some(hits)));
            let (rows, hits): (Vec<_>, Vec<_>) = found.unzip();
            (rows, hits, next)
        } else {
            let page = ThreadRows {
                after,
                key: query.prefix.map(KeyPattern::Prefix),
                filter,
                limit: limit.clamp(1, MAX_LIMIT),
            };
            let (rows, next) = listing::visible(api, caller, page).await?;
            let none = rows.iter().map(|_| None).collect();
            (rows, none, next)
        };
        let previews = api.runtime(&caller.tenant).previews(&rows).await?;
        let rows = rows.into_iter().zip(previews).zip(snippets);
        let reader = WaitingReader::new(api, caller);
        let mut listed = Vec::new();
        for ((row, preview), hits) in rows {
            let waits = preview.may_wait && reader.waits(&row).await?;
            if query.waits && !waits {
                continue;
            }
            let forked_from = preview.forked_from.filter(|key| caller.rights.cover(key));
            listed.push(ListedRow {
                row,
                preview: ThreadPreview {
                    forked_from,
                    ..preview
                },
                waits,
                hits,
            });
        }
        let rows = listed;
        Ok(Self { rows, next })
    }
}
