//! `export` and `import`.

use crate::args::{From, Whose};
use crate::check::hash_value;
use crate::error::CliError;
use crate::input::Input;
use crate::output::{BOLD, DIM, Output, WARNED, clean};
use crate::sink::Sink;
use crate::store::{Place, checked};
use crate::threads::missing;
use serde_json::json;
use server::{Format, OpenMode};
use std::path::{Path, PathBuf};
use thread::canonical::inexact_numbers;
use thread::{CanonicalOptions, Limits};

pub(crate) async fn export(
    place: &Place,
    (whose, key): (&Whose, &str),
    file: Option<PathBuf>,
    output: &Output,
) -> Result<(), CliError> {
    let (app, tenant) = place.open(whose, OpenMode::ReadOnly)?;
    let document = app
        .export(&tenant, key)
        .await
        .map_err(|error| missing(error, key))?;
    let mut sink = Sink::open(file.as_deref(), output)?;
    sink.document(&document.encode())?;
    sink.finish()?;
    let name = file.as_ref().map_or("standard output".to_owned(), |file| {
        file.display().to_string()
    });
    let inexact = inexact_numbers(&document);
    if let Some(inexact) = &inexact {
        output.say(&format!(
            "{WARNED}warning{WARNED:#} {}",
            clean(&inexact.to_string())
        ));
    }
    match file.filter(|file| file != Path::new("-")) {
        None => Ok(()),
        Some(_) => {
            let hash = thread::hash(&document, CanonicalOptions::default());
            let hash = hash.map_err(|source| CliError::Canonical {
                spot: name.clone(),
                source,
            })?;
            let hash = hash.to_string();
            let mut value = hash_value(&hash, inexact.as_ref());
            value["thread"] = key.into();
            value["file"] = name.as_str().into();
            output.value(&value)?;
            output.line(&format!("{name}  {DIM}{hash}{DIM:#}"))
        }
    }
}

pub(crate) async fn import(
    place: &Place,
    (from, file): (From, &Path),
    (whose, key): (&Whose, Option<String>),
    output: &Output,
) -> Result<(), CliError> {
    checked(key.as_deref())?;
    let text = Input::open(Some(file))?.text(Limits::default().max_bytes)?;
    let (app, tenant) = place.open(whose, OpenMode::ReadWrite)?;
    let format = match from {
        From::Thread => Format::Thread,
        From::PydanticAi => Format::PydanticAi,
    };
    let (row, losses) = app.import(&tenant, key, format, &text).await?;
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
