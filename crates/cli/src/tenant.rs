//! `tenant`: all data of a tenant as lines, and back.

use crate::args::Tenant;
use crate::backup::blocking;
use crate::error::CliError;
use crate::output::Output;
use crate::progress::Progress;
use crate::sink::Sink;
use crate::store::StoreLocation;
use serde_json::json;
use server::SqliteOptions;
use server::transfer::{TransferError, Transferred};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

pub(crate) async fn tenant(
    place: &StoreLocation,
    command: Tenant,
    output: &Output,
) -> Result<(), CliError> {
    match command {
        Tenant::Export { tenant, output: to } => export(place, tenant, to, output).await,
        Tenant::Import { file } => import(place, file, output).await,
    }
}

async fn export(
    place: &StoreLocation,
    tenant: String,
    file: Option<PathBuf>,
    output: &Output,
) -> Result<(), CliError> {
    let (store, key) = place.store_file()?;
    let progress = Progress::of_work("exporting the tenant", output);
    let mut lines = Lines {
        sink: Sink::open(file.as_deref(), output)?,
        failed: None,
    };
    let work = move || -> Result<Transferred, CliError> {
        let key = key.as_ref();
        let counts = server::transfer::export_tenant(&store, key, &tenant, &mut lines);
        // What the output failed with says more than that it failed.
        if let Some(error) = lines.failed {
            return Err(error);
        }
        let counts = counts?;
        lines.sink.finish()?;
        Ok(counts)
    };
    let counts = blocking(work).await?;
    drop(progress);
    let Some(file) = file.filter(|file| file != Path::new("-")) else {
        return Ok(());
    };
    output.value(&described(&counts))?;
    output.line(&format!("{} are in {}.", said(&counts), file.display()))
}

/// A sink as a writer of whole lines.
struct Lines {
    sink: Sink,
    failed: Option<CliError>,
}

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        let text = std::str::from_utf8(line).map_err(std::io::Error::other)?;
        match self.sink.lines(text) {
            Ok(()) => Ok(line.len()),
            Err(error) => {
                self.failed = Some(error);
                Err(std::io::ErrorKind::Other.into())
            }
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

async fn import(place: &StoreLocation, file: PathBuf, output: &Output) -> Result<(), CliError> {
    let config = place.checked()?.config;
    let store = server::store_file(&place.directory(&config)?);
    let options = SqliteOptions {
        key: config.store.key,
        ..SqliteOptions::default()
    };
    let mut from = File::open(&file).map_err(CliError::io(format!("read {}", file.display())))?;
    let progress = Progress::of_work("importing the tenant", output);
    let work = move || server::transfer::import_tenant(&store, &options, &mut from);
    let counts = blocking(work).await?;
    drop(progress);
    output.value(&described(&counts))?;
    output.line(&format!("{} are imported.", said(&counts)))
}

fn said(counts: &Transferred) -> String {
    format!(
        "{} threads, {} events and {} objects",
        counts.threads, counts.events, counts.objects
    )
}

fn described(counts: &Transferred) -> serde_json::Value {
    json!({
        "threads": counts.threads,
        "events": counts.events,
        "tokens": counts.tokens,
        "contents": counts.contents,
        "objects": counts.objects,
        "checkpoints": counts.checkpoints,
    })
}

/// The exit code of a failed export or import.
pub(crate) fn code(error: &TransferError) -> u8 {
    match error {
        TransferError::NoTenant(_) => 4,
        TransferError::NotWhole(_) | TransferError::Line { .. } => 3,
        TransferError::Io(_) | TransferError::Store(_) => 1,
    }
}
