//! `export` and `import`.

use crate::args::{Exchanged, Whose};
use crate::client::{Client, Imported};
use crate::contents::ContentDirectory;
use crate::error::CliError;
use crate::input::Input;
use crate::output::{BOLD, DIM, Output, WARNED, clean};
use crate::progress::Progress;
use crate::sink::Sink;
use crate::store::{Reach, StoreLocation, checked};
use crate::threads::missing;
use interop::Loss;
use interop::ag_ui::was_cut_off;
use interop::convert::AttributedFields;
use interop::document::to_strict_document;
use runtime::Filter;
use serde_json::{Value, json};
use server::{Exported, ImportSource, OpenMode};
use std::path::{Path, PathBuf};
use thread::canonical::inexact_numbers;
use thread::{CanonicalOptions, Limits, Thread};

/// The format of a file to import, and the agents of its runs.
pub(crate) struct Source {
    pub(crate) from: Exchanged,
    pub(crate) attribution: Vec<AttributedFields>,
}

/// The destination of an export, and the directory of its large contents.
pub(crate) struct ExportTarget {
    pub(crate) to: Exchanged,
    pub(crate) file: Option<PathBuf>,
    pub(crate) contents: Option<PathBuf>,
}

/// The file of an import, and the directory of the contents that it refers to.
pub(crate) struct ImportFile<'a> {
    pub(crate) file: &'a Path,
    pub(crate) contents: Option<PathBuf>,
}

pub(crate) async fn export(
    place: &StoreLocation,
    (whose, key): (&Whose, &str),
    target: ExportTarget,
    output: &Output,
) -> Result<(), CliError> {
    let ExportTarget { to, file, contents } = target;
    let contents = contents.map(|directory| ContentDirectory::new(directory, to, output));
    let contents = contents.transpose()?;
    let progress = Progress::of_work("exporting the thread", output);
    let exported = match place.reach(whose, OpenMode::ReadOnly).await? {
        Reach::Server(client) => exported(&client, key, to).await?,
        Reach::Store(app, tenant) => {
            let exported = app.export(&tenant, key, to.form().of()).await;
            exported.map_err(|error| missing(error, key))?
        }
    };
    let mut exported = exported;
    if let Some(mut contents) = contents {
        let (text, document) = contents.move_out(&exported.text)?;
        exported = of_document(text, exported.losses, &document);
    }
    let Exported {
        text,
        losses,
        hash,
        inexact,
    } = exported;
    drop(progress);
    say_losses(&losses, output);
    let mut sink = Sink::open(file.as_deref(), output)?;
    sink.document(&text)?;
    sink.finish()?;
    if let Some(inexact) = &inexact {
        let warning = clean(&inexact.to_string());
        output.print(&format!("{WARNED}warning{WARNED:#} {warning}"));
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
    place: &StoreLocation,
    (source, from): (Source, ImportFile<'_>),
    (whose, key): (&Whose, Option<String>),
    output: &Output,
) -> Result<(), CliError> {
    checked(key.as_deref())?;
    let ImportFile { file, contents } = from;
    let contents = contents.map(|directory| ContentDirectory::new(directory, source.from, output));
    let contents = contents.transpose()?;
    let mut text = Input::open(Some(file))?.text(Limits::default().max_bytes)?;
    if let Some(contents) = contents {
        text = contents.put_back(&text, &file.display().to_string())?;
    }
    let reach = place.reach(whose, OpenMode::ReadWrite).await?;
    let progress = Progress::of_work("importing the conversation", output);
    let Imported { thread, losses } = match &reach {
        Reach::Server(client) => client.import(&source, key.as_deref(), text).await?,
        Reach::Store(app, tenant) => {
            let import = ImportSource {
                form: source.from.form().of(),
                attribution: source.attribution,
            };
            app.import(tenant, key, import, &text).await?.into()
        }
    };
    drop(progress);
    let key = thread.key.unwrap_or_default();
    say_losses(&losses, output);
    let losses = losses_value(&losses);
    output.value(&json!({"key": key, "events": thread.seq, "losses": losses}))?;
    let (key, events) = (clean(&key), thread.seq);
    output.line(&format!("{BOLD}{key}{BOLD:#}  {events} events"))?;
    reach.close().await
}

/// A server's thread in the requested format. A thread that is too large for the server to export is
/// assembled from pages of its events.
async fn exported(client: &Client, key: &str, to: Exchanged) -> Result<Exported, CliError> {
    let is_document = matches!(to, Exchanged::Thread);
    let (text, losses) = match client.export(key, to).await {
        Err(CliError::Refused { code, .. }) if code == "thread_too_large" && is_document => {
            let mut transcript = client.transcript(key, Filter::Facts).await?;
            if was_cut_off(&transcript) {
                transcript = client.transcript(key, Filter::All).await?;
            }
            let document = to_strict_document(&transcript);
            return Ok(of_document(
                document.value.encode(),
                document.losses,
                &document.value,
            ));
        }
        read => read?,
    };
    if !is_document {
        return Ok(Exported {
            text,
            losses,
            hash: None,
            inexact: None,
        });
    }
    let limits = Limits {
        max_depth: Limits::DEEPEST,
        max_bytes: usize::MAX,
        max_nodes: usize::MAX,
    };
    let document = Thread::decode_with(&text, &limits).map_err(|source| CliError::Unreadable {
        spot: "the answer of the server".to_owned(),
        what: "a ThreadProtocol document",
        source: source.into(),
    })?;
    Ok(of_document(text, losses, &document))
}

fn of_document(text: String, losses: Vec<Loss>, document: &Thread) -> Exported {
    Exported {
        text,
        losses,
        hash: Some(thread::hash(document, CanonicalOptions::default())),
        inexact: inexact_numbers(document),
    }
}

/// Reports the conversion losses to people.
fn say_losses(losses: &[Loss], output: &Output) {
    for Loss { pointer, what } in losses {
        let (pointer, what) = (clean(pointer), clean(what));
        output.print(&format!("{DIM}not carried{DIM:#} {pointer}: {what}"));
    }
}

/// The losses as JSON, for scripts.
fn losses_value(losses: &[Loss]) -> Value {
    let one = |Loss { pointer, what }: &Loss| json!({"pointer": pointer, "what": what});
    losses.iter().map(one).collect()
}
