//! `export` and `import`.

use crate::args::{Exchanged, Whose};
use crate::error::CliError;
use crate::input::Input;
use crate::output::{BOLD, DIM, Output, WARNED, clean};
use crate::sink::Sink;
use crate::store::{Place, checked};
use crate::threads::missing;
use interop::Loss;
use interop::convert::Attribution;
use serde_json::{Value, json};
use server::{Exported, ImportSource, OpenMode};
use std::path::{Path, PathBuf};
use thread::Limits;

/// What a file to import holds, and who ran in it.
pub(crate) struct Source {
    pub(crate) from: Exchanged,
    pub(crate) attribution: Vec<Attribution>,
}

pub(crate) async fn export(
    place: &Place,
    (whose, key): (&Whose, &str),
    (to, file): (Exchanged, Option<PathBuf>),
    output: &Output,
) -> Result<(), CliError> {
    let (app, tenant) = place.open(whose, OpenMode::ReadOnly)?;
    let form = to.form().of();
    let exported = app.export(&tenant, key, form).await;
    let Exported {
        text,
        losses,
        hash,
        inexact,
    } = exported.map_err(|error| missing(error, key))?;
    say_losses(&losses, output);
    let mut sink = Sink::open(file.as_deref(), output)?;
    sink.document(&text)?;
    sink.finish()?;
    if let Some(inexact) = &inexact {
        let warning = clean(&inexact.to_string());
        output.say(&format!("{WARNED}warning{WARNED:#} {warning}"));
    }
    let Some(file) = file.filter(|file| file != Path::new("-")) else {
        return Ok(());
    };
    let name = file.display().to_string();
    let hash = hash.transpose().map_err(|source| CliError::Canonical {
        spot: name.clone(),
        source,
    })?;
    let hash = hash.map(|hash| hash.to_string());
    let mut value = json!({"thread": key, "file": name, "losses": losses_value(&losses)});
    if let Some(hash) = &hash {
        value["hash"] = hash.as_str().into();
    }
    if let Some(inexact) = inexact {
        value["warning"] = inexact.to_string().into();
    }
    output.value(&value)?;
    match hash {
        Some(hash) => output.line(&format!("{name}  {DIM}{hash}{DIM:#}")),
        None => output.line(&name),
    }
}

pub(crate) async fn import(
    place: &Place,
    (source, file): (Source, &Path),
    (whose, key): (&Whose, Option<String>),
    output: &Output,
) -> Result<(), CliError> {
    checked(key.as_deref())?;
    let text = Input::open(Some(file))?.text(Limits::default().max_bytes)?;
    let (app, tenant) = place.open(whose, OpenMode::ReadWrite)?;
    let import = ImportSource {
        form: source.from.form().of(),
        attribution: source.attribution,
    };
    let (row, losses) = app.import(&tenant, key, import, &text).await?;
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
