//! `export`, `import`, `validate`, `hash`.

use crate::args::From;
use crate::error::CliError;
use crate::output::{BAD, BOLD, DIM, GOOD, Output, clean};
use crate::store::Place;
use crate::threads::missing;
use serde_json::json;
use server::{DEV_TENANT, Format, OpenMode};
use std::io::Read;
use std::path::{Path, PathBuf};
use thread::{CanonicalOptions, Profile, Rules, Severity, Thread};

pub(crate) async fn export(
    place: &Place,
    key: &str,
    file: Option<PathBuf>,
    output: &Output,
) -> Result<(), CliError> {
    let app = place.open(OpenMode::ReadOnly)?;
    let document = app
        .export(&DEV_TENANT.into(), key)
        .await
        .map_err(|error| missing(error, key))?;
    let text = document.encode();
    match file {
        None => output.document(&text),
        Some(file) => {
            let name = file.display().to_string();
            std::fs::write(&file, text).map_err(CliError::io(format!("write {name}")))?;
            let hash = hash_of(&document, true)?;
            output.value(&json!({"thread": key, "file": name, "hash": hash}))?;
            output.line(&format!("{name}  {DIM}{hash}{DIM:#}"))
        }
    }
}

pub(crate) async fn import(
    place: &Place,
    from: From,
    file: &Path,
    key: Option<String>,
    output: &Output,
) -> Result<(), CliError> {
    let text = read(file)?;
    let app = place.open(OpenMode::ReadWrite)?;
    let format = match from {
        From::Thread => Format::Thread,
        From::PydanticAi => Format::PydanticAi,
    };
    let (row, losses) = app.import(&DEV_TENANT.into(), key, format, &text).await?;
    let key = row.thread.key.unwrap_or_default();
    for loss in &losses {
        output.say(&format!(
            "{DIM}not carried{DIM:#} {}: {}",
            clean(&loss.pointer),
            clean(&loss.what)
        ));
    }
    let lost: Vec<_> = losses
        .iter()
        .map(|loss| json!({"pointer": loss.pointer, "what": loss.what}))
        .collect();
    output.value(&json!({"key": key, "events": row.tail, "losses": lost}))?;
    output.line(&format!("{BOLD}{key}{BOLD:#}  {} events", row.tail))?;
    Ok(app.shutdown().await?)
}

pub(crate) fn validate(
    file: &Path,
    strict: bool,
    deny_timestamps: bool,
    output: &Output,
) -> Result<(), CliError> {
    let document = decode(file)?;
    let profile = if strict {
        Profile::Strict
    } else {
        Profile::Lenient
    };
    let rules = Rules {
        deny_timestamps,
        ..Rules::from(profile)
    };
    let violations = thread::validate(&document, rules);
    let mut n_errors = 0;
    for violation in &violations {
        let error = violation.severity == Severity::Error;
        n_errors += usize::from(error);
        let word = if error { "error" } else { "warning" };
        let pointer = if violation.pointer.is_empty() {
            "(document)"
        } else {
            &clean(&violation.pointer)
        };
        output.value(&json!({
            "severity": word, "pointer": violation.pointer, "rule": violation.rule.id(), "message": violation.message,
        }))?;
        let style = if error { BAD } else { DIM };
        output.line(&format!(
            "{style}{word}{style:#} {BOLD}{pointer}{BOLD:#} {} {DIM}[{}]{DIM:#}",
            clean(&violation.message),
            violation.rule.id()
        ))?;
    }
    if n_errors > 0 {
        return Err(CliError::Invalid { n_errors });
    }
    let profile = if strict { "strict" } else { "lenient" };
    output.line(&format!(
        "{GOOD}valid{GOOD:#} under {profile}, {}",
        match violations.len() {
            1 => "1 warning".to_owned(),
            n => format!("{n} warnings"),
        }
    ))
}

pub(crate) fn hash(file: &Path, without_sys: bool, output: &Output) -> Result<(), CliError> {
    let hash = hash_of(&decode(file)?, !without_sys)?;
    output.value(&json!({"hash": hash}))?;
    output.line(&hash)
}

fn hash_of(document: &Thread, keep_sys: bool) -> Result<String, CliError> {
    let hash =
        thread::hash(document, CanonicalOptions { keep_sys }).map_err(CliError::Canonical)?;
    Ok(hash.to_string())
}

fn decode(file: &Path) -> Result<Thread, CliError> {
    let text = read(file)?;
    Thread::decode(&text).map_err(|source| CliError::Decode {
        file: file.to_owned(),
        source,
    })
}

fn read(file: &Path) -> Result<String, CliError> {
    let mut text = String::new();
    if file == Path::new("-") {
        std::io::stdin()
            .lock()
            .read_to_string(&mut text)
            .map_err(CliError::io("read standard input"))?;
    } else {
        text = std::fs::read_to_string(file)
            .map_err(CliError::io(format!("read {}", file.display())))?;
    }
    Ok(text)
}
