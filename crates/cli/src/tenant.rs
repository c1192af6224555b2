//! `tenant`: all data of a tenant as lines, and back.

#[cfg(feature = "postgres")]
mod moving;

use crate::args::Tenant;
use crate::backup::blocking;
use crate::error::CliError;
use crate::output::Output;
use crate::progress::Progress;
use crate::sink::Sink;
use crate::store::StoreLocation;
#[cfg(feature = "postgres")]
use runtime::RuntimeError;
use serde_json::json;
#[cfg(feature = "postgres")]
use server::OpenMode;
use server::SqliteOptions;
use server::transfer::{TransferError, Transferred};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read, Seek as _, Write};
use std::path::{Path, PathBuf};
#[cfg(feature = "postgres")]
use store::Store as _;

/// Maximum length of the first line of an export, in bytes.
const MAX_FIRST_LINE: u64 = 1 << 16;

pub(crate) async fn tenant(
    place: &StoreLocation,
    command: Tenant,
    output: &Output,
) -> Result<(), CliError> {
    match command {
        Tenant::Export {
            tenant,
            output: to,
            shard,
        } => export(place, tenant, to, shard, output).await,
        Tenant::Import { file, shard } => import(place, file, shard, output).await,
        #[cfg(feature = "postgres")]
        Tenant::Move { tenant, to } => moving::move_tenant(place, &tenant, &to, output).await,
        #[cfg(not(feature = "postgres"))]
        Tenant::Move { .. } => Err(CliError::Open(server::OpenError::NoPostgres)),
    }
}

async fn export(
    place: &StoreLocation,
    tenant: String,
    file: Option<PathBuf>,
    shard: Option<String>,
    output: &Output,
) -> Result<(), CliError> {
    let shard = place.shard(shard, &tenant)?;
    let lines = || {
        Ok::<_, CliError>(Lines {
            sink: Sink::open(file.as_deref(), output)?,
            failed: None,
        })
    };
    #[cfg(feature = "postgres")]
    if let Some(store) = place.database(&shard, OpenMode::ReadOnly).await? {
        let progress = Progress::of_work("exporting the tenant", output);
        let mut lines = lines()?;
        let counts = Box::pin(store.export_tenant(&tenant, &mut lines)).await;
        let counts = lines.ended(counts)?;
        drop(progress);
        return exported(&counts, file, output);
    }
    #[cfg(not(feature = "postgres"))]
    place.refuse_build_without_database(&shard)?;
    let (store, key) = place.store_file()?;
    let progress = Progress::of_work("exporting the tenant", output);
    let mut lines = lines()?;
    let work = move || -> Result<Transferred, CliError> {
        let key = key.as_ref();
        let counts = server::transfer::export_tenant(&store, key, &tenant, &mut lines);
        lines.ended(counts)
    };
    let counts = blocking(work).await?;
    drop(progress);
    exported(&counts, file, output)
}

fn exported(counts: &Transferred, file: Option<PathBuf>, output: &Output) -> Result<(), CliError> {
    let Some(file) = file.filter(|file| file != Path::new("-")) else {
        return Ok(());
    };
    output.value(&described(counts))?;
    output.line(&format!("{} are in {}.", said(counts), file.display()))
}

/// A sink as a writer of whole lines.
struct Lines {
    sink: Sink,
    failed: Option<CliError>,
}

impl Lines {
    /// The result of an export to them.
    fn ended(self, counts: Result<Transferred, TransferError>) -> Result<Transferred, CliError> {
        // What the output failed with says more than that it failed.
        if let Some(error) = self.failed {
            return Err(error);
        }
        let counts = counts?;
        self.sink.finish()?;
        Ok(counts)
    }
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

async fn import(
    place: &StoreLocation,
    file: PathBuf,
    shard: Option<String>,
    output: &Output,
) -> Result<(), CliError> {
    let read = || CliError::io(format!("read {}", file.display()));
    let mut from = File::open(&file).map_err(read())?;
    let shard = match shard {
        Some(shard) => shard,
        None => place.shard(None, &tenant_in(&mut from).map_err(read())?)?,
    };
    let progress = Progress::of_work("importing the tenant", output);
    let counts = imported(place, from, &shard).await?;
    drop(progress);
    output.value(&described(&counts))?;
    output.line(&format!("{} are imported.", said(&counts)))
}

/// The tenant in the first line of an export; none in a file that is no export, which the import refuses.
fn tenant_in(file: &mut File) -> std::io::Result<String> {
    let mut line = String::new();
    BufReader::new(Read::take(&mut *file, MAX_FIRST_LINE)).read_line(&mut line)?;
    file.rewind()?;
    let line: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
    let name = line.pointer("/tenant/name").and_then(|name| name.as_str());
    Ok(name.unwrap_or_default().to_owned())
}

async fn imported(
    place: &StoreLocation,
    mut from: File,
    shard: &str,
) -> Result<Transferred, CliError> {
    #[cfg(feature = "postgres")]
    if let Some(store) = place.database(shard, OpenMode::ReadWrite).await? {
        let counts = Box::pin(store.import_tenant(&mut from)).await?;
        // The other nodes hear of runs that continue.
        store.close().await.map_err(RuntimeError::from)?;
        return Ok(counts);
    }
    #[cfg(not(feature = "postgres"))]
    place.refuse_build_without_database(shard)?;
    let config = place.checked()?.config;
    let store = server::store_file(&place.directory(&config)?);
    let options = SqliteOptions {
        key: config.store.key,
        ..SqliteOptions::default()
    };
    let work = move || server::transfer::import_tenant(&store, &options, &mut from);
    blocking(work).await
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
        TransferError::Io(_) | TransferError::Unfinished(_) | TransferError::Store(_) => 1,
    }
}
