//! The SQLite store: one committing thread, a pool of reading threads, one file.

mod append;
mod backup;
mod blocks;
mod chain;
mod check;
mod checkpoints;
mod connection;
mod convert;
mod erase;
mod error;
mod key;
mod landmarks;
mod medium;
mod migrations;
mod objects;
mod projection;
mod readers;
mod rebuild;
mod rekey;
mod request;
mod reseal;
mod restore;
mod rows;
mod schema;
mod search;
mod space;
mod storage;
mod sums;
mod sync;
mod transfer;
mod upkeep;
mod usage;
mod waits;
mod wal;
mod words;
mod writer;

pub use backup::{
    BackupError, BackupKind, Manifest, Restored, Verified, back_up, restore_backup, verify_backups,
};
pub use connection::SqliteOptions;
pub use erase::search_files;
pub use key::{NoStoreKey, StoreKey};
pub use rekey::rekey;
pub use transfer::{export_tenant, import_tenant};

use crate::durable::{Health, OpenMode};
use crate::private;
use crate::value;
use error::failed;
use futures_util::future::BoxFuture;
use landmarks::LandmarkQuery;
use readers::Readers;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use store::search::{FoundThreads, Search, ThreadPreview};
use store::{
    Append, Appended, CheckpointTable, Created, DueSearch, EventLog, Filter, FoundExecution, Head,
    Landmark, LogIndex, Logged, NewRecord, NodeId, NodeTable, ObjectTable, Quotas, Side,
    StorageUsage, Store, StoreError, TenantId, TextIndex, ThreadRow, ThreadRows, ThreadTable,
    Token, WaitIndex, WaitingRow, WaitingRows,
};
use timeline::{Removed, Seq, ThreadId};
use wal::LogFault;
use words::bulk::{self, DeletedText};
use writer::Writer;

/// A [`Store`] in one SQLite file.
///
/// One process at a time serves a file; others may open it [read-only](OpenMode::ReadOnly). Dropping the
/// store waits until all requested writes are done.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    // Readers go first: the writer's last checkpoint waits for nobody.
    readers: Readers,
    writer: Option<Writer>,
    health: Arc<Health>,
    deleted_text: DeletedText,
    /// One merge of the full-text index at a time.
    merging: tokio::sync::Mutex<()>,
    quotas: Quotas,
    is_encrypted: bool,
    /// The fault of the write-ahead log of a store that is only read.
    torn_log: Option<String>,
}

impl SqliteStore {
    /// Opens the file, or creates it; migrates an older schema.
    ///
    /// # Errors
    ///
    /// [`StoreError::InUse`] if another process serves it, [`StoreError::TooNew`] if a newer program has
    /// written it, [`StoreError::Key`] if the key does not fit, [`StoreError::OrphanedLog`] if a
    /// write-ahead log has no database.
    pub fn open(path: &Path, options: &SqliteOptions) -> Result<Self, StoreError> {
        let health = Arc::<Health>::default();
        let mut torn_log = None;
        let writer = match options.mode {
            OpenMode::ReadWrite => {
                let lock = connection::lock(path)?;
                Self::exists(path)?;
                let fault = wal::fault(path)?;
                match fault {
                    Some(LogFault::Damaged(whole)) => return Err(wal::damaged(path, whole)),
                    Some(LogFault::Torn(whole)) => {
                        tracing::warn!(
                            whole,
                            "the last transaction of the write-ahead log is not whole and is dropped"
                        );
                    }
                    None => {}
                }
                rekey::clear(path)?;
                for file in connection::files(path) {
                    private::tighten(&file);
                }
                let mut conn = connection::writing(path, options)?;
                // SQLite continues a torn log. After the next power loss, the rest of what was torn would be taken for
                // transactions that follow a broken one.
                if fault.is_some() && !writer::empty(&conn)? {
                    tracing::warn!(
                        "another process reads the store, so its torn write-ahead log is not emptied"
                    );
                }
                schema::migrate(&mut conn, path, migrations::MIGRATIONS)?;
                let log = connection::log(path);
                Some(Writer::start(conn, &log, lock, health.clone())?)
            }
            OpenMode::ReadOnly => {
                Self::exists(path)?;
                match wal::fault_of_unserved(path)? {
                    Some(LogFault::Damaged(whole)) => return Err(wal::damaged(path, whole)),
                    Some(LogFault::Torn(whole)) => torn_log = Some(wal::torn(path, whole)),
                    None => {}
                }
                None
            }
        };
        let n_readers = options
            .n_readers
            .map_or_else(connection::default_readers, usize::from);
        let connections = (0..n_readers)
            .map(|_| connection::reading(path, options.key.as_ref()))
            .collect::<Result<Vec<_>, _>>()?;
        if let Some(conn) = connections.first() {
            schema::known(conn, migrations::MIGRATIONS)?;
        }
        Ok(Self {
            path: path.to_owned(),
            readers: Readers::start(connections, health.clone())?,
            writer,
            health,
            deleted_text: DeletedText::default(),
            merging: tokio::sync::Mutex::default(),
            quotas: options.quotas.clone(),
            is_encrypted: options.key.is_some(),
            torn_log,
        })
    }

    /// Whether there is a database at this path. It is not opened.
    ///
    /// # Errors
    ///
    /// [`StoreError::OrphanedLog`] if the database is missing or empty but its write-ahead log has
    /// content. SQLite would discard the log, and with it the last commits.
    pub fn exists(path: &Path) -> Result<bool, StoreError> {
        connection::exists(path)
    }

    /// Prevents other processes from serving the file until the lock is dropped. The store is not
    /// opened.
    ///
    /// # Errors
    ///
    /// [`StoreError::InUse`] if another process serves it.
    pub fn lock(path: &Path) -> Result<File, StoreError> {
        connection::lock(path)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The files of the store at this path, including those that don't exist.
    pub fn files(path: &Path) -> Vec<PathBuf> {
        connection::files(path)
    }

    fn writer(&self) -> Result<&Writer, StoreError> {
        let read_only =
            || StoreError::InUse(format!("{} is open for reading only", self.path.display()));
        self.writer.as_ref().ok_or_else(read_only)
    }
}

/// Waits until these threads have finished. A thread that panicked counts as finished.
async fn joined(
    threads: impl IntoIterator<Item = JoinHandle<()>> + Send + 'static,
) -> Result<(), StoreError> {
    let join = move || {
        for thread in threads {
            let _ = thread.join();
        }
    };
    tokio::task::spawn_blocking(join).await.map_err(failed)
}

impl EventLog for SqliteStore {
    fn get_or_create<'a>(
        &'a self,
        tenant: &'a TenantId,
        first: Vec<NewRecord>,
        token: Option<Token>,
        // One process writes the store, so it owns every run.
        _owner: Option<NodeId>,
    ) -> BoxFuture<'a, Result<Created, StoreError>> {
        Box::pin(async move {
            let new = append::NewLog::of(tenant, first, token)?;
            let quotas = self.quotas.clone();
            self.writer()?
                .run(new.bytes(), move |conn| append::create(conn, &new, &quotas))
                .await
        })
    }

    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended, StoreError>> {
        Box::pin(async move {
            let bytes = append::size(&append.records);
            let quotas = self.quotas.clone();
            self.writer()?
                .run(bytes, move |conn| append::append(conn, &append, &quotas))
                .await
        })
    }

    fn answer<'a>(
        &'a self,
        thread: &'a ThreadId,
        token: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        let (thread, token) = (thread.clone(), token.to_owned());
        Box::pin(
            self.readers
                .run(move |conn| append::answer(conn, &thread, &token)),
        )
    }

    fn head<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<Head, StoreError>> {
        let thread = thread.clone();
        Box::pin(self.readers.run(move |conn| restore::head(conn, &thread)))
    }

    fn read<'a>(
        &'a self,
        thread: &'a ThreadId,
        after: Seq,
        limit: usize,
        filter: Filter,
    ) -> BoxFuture<'a, Result<Vec<Logged>, StoreError>> {
        let thread = thread.clone();
        Box::pin(
            self.readers
                .run(move |conn| rows::read(conn, &thread, after, limit, filter)),
        )
    }
}

impl NodeTable for SqliteStore {
    fn due(&self, search: DueSearch) -> BoxFuture<'_, Result<Vec<ThreadId>, StoreError>> {
        Box::pin(async move {
            let mut due = Vec::new();
            for thread in self.unfinished().await? {
                if due.len() == search.limit {
                    break;
                }
                let is_left_out = search.without.contains(&thread)
                    || search
                        .without_tenants
                        .contains(&self.head(&thread).await?.tenant);
                if !is_left_out {
                    due.push(thread);
                }
            }
            Ok(due)
        })
    }
}

impl LogIndex for SqliteStore {
    fn position_of<'a>(
        &'a self,
        thread: &'a ThreadId,
        landmark: Landmark<'a>,
    ) -> BoxFuture<'a, Result<Option<Seq>, StoreError>> {
        let thread = thread.clone();
        let wanted = LandmarkQuery::from(landmark);
        Box::pin(
            self.readers
                .run(move |conn| landmarks::position_of(conn, &thread, &wanted)),
        )
    }

    fn nearest_triggers<'a>(
        &'a self,
        thread: &'a ThreadId,
        side: Side,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Seq>, StoreError>> {
        let thread = thread.clone();
        Box::pin(
            self.readers
                .run(move |conn| landmarks::triggers(conn, &thread, side, limit)),
        )
    }

    fn nearest_run<'a>(
        &'a self,
        thread: &'a ThreadId,
        side: Side,
    ) -> BoxFuture<'a, Result<Option<FoundExecution>, StoreError>> {
        let thread = thread.clone();
        Box::pin(
            self.readers
                .run(move |conn| landmarks::run(conn, &thread, side)),
        )
    }

    fn removals<'a>(
        &'a self,
        thread: &'a ThreadId,
        of: Vec<Removed>,
    ) -> BoxFuture<'a, Result<Vec<(Removed, Seq)>, StoreError>> {
        let thread = thread.clone();
        Box::pin(
            self.readers
                .run(move |conn| landmarks::removals(conn, &thread, of)),
        )
    }

    fn compactions<'a>(
        &'a self,
        thread: &'a ThreadId,
        before: Seq,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Seq>, StoreError>> {
        let thread = thread.clone();
        Box::pin(
            self.readers
                .run(move |conn| landmarks::compactions(conn, &thread, before, limit)),
        )
    }
}

impl ThreadTable for SqliteStore {
    fn find<'a>(
        &'a self,
        tenant: &'a TenantId,
        key: &'a str,
    ) -> BoxFuture<'a, Result<ThreadRow, StoreError>> {
        let (tenant, key) = (tenant.clone(), key.to_owned());
        Box::pin(
            self.readers
                .run(move |conn| rows::find(conn, &tenant, &key)),
        )
    }

    fn row<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<ThreadRow, StoreError>> {
        let thread = thread.clone();
        Box::pin(self.readers.run(move |conn| rows::row(conn, &thread)))
    }

    fn list<'a>(
        &'a self,
        tenant: &'a TenantId,
        page: ThreadRows,
    ) -> BoxFuture<'a, Result<Vec<ThreadRow>, StoreError>> {
        let tenant = tenant.clone();
        Box::pin(
            self.readers
                .run(move |conn| rows::list(conn, &tenant, &page)),
        )
    }

    fn forks<'a>(
        &'a self,
        thread: &'a ThreadId,
    ) -> BoxFuture<'a, Result<Vec<ThreadRow>, StoreError>> {
        let thread = thread.clone();
        Box::pin(self.readers.run(move |conn| rows::forks(conn, &thread)))
    }

    fn delete<'a>(
        &'a self,
        tenant: &'a TenantId,
        thread: &'a ThreadId,
        tail: Option<Seq>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        // Its words go in several commits if they are many: other writes go between them.
        Box::pin(async move {
            let ids = || (tenant.clone(), thread.clone());
            let writer = self.writer()?;
            let id = thread.clone();
            let bytes = self.readers.run(move |conn| bulk::bytes(conn, &id)).await?;
            let all = self.readers.run(bulk::all_bytes);
            let in_bulk = self.deleted_text.exceeds_a_merge(bytes, all).await?;
            let mut after = i64::MIN;
            let deleted = loop {
                let (tenant, thread) = ids();
                let delete = move |conn: &_| {
                    append::delete_some(conn, (&tenant, &thread, tail), after, in_bulk)
                };
                match writer.run_deleting(0, delete, |_| true).await {
                    Ok(Some(last)) => after = last,
                    Ok(None) => break Ok(()),
                    Err(error) => break Err(error),
                }
            };
            if deleted.is_ok() {
                self.deleted_text.add(bytes);
            }
            if let Err(StoreError::HasForks { .. } | StoreError::Conflict { .. }) = &deleted
                && after > i64::MIN
            {
                // Words that are only noted must not come back before the merge.
                self.merge_words().await?;
                let (tenant, thread) = ids();
                let restore = move |conn: &_| append::restore_words(conn, &tenant, &thread);
                writer.run(0, restore).await?;
            }
            deleted
        })
    }

    fn unfinished(&self) -> BoxFuture<'_, Result<Vec<ThreadId>, StoreError>> {
        Box::pin(self.readers.run(rows::unfinished))
    }
}

impl TextIndex for SqliteStore {
    fn search<'a>(
        &'a self,
        tenant: &'a TenantId,
        search: Search,
    ) -> BoxFuture<'a, Result<FoundThreads, StoreError>> {
        let tenant = tenant.clone();
        Box::pin(
            self.readers
                .run(move |conn| search::search(conn, &tenant, &search)),
        )
    }

    fn previews(
        &self,
        threads: Vec<ThreadId>,
    ) -> BoxFuture<'_, Result<Vec<ThreadPreview>, StoreError>> {
        Box::pin(
            self.readers
                .run(move |conn| search::previews(conn, &threads)),
        )
    }
}

impl WaitIndex for SqliteStore {
    fn waiting<'a>(
        &'a self,
        tenant: &'a TenantId,
        page: WaitingRows,
    ) -> BoxFuture<'a, Result<Vec<WaitingRow>, StoreError>> {
        let tenant = tenant.clone();
        Box::pin(
            self.readers
                .run(move |conn| waits::waiting(conn, &tenant, &page)),
        )
    }

    fn settle<'a>(
        &'a self,
        thread: &'a ThreadId,
        seq: Seq,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let thread = thread.clone();
            self.writer()?
                .run(0, move |conn| waits::settle(conn, &thread, seq))
                .await
        })
    }
}

impl Store for SqliteStore {
    fn objects(&self) -> &dyn ObjectTable {
        self
    }

    fn checkpoints(&self) -> &dyn CheckpointTable {
        self
    }

    fn usage(&self) -> BoxFuture<'_, Result<Vec<(TenantId, StorageUsage)>, StoreError>> {
        Box::pin(self.readers.run(usage::all))
    }

    fn close(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            // Readers are closed first: only a writing connection deletes the log and the shared memory,
            // and only if it is the last to be closed.
            joined(self.readers.close()).await?;
            joined(self.writer.as_ref().and_then(Writer::close)).await
        })
    }
}
