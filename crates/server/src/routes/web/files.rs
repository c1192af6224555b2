//! The files of a thread, for its page.

use crate::auth::Caller;
use crate::body::Query;
use crate::error::ApiError;
use crate::routes::content::{file_of, file_response};
use crate::state::Api;
use crate::threads::ThreadKey;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderValue, header};
use interop::parts::InlineFile;
use runtime::{Filter, PageRequest};
use serde::Deserialize;
use timeline::Entry;

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
    response.headers_mut().insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("private, no-store"),
    );
    Ok(response)
}

async fn step_file(
    thread: &ThreadKey,
    (execution, step): (&str, &str),
    part: usize,
) -> Result<Option<InlineFile>, ApiError> {
    let request = PageRequest::Execution(execution.into());
    let page = thread.page(request, Filter::Facts).await?;
    let steps = page
        .transcript
        .entries
        .into_iter()
        .flat_map(|entry| match entry {
            Entry::Reaction(reaction) if reaction.execution.id.as_str() == execution => {
                reaction.steps
            }
            Entry::Reaction(_) | Entry::Item(_) => Vec::new(),
        });
    let mut steps = steps.filter(|found| found.step.id.as_str() == step);
    let part = steps
        .next()
        .and_then(|found| found.parts.into_iter().nth(part));
    Ok(part.and_then(|part| InlineFile::read(&part.part)))
}
