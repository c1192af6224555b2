//! `threads`: list, show, fork, compact, tree, delete.

mod compact;
mod show;
mod tree;

use crate::args::{Threads, Whose};
use crate::client::Listed;
use crate::error::CliError;
use crate::output::{BOLD, DIM, Output, clean, width};
use crate::store::{Reach, StoreLocation, checked};
use runtime::{KeyPattern, Logged, RuntimeError, StoreError, ThreadFilter, ThreadRows};
use serde_json::json;
use server::OpenMode;
use std::io::{BufRead, IsTerminal, Write};
use timeline::Seq;

/// Width of the status of a thread, in characters.
const STATUS: usize = 9;
/// Width of the number of its events, in characters.
const EVENTS: usize = 6;
/// Width of a line of the list without the key, in characters.
const OTHER_COLUMNS: usize = 2 + STATUS + 2 + 20 + 2 + EVENTS + 7;
/// Number of events of a page.
const PAGE: usize = 1_000;

pub(crate) async fn threads(
    place: &StoreLocation,
    command: Threads,
    output: &Output,
) -> Result<(), CliError> {
    match command {
        Threads::List {
            prefix,
            limit,
            whose,
        } => list(place, &whose, prefix, limit, output).await,
        Threads::Show { key, whose } => show::show(place, &whose, &key, output).await,
        Threads::Tail(options) => crate::tail::tail(place, options, output).await,
        Threads::Fork {
            key,
            new_key,
            at,
            whose,
        } => {
            checked(new_key.as_deref())?;
            let reach = place.reach(&whose, OpenMode::ReadWrite).await?;
            let new = match &reach {
                Reach::Server(client) => client.fork(&key, new_key, at).await?,
                Reach::Store(app, tenant) => {
                    let fork = app.runtime(tenant).fork(tenant, &key, new_key, at.map(Seq));
                    let row = fork.await.map_err(|error| missing(error, &key))?;
                    row.thread.key.unwrap_or_default()
                }
            };
            output.value(&json!({"key": new, "forkedFrom": key}))?;
            output.line(&format!("{} is a fork of {}", clean(&new), clean(&key)))?;
            reach.close().await
        }
        Threads::Compact(options) => compact::compact(place, options, output).await,
        Threads::Tree { key, whose } => tree::tree(place, &whose, &key, output).await,
        Threads::Delete { key, yes, whose } => {
            let reach = place.reach(&whose, OpenMode::ReadWrite).await?;
            let terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
            let question = format!("Delete thread {} and everything of it?", clean(&key));
            if terminal && !yes && !confirmed(&question, std::io::stdin().lock())? {
                let what = format!("thread {key} is not deleted; --yes deletes without asking");
                return Err(CliError::NotConfirmed { what });
            }
            match &reach {
                Reach::Server(client) => client.delete(&key).await?,
                Reach::Store(app, tenant) => {
                    let deleted = app.runtime(tenant).delete(tenant, &key).await;
                    deleted.map_err(|error| missing(error, &key))?;
                    // No server does it later.
                    let reclaimed = app.store(tenant).reclaim().await;
                    reclaimed.map_err(RuntimeError::from)?;
                }
            }
            output.value(&json!({"deleted": key}))?;
            output.line(&format!("{} is deleted", clean(&key)))?;
            reach.close().await
        }
    }
}

/// Prompts on a terminal for confirmation of a deletion. Only "yes" confirms.
pub(crate) fn confirmed(question: &str, mut answer: impl BufRead) -> Result<bool, CliError> {
    let mut line = String::new();
    let question = format!("{question} [y/N] ");
    let asked = std::io::stderr().lock().write_all(question.as_bytes());
    asked
        .and_then(|()| answer.read_line(&mut line))
        .map_err(CliError::io("ask whether to delete"))?;
    Ok(matches!(
        line.trim().to_ascii_lowercase().as_str(),
        "y" | "yes"
    ))
}

/// Adds the key to a not-found error of the store.
pub(crate) fn missing(error: impl Into<CliError>, key: &str) -> CliError {
    let error = error.into();
    if let CliError::Runtime(RuntimeError::Store(StoreError::NotFound))
    | CliError::Exchange(server::ExchangeError::Runtime(RuntimeError::Store(
        StoreError::NotFound,
    ))) = error
    {
        return CliError::NotFound {
            key: key.to_owned(),
        };
    }
    error
}

/// Reads all events of a thread, in order.
pub(crate) async fn all_events(
    reach: &Reach,
    key: &str,
    mut each: impl FnMut(&Logged),
) -> Result<(), CliError> {
    let mut after = Seq::ZERO;
    match reach {
        Reach::Server(client) => loop {
            let (events, more) = client.records(key, after).await?;
            for logged in &events {
                after = logged.record.seq;
                each(logged);
            }
            if !more {
                return Ok(());
            }
        },
        Reach::Store(app, tenant) => {
            app.runtime(tenant).find(tenant, key).await?;
            loop {
                let page = app.runtime(tenant).read(tenant, key, after, PAGE).await?;
                let Some(last) = page.last() else {
                    return Ok(());
                };
                after = last.record.seq;
                for logged in &page {
                    each(logged);
                }
            }
        }
    }
}

async fn list(
    place: &StoreLocation,
    whose: &Whose,
    prefix: String,
    limit: usize,
    output: &Output,
) -> Result<(), CliError> {
    let threads = match place.reach(whose, OpenMode::ReadOnly).await? {
        Reach::Server(client) => client.list(&prefix, limit).await?,
        Reach::Store(app, tenant) => {
            let page = ThreadRows {
                after: None,
                key: (!prefix.is_empty()).then(|| KeyPattern::Prefix(prefix.clone())),
                filter: ThreadFilter::default(),
                limit,
            };
            let rows = app.runtime(&tenant).list(&tenant, page).await?;
            rows.into_iter().map(Listed::from).collect()
        }
    };
    if threads.is_empty() {
        return output.line(&if prefix.is_empty() {
            "no threads yet; `loomline run \"hello\"` makes one".to_owned()
        } else {
            format!("no thread has a key that begins with {prefix:?}")
        });
    }
    let key_of = |thread: &Listed| clean(thread.key.as_deref().unwrap_or_default());
    let longest = threads.iter().map(|it| key_of(it).chars().count()).max();
    let keys = longest
        .unwrap_or_default()
        .min(width().saturating_sub(OTHER_COLUMNS));
    for thread in threads {
        output.value(&thread.value())?;
        let (status, events, changed) = (thread.status, thread.seq, thread.changed_at());
        let (key, status) = (key_of(&thread), status.to_string());
        output.line(&format!(
            "{BOLD}{key:keys$}{BOLD:#}  {status:STATUS$}  {DIM}{changed:.0}  {events:>EVENTS$} events{DIM:#}"
        ))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deletion_is_confirmed_by_a_yes_alone() {
        for (answer, expected) in [
            ("y\n", true),
            ("YES\r\n", true),
            ("n\n", false),
            ("\n", false),
            ("", false),
            ("yo\n", false),
        ] {
            assert_eq!(
                confirmed("k", answer.as_bytes()).unwrap(),
                expected,
                "{answer:?}"
            );
        }
    }
}
