//! The only thread that commits. It takes all queued requests and commits them once. A second thread syncs the
//! write-ahead log, then answers them, while the next requests are committed.

use super::error::{CommitFailed, failed, statement};
use super::request::{AfterCommit, Maintenance, QueuedRequest, Request};
use super::space;
use super::sync::{Syncer, answer};
use super::words::bulk;
use crate::durable::Health;
use rusqlite::Connection;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use store::StoreError;
use tokio::sync::{mpsc, oneshot};

const QUEUE: usize = 1024;
const REQUESTS: usize = 512;
const BYTES: usize = 1 << 20;

/// Counters of the writer's work since it started.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) n_commits: u64,
    pub(super) n_requests: u64,
}

#[derive(Debug, Default)]
struct Counters {
    commits: AtomicU64,
    requests: AtomicU64,
}

#[derive(Debug)]
pub(super) struct Writer {
    queue: Mutex<Option<mpsc::Sender<Box<dyn Request>>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    counters: Arc<Counters>,
    health: Arc<Health>,
    /// Whether the write-ahead log or free pages may have deleted content. Only the thread changes it.
    has_deleted: Arc<AtomicBool>,
}

impl Writer {
    /// Starts the threads. The lock is held until the connection is closed. `wal` is the write-ahead log of the
    /// connection's database.
    pub(super) fn start(
        conn: Connection,
        wal: &Path,
        lock: File,
        health: Arc<Health>,
    ) -> Result<Self, StoreError> {
        let syncer = Syncer::start(&conn, wal, health.clone())?;
        let (queue, requests) = mpsc::channel(QUEUE);
        let counters = Arc::<Counters>::default();
        let (counted, watched) = (counters.clone(), health.clone());
        // The process before may have ended between a deletion and the next emptying.
        let has_deleted = Arc::new(AtomicBool::new(true));
        let noted = has_deleted.clone();
        let thread = std::thread::Builder::new()
            .name("store-write".into())
            .spawn(move || {
                write(&conn, requests, &syncer, &counted, &watched, &noted);
                // It answers before the last checkpoint.
                drop(syncer);
                truncate(&conn);
                drop(conn);
                drop(lock);
            })
            .map_err(failed)?;
        Ok(Self {
            queue: Mutex::new(Some(queue)),
            thread: Mutex::new(Some(thread)),
            counters,
            health,
            has_deleted,
        })
    }

    /// Does `work` in the next transaction and answers once that is durable. If other work of the transaction fails
    /// halfway, the transaction begins anew, and work that had succeeded is done once more.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl Fn(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let request = QueuedRequest {
            bytes,
            work,
            done: Err(StoreError::Closed),
            answer,
            health: self.health.clone(),
        };
        self.send(Box::new(request)).await?;
        // A writer that panicked has dropped every answer.
        answered.await.map_err(|_| StoreError::Closed)?
    }

    /// Does `work` as [`run`](Self::run) does. `has_deleted` says of its result whether content was deleted.
    pub(super) async fn run_deleting<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl Fn(&Connection) -> Result<T, StoreError> + Send + 'static,
        has_deleted: impl Fn(&T) -> bool + Send + 'static,
    ) -> Result<T, StoreError> {
        let noted = self.has_deleted.clone();
        let work = move |conn: &Connection| {
            let done = work(conn)?;
            if has_deleted(&done) {
                noted.store(true, Ordering::Relaxed);
            }
            Ok(done)
        };
        self.run(bytes, work).await
    }

    /// Whether the write-ahead log or free pages may have deleted content.
    pub(super) fn has_deleted(&self) -> bool {
        self.has_deleted.load(Ordering::Relaxed)
    }

    /// Writes all commits into the database and empties the write-ahead log. False if a reader prevents it.
    pub(super) async fn empty_log(&self) -> Result<bool, StoreError> {
        self.maintain(AfterCommit::EmptyLog).await
    }

    /// Writes the whole file anew.
    pub(super) async fn compact(&self) -> Result<(), StoreError> {
        self.maintain(AfterCommit::Compact).await.map(drop)
    }

    async fn maintain(&self, wanted: AfterCommit) -> Result<bool, StoreError> {
        let (answer, answered) = oneshot::channel();
        let request = Maintenance {
            wanted,
            done: Ok(false),
            answer,
        };
        self.send(Box::new(request)).await?;
        answered.await.map_err(|_| StoreError::Closed)?
    }

    async fn send(&self, request: Box<dyn Request>) -> Result<(), StoreError> {
        let queue = {
            let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            queue.clone().ok_or(StoreError::Closed)?
        };
        let sent = queue.send(request).await;
        sent.map_err(|_| StoreError::Closed)
    }

    pub(super) fn counts(&self) -> Counts {
        Counts {
            n_commits: self.counters.commits.load(Ordering::Relaxed),
            n_requests: self.counters.requests.load(Ordering::Relaxed),
        }
    }

    /// Closes the queue; the thread ends after the queued writes.
    pub(super) fn close(&self) -> Option<JoinHandle<()>> {
        self.queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        self.thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Some(thread) = self.close() {
            let _ = thread.join();
        }
    }
}

fn write(
    conn: &Connection,
    mut requests: mpsc::Receiver<Box<dyn Request>>,
    syncer: &Syncer,
    counters: &Counters,
    health: &Health,
    has_deleted: &AtomicBool,
) {
    while let Some(first) = requests.blocking_recv() {
        let Done {
            committed,
            mut waiting,
        } = Batch::new(conn, health, syncer).take(first, &mut requests);
        if committed.is_ok() {
            counters.commits.fetch_add(1, Ordering::Relaxed);
            counters
                .requests
                .fetch_add(waiting.len() as u64, Ordering::Relaxed);
        }
        if committed.is_ok() {
            for request in &mut waiting {
                if let Some(wanted) = request.wants() {
                    request.note(maintain(conn, wanted, has_deleted));
                }
            }
        }
        match committed {
            // A request that is alone is answered without another thread.
            Ok(()) if waiting.len() == 1 && requests.is_empty() => syncer.sync_now(waiting),
            // What changed nothing waits too: it may have read what is not durable yet.
            Ok(()) => syncer.sync(waiting),
            committed => answer(waiting, &committed),
        }
    }
}

/// How long emptying the log waits for readers. Longer ones prevent it.
const READERS: Duration = Duration::from_millis(20);

fn maintain(
    conn: &Connection,
    wanted: AfterCommit,
    has_deleted: &AtomicBool,
) -> Result<bool, StoreError> {
    if wanted == AfterCommit::Compact {
        space::compact(conn)?;
        return Ok(true);
    }
    let usual: u32 = conn
        .query_row("PRAGMA busy_timeout", [], |row| row.get(0))
        .map_err(statement)?;
    conn.busy_timeout(READERS).map_err(statement)?;
    let is_empty = empty(conn);
    conn.busy_timeout(Duration::from_millis(usual.into()))
        .map_err(statement)?;
    let is_empty = is_empty?;
    // All deletions so far are committed, because this thread has done them.
    if is_empty && !space::can_shrink(conn)? && bulk::waiting(conn)?.is_none() {
        has_deleted.store(false, Ordering::Relaxed);
    }
    Ok(is_empty)
}

/// Writes all commits into the database and empties the write-ahead log. False if a reader prevents it.
pub(super) fn empty(conn: &Connection) -> Result<bool, StoreError> {
    let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
    let is_busy = conn.query_row(sql, [], |row| row.get::<_, bool>(0));
    Ok(!is_busy.map_err(statement)?)
}

fn truncate(conn: &Connection) {
    if let Err(error) = empty(conn) {
        tracing::warn!(%error, "the last checkpoint failed; the next start makes up for it");
    }
}

struct Batch<'a> {
    conn: &'a Connection,
    health: &'a Health,
    // What the connection has changed, and what has failed, before this batch.
    before: (u64, u64),
    transaction: Result<(), CommitFailed>,
    waiting: Vec<Box<dyn Request>>,
    bytes: usize,
    // Whether each further request has a savepoint, because one failed after it had changed something.
    has_savepoints: bool,
}

struct Done {
    committed: Result<(), CommitFailed>,
    waiting: Vec<Box<dyn Request>>,
}

impl<'a> Batch<'a> {
    fn new(conn: &'a Connection, health: &'a Health, syncer: &'a Syncer) -> Self {
        let before = (conn.total_changes(), health.n_failures());
        let transaction = syncer
            .works()
            .and_then(|()| execute(conn, "BEGIN IMMEDIATE"));
        Self {
            conn,
            health,
            before,
            transaction,
            waiting: Vec::new(),
            bytes: 0,
            has_savepoints: false,
        }
    }

    fn take(
        mut self,
        first: Box<dyn Request>,
        requests: &mut mpsc::Receiver<Box<dyn Request>>,
    ) -> Done {
        self.add(first);
        while self.waiting.len() < REQUESTS
            && self.bytes < BYTES
            && let Ok(request) = requests.try_recv()
        {
            self.add(request);
        }
        let committed = self.transaction.and_then(|()| execute(self.conn, "COMMIT"));
        let (n_changes, n_failures) = self.before;
        if let Err(error) = &committed {
            self.health.commit_failed(error);
            if !self.conn.is_autocommit() {
                let _ = execute(self.conn, "ROLLBACK");
            }
        } else if self.conn.total_changes() > n_changes && self.health.n_failures() == n_failures {
            self.health.committed();
        }
        Done {
            committed,
            waiting: self.waiting,
        }
    }

    fn add(&mut self, mut request: Box<dyn Request>) {
        self.bytes = self.bytes.saturating_add(request.bytes());
        if self.transaction.is_ok() {
            let n_changes = self.conn.total_changes();
            if self.has_savepoints {
                self.transaction = in_savepoint(self.conn, &mut *request);
            } else {
                request.run(self.conn);
                if !request.has_succeeded() && self.conn.total_changes() > n_changes {
                    self.restart();
                }
            }
        }
        self.waiting.push(request);
        self.look_after();
    }

    /// Undoes what a failed request has changed: begins anew and does the requests before it again.
    fn restart(&mut self) {
        self.look_after();
        if self.transaction.is_err() {
            return;
        }
        self.has_savepoints = true;
        self.transaction =
            execute(self.conn, "ROLLBACK").and_then(|()| execute(self.conn, "BEGIN IMMEDIATE"));
        for request in self.waiting.iter_mut().filter(|it| it.has_succeeded()) {
            if self.transaction.is_ok() {
                self.transaction = in_savepoint(self.conn, &mut **request);
            }
        }
    }

    // A full or failing disk makes SQLite roll back everything.
    fn look_after(&mut self) {
        if self.transaction.is_ok() && self.conn.is_autocommit() {
            self.transaction = Err(CommitFailed(Arc::new(rusqlite::Error::InvalidQuery)));
        }
    }
}

fn execute(conn: &Connection, sql: &str) -> Result<(), CommitFailed> {
    let done = conn
        .prepare_cached(sql)
        .and_then(|mut statement| statement.execute([]));
    done.map(|_| ())
        .map_err(|error| CommitFailed(Arc::new(error)))
}

/// Does a request in a savepoint. If it fails, nothing has changed.
fn in_savepoint(conn: &Connection, request: &mut dyn Request) -> Result<(), CommitFailed> {
    execute(conn, "SAVEPOINT request")?;
    request.run(conn);
    if !request.has_succeeded() && !conn.is_autocommit() {
        execute(conn, "ROLLBACK TO request")?;
    }
    if !conn.is_autocommit() {
        execute(conn, "RELEASE request")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::connection::{SqliteOptions, lock, wal, writing};
    use super::*;
    use tempfile::TempDir;

    fn started() -> (TempDir, Writer) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("db");
        let conn = writing(&path, &SqliteOptions::default()).unwrap();
        conn.execute_batch(
            "CREATE TABLE parent (n INTEGER PRIMARY KEY);
             CREATE TABLE child (n REFERENCES parent (n) DEFERRABLE INITIALLY DEFERRED);",
        )
        .unwrap();
        (
            directory,
            Writer::start(conn, &wal(&path), lock(&path).unwrap(), Arc::default()).unwrap(),
        )
    }

    fn insert(
        sql: &'static str,
    ) -> impl Fn(&Connection) -> Result<usize, StoreError> + Send + 'static {
        move |conn| conn.execute(sql, []).map_err(statement)
    }

    fn n_parents(conn: &Connection) -> Result<i64, StoreError> {
        conn.query_row("SELECT count(*) FROM parent", [], |row| row.get(0))
            .map_err(statement)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_panic_in_the_writer_answers_closed_and_hangs_nobody() {
        let (_directory, writer) = started();
        let panicked = writer.run(0, |_| -> Result<(), StoreError> { panic!("on purpose") });
        let (panicked, behind) = tokio::join!(panicked, writer.run(0, n_parents));
        assert!(matches!(panicked, Err(StoreError::Closed)), "{panicked:?}");
        assert!(matches!(behind, Err(StoreError::Closed)), "{behind:?}");
        assert!(matches!(
            writer.run(0, n_parents).await,
            Err(StoreError::Closed)
        ));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_commit_that_fails_refuses_all_that_is_in_it_and_the_next_goes_on() {
        let (_directory, writer) = started();
        // The first holds the writer up until the others are queued: they share one commit.
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let holding = writer.run(0, move |_| wait.recv().map_err(failed));
        // Polled last, when the others are in the queue.
        let release = async { go.send(()).unwrap() };
        let (held, good, bad, ()) = tokio::join!(
            holding,
            writer.run(0, insert("INSERT INTO parent VALUES (1)")),
            writer.run(0, insert("INSERT INTO child VALUES (7)")),
            release,
        );
        assert!(matches!(held, Err(StoreError::Failed(_))), "{held:?}");
        assert!(matches!(good, Err(StoreError::Failed(_))), "{good:?}");
        assert!(matches!(bad, Err(StoreError::Failed(_))), "{bad:?}");
        assert_eq!(writer.run(0, n_parents).await.unwrap(), 0);
        assert!(
            writer
                .run(0, insert("INSERT INTO parent VALUES (1)"))
                .await
                .is_ok()
        );
        assert_eq!(writer.run(0, n_parents).await.unwrap(), 1);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_request_that_fails_does_not_spoil_the_others_of_its_commit() {
        let (_directory, writer) = started();
        let twice = |conn: &Connection| {
            insert("INSERT INTO parent VALUES (5)")(conn)?;
            insert("INSERT INTO parent VALUES (1)")(conn)
        };
        let (first, refused, last) = tokio::join!(
            writer.run(0, insert("INSERT INTO parent VALUES (1)")),
            writer.run(0, twice),
            writer.run(0, insert("INSERT INTO parent VALUES (2)")),
        );
        assert!(first.is_ok() && last.is_ok());
        assert!(
            matches!(refused, Err(StoreError::Duplicate(_))),
            "{refused:?}"
        );
        assert_eq!(writer.run(0, n_parents).await.unwrap(), 2);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_transaction_that_is_gone_refuses_the_whole_batch() {
        let (_directory, writer) = started();
        let (first, gone) = tokio::join!(
            writer.run(0, insert("INSERT INTO parent VALUES (1)")),
            writer.run(0, insert("ROLLBACK")),
        );
        assert!(gone.is_err(), "{first:?} {gone:?}");
        let kept = i64::from(first.is_ok());
        assert_eq!(writer.run(0, n_parents).await.unwrap(), kept);
    }
}
