//! Makes commits durable: syncs the write-ahead log, then answers the requests of its commits.
//!
//! SQLite writes a commit to the log without a sync (`synchronous=NORMAL`). The syncer has a second handle to the log.
//! SQLite's locks are on other files, so this handle changes nothing for it. Checkpoints sync the log by themselves.

use super::error::{CommitFailed, failed, statement};
use super::request::Request;
use crate::durable::Health;
use rusqlite::Connection;
use std::fs::File;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use store::StoreError;

/// Maximum number of commits in the queue, and in one sync besides its first.
const QUEUED: usize = 1;

/// Maximum number of commits that are written and not synced: one sync has two, one is in the queue, and one waits
/// to enter it. A power loss can break them all, so the check of the write-ahead log depends on this number.
pub(super) const UNSYNCED: usize = 2 * QUEUED + 2;

/// The requests of one commit.
type Answers = Vec<Box<dyn Request>>;

/// The thread that syncs.
pub(super) struct Syncer {
    queue: Option<SyncSender<Answers>>,
    thread: Option<JoinHandle<()>>,
    log: Arc<SyncedLog>,
}

/// The write-ahead log. After a sync that failed nobody knows which pages are on the disk, so it is the last one.
struct SyncedLog {
    file: File,
    failure: OnceLock<CommitFailed>,
    health: Arc<Health>,
}

impl SyncedLog {
    fn works(&self) -> Result<(), CommitFailed> {
        self.failure.get().cloned().map_or(Ok(()), Err)
    }

    fn sync(&self) -> Result<(), CommitFailed> {
        self.works()?;
        let synced = self.file.sync_data();
        synced.map_err(|error| {
            let failure = self.failure.get_or_init(|| CommitFailed(Arc::new(error)));
            self.health.commit_failed(failure);
            failure.clone()
        })
    }
}

impl Syncer {
    /// Starts the thread. `log` is the write-ahead log of the connection's database.
    pub(super) fn start(
        conn: &Connection,
        log: &Path,
        health: Arc<Health>,
    ) -> Result<Self, StoreError> {
        // The log is made with the first transaction.
        conn.execute_batch("PRAGMA synchronous=NORMAL; BEGIN IMMEDIATE; COMMIT;")
            .map_err(statement)?;
        let file = File::options().write(true).open(log).map_err(failed)?;
        let log = Arc::new(SyncedLog {
            file,
            failure: OnceLock::new(),
            health,
        });
        let (queue, commits) = sync_channel(QUEUED);
        let synced = log.clone();
        let thread = std::thread::Builder::new()
            .name("store-sync".into())
            .spawn(move || work(&commits, &synced))
            .map_err(failed)?;
        Ok(Self {
            queue: Some(queue),
            thread: Some(thread),
            log,
        })
    }

    /// Whether syncs succeed.
    pub(super) fn works(&self) -> Result<(), CommitFailed> {
        self.log.works()
    }

    /// Answers after a sync, by the thread.
    pub(super) fn sync(&self, answers: Answers) {
        let unsent = match &self.queue {
            Some(queue) => queue.send(answers).err().map(|error| error.0),
            None => Some(answers),
        };
        // The thread ends only with this value.
        if let Some(answers) = unsent {
            self.sync_now(answers);
        }
    }

    /// Answers after a sync, here.
    pub(super) fn sync_now(&self, answers: Answers) {
        answer(answers, &self.log.sync());
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.queue.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Answers the requests of one commit.
pub(super) fn answer(requests: Answers, committed: &Result<(), CommitFailed>) {
    for request in requests {
        request.answer(committed.clone());
    }
}

fn work(commits: &Receiver<Answers>, log: &SyncedLog) {
    while let Ok(first) = commits.recv() {
        // One sync is for all commits that were written before it began.
        let waiting: Vec<_> = std::iter::once(first)
            .chain(commits.try_iter().take(QUEUED))
            .collect();
        let synced = log.sync();
        for answers in waiting {
            answer(answers, &synced);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::connection::{SqliteOptions, wal, writing};
    use super::*;
    use std::sync::mpsc::{Sender, channel};

    /// Tells its number when it is answered.
    struct Told(u32, Sender<(u32, bool)>);

    impl Request for Told {
        fn bytes(&self) -> usize {
            0
        }

        fn run(&mut self, _: &Connection) {}

        fn has_succeeded(&self) -> bool {
            true
        }

        fn answer(self: Box<Self>, committed: Result<(), CommitFailed>) {
            self.1.send((self.0, committed.is_ok())).unwrap();
        }
    }

    #[test]
    fn no_request_is_answered_before_its_sync() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("db");
        let conn = writing(&path, &SqliteOptions::default()).unwrap();
        let syncer = Syncer::start(&conn, &wal(&path), Arc::default()).unwrap();
        let (answered, answers) = channel();
        for n in 0..200 {
            let requests: Answers = vec![Box::new(Told(n, answered.clone()))];
            if n % 3 == 0 {
                syncer.sync_now(requests);
            } else {
                syncer.sync(requests);
            }
        }
        drop(syncer);
        drop(answered);
        let mut all: Vec<_> = answers.into_iter().collect();
        all.sort_unstable();
        let expected: Vec<_> = (0..200).map(|n| (n, true)).collect();
        assert_eq!(all, expected);
    }

    #[cfg(unix)]
    #[test]
    fn a_failed_sync_is_the_last_one() {
        // A pipe can't be synced.
        let (_reader, writer) = std::io::pipe().unwrap();
        let log = SyncedLog {
            file: File::from(std::os::fd::OwnedFd::from(writer)),
            failure: OnceLock::new(),
            health: Arc::default(),
        };
        assert!(log.works().is_ok());
        assert!(log.sync().is_err());
        assert!(log.works().is_err());
        assert!(log.sync().is_err());
        assert_eq!(log.health.n_failures(), 1);
    }
}
