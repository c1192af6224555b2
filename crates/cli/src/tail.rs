//! `tail`: the events of a thread, as they are written.

use crate::args::TailOptions;
use crate::client::Client;
use crate::error::CliError;
use crate::output::{Output, reader_left};
use crate::store::{Reach, StoreLocation};
use crate::threads::missing;
use runtime::{Logged, Watched};
use server::OpenMode;
use std::time::Duration;
use timeline::Seq;

/// The note at the end of the log.
const WAITING: &str =
    "waiting for new events; Ctrl-C ends, and --no-follow stops at the end of the log";

pub(crate) async fn tail(
    place: &StoreLocation,
    options: TailOptions,
    output: &Output,
) -> Result<(), CliError> {
    let TailOptions {
        key,
        after,
        no_follow,
        whose,
    } = options;
    let (key, mut after) = (key.as_str(), Seq(after));
    let reach = place.reach(&whose, OpenMode::ReadOnly)?;
    let (app, tenant) = match reach {
        Reach::Store(app, tenant) => (app, tenant),
        Reach::Server(client) => return tail_there(&client, key, after, no_follow, output).await,
    };
    app.runtime()
        .find(&tenant, key)
        .await
        .map_err(|error| missing(error, key))?;
    let left = reader_left();
    tokio::pin!(left);
    let mut is_waiting = false;
    loop {
        let page = app.runtime().read(&tenant, key, after, 1_000).await?;
        for logged in &page {
            after = logged.record.seq;
            output.json(&event_json(logged))?;
        }
        if page.is_empty() {
            if no_follow {
                return Ok(());
            }
            if !is_waiting {
                output.print(WAITING);
                is_waiting = true;
            }
            // Another process may write to this store; its log is read, and it can't wake this one.
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(200)) => {}
                () = &mut left => return Err(CliError::BrokenPipe),
            }
        }
    }
}

/// Follows a thread of a server and prints its records.
async fn tail_there(
    client: &Client,
    key: &str,
    mut after: Seq,
    no_follow: bool,
    output: &Output,
) -> Result<(), CliError> {
    loop {
        let (events, more) = client.page(key, after).await?;
        for event in events {
            output.json(&event)?;
            after = crate::client::seq_of(&event)?;
        }
        if !more {
            break;
        }
    }
    if no_follow {
        return Ok(());
    }
    output.print(WAITING);
    let mut frames = client.events(key, after, false).await?;
    let left = reader_left();
    tokio::pin!(left);
    loop {
        let watched = tokio::select! {
            watched = frames.next(key) => watched?,
            () = &mut left => return Err(CliError::BrokenPipe),
        };
        match watched {
            Some(Watched::Record(logged)) => output.json(&event_json(&logged))?,
            Some(Watched::Subagent(_)) => {}
            None => {
                return Err(CliError::StreamEnded {
                    key: key.to_owned(),
                });
            }
        }
    }
}

/// An event as the event stream has it.
pub(crate) fn event_json(logged: &Logged) -> String {
    let record = &logged.record;
    let rest = logged.text.strip_prefix('{').unwrap_or(&logged.text);
    format!("{{\"seq\":{},\"at\":\"{}\",{rest}", record.seq, record.at)
}
