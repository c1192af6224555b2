//! `search`: find threads by words.

use crate::args::SearchOptions;
use crate::client::{FoundRow, Snippet};
use crate::error::CliError;
use crate::output::{BOLD, DIM, Output, clean};
use crate::store::{Reach, StoreLocation};
use runtime::ThreadFilter;
use runtime::search::{Search, SearchWords};
use server::OpenMode;
use std::fmt::Write as _;
use timeline::Role;

pub(crate) async fn search(
    place: &StoreLocation,
    options: SearchOptions,
    output: &Output,
) -> Result<(), CliError> {
    let SearchOptions {
        words,
        agent,
        status,
        since,
        limit,
        whose,
    } = options;
    let query = words.join(" ");
    let words = SearchWords::parse(&query).map_err(|error| CliError::Usage {
        what: error.to_string(),
    })?;
    let filter = ThreadFilter {
        status,
        agent,
        since,
        may_wait: false,
    };
    let found = match place.reach(&whose, OpenMode::ReadOnly).await? {
        Reach::Server(client) => client.search(&query, &filter, limit).await?,
        Reach::Store(app, tenant) => {
            let (mut found, mut after) = (Vec::new(), None);
            loop {
                let search = Search {
                    words: words.clone(),
                    keys: None,
                    filter: filter.clone(),
                    after,
                    limit: limit - found.len(),
                };
                let page = app.runtime(&tenant).search(&tenant, search).await?;
                found.extend(page.threads.into_iter().map(FoundRow::from));
                after = page.next;
                if after.is_none() || found.len() >= limit {
                    break found;
                }
            }
        }
    };
    if found.is_empty() {
        return output.line("no thread has a text with these words");
    }
    for row in found {
        output.value(&row.value())?;
        output.line(&text(&row))?;
    }
    Ok(())
}

fn text(row: &FoundRow) -> String {
    let thread = &row.thread;
    let key = clean(thread.key.as_deref().unwrap_or_default());
    let (status, changed) = (thread.status, thread.changed_at());
    let mut text = format!("{BOLD}{key}{BOLD:#}  {status}  {DIM}{changed:.0}{DIM:#}");
    for snippet in &row.snippets {
        let author = match (snippet.role, snippet.seq) {
            (Some(Role::User), _) => "user",
            (Some(Role::Assistant), _) => "assistant",
            (Some(Role::System), _) => "system",
            (Some(Role::Developer), _) => "developer",
            (None, Some(_)) => "message",
            (None, None) => "title",
        };
        // Writing to a string can't fail.
        let _ = write!(text, "\n    {DIM}{author}{DIM:#}  {}", marked(snippet));
    }
    text
}

/// The text of a snippet on one line, with its matches in bold.
fn marked(snippet: &Snippet) -> String {
    let (mut text, mut at) = (String::new(), 0);
    for c in snippet.text.chars() {
        if snippet.matches.iter().any(|[_, end]| *end == at) {
            let _ = write!(text, "{BOLD:#}");
        }
        if snippet.matches.iter().any(|[start, _]| *start == at) {
            let _ = write!(text, "{BOLD}");
        }
        at += c.len_utf16();
        text.push(if c.is_control() { ' ' } else { c });
    }
    if snippet.matches.iter().any(|[_, end]| *end == at) {
        let _ = write!(text, "{BOLD:#}");
    }
    text
}
