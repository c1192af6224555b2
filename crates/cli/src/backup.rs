//! `backup` and `restore`.

use crate::args::{Backup, Restore};
use crate::error::CliError;
use crate::output::{DIM, Output};
use crate::progress::Progress;
use crate::store::StoreLocation;
use serde_json::json;
use server::backup::{BackupError, BackupKind, Manifest};

/// How a database is backed up and restored.
const DATABASE_TOOLS: &str = "use PostgreSQL's tools: pg_dump and pg_restore, or a base backup and an archive of its write-ahead log";

pub(crate) async fn backup(
    place: &StoreLocation,
    options: Backup,
    output: &Output,
) -> Result<(), CliError> {
    let Backup {
        directory,
        full,
        verify,
    } = options;
    if verify {
        return verified(place, directory, output).await;
    }
    place.refuse_database(DATABASE_TOOLS)?;
    let (store, key) = place.store_file()?;
    let progress = Progress::of_work("backing up the store", output);
    let to = directory.clone();
    let taken = blocking(move || server::backup::back_up(&store, key.as_ref(), &to, full)).await?;
    drop(progress);
    output.value(&described(&taken))?;
    let kind = kind(&taken);
    output.line(&format!(
        "Backup {} ({kind}, {} bytes) is in {}.\n{DIM}{}{DIM:#}",
        taken.number,
        taken.bytes,
        directory.display(),
        counts(&taken)
    ))
}

async fn verified(
    place: &StoreLocation,
    directory: std::path::PathBuf,
    output: &Output,
) -> Result<(), CliError> {
    // The backups are looked at, not the store: there may be none.
    let key = place.checked()?.config.store.key;
    let progress = Progress::of_work("restoring the backups", output);
    let checked =
        blocking(move || server::backup::verify_backups(&directory, key.as_ref())).await?;
    drop(progress);
    let last = checked.backups.last();
    output.value(&json!({
        "backups": checked.backups.iter().map(described).collect::<Vec<_>>(),
        "restored": checked.n_restored,
    }))?;
    for backup in &checked.backups {
        output.line(&format!(
            "ok  backup {} ({}) of {}",
            backup.number,
            kind(backup),
            backup.taken_at
        ))?;
    }
    output.line(&format!(
        "ok  the restored store is sound: {}",
        last.map(counts).unwrap_or_default()
    ))
}

pub(crate) async fn restore(
    place: &StoreLocation,
    options: Restore,
    output: &Output,
) -> Result<(), CliError> {
    place.refuse_database(DATABASE_TOOLS)?;
    let Restore { directory, to, at } = options;
    let key = place.checked()?.config.store.key;
    let store = server::store_file(&to);
    let progress = Progress::of_work("restoring the store", output);
    let work = move || server::backup::restore_backup(&directory, &store, at, key.as_ref());
    let restored = blocking(work).await?;
    drop(progress);
    output.value(&json!({
        "backup": described(&restored.backup),
        "events_from": restored.events_from,
        "threads": restored.counts.threads,
        "events": restored.counts.events,
        "objects": restored.counts.objects,
    }))?;
    let more = restored.events_from.map_or_else(String::new, |number| {
        format!(", and events of backup {number}")
    });
    output.line(&format!(
        "Backup {} of {}{more} is in {to}: {} threads, {} events.\n\
         {DIM}loomline doctor --data {to} looks it over.{DIM:#}",
        restored.backup.number,
        restored.backup.taken_at,
        restored.counts.threads,
        restored.counts.events,
        to = to.display()
    ))
}

/// Does what blocks.
pub(crate) async fn blocking<T: Send + 'static, E: Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, CliError>
where
    CliError: From<E>,
{
    let done = tokio::task::spawn_blocking(work).await;
    Ok(done.map_err(|_| CliError::WorkerStopped)??)
}

fn kind(backup: &Manifest) -> &'static str {
    match backup.kind {
        BackupKind::Full => "full",
        BackupKind::Increment => "increment",
    }
}

fn counts(backup: &Manifest) -> String {
    format!(
        "{} threads, {} events, {} objects",
        backup.counts.threads, backup.counts.events, backup.counts.objects
    )
}

fn described(backup: &Manifest) -> serde_json::Value {
    json!({
        "number": backup.number,
        "kind": kind(backup),
        "taken_at": backup.taken_at,
        "bytes": backup.bytes,
        "sha256": backup.sha256,
        "threads": backup.counts.threads,
        "events": backup.counts.events,
        "objects": backup.counts.objects,
        "last_block": backup.counts.last_block,
    })
}

/// The exit code of a failed backup or restore.
pub(crate) fn code(error: &BackupError) -> u8 {
    match error {
        BackupError::None(_) => 4,
        BackupError::NotEmpty(_)
        | BackupError::NoneBefore { .. }
        | BackupError::Io { .. }
        | BackupError::Missing { .. }
        | BackupError::Damaged { .. }
        | BackupError::Unsound(_)
        | BackupError::Store(_) => 1,
    }
}
