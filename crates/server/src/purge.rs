//! Purging: deletes threads and the content of removed messages for good, returns their space, and searches the
//! files for what is left.

use crate::app::App;
use crate::audit::Who;
use crate::error::{ApiError, render_error};
use crate::guard::bearer;
use crate::local::LocalKey;
use crate::state::Api;
use crate::threads::key_of;
use axum::Json;
use axum::extract::{Request, State};
use jiff::Timestamp;
use runtime::{RuntimeError, StoreError, TenantId, ThreadRow, ThreadRows};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use stores::{Samples, Searched};
use timeline::ThreadId;

/// The path of the local listener's route.
pub const PURGE_PATH: &str = "/local/purge";
/// Maximum size of a request, in bytes.
const MAX_REQUEST: usize = 16 << 20;
/// Rows of a page of the list.
const PAGE: usize = 500;

/// A selection of data of a tenant.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "the options of a command")]
pub struct Purge {
    /// Keys or ids of threads.
    pub threads: Vec<String>,
    /// Threads that have not changed since this instant.
    pub unchanged_since: Option<Timestamp>,
    /// All threads, objects and checkpoints.
    pub whole_tenant: bool,
    /// The content of removed messages, of all threads that stay, or of the named ones.
    pub removed: bool,
    /// Whether nothing is changed.
    pub dry_run: bool,
    /// Whether the file is not written anew.
    pub no_compact: bool,
    /// The database, if it is not that of the tenant: a tenant that was moved has left its data there.
    #[serde(default)]
    pub shard: Option<String>,
}

impl Purge {
    /// The deployment with the database that is meant.
    fn database(&self, app: &App) -> Result<App, ApiError> {
        let Some(shard) = &self.shard else {
            return Ok(app.clone());
        };
        let what = || {
            format!(
                "there is no shard {shard:?}, expected one of: {}",
                app.shards().join(", ")
            )
        };
        app.with_only(shard)
            .ok_or_else(|| ApiError::field("/shard", what()))
    }
}

/// A thread of a purge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PurgedThread {
    /// Its key, or its id if it has none.
    pub key: String,
    /// Its id.
    pub id: String,
    /// The bytes of its events.
    pub bytes: u64,
}

/// A thread that stays although it was to be purged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemainingThread {
    /// Its key, or the requested name.
    pub key: String,
    /// Why it stays.
    pub why: String,
}

/// The result of a purge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purged {
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// The deleted threads, those of sub-agents included.
    pub threads: Vec<PurgedThread>,
    /// The threads that stay, and why.
    pub remaining: Vec<RemainingThread>,
    /// Removed messages, answers and summaries whose content was erased.
    pub entries: u64,
    /// Blocks of the log that were written anew for them.
    pub blocks: u64,
    /// Those that stay, because forks show them.
    pub shown_by_forks: u64,
    /// Those that stay, because only a fork has removed them. Its parent shows them.
    #[serde(default)]
    pub in_parents: u64,
    /// Objects of the tenant that were deleted, such as files.
    pub objects: u64,
    /// Checkpoints of agents that were deleted.
    pub checkpoints: u64,
    /// The bytes of the file before and after; zeros for a database.
    pub file_bytes: [u64; 2],
    /// Whether the write-ahead log is empty. Another process that reads the store can prevent it. None for a database.
    pub log_empty: Option<bool>,
    /// Whether the whole file was written anew.
    pub compacted: bool,
    /// The error that prevented it, such as a full disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_compacted: Option<String>,
    /// The proof.
    pub proof: Proof,
    /// Copies of the store that migrations have left. They have what was purged.
    pub copies: Vec<PathBuf>,
}

/// The search for what was purged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// Texts and files with samples.
    pub texts: u64,
    /// Texts with fewer than 16 bytes, which can't be searched for.
    pub short_texts: u64,
    /// Samples of 16 bytes that were searched for.
    pub samples: u64,
    /// Whether the bytes of the files were searched. Those of an encrypted store say nothing.
    pub files_read: bool,
    /// Samples that are still there.
    pub left: u64,
    /// Some of their places.
    pub left_at: Vec<String>,
    /// Samples that content which stays has too.
    pub shared: u64,
    /// Some of their places.
    pub shared_in: Vec<String>,
}

impl From<Searched> for Proof {
    fn from(searched: Searched) -> Self {
        Self {
            texts: searched.texts,
            short_texts: searched.short,
            samples: searched.samples,
            files_read: searched.has_read_files,
            left: searched.left,
            left_at: searched.left_at,
            shared: searched.shared,
            shared_in: searched.shared_in,
        }
    }
}

impl App {
    /// Purges. A thread that runs or has forks stays, unless the whole tenant is purged; the result says why. An
    /// interrupted purge is completed by the next one.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub async fn purge(&self, tenant: &TenantId, purge: &Purge) -> Result<Purged, RuntimeError> {
        Work::new(self, None, tenant, purge).run().await
    }
}

/// A purge at work.
struct Work<'a> {
    app: &'a App,
    /// The server, if one runs.
    api: Option<&'a Api>,
    tenant: &'a TenantId,
    purge: &'a Purge,
    samples: Samples,
    purged: Purged,
    /// The threads that are deleted, or would be.
    counted: BTreeSet<ThreadId>,
}

#[expect(
    clippy::disallowed_methods,
    reason = "an operator reaches all threads of a tenant"
)]
impl<'a> Work<'a> {
    fn new(app: &'a App, api: Option<&'a Api>, tenant: &'a TenantId, purge: &'a Purge) -> Self {
        Self {
            app,
            api,
            tenant,
            purge,
            samples: Samples::default(),
            counted: BTreeSet::new(),
            purged: Purged {
                dry_run: purge.dry_run,
                ..Purged::default()
            },
        }
    }

    async fn run(mut self) -> Result<Purged, RuntimeError> {
        let store = self.app.store(self.tenant);
        self.purged.file_bytes = [store.activity().file_bytes; 2];
        self.purged.copies = store.copies();
        let wanted = self.wanted().await?;
        if self.purge.removed {
            self.erase_removed(&wanted).await?;
        } else {
            self.delete_all(wanted).await?;
            // A thread that stayed at first may have been deleted in a later round.
            let keys = self.purged.threads.iter().map(|it| it.key.as_str());
            let deleted: BTreeSet<_> = keys.collect();
            let remaining = &mut self.purged.remaining;
            remaining.retain(|it| !deleted.contains(it.key.as_str()));
        }
        if self.purge.whole_tenant && !self.purge.dry_run {
            let samples = store.samples_of_tenant(self.tenant).await?;
            self.samples.append(samples);
            let erased = store.erase_tenant(self.tenant).await?;
            self.purged.objects = erased.objects;
            self.purged.checkpoints = erased.checkpoints;
        }
        if self.purge.dry_run {
            return Ok(self.purged);
        }
        self.finish().await
    }

    /// Deletes threads, and those of the tenant that came or changed while the others were listed.
    async fn delete_all(&mut self, mut wanted: Vec<ThreadRow>) -> Result<(), RuntimeError> {
        if !self.purge.dry_run {
            let bytes = wanted.iter().map(|row| row.bytes).sum();
            self.app.store(self.tenant).announce_deletions(bytes);
        }
        loop {
            let n_before = self.purged.threads.len();
            // A fork goes before its parent, which is listed after it at the latest in the next round.
            loop {
                let n_wanted = wanted.len();
                wanted = self.delete(wanted).await?;
                if wanted.is_empty() || wanted.len() == n_wanted {
                    break;
                }
            }
            for row in wanted {
                self.keep(&row, "it has forks");
            }
            let is_over = self.purged.threads.len() == n_before;
            if is_over || !self.purge.whole_tenant || self.purge.dry_run {
                return Ok(());
            }
            wanted = self.wanted().await?;
        }
    }

    /// Returns the space, and searches for what is left.
    async fn finish(mut self) -> Result<Purged, RuntimeError> {
        let store = self.app.store(self.tenant);
        self.purged.log_empty = store.reclaim().await?.is_log_empty;
        let samples = Arc::new(std::mem::take(&mut self.samples));
        // Threads that were not found change nothing.
        let is_meant = self.purge.threads.is_empty() || !self.purged.threads.is_empty();
        if is_meant && !store.returns_space().await? {
            self.compact().await?;
        }
        let mut searched = store.search_for(samples.clone()).await?;
        if searched.left > 0 && !self.purged.compacted {
            // The unused part of a page has some of it.
            self.compact().await?;
            searched = store.search_for(samples).await?;
        }
        self.purged.file_bytes[1] = store.activity().file_bytes;
        self.purged.proof = searched.into();
        Ok(self.purged)
    }

    /// Writes the file anew, unless the command forbids it. Deleted content stays deleted if that fails.
    async fn compact(&mut self) -> Result<(), RuntimeError> {
        if self.purge.no_compact {
            return Ok(());
        }
        let store = self.app.store(self.tenant);
        match store.compact().await {
            Ok(()) => {
                self.purged.compacted = true;
                self.purged.log_empty = store.reclaim().await?.is_log_empty;
            }
            Err(error) => self.purged.not_compacted = Some(render_error(&error)),
        }
        Ok(())
    }

    /// The threads that are meant.
    async fn wanted(&mut self) -> Result<Vec<ThreadRow>, RuntimeError> {
        let Purge {
            threads,
            unchanged_since,
            whole_tenant,
            removed,
            ..
        } = self.purge;
        let runtime = self.app.runtime(self.tenant);
        let mut wanted = Vec::new();
        for name in threads {
            let mut found = runtime.find(self.tenant, name).await;
            if let Err(RuntimeError::Store(StoreError::NotFound)) = found {
                found = runtime.find_by_id(self.tenant, &name.as_str().into()).await;
            }
            match found {
                Ok(row) => wanted.push(row),
                Err(RuntimeError::Store(StoreError::NotFound)) => {
                    let why = "there is no such thread".to_owned();
                    let key = name.clone();
                    self.purged.remaining.push(RemainingThread { key, why });
                }
                Err(error) => return Err(error),
            }
        }
        let is_listed = *whole_tenant || unchanged_since.is_some();
        if is_listed || (*removed && threads.is_empty()) {
            let mut after = None;
            loop {
                let page = ThreadRows {
                    after,
                    limit: PAGE,
                    ..ThreadRows::default()
                };
                let rows = runtime.list(self.tenant, page).await?;
                let Some(last) = rows.last() else { break };
                after = Some(last.change);
                for row in rows {
                    let at = row.thread.updated_at.unwrap_or(row.thread.created_at);
                    // A sub-agent's thread goes with its parent.
                    let is_meant = match unchanged_since {
                        Some(since) => at < *since && !runtime.has_parent(&row).await?,
                        None => true,
                    };
                    if is_meant {
                        wanted.push(row);
                    }
                }
            }
        }
        Ok(wanted)
    }

    fn keep(&mut self, row: &ThreadRow, why: impl Into<String>) {
        let key = key_of(row);
        if self.purged.remaining.iter().any(|it| it.key == key) {
            return;
        }
        self.purged.remaining.push(RemainingThread {
            key: key.to_owned(),
            why: why.into(),
        });
    }

    /// Deletes threads. Returns those that have forks.
    async fn delete(&mut self, rows: Vec<ThreadRow>) -> Result<Vec<ThreadRow>, RuntimeError> {
        let mut left = Vec::new();
        for row in rows {
            match self.delete_one(&row).await {
                Ok(()) | Err(RuntimeError::Store(StoreError::NotFound)) => {}
                Err(RuntimeError::Store(StoreError::HasForks { .. })) => left.push(row),
                Err(RuntimeError::Busy(_)) => self.keep(&row, "it runs"),
                // Its log grows.
                Err(RuntimeError::Store(StoreError::Conflict { .. })) => {
                    self.keep(&row, "it changes");
                }
                Err(error @ RuntimeError::Store(StoreError::Damaged(_))) => {
                    self.keep(&row, render_error(&error));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(left)
    }

    async fn delete_one(&mut self, row: &ThreadRow) -> Result<(), RuntimeError> {
        let (runtime, store) = (self.app.runtime(self.tenant), self.app.store(self.tenant));
        let id = &row.thread.id;
        if self.counted.contains(id) {
            return Ok(());
        }
        // As part of a thread's deletion it may be gone.
        runtime.find_by_id(self.tenant, id).await?;
        let subagents = runtime.subagents(self.tenant, id).await?;
        if self.has_other_forks(id).await? {
            let thread = id.clone();
            return Err(StoreError::HasForks { thread }.into());
        }
        let mut samples = Samples::default();
        let key = key_of(row);
        if !self.purge.dry_run {
            let _turn = match self.api {
                Some(api) => Some(api.turns().of(id).await),
                None => None,
            };
            for row in std::iter::once(row).chain(&subagents) {
                samples.append(store.samples_of_thread(&row.thread.id).await?);
            }
            if self.purge.whole_tenant {
                runtime.delete_stopping(self.tenant, key).await?;
            } else {
                runtime.delete(self.tenant, key).await?;
            }
            if let Some(api) = self.api {
                api.aitp_states(self.tenant).forget(id);
            }
        }
        self.samples.append(samples);
        self.count(row);
        for child in &subagents {
            let stays = if self.purge.dry_run {
                self.has_other_forks(&child.thread.id).await?
            } else {
                let found = runtime.find_by_id(self.tenant, &child.thread.id).await;
                match found {
                    Ok(_) => true,
                    Err(RuntimeError::Store(StoreError::NotFound)) => false,
                    Err(error) => return Err(error),
                }
            };
            if stays {
                self.keep(child, "it runs or has forks");
            } else {
                self.count(child);
            }
        }
        Ok(())
    }

    /// Whether a thread has forks that are not deleted.
    async fn has_other_forks(&self, id: &ThreadId) -> Result<bool, RuntimeError> {
        let forks = self.app.runtime(self.tenant).store().forks(id).await?;
        let mut forks = forks.iter();
        Ok(forks.any(|fork| !self.counted.contains(&fork.thread.id)))
    }

    /// Notes a thread that is deleted, or would be.
    fn count(&mut self, row: &ThreadRow) {
        if !self.counted.insert(row.thread.id.clone()) {
            return;
        }
        self.purged.threads.push(PurgedThread {
            key: key_of(row).to_owned(),
            id: row.thread.id.to_string(),
            bytes: row.bytes,
        });
    }

    /// Erases the content of removed entries of these threads.
    async fn erase_removed(&mut self, rows: &[ThreadRow]) -> Result<(), RuntimeError> {
        let store = self.app.store(self.tenant);
        let having = store.with_removed(self.tenant).await?;
        for row in rows.iter().filter(|row| having.contains(&row.thread.id)) {
            let id = &row.thread.id;
            let erased = if self.purge.dry_run {
                store.erasable(id).await?
            } else {
                let _turn = match self.api {
                    Some(api) => Some(api.turns().of(id).await),
                    None => None,
                };
                self.samples.append(store.samples_of_removed(id).await?);
                let erased = store.erase_removed(id).await?;
                let key = key_of(row);
                self.app
                    .runtime(self.tenant)
                    .forget_removed(self.tenant, key)
                    .await?;
                erased
            };
            self.purged.entries += erased.entries;
            self.purged.blocks += erased.blocks;
            self.purged.shown_by_forks += erased.shown_by_forks;
            self.purged.in_parents += erased.in_parents;
        }
        Ok(())
    }
}

/// Purges for a command on this machine. On other listeners there is no such route.
pub(crate) async fn purge(
    State(api): State<Api>,
    request: Request,
) -> Result<Json<Purged>, ApiError> {
    let local = request.extensions().get::<LocalKey>().cloned();
    let local = local.ok_or(ApiError::UnknownRoute)?;
    let headers = request.headers();
    let caller = local.caller(bearer(headers), &api, headers)?;
    if let Some(who) = request.extensions().get::<Who>() {
        who.is(&caller);
    }
    let body = axum::body::to_bytes(request.into_body(), MAX_REQUEST).await;
    let body = body.map_err(|_| {
        ApiError::field(
            "",
            format!("expected a whole body of at most {MAX_REQUEST} bytes"),
        )
    })?;
    let wanted: Purge = serde_json::from_slice(&body)
        .map_err(|error| ApiError::field("", format!("expected a purge: {error}")))?;
    let (own, tenant) = (api.clone(), caller.tenant);
    let runtime = api.runtime(&tenant).clone();
    let app = wanted.database(api.app())?;
    let purged = runtime.run_to_completion(async move {
        Work::new(&app, Some(&own), &tenant, &wanted).run().await
    });
    Ok(Json(purged.await?))
}
