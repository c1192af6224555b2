//! `doctor`: is the store sound, and is the set-up what it seems?

use crate::error::CliError;
use crate::output::{BAD, DIM, GOOD, Output, clean};
use crate::store::Place;
use runtime::StoreError;
use serde_json::json;
use server::{App, OpenError, OpenMode, told};
use std::path::Path;

pub(crate) async fn doctor(place: &Place, output: &Output) -> Result<(), CliError> {
    let mut report = Report {
        output,
        n_findings: 0,
    };
    let config = match place.config() {
        Ok(config) => {
            let mode = if config.is_development() {
                "development mode"
            } else {
                "configured"
            };
            report.sound(&format!("configuration ({mode})"))?;
            config
        }
        Err(error) => {
            report.found("configuration", &told(&error), None)?;
            return report.end();
        }
    };
    let directory = place.directory(&config);
    output.line(&format!("{DIM}data in {}{DIM:#}", directory.display()))?;
    if !directory.join("loomline.db").exists() {
        report.sound("store (none yet; `loomline serve` or `loomline run` makes it)")?;
        return Ok(());
    }
    let opens = match &config.store.key {
        Some(_) => "store opens, encrypted",
        None => "store opens",
    };
    match App::open(config, &directory, OpenMode::ReadOnly) {
        Err(error) => {
            let advice = if let OpenError::Store { source, .. } = &error {
                advice(source, &directory)
            } else {
                None
            };
            report.found(opens, &told(&error), advice)?;
        }
        Ok(app) => {
            report.sound(opens)?;
            look_over(&app, &directory, &mut report).await?;
        }
    }
    report.end()
}

/// Reads all of a store.
async fn look_over(app: &App, directory: &Path, report: &mut Report<'_>) -> Result<(), CliError> {
    let check = "store is sound";
    match app.store().check().await {
        Ok(findings) if findings.is_empty() => {
            report.sound("store is sound: pages, links, sequence numbers")
        }
        Ok(findings) => {
            let last = findings.len() - 1;
            for (at, finding) in findings.iter().enumerate() {
                let advice = (at == last).then(|| mend(directory));
                report.found(check, finding, advice)?;
            }
            Ok(())
        }
        Err(error) => report.found(check, &told(&error), advice(&error, directory)),
    }
}

/// What to do where a store can't be read; nothing, where the error says it.
fn advice(error: &StoreError, directory: &Path) -> Option<String> {
    let place = directory.display();
    match error {
        StoreError::Damaged(_) => Some(mend(directory)),
        StoreError::Failed(_) => Some(format!(
            "see whether this user may read and write {place} and the files in it: whoever opens a store that nobody \
             serves makes a file beside it. If nothing is to be written there, copy the directory, and give the copy with --data"
        )),
        StoreError::NotFound
        | StoreError::KeyTaken(_)
        | StoreError::Conflict { .. }
        | StoreError::Fenced { .. }
        | StoreError::Repeated { .. }
        | StoreError::NoSuchObject { .. }
        | StoreError::HasForks { .. }
        | StoreError::Duplicate(_)
        | StoreError::TooNew { .. }
        | StoreError::Key(_)
        | StoreError::InUse(_)
        | StoreError::View(_)
        | StoreError::Closed => None,
    }
}

/// What to do with a store that is damaged.
fn mend(directory: &Path) -> String {
    let place = directory.display();
    format!(
        "stop whoever serves the store, copy {place} as it is, and put a backup in its place. Without one, \
         `loomline threads list` names the threads, and `loomline export --thread KEY` gives out each that can still \
         be read, for `loomline import` into a new directory"
    )
}

/// What was checked, as it is told.
struct Report<'a> {
    output: &'a Output,
    n_findings: usize,
}

impl Report<'_> {
    fn sound(&self, check: &str) -> Result<(), CliError> {
        self.output
            .value(&json!({"check": check, "ok": true, "finding": null}))?;
        self.output.line(&format!("{GOOD}ok{GOOD:#}  {check}"))
    }

    fn found(
        &mut self,
        check: &str,
        finding: &str,
        advice: Option<String>,
    ) -> Result<(), CliError> {
        self.n_findings += 1;
        self.output
            .value(&json!({"check": check, "ok": false, "finding": finding, "advice": advice}))?;
        let finding = clean(finding);
        self.output
            .line(&format!("{BAD}bad{BAD:#} {check}: {finding}"))?;
        match advice {
            Some(advice) => self
                .output
                .line(&format!("{DIM}    {}{DIM:#}", clean(&advice))),
            None => Ok(()),
        }
    }

    fn end(self) -> Result<(), CliError> {
        match self.n_findings {
            0 => Ok(()),
            n_findings => Err(CliError::Unhealthy { n_findings }),
        }
    }
}
