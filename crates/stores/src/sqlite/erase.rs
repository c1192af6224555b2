//! Erasing: removed messages of threads that stay, all data of a tenant, and the space of what was deleted.
//!
//! `secure_delete` overwrites what a transaction deletes. Four places can still have copies: the write-ahead log until
//! it is emptied, free pages of before, the full-text index after a deletion in bulk, and the unused part of a page
//! whose rows SQLite has moved. The first three go with [`SqliteStore::reclaim`]. The last one only goes if the whole
//! file is written anew ([`SqliteStore::compact`]). [`Samples`] show whether that is necessary.

mod removed;
mod samples;
mod tenant;

pub use removed::ErasedEntries;
pub use samples::{FoundSamples, Samples, Searched, search_files};
pub use tenant::ErasedTenant;

use super::SqliteStore;
use super::error::failed;
use super::rebuild;
use super::rows;
use super::space;
use super::words::bulk;
use super::writer::Writer;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{StoreError, TenantId, ThreadRow};
use timeline::ThreadId;

/// Free pages that one commit returns.
const PAGES: u32 = 256;
/// How often the write-ahead log is tried to be emptied, and the pause between two trials. Readers prevent it.
const TRIALS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(50);

/// The space that was returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reclaimed {
    /// The bytes of the free pages that the file has no more.
    pub bytes: u64,
    /// Whether the write-ahead log is empty. Another process that reads the store can prevent it.
    pub is_log_empty: bool,
}

impl SqliteStore {
    /// Erases the content of the removed items and steps of a thread, and of its withdrawn compactions. The chain of
    /// its log still holds. Other writes go between the blocks. An entry that a fork still shows stays, and so does one
    /// that is in the log of the thread's parent.
    pub async fn erase_removed(&self, thread: &ThreadId) -> Result<ErasedEntries, StoreError> {
        let id = thread.clone();
        let plan = self.readers.run(move |conn| removed::plan(conn, &id));
        let plan = Arc::new(plan.await?);
        let mut erased = plan.counts();
        for first in plan.blocks() {
            let plan = plan.clone();
            let erase = move |conn: &_| removed::erase_block(conn, &plan, first);
            let erasing = self.writer()?.run_deleting(0, erase, |it| *it);
            erased.blocks += u64::from(erasing.await?);
        }
        Ok(erased)
    }

    /// The counts of [`erase_removed`](Self::erase_removed), if nothing is changed.
    pub async fn erasable(&self, thread: &ThreadId) -> Result<ErasedEntries, StoreError> {
        let id = thread.clone();
        let plan = self.readers.run(move |conn| removed::plan(conn, &id));
        let plan = plan.await?;
        Ok(ErasedEntries {
            blocks: plan.blocks().count() as u64,
            ..plan.counts()
        })
    }

    /// The threads of a tenant that changed first, after a place in the order of changes.
    pub async fn oldest_threads(
        &self,
        tenant: &TenantId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<ThreadRow>, StoreError> {
        let tenant = tenant.clone();
        self.readers
            .run(move |conn| rows::oldest(conn, &tenant, after, limit))
            .await
    }

    /// The threads of a tenant with removed entries.
    pub async fn with_removed(&self, tenant: &TenantId) -> Result<Vec<ThreadId>, StoreError> {
        let tenant = tenant.clone();
        self.readers
            .run(move |conn| removed::threads(conn, &tenant))
            .await
    }

    /// Samples of what [`erase_removed`](Self::erase_removed) erases.
    pub async fn samples_of_removed(&self, thread: &ThreadId) -> Result<Samples, StoreError> {
        let id = thread.clone();
        self.readers
            .run(move |conn| removed::samples(conn, &id))
            .await
    }

    /// Samples of everything that a thread has.
    pub async fn samples_of_thread(&self, thread: &ThreadId) -> Result<Samples, StoreError> {
        let id = thread.clone();
        self.readers
            .run(move |conn| samples::of_thread(conn, &id))
            .await
    }

    /// Samples of a tenant's objects, contents and checkpoints.
    pub async fn samples_of_tenant(&self, tenant: &TenantId) -> Result<Samples, StoreError> {
        let tenant = tenant.clone();
        self.readers
            .run(move |conn| tenant::samples(conn, &tenant))
            .await
    }

    /// Erases the objects, contents and checkpoints of a tenant whose threads are deleted.
    pub async fn erase_tenant(&self, tenant: &TenantId) -> Result<ErasedTenant, StoreError> {
        let mut erased = ErasedTenant::default();
        loop {
            let tenant = tenant.clone();
            let erase = move |conn: &_| tenant::some(conn, &tenant);
            let is_some = |it: &ErasedTenant| *it != ErasedTenant::default();
            let some = self.writer()?.run_deleting(0, erase, is_some).await?;
            erased.objects += some.objects;
            erased.checkpoints += some.checkpoints;
            if some == ErasedTenant::default() {
                return Ok(erased);
            }
        }
    }

    /// Announces deletions of threads with this number of bytes together. Their words are deleted in the way that is
    /// fastest for all of them, from the first one on.
    pub fn announce_deletions(&self, bytes: u64) {
        self.deleted_text.add(bytes);
    }

    /// Whether deleted content may still be in the write-ahead log, or its space in the file. It is true after a start.
    pub fn has_deleted(&self) -> bool {
        self.writer.as_ref().is_some_and(Writer::has_deleted)
    }

    /// Takes the words of deletions in bulk out of the full-text index. Returns the free pages of the file to the
    /// system, and empties the write-ahead log. Other writes go between the steps. A file of before version 11 that was
    /// never compacted keeps its free pages, which are overwritten. Readers can prevent the emptying: it is tried for
    /// some seconds.
    pub async fn reclaim(&self) -> Result<Reclaimed, StoreError> {
        self.reclaim_trying(TRIALS).await
    }

    /// Does what [`reclaim`](Self::reclaim) does, but tries only once to empty the log. Each trial delays commits.
    pub async fn reclaim_at_once(&self) -> Result<Reclaimed, StoreError> {
        self.reclaim_trying(1).await
    }

    /// Takes the words of deletions in bulk out of the full-text index.
    pub(super) async fn merge_words(&self) -> Result<(), StoreError> {
        let writer = self.writer()?;
        // Two merges would start each other anew.
        let _one = self.merging.lock().await;
        loop {
            self.deleted_text.clear();
            let Some(noted) = self.readers.run(bulk::waiting).await? else {
                return Ok(());
            };
            if self.readers.run(bulk::has_few_texts).await? {
                let remake = move |conn: &_| {
                    rebuild::index(conn)?;
                    bulk::end_merge(conn, noted)
                };
                writer.run_deleting(0, remake, |_| true).await?;
                continue;
            }
            writer.run_deleting(0, bulk::start_merge, |()| true).await?;
            let mut pages = 1;
            loop {
                let begun = Instant::now();
                let merge = move |conn: &_| bulk::merge(conn, pages);
                if !writer.run_deleting(0, merge, |it| *it).await? {
                    break;
                }
                pages = bulk::next_pages(pages, begun.elapsed());
            }
            writer
                .run(0, move |conn| bulk::end_merge(conn, noted))
                .await?;
        }
    }

    async fn reclaim_trying(&self, trials: u32) -> Result<Reclaimed, StoreError> {
        // The space of other deletions is returned even if that fails.
        let merged = self.merge_words().await;
        let mut bytes = 0;
        loop {
            let freed = self
                .writer()?
                .run(0, |conn| space::shrink(conn, PAGES))
                .await?;
            if freed == 0 {
                break;
            }
            bytes += freed;
        }
        let mut is_log_empty = self.writer()?.empty_log().await?;
        for _ in 1..trials {
            if is_log_empty {
                break;
            }
            tokio::time::sleep(PAUSE).await;
            is_log_empty = self.writer()?.empty_log().await?;
        }
        merged.map(|()| Reclaimed {
            bytes,
            is_log_empty,
        })
    }

    /// Whether the file returns its free pages without being written anew. A store of before version 11 does so once
    /// it was [compacted](Self::compact).
    pub async fn returns_space(&self) -> Result<bool, StoreError> {
        self.writer()?.run(0, space::returns_space).await
    }

    /// Writes the whole file anew. All other writes wait for it. It needs the size of the store twice on the disk.
    pub async fn compact(&self) -> Result<(), StoreError> {
        self.writer()?.compact().await?;
        self.reclaim().await.map(drop)
    }

    /// Searches for samples: in the file and its write-ahead log as they are on the disk, and in everything that
    /// can be read. Of an encrypted file only the latter means something.
    pub async fn search_for(&self, samples: Arc<Samples>) -> Result<Searched, StoreError> {
        let (path, is_encrypted) = (self.path.clone(), self.is_encrypted);
        let wanted = samples.clone();
        let in_files = async {
            if is_encrypted {
                return Ok(None);
            }
            let read = move || search_files(&path, &wanted);
            let found = tokio::task::spawn_blocking(read).await.map_err(failed)?;
            found.map(Some).map_err(failed)
        };
        let in_files: Option<FoundSamples> = in_files.await?;
        let wanted = samples.clone();
        let in_values = self
            .readers
            .run(move |conn| samples::search_values(conn, &wanted))
            .await?;
        Ok(Searched::of(&samples, in_files, in_values))
    }
}

#[cfg(test)]
mod tests {
    use super::super::SqliteOptions;
    use super::*;

    #[tokio::test]
    async fn a_store_has_deleted_content_while_words_wait_for_a_merge() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("db");
        let store = SqliteStore::open(&path, &SqliteOptions::default()).unwrap();
        let writer = store.writer().unwrap();
        store.reclaim().await.unwrap();
        assert!(!store.has_deleted());
        let note = |conn: &_| bulk::noting(conn, || Ok(()));
        writer.run_deleting(0, note, |()| true).await.unwrap();
        assert!(writer.empty_log().await.unwrap() && store.has_deleted());
        store.reclaim().await.unwrap();
        assert!(!store.has_deleted());
    }
}
