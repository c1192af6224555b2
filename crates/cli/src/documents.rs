//! `export` and `import`.

use crate::args::{From, Whose};
use crate::client::{Client, Imported};
use crate::error::CliError;
use crate::input::Input;
use crate::output::{BOLD, DIM, Output, clean};
use crate::sink::Sink;
use crate::store::{Place, Reach, checked};
use crate::threads::missing;
use serde_json::json;
use server::{Format, OpenMode};
use std::path::{Path, PathBuf};
use thread::{CanonicalOptions, Limits, Thread};

pub(crate) async fn export(
    place: &Place,
    (whose, key): (&Whose, &str),
    file: Option<PathBuf>,
    output: &Output,
) -> Result<(), CliError> {
    let document = match place.reach(whose, OpenMode::ReadOnly)? {
        Reach::Server(client) => exported(&client, key).await?,
        Reach::Store(app, tenant) => app
            .export(&tenant, key)
            .await
            .map_err(|error| missing(error, key))?,
    };
    let mut sink = Sink::open(file.as_deref(), output)?;
    sink.document(&document.encode())?;
    sink.finish()?;
    match file.filter(|file| file != Path::new("-")) {
        None => Ok(()),
        Some(file) => {
            let name = file.display().to_string();
            let hash = thread::hash(&document, CanonicalOptions::default());
            let hash = hash.map_err(|source| CliError::Canonical {
                spot: name.clone(),
                source,
            })?;
            let hash = hash.to_string();
            output.value(&json!({"thread": key, "file": name, "hash": hash}))?;
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
    let reach = place.reach(whose, OpenMode::ReadWrite)?;
    let (format, name) = match from {
        From::Thread => (Format::Thread, "threadprotocol"),
        From::PydanticAi => (Format::PydanticAi, "pydantic-ai"),
    };
    let Imported { thread, losses } = match &reach {
        Reach::Server(client) => client.import(name, key.as_deref(), text).await?,
        Reach::Store(app, tenant) => app.import(tenant, key, format, &text).await?.into(),
    };
    let key = thread.key.unwrap_or_default();
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
    output.value(&json!({"key": key, "events": thread.seq, "losses": lost}))?;
    let (key, events) = (clean(&key), thread.seq);
    output.line(&format!("{BOLD}{key}{BOLD:#}  {events} events"))?;
    reach.close().await
}

/// The document of a server's thread. A thread that is too large for the server to read as a whole is read by pages
/// of its events.
async fn exported(client: &Client, key: &str) -> Result<Thread, CliError> {
    let text = match client.export(key).await {
        Err(CliError::Refused { code, .. }) if code == "thread_too_large" => {
            let transcript = client.transcript(key).await?;
            return Ok(interop::document::to_document(&transcript).value);
        }
        text => text?,
    };
    let limits = Limits {
        max_depth: Limits::DEEPEST,
        max_bytes: usize::MAX,
        max_nodes: usize::MAX,
    };
    Thread::decode_with(&text, &limits).map_err(|source| CliError::Unread {
        spot: "the answer of the server".to_owned(),
        what: "a ThreadProtocol document",
        source: source.into(),
    })
}
