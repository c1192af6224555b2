//! The files and texts of a thread, for its page.

use crate::auth::Caller;
use crate::body::Query;
use crate::error::ApiError;
use crate::routes::content::{file_of, file_response};
use crate::state::Api;
use crate::threads::ThreadKey;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderName, HeaderValue, header};
use interop::parts::InlineFile;
use runtime::{Filter, PageRequest};
use serde::Deserialize;
use std::collections::BTreeSet;
use timeline::{Entry, MessagePartKind, StepRecord, part_kind};

/// Maximum number of executions whose texts are read at once.
const MAX_EXECUTIONS: usize = 50;

/// A part of a message, or of a step of an execution.
#[derive(Deserialize)]
pub(super) struct FileQuery {
    thread: String,
    item: Option<String>,
    execution: Option<String>,
    step: Option<String>,
    part: usize,
}

/// Reads a file that is stored within a message or an answer.
pub(super) async fn read(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<FileQuery>,
) -> Result<Response, ApiError> {
    let thread = ThreadKey::new(&api, &caller, &query.thread)?;
    let found = match (&query.item, &query.execution, &query.step) {
        (Some(item), None, None) => file_of(&thread, &item.as_str().into(), query.part).await?,
        (None, Some(execution), Some(step)) => {
            step_file(&thread, (execution, step), query.part).await?
        }
        _ => {
            let what = "expected item, or execution and step".to_owned();
            return Err(ApiError::InvalidQuery { what });
        }
    };
    let mut response = found
        .and_then(file_response)
        .ok_or(ApiError::UnknownRoute)?
        .into_response();
    let own = HeaderName::from_static("cross-origin-resource-policy");
    let headers = response.headers_mut();
    headers.insert(own, HeaderValue::from_static("same-origin"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// The executions of an answer.
#[derive(Deserialize)]
pub(super) struct TextQuery {
    thread: String,
    /// Their ids, separated by commas.
    executions: String,
}

/// Reads the text of an answer as Markdown.
pub(super) async fn text(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<TextQuery>,
) -> Result<Response, ApiError> {
    let thread = ThreadKey::new(&api, &caller, &query.thread)?;
    let mut texts: Vec<String> = Vec::new();
    let mut seen = BTreeSet::new();
    let ids = query.executions.split(',').take(MAX_EXECUTIONS);
    for id in ids.filter(|id| seen.insert(*id)) {
        for step in steps(&thread, id).await? {
            let parts = step.parts.iter().map(|part| &part.part);
            let written = parts.filter(|part| {
                let kind = part.str_field("type");
                kind.as_deref().and_then(part_kind) == Some(MessagePartKind::OutputText)
            });
            texts.extend(written.filter_map(|part| part.str_field("text")));
        }
    }
    let headers = [
        (header::CONTENT_TYPE, "text/markdown; charset=utf-8"),
        (header::CONTENT_DISPOSITION, "attachment"),
    ];
    Ok((headers, texts.join("\n\n")).into_response())
}

/// The steps of an execution.
async fn steps(thread: &ThreadKey, execution: &str) -> Result<Vec<StepRecord>, ApiError> {
    let request = PageRequest::Execution(execution.into());
    let page = thread.page(request, Filter::Facts).await?;
    let mut entries = page.transcript.entries.into_iter();
    let own = entries.find_map(|entry| match entry {
        Entry::Reaction(reaction) if reaction.execution.id.as_str() == execution => {
            Some(reaction.steps)
        }
        Entry::Reaction(_) | Entry::Item(_) => None,
    });
    Ok(own.unwrap_or_default())
}

async fn step_file(
    thread: &ThreadKey,
    (execution, step): (&str, &str),
    part: usize,
) -> Result<Option<InlineFile>, ApiError> {
    let steps = steps(thread, execution).await?.into_iter();
    let mut steps = steps.filter(|found| found.step.id.as_str() == step);
    let part = steps
        .next()
        .and_then(|found| found.parts.into_iter().nth(part));
    Ok(part.and_then(|part| InlineFile::read(&part.part)))
}
