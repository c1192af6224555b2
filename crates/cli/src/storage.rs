//! `storage`: what takes the space of the store.

use crate::args::Storage;
use crate::error::CliError;
use crate::evidence::thread_id;
use crate::output::{BOLD, DIM, Output, clean};
use crate::store::{StoreLocation, chosen};
use runtime::RuntimeError;
use serde_json::json;
use server::{StoreStorage, TenantStorage, ThreadStorage};

/// Width of a number of bytes.
const BYTES: usize = 14;

pub(crate) async fn storage(
    place: &StoreLocation,
    options: Storage,
    output: &Output,
) -> Result<(), CliError> {
    let app = place.look().await?;
    let app = chosen(&app, options.shard.as_deref(), options.tenant.as_deref())?;
    let store = app.default_store();
    if let Some(name) = &options.thread {
        let id = thread_id(&app, name, options.tenant.as_deref()).await?;
        let thread = store.thread_storage(&id).await;
        return one(&thread.map_err(RuntimeError::from)?, output);
    }
    let whole = store.storage().await.map_err(RuntimeError::from)?;
    let tenant = match (&options.tenant, &*whole.tenants) {
        (Some(name), _) => Some(name.as_str()),
        (None, [only]) => Some(only.tenant.as_str()),
        (None, _) => None,
    };
    let threads = match tenant {
        Some(name) => store.largest_threads(&name.into(), options.limit).await,
        None => Ok(Vec::new()),
    };
    all(&whole, &threads.map_err(RuntimeError::from)?, output)
}

fn all(whole: &StoreStorage, threads: &[ThreadStorage], output: &Output) -> Result<(), CliError> {
    let kinds: serde_json::Map<_, _> = whole
        .kinds
        .iter()
        .map(|(kind, bytes)| (kind.clone(), json!(bytes)))
        .collect();
    output.value(&json!({
        "file": whole.file, "log": whole.log, "free": whole.free, "kinds": kinds,
        "tenants": whole.tenants.iter().map(of_tenant).collect::<Vec<_>>(),
        "threads": threads.iter().map(of_thread).collect::<Vec<_>>(),
    }))?;
    let row = |bytes: u64, what: &str| output.line(&format!("{bytes:>BYTES$}  {what}"));
    let head = |what: &str| output.line(&format!("{BOLD}{:>BYTES$}  {what}{BOLD:#}", "bytes"));
    head("store")?;
    row(whole.file, "file")?;
    for (kind, bytes) in &whole.kinds {
        row(*bytes, &format!("  {}", clean(kind)))?;
    }
    row(whole.free, "  free pages")?;
    row(whole.log, "write-ahead log")?;
    if !whole.tenants.is_empty() {
        head("tenant")?;
    }
    for tenant in &whole.tenants {
        let name = clean(&tenant.tenant);
        let text = format!(
            "{name}  {DIM}{} threads, {} events; events {}, tokens {}, objects {}, files {}, checkpoints {}{DIM:#}",
            tenant.threads,
            tenant.events,
            tenant.blocks,
            tenant.tokens,
            tenant.objects,
            tenant.files,
            tenant.checkpoints
        );
        row(tenant.bytes(), &text)?;
    }
    if !threads.is_empty() {
        head("thread")?;
    }
    for thread in threads {
        row(bytes(thread), &line(thread))?;
    }
    Ok(())
}

fn one(thread: &ThreadStorage, output: &Output) -> Result<(), CliError> {
    output.value(&of_thread(thread))?;
    output.line(&format!("{:>BYTES$}  {}", bytes(thread), line(thread)))?;
    for (kind, bytes) in &thread.texts {
        output.line(&format!("{bytes:>BYTES$}  text of {kind}"))?;
    }
    Ok(())
}

fn bytes(thread: &ThreadStorage) -> u64 {
    thread.blocks + thread.tokens + thread.objects
}

fn line(thread: &ThreadStorage) -> String {
    let key = clean(thread.key.as_deref().unwrap_or(&thread.id));
    format!(
        "{key}  {DIM}{} events; events {}, tokens {}, objects {}, erased blocks {}{DIM:#}",
        thread.events, thread.blocks, thread.tokens, thread.objects, thread.erased_blocks
    )
}

fn of_tenant(tenant: &TenantStorage) -> serde_json::Value {
    json!({
        "tenant": tenant.tenant, "threads": tenant.threads, "events": tenant.events, "blocks": tenant.blocks,
        "tokens": tenant.tokens, "objects": tenant.objects, "files": tenant.files,
        "checkpoints": tenant.checkpoints,
    })
}

fn of_thread(thread: &ThreadStorage) -> serde_json::Value {
    json!({
        "id": thread.id, "key": thread.key, "events": thread.events, "blocks": thread.blocks,
        "erased_blocks": thread.erased_blocks, "tokens": thread.tokens, "objects": thread.objects,
        "texts": thread.texts,
    })
}
