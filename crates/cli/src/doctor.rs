//! `doctor`: is the store sound, and is the set-up what it seems?

use crate::error::CliError;
use crate::output::{BAD, DIM, GOOD, Output, clean};
use crate::store::Place;
use serde_json::json;
use server::{App, OpenMode, told};

pub(crate) async fn doctor(place: &Place, output: &Output) -> Result<(), CliError> {
    let mut n_findings = 0;
    let mut report = |name: &str, finding: Option<String>| {
        n_findings += usize::from(finding.is_some());
        output.value(&json!({"check": name, "ok": finding.is_none(), "finding": finding}))?;
        output.line(&match finding {
            None => format!("{GOOD}ok{GOOD:#}  {name}"),
            Some(finding) => format!("{BAD}bad{BAD:#} {name}: {}", clean(&finding)),
        })
    };
    let config = match place.config() {
        Ok(config) => {
            let mode = if config.is_development() {
                "development mode"
            } else {
                "configured"
            };
            report(&format!("configuration ({mode})"), None)?;
            config
        }
        Err(error) => {
            report("configuration", Some(told(&error)))?;
            return Err(CliError::Unhealthy { n_findings });
        }
    };
    let directory = place.directory(&config);
    output.line(&format!("{DIM}data in {}{DIM:#}", directory.display()))?;
    if !directory.join("loomline.db").exists() {
        report(
            "store (none yet; `loomline serve` or `loomline run` makes it)",
            None,
        )?;
        return Ok(());
    }
    let opens = match &config.store.key {
        Some(_) => "store opens, encrypted",
        None => "store opens",
    };
    match App::open(config, &directory, OpenMode::ReadOnly) {
        Err(error) => report(opens, Some(told(&error)))?,
        Ok(app) => {
            report(opens, None)?;
            let findings = app
                .store()
                .check()
                .await
                .map_err(runtime::RuntimeError::from)?;
            if findings.is_empty() {
                report("store is sound: pages, links, sequence numbers", None)?;
            }
            for finding in findings {
                report("store is sound", Some(finding))?;
            }
        }
    }
    if n_findings > 0 {
        Err(CliError::Unhealthy { n_findings })
    } else {
        Ok(())
    }
}
