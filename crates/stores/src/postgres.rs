//! The PostgreSQL store: a few connections that write, a pool that reads, and any number of nodes.

mod batch;
mod blocks;
mod check;
mod checkpoints;
mod columns;
mod connection;
mod decide;
mod delete;
mod derive;
mod erase;
mod error;
mod evidence;
mod hints;
mod hosts;
mod known;
mod landmarks;
mod lane;
mod look;
mod nodes;
mod objects;
mod options;
mod pages;
mod pool;
mod projection;
mod report;
mod restore;
mod rows;
mod schema;
mod search;
mod storage;
mod tasks;
mod transfer;
mod upkeep;
mod usage;
mod value;
mod waits;
mod words;
mod work;
mod write;

pub use options::PostgresOptions;
pub use report::{DatabaseReport, DatabaseWarning, JoinedNode, Standby};

use crate::durable::OpenMode;
use connection::{Connector, HINT_SPARE, LANE_SPARE};
use erase::Deleted;
use error::is_overtaken;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use hints::{Listener, Notifier};
use lane::{Lanes, Shared};
use nodes::NodeLease;
use pool::{Isolation, Pool};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use store::search::{FoundThreads, Search, ThreadPreview};
use store::{
    Append, Appended, CheckpointTable, Created, DueSearch, EventLog, Filter, FoundExecution, Head,
    Hint, Landmark, Lease, LogIndex, Logged, NewRecord, NodeId, NodeTable, ObjectTable, Quotas,
    Side, StorageUsage, Store, StoreError, TenantId, TextIndex, ThreadRow, ThreadRows, ThreadTable,
    Token, WaitIndex, WaitingRow, WaitingRows,
};
use tasks::Tasks;
use timeline::{Removed, Seq, ThreadId};
use tokio::time::timeout;
use value::{Param, stored, text};
use work::Work;
use write::{Answer, Body, NewLog};

/// How often a deletion is done again that other transactions are in the way of.
const TRIES: usize = 10;

/// How long a store that closes waits for its connections.
const CLOSING: Duration = Duration::from_secs(5);

/// How long a store that closes tries to send its last hints.
const LAST_HINTS: Duration = Duration::from_secs(1);

/// A [`Store`] in a PostgreSQL database, version 15 or later. Any number of processes may use it at once.
pub struct PostgresStore {
    pool: Pool,
    /// There are none if it is only read.
    lanes: Option<Lanes>,
    node_lease: NodeLease,
    notifier: Notifier,
    listener: Listener,
    notifying: Tasks,
    connector: Connector,
    quotas: Quotas,
    work: Arc<Work>,
    /// The name of the schema with the tables.
    schema: String,
    deleted: Deleted,
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresStore").finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Connects, and creates the tables or brings them up to date. A store that is only read is left as it is.
    ///
    /// # Errors
    ///
    /// [`StoreError::TooNew`] if a newer program has made the tables. [`StoreError::Failed`] if the database can't be
    /// reached, if the URL or the certificates are wrong, or if a store that is only read has older tables or none.
    pub async fn open(options: &PostgresOptions) -> Result<Self, StoreError> {
        let connector = Connector::new(options)?;
        let for_lanes = connector.with_maximum(options.lanes.get() + LANE_SPARE);
        let work = Arc::new(Work::default());
        let pool = Pool::new(
            connector.clone(),
            options.readers.get(),
            options.mode,
            work.clone(),
        );
        let mut connections = Vec::new();
        let schema = match options.mode {
            OpenMode::ReadOnly => {
                let conn = pool.get().await?;
                schema::known(&conn).await?;
                schema::name(&conn).await?
            }
            OpenMode::ReadWrite => {
                for _ in 0..options.lanes.get() {
                    connections.push(for_lanes.connect_to_write().await?);
                }
                let first = connections.first().ok_or(StoreError::Closed)?;
                schema::migrate(first).await?;
                schema::name(first).await?
            }
        };
        let channel = hints::channel(&schema);
        // One sends hints, and one receives them.
        let for_hints = connector.with_maximum(2 + HINT_SPARE);
        let notifier = Notifier::new();
        let notifying = Tasks::default();
        let lanes = (options.mode == OpenMode::ReadWrite).then(|| {
            notifying.spawn(notifier.clone().run(for_hints.clone(), channel.clone()));
            let shared = Shared {
                connector: for_lanes,
                quotas: options.quotas.clone(),
                notifier: notifier.clone(),
                work: work.clone(),
                patience: options.patience,
            };
            Lanes::start(connections, &shared)
        });
        Ok(Self {
            node_lease: NodeLease::new(&connector, options.lease),
            pool,
            lanes,
            listener: Listener::new(for_hints, channel, &notifier),
            connector,
            notifying,
            notifier,
            quotas: options.quotas.clone(),
            work,
            schema,
            deleted: Deleted::default(),
        })
    }

    fn lanes(&self) -> Result<&Lanes, StoreError> {
        self.pool.writable()?;
        self.lanes.as_ref().ok_or(StoreError::Closed)
    }

    /// Does work, and notes whether it finds damage.
    fn noting<'a, T: Send + 'a>(
        &'a self,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        Box::pin(async move {
            let done = work.await;
            if let Err(error) = &done {
                self.work.health.read_failed(error);
            }
            done
        })
    }

    fn stop(&self) {
        self.notifying.abort();
        self.listener.close();
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.stop();
    }
}

impl EventLog for PostgresStore {
    fn get_or_create<'a>(
        &'a self,
        tenant: &'a TenantId,
        first: Vec<NewRecord>,
        token: Option<Token>,
        owner: Option<NodeId>,
    ) -> BoxFuture<'a, Result<Created, StoreError>> {
        Box::pin(async move {
            let new = NewLog::of(tenant, first, token, owner)?;
            match self.lanes()?.run(Body::Create(Box::new(new))).await? {
                Answer::Created(created) => Ok(created),
                Answer::Appended(_) => Err(StoreError::Closed),
            }
        })
    }

    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended, StoreError>> {
        Box::pin(async move {
            match self.lanes()?.run(Body::Append(append)).await? {
                Answer::Appended(appended) => Ok(appended),
                Answer::Created(_) => Err(StoreError::Closed),
            }
        })
    }

    fn answer<'a>(
        &'a self,
        thread: &'a ThreadId,
        token: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        self.noting(async move {
            let sql =
                "SELECT k.answer FROM thread_tokens k JOIN thread_threads t ON t.no = k.thread_no
                       WHERE t.id = $1 AND k.token = $2";
            let (thread, token) = (stored(thread.as_str()), stored(token));
            let values: [Param<'_>; 2] = [
                (&thread, tokio_postgres::types::Type::TEXT),
                (&token, tokio_postgres::types::Type::TEXT),
            ];
            let row = self.pool.get().await?.first(sql, &values).await?;
            row.map(|row| text(&row, 0)).transpose()
        })
    }

    fn head<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<Head, StoreError>> {
        self.noting(async move {
            let conn = self.pool.begin(Isolation::Snapshot).await?;
            let head = restore::head(&conn, thread).await;
            conn.end(head).await
        })
    }

    fn read<'a>(
        &'a self,
        thread: &'a ThreadId,
        after: Seq,
        limit: usize,
        filter: Filter,
    ) -> BoxFuture<'a, Result<Vec<Logged>, StoreError>> {
        self.noting(async move {
            let conn = self.pool.get().await?;
            rows::read(&conn, thread, after, limit, filter).await
        })
    }
}

impl NodeTable for PostgresStore {
    fn is_shared(&self) -> bool {
        true
    }

    fn join<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<NodeId, StoreError>> {
        self.noting(async move {
            self.pool.writable()?;
            let joined = nodes::join(&self.node_lease, name).await;
            let node = self.pool.counted(joined)?;
            // The threads of an earlier node of that name are.
            self.notifier.due();
            Ok(node)
        })
    }

    fn renew(&self, node: NodeId) -> BoxFuture<'_, Result<Lease, StoreError>> {
        self.noting(async move {
            self.pool.writable()?;
            let renewed = nodes::renew(&self.node_lease, node).await;
            self.pool.counted(renewed)
        })
    }

    fn leave(&self, node: NodeId) -> BoxFuture<'_, Result<(), StoreError>> {
        self.noting(async move {
            self.pool.writable()?;
            let left = nodes::leave(&self.node_lease, node).await;
            self.pool.counted(left)?;
            self.notifier.due();
            Ok(())
        })
    }

    fn declare_dead(&self) -> BoxFuture<'_, Result<usize, StoreError>> {
        self.noting(nodes::declare_dead(&self.pool))
    }

    fn tails(
        &self,
        threads: Vec<ThreadId>,
    ) -> BoxFuture<'_, Result<Vec<(ThreadId, Seq)>, StoreError>> {
        self.noting(async move { nodes::tails(&self.pool, &threads).await })
    }

    fn announce(&self, hint: Hint) {
        if self.lanes.is_none() {
            return;
        }
        match hint {
            Hint::Grown(thread, tail) => self.notifier.grown(&thread, tail),
            Hint::Gone(thread) => self.notifier.gone(&thread),
            Hint::Erased(thread) => self.notifier.erased(&thread),
            Hint::Watched(thread) => self.notifier.watched(&thread),
            Hint::Due => self.notifier.due(),
            // It is for those who have missed hints.
            Hint::Lost => {}
        }
    }

    fn due(&self, search: DueSearch) -> BoxFuture<'_, Result<Vec<ThreadId>, StoreError>> {
        self.noting(async move { nodes::due(&self.pool, &search).await })
    }

    fn owned(&self, node: NodeId) -> BoxFuture<'_, Result<Vec<ThreadId>, StoreError>> {
        self.noting(nodes::owned(&self.pool, node))
    }

    fn hints(&self) -> BoxStream<'static, Hint> {
        self.listener.hints()
    }
}

impl LogIndex for PostgresStore {
    fn position_of<'a>(
        &'a self,
        thread: &'a ThreadId,
        landmark: Landmark<'a>,
    ) -> BoxFuture<'a, Result<Option<Seq>, StoreError>> {
        self.noting(async move {
            landmarks::position_of(&*self.pool.get().await?, thread, landmark).await
        })
    }

    fn nearest_triggers<'a>(
        &'a self,
        thread: &'a ThreadId,
        side: Side,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Seq>, StoreError>> {
        self.noting(async move {
            landmarks::triggers(&*self.pool.get().await?, thread, side, limit).await
        })
    }

    fn nearest_run<'a>(
        &'a self,
        thread: &'a ThreadId,
        side: Side,
    ) -> BoxFuture<'a, Result<Option<FoundExecution>, StoreError>> {
        self.noting(async move { landmarks::run(&*self.pool.get().await?, thread, side).await })
    }

    fn removals<'a>(
        &'a self,
        thread: &'a ThreadId,
        of: Vec<Removed>,
    ) -> BoxFuture<'a, Result<Vec<(Removed, Seq)>, StoreError>> {
        self.noting(async move { landmarks::removals(&*self.pool.get().await?, thread, of).await })
    }

    fn compactions<'a>(
        &'a self,
        thread: &'a ThreadId,
        before: Seq,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Seq>, StoreError>> {
        self.noting(async move {
            landmarks::compactions(&*self.pool.get().await?, thread, before, limit).await
        })
    }
}

impl ThreadTable for PostgresStore {
    fn find<'a>(
        &'a self,
        tenant: &'a TenantId,
        key: &'a str,
    ) -> BoxFuture<'a, Result<ThreadRow, StoreError>> {
        self.noting(async move { rows::find(&*self.pool.get().await?, tenant, key).await })
    }

    fn row<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<ThreadRow, StoreError>> {
        self.noting(async move { Ok(rows::row(&*self.pool.get().await?, thread).await?.row) })
    }

    fn list<'a>(
        &'a self,
        tenant: &'a TenantId,
        page: ThreadRows,
    ) -> BoxFuture<'a, Result<Vec<ThreadRow>, StoreError>> {
        self.noting(async move { rows::list(&*self.pool.get().await?, tenant, &page).await })
    }

    fn forks<'a>(
        &'a self,
        thread: &'a ThreadId,
    ) -> BoxFuture<'a, Result<Vec<ThreadRow>, StoreError>> {
        self.noting(async move { rows::forks(&*self.pool.get().await?, thread).await })
    }

    fn delete<'a>(
        &'a self,
        tenant: &'a TenantId,
        thread: &'a ThreadId,
        tail: Option<Seq>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.noting(async move {
            let mut tries = 0;
            loop {
                let conn = self.pool.begin(Isolation::Write).await?;
                let deleted = delete::delete(&conn, tenant, thread, tail).await;
                match conn.end(deleted).await {
                    Ok(()) => {
                        self.notifier.gone(thread);
                        self.deleted.note(&delete::TABLES);
                        self.deleted.note(&delete::OTHERS);
                        return Ok(());
                    }
                    Err(error) if tries < TRIES && is_overtaken(&error) => tries += 1,
                    Err(error) => return Err(error),
                }
            }
        })
    }

    fn unfinished(&self) -> BoxFuture<'_, Result<Vec<ThreadId>, StoreError>> {
        self.noting(async move { rows::unfinished(&*self.pool.get().await?).await })
    }
}

impl TextIndex for PostgresStore {
    fn search<'a>(
        &'a self,
        tenant: &'a TenantId,
        search: Search,
    ) -> BoxFuture<'a, Result<FoundThreads, StoreError>> {
        self.noting(async move {
            let conn = self.pool.begin(Isolation::Snapshot).await?;
            let found = search::search(&conn, tenant, &search).await;
            conn.end(found).await
        })
    }

    fn previews(
        &self,
        threads: Vec<ThreadId>,
    ) -> BoxFuture<'_, Result<Vec<ThreadPreview>, StoreError>> {
        self.noting(async move { search::previews(&*self.pool.get().await?, &threads).await })
    }
}

impl WaitIndex for PostgresStore {
    fn waiting<'a>(
        &'a self,
        tenant: &'a TenantId,
        page: WaitingRows,
    ) -> BoxFuture<'a, Result<Vec<WaitingRow>, StoreError>> {
        self.noting(async move {
            let conn = self.pool.begin(Isolation::Snapshot).await?;
            let waiting = waits::waiting(&conn, tenant, &page).await;
            conn.end(waiting).await
        })
    }

    fn settle<'a>(
        &'a self,
        thread: &'a ThreadId,
        seq: Seq,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.noting(async move {
            let conn = self.pool.begin(Isolation::Write).await?;
            let settled = waits::settle(&conn, thread, seq).await;
            conn.end(settled).await
        })
    }
}

impl Store for PostgresStore {
    fn objects(&self) -> &dyn ObjectTable {
        self
    }

    fn checkpoints(&self) -> &dyn CheckpointTable {
        self
    }

    fn usage(&self) -> BoxFuture<'_, Result<Vec<(TenantId, StorageUsage)>, StoreError>> {
        self.noting(async move { usage::all(&*self.pool.get().await?).await })
    }

    fn close(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            if let Some(lanes) = &self.lanes {
                lanes.close().await;
            }
            self.pool.close();
            self.node_lease.close().await;
            self.notifier.close();
            let _ = timeout(LAST_HINTS, self.notifying.ended()).await;
            self.stop();
            // A reader that is at work has its connection until it is done.
            let _ = timeout(CLOSING, self.connector.closed()).await;
            Ok(())
        })
    }
}
