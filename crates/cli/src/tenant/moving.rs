//! `tenant move`: the data of a paused tenant is copied into another database.

use super::{described, said};
use crate::error::CliError;
use crate::output::{DIM, Output, clean};
use crate::progress::Progress;
use crate::store::StoreLocation;
use aws_lc_rs::digest::{Context, Digest, SHA256};
use runtime::RuntimeError;
use serde_json::json;
use server::config::{Config, DEFAULT_SHARD};
use server::transfer::{TransferError, Transferred};
use server::{LocalServer, OpenMode, PostgresStore};
use std::io::{Seek as _, Write};
use store::{Store as _, StoreError, ThreadTable as _};

pub(super) async fn move_tenant(
    place: &StoreLocation,
    tenant: &str,
    to: &str,
    output: &Output,
) -> Result<(), CliError> {
    let config = place.checked()?.config;
    let from = source(&config, tenant, to)?;
    let directory = place.directory(&config)?;
    if let Some(server) = LocalServer::find(&directory) {
        let client = crate::client::Client::local(server, Some(tenant.to_owned()))?;
        if !client.is_paused().await? {
            return Err(refused(
                "the server that uses the data directory has not read that it is paused; send SIGHUP to it",
            ));
        }
    }
    let unnamed = || CliError::Usage {
        what: "the store is a file, and a tenant moves between databases only".to_owned(),
    };
    let former = place.database(&from, OpenMode::ReadOnly).await?;
    let former = former.ok_or_else(unnamed)?;
    let next = place.database(to, OpenMode::ReadWrite).await?;
    let next = next.ok_or_else(unnamed)?;
    let progress = Progress::of_work("moving the tenant", output);
    let counts = copied(&former, &next, tenant, &directory).await;
    let closed = next.close().await;
    drop(progress);
    let counts = counts?;
    closed.map_err(RuntimeError::from)?;
    let mut value = described(&counts);
    if let Some(value) = value.as_object_mut() {
        value.insert("from".to_owned(), json!(from));
        value.insert("to".to_owned(), json!(to));
    }
    output.value(&value)?;
    output.line(&format!(
        "{} are in {}, and equal.\n{}",
        said(&counts),
        clean(to),
        next_steps(tenant, &from, to)
    ))
}

/// The next steps of the operator, in order.
fn next_steps(tenant: &str, from: &str, to: &str) -> String {
    let shard = if to == DEFAULT_SHARD {
        "remove its shard".to_owned()
    } else {
        format!("set shard = {to:?}")
    };
    format!(
        "{DIM}Next, in this order:{DIM:#}\n\
         1. In [tenants.{tenant}] of every server's configuration: {shard}, and remove paused.\n\
         2. Send SIGHUP to every server.\n\
         3. Purge the former data: loomline purge --all --tenant {tenant} --shard {from}"
    )
}

/// The shard with the data of a tenant that can be moved.
fn source(config: &Config, tenant: &str, to: &str) -> Result<String, CliError> {
    let configured = config.tenants.get(tenant);
    let configured = configured.ok_or_else(|| CliError::Usage {
        what: format!("the configuration has no tenant {tenant:?}"),
    })?;
    let from = configured.shard.as_deref().unwrap_or(DEFAULT_SHARD);
    if from == to {
        return Err(refused(&format!("it is in {to} already")));
    }
    if !configured.is_paused {
        return Err(refused(
            "it is not paused; set paused = true in its table of the configuration, and send SIGHUP to every server",
        ));
    }
    Ok(from.to_owned())
}

fn refused(why: &str) -> CliError {
    let why = why.to_owned();
    CliError::NotMoved { why }
}

/// Copies all data of a tenant in one transaction. Compares both databases afterwards.
async fn copied(
    former: &PostgresStore,
    next: &PostgresStore,
    tenant: &str,
    directory: &std::path::Path,
) -> Result<Transferred, CliError> {
    let n_unfinished = unfinished(former, tenant).await?;
    if n_unfinished > 0 {
        let why = format!(
            "{n_unfinished} of its threads have runs or queued messages; wait for them, or cancel them"
        );
        return Err(refused(&why));
    }
    // It has no name: nothing is left of it, however the command ends.
    let file = tempfile::tempfile_in(directory);
    let mut file = file.map_err(CliError::io(format!(
        "write a file in {}",
        directory.display()
    )))?;
    let mut before = Lines::to(&mut file);
    let counts = Box::pin(former.export_tenant(tenant, &mut before)).await?;
    let before = before.digest();
    file.rewind().map_err(CliError::io("read the copy"))?;
    Box::pin(next.import_tenant_at_rest(&mut file))
        .await
        .map_err(occupied)?;
    for (store, where_) in [
        (former, "its former database has changed meanwhile"),
        (next, "the copy differs"),
    ] {
        let mut nothing = std::io::sink();
        let mut after = Lines::to(&mut nothing);
        let found = Box::pin(store.export_tenant(tenant, &mut after)).await?;
        if found != counts || after.digest() != before {
            let why = format!(
                "{where_}; purge the copy before you try again, and see whether every server has read that the tenant is paused"
            );
            return Err(refused(&why));
        }
    }
    Ok(counts)
}

/// The number of a tenant's threads with runs or queued messages.
async fn unfinished(store: &PostgresStore, tenant: &str) -> Result<usize, CliError> {
    let mut n_unfinished = 0;
    for thread in store.unfinished().await.map_err(RuntimeError::from)? {
        match store.row(&thread).await {
            Ok(row) => n_unfinished += usize::from(row.tenant.as_str() == tenant),
            Err(StoreError::NotFound) => {}
            Err(error) => return Err(RuntimeError::from(error).into()),
        }
    }
    Ok(n_unfinished)
}

/// Names the reason of an import that finds data of the tenant.
fn occupied(error: TransferError) -> CliError {
    if let TransferError::Store(StoreError::Duplicate(_) | StoreError::KeyTaken(_)) = error {
        return refused(
            "the database has data of it from an earlier move; purge that first, with --shard",
        );
    }
    if let TransferError::Unfinished(_) = error {
        return refused(&format!(
            "{error}, so some server has not read that the tenant is paused; send SIGHUP to every server"
        ));
    }
    error.into()
}

/// The lines of an export, and the digest of those that two exports of the same data share: without the first, which has
/// the instant, and the last, which has a sum of all. The number of a thread's last change differs between databases.
struct Lines<'a> {
    to: &'a mut (dyn Write + Send),
    digest: Context,
    last: Vec<u8>,
    written: u64,
}

impl<'a> Lines<'a> {
    fn to(to: &'a mut (dyn Write + Send)) -> Self {
        Self {
            to,
            digest: Context::new(&SHA256),
            last: Vec::new(),
            written: 0,
        }
    }

    fn digest(self) -> Vec<u8> {
        let digest: Digest = self.digest.finish();
        digest.as_ref().to_vec()
    }
}

impl Write for Lines<'_> {
    /// Takes a whole line, as the export writes them.
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        self.to.write_all(line)?;
        if self.written > 1 {
            self.digest.update(&without_change(&self.last));
        }
        self.written += 1;
        self.last.clear();
        self.last.extend_from_slice(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}

fn without_change(line: &[u8]) -> Vec<u8> {
    if !line.starts_with(b"{\"thread\"") {
        return line.to_vec();
    }
    let mut value: serde_json::Value = serde_json::from_slice(line).unwrap_or_default();
    if let Some(thread) = value.get_mut("thread").and_then(|it| it.as_object_mut()) {
        thread.remove("change");
    }
    value.to_string().into_bytes()
}
