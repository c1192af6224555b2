//! `export` and `import`.

use crate::args::{From, Whose};
use crate::check::hash_value;
use crate::error::CliError;
use crate::input::Input;
use crate::output::{BOLD, DIM, Output, WARNED, clean};
use crate::sink::Sink;
use crate::store::{Place, checked};
use crate::threads::missing;
use interop::{Converted, Loss};
use serde_json::{Value, json};
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
    let exported = app.export(&tenant, key).await;
    let Converted {
        value: document,
        losses,
    } = exported.map_err(|error| missing(error, key))?;
    say_losses(&losses, output);
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
            value["losses"] = losses_value(&losses);
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
    say_losses(&losses, output);
    let losses = losses_value(&losses);
    output.value(&json!({"key": key, "events": row.tail, "losses": losses}))?;
    output.line(&format!("{BOLD}{key}{BOLD:#}  {} events", row.tail))?;
    Ok(app.shutdown().await?)
}

/// Says what could not be carried, for people.
fn say_losses(losses: &[Loss], output: &Output) {
    for Loss { pointer, what } in losses {
        let (pointer, what) = (clean(pointer), clean(what));
        output.say(&format!("{DIM}not carried{DIM:#} {pointer}: {what}"));
    }
}

/// The same for scripts.
fn losses_value(losses: &[Loss]) -> Value {
    let one = |Loss { pointer, what }: &Loss| json!({"pointer": pointer, "what": what});
    losses.iter().map(one).collect()
}
