//! `threads compact`: summaries that replace older runs when a model reads a thread.

use super::missing;
use crate::args::CompactOptions;
use crate::client::Compaction;
use crate::error::CliError;
use crate::input::Input;
use crate::output::{DIM, Output, clean};
use crate::store::{Reach, StoreLocation};
use runtime::{Cut, NewCompaction, Position};
use serde_json::json;
use server::OpenMode;
use server::config::CompactionConfig;
use thread::Limits;
use timeline::{CompactionId, Seq, SummaryAuthor};

/// Number of compactions that are read at once.
const PAGE: usize = 100;

pub(super) async fn compact(
    place: &StoreLocation,
    options: CompactOptions,
    output: &Output,
) -> Result<(), CliError> {
    let key = options.key.as_str();
    if options.undo {
        let reach = place.reach(&options.whose, OpenMode::ReadWrite).await?;
        let id = match options.id {
            Some(id) => id,
            None => counting(list(&reach, key).await?, key)?,
        };
        match &reach {
            Reach::Server(client) => client.withdraw_compaction(key, &id).await?,
            Reach::Store(app, tenant) => {
                let id = CompactionId::from(id.as_str());
                let withdrawn = app
                    .runtime(tenant)
                    .withdraw_compaction(tenant, key, id)
                    .await;
                withdrawn.map_err(|error| missing(error, key))?;
            }
        }
        output.value(&json!({"withdrawn": id}))?;
        output.line(&format!("compaction {} is withdrawn", clean(&id)))?;
        return reach.close().await;
    }
    let summary = match (options.summary, options.summary_file) {
        (Some(summary), _) => Some(summary),
        (None, Some(file)) => {
            let max_bytes = Limits::default().max_bytes;
            Some(Input::open(Some(&file))?.text(max_bytes)?)
        }
        (None, None) => None,
    };
    let Some(summary) = summary else {
        if options.through.is_some() || options.event.is_some() || options.keep_runs.is_some() {
            let what = "the summary is missing: expected --summary or --summary-file";
            return Err(CliError::Usage { what: what.into() });
        }
        let reach = place.reach(&options.whose, OpenMode::ReadOnly).await?;
        for found in list(&reach, key).await? {
            output.value(&json!(found))?;
            output.line(&line(&found))?;
        }
        return reach.close().await;
    };
    if summary.trim().is_empty() {
        let what = "the summary is empty".to_owned();
        return Err(CliError::Usage { what });
    }
    let reach = place.reach(&options.whose, OpenMode::ReadWrite).await?;
    let cut = match (options.through, options.event) {
        (Some(execution), _) => Cut::Through(execution.into()),
        (None, Some(event)) => Cut::At(Seq(event)),
        (None, None) => Cut::KeepRuns(options.keep_runs.unwrap_or(CompactionConfig::KEEP_RUNS)),
    };
    let made = match &reach {
        Reach::Server(client) => client.compact(key, &cut, &summary).await?,
        Reach::Store(app, tenant) => {
            let new = NewCompaction {
                cut,
                summary,
                author: SummaryAuthor::default(),
            };
            let made = app.runtime(tenant).compact(tenant, key, new).await;
            made.map_err(|error| missing(error, key))?.into()
        }
    };
    output.value(&json!(made))?;
    output.line(&line(&made))?;
    reach.close().await
}

async fn list(reach: &Reach, key: &str) -> Result<Vec<Compaction>, CliError> {
    let mut all = Vec::new();
    let mut before = None;
    loop {
        before = match reach {
            Reach::Server(client) => {
                let page = client.compactions(key, before).await?;
                all.extend(page.compactions);
                page.before
            }
            Reach::Store(app, tenant) => {
                let place = before.map_or(Position::END, Position);
                let page = app
                    .runtime(tenant)
                    .compactions(tenant, key, place, PAGE)
                    .await;
                let (page, next) = page.map_err(|error| missing(error, key))?;
                all.extend(page.into_iter().map(Compaction::from));
                next.map(|next| next.0)
            }
        };
        if before.is_none() {
            return Ok(all);
        }
    }
}

/// The id of the compaction that counts.
fn counting(list: Vec<Compaction>, key: &str) -> Result<String, CliError> {
    let found = list.into_iter().find(|it| it.counts).map(|it| it.id);
    found.ok_or_else(|| CliError::Usage {
        what: format!("no compaction of thread {} counts", clean(key)),
    })
}

fn line(found: &Compaction) -> String {
    let state = match (found.counts, found.withdrawn) {
        (true, _) => "counts",
        (false, true) => "withdrawn",
        (false, false) => "superseded",
    };
    let replaced = found.replaced;
    let size = format!(
        "{DIM}{} runs, {} messages, {} bytes{DIM:#}",
        replaced.executions, replaced.messages, replaced.bytes
    );
    let head = format!(
        "{}  {state}  through {}  {size}",
        clean(&found.id),
        clean(&found.execution_id)
    );
    format!("{head}\n{}", clean(found.summary.trim_end()))
}
