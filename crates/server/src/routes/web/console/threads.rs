//! The list of threads.

use super::super::pages::PageParts;
use super::super::reply::page;
use crate::auth::Caller;
use crate::body::Query;
use crate::error::ApiError;
use crate::routes::thread_list::{ListQuery, ListedRow, ListedRows};
use crate::state::Api;
use crate::threads::key_of;
use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use runtime::search::SearchHit;
use serde::Deserialize;
use timeline::ThreadStatus;
use web::{ConsoleSection, MarkedText, ThreadEntry, ThreadListQuery, ThreadsPage};

/// Number of threads on a page.
const THREADS: usize = 50;

/// The fields of the form. An empty field is absent.
#[derive(Deserialize)]
pub(in crate::routes::web) struct ListForm {
    #[serde(default)]
    q: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    agent: String,
    #[serde(default)]
    since: String,
    #[serde(default)]
    waits: String,
    #[serde(default)]
    cursor: String,
}

/// The page of the list.
pub(in crate::routes::web) async fn list(
    State(api): State<Api>,
    caller: Caller,
    Query(form): Query<ListForm>,
) -> Result<Response, ApiError> {
    let since = field(&form.since).map(|since| read_since(&since).map(|at| (since, at)));
    let (since_text, since) = since.transpose()?.unzip();
    let shown = ThreadListQuery {
        words: field(&form.q),
        status: field(&form.status)
            .map(|text| read_status(&text))
            .transpose()?,
        agent: field(&form.agent),
        since: since_text,
        waits: field(&form.waits).map_or(Ok(false), |text| read_waits(&text))?,
        cursor: field(&form.cursor),
    };
    let query = ListQuery {
        q: shown.words.clone(),
        status: shown.status,
        agent: shown.agent.clone(),
        since,
        waits: shown.waits,
        limit: Some(THREADS),
        cursor: shown.cursor.clone(),
        ..ListQuery::default()
    };
    let found = ListedRows::read(&api, &caller, query).await?;
    let threads: Vec<ThreadEntry> = found.rows.into_iter().map(entry).collect();
    let agents = api.app().agent_names();
    let parts = PageParts::read(&api, &caller).await?;
    let api_path = shown.api_path(since);
    let list = ThreadsPage {
        frame: parts.console("Console", ConsoleSection::Threads, Some(&api_path)),
        search: &shown,
        agents: &agents,
        threads: &threads,
        next: found.next.as_deref(),
    };
    Ok(page(list.html()))
}

/// A field that is not blank.
fn field(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn read_status(text: &str) -> Result<ThreadStatus, ApiError> {
    let mut all = ThreadStatus::ALL.iter();
    let found = all.find(|status| status.to_string() == text);
    found.copied().ok_or_else(|| ApiError::InvalidQuery {
        what: format!("status is {text:?}: expected open, streaming, closed or failed"),
    })
}

fn read_waits(text: &str) -> Result<bool, ApiError> {
    text.parse().map_err(|_| ApiError::InvalidQuery {
        what: format!("waits is {text:?}: expected true or false"),
    })
}

/// Reads a day, which begins in UTC, or an instant.
fn read_since(text: &str) -> Result<Timestamp, ApiError> {
    if let Ok(at) = text.parse() {
        return Ok(at);
    }
    let day: Option<Date> = text.parse().ok();
    let at = day.and_then(|day| day.to_zoned(TimeZone::UTC).ok());
    let at = at.map(|at| at.timestamp());
    at.ok_or_else(|| ApiError::InvalidQuery {
        what: format!("since is {text:?}: expected a day such as 2026-03-01, or an instant"),
    })
}

fn entry(listed: ListedRow) -> ThreadEntry {
    let hits = listed.hits.unwrap_or_default().into_iter();
    let row = listed.row;
    ThreadEntry {
        key: key_of(&row).to_owned(),
        is_fork: row.thread.fork.is_some(),
        is_subagent: runtime::is_subagent(&row),
        status: row.thread.status,
        waits: listed.waits,
        changed_at: row.thread.updated_at.unwrap_or(row.thread.created_at),
        title: row.thread.title,
        agent: listed.preview.agent,
        last_text: listed.preview.last_text,
        forked_from: listed.preview.forked_from,
        hits: hits.map(marked).collect(),
    }
}

fn marked(hit: SearchHit) -> MarkedText {
    MarkedText {
        text: hit.excerpt.text,
        matches: hit.excerpt.matches,
    }
}
