//! Erasing: removed messages of threads that stay, all data of a tenant, and the space of what was deleted.
//!
//! `secure_delete` overwrites what a transaction deletes. Four places can still have copies: the write-ahead log until
//! it is emptied, free pages of before, the full-text index after a deletion in bulk, and the unused part of a page
//! whose rows SQLite has moved. The first three go with [`SqliteStore::reclaim`]. The last one only goes if the whole
//! file is written anew ([`SqliteStore::compact`]). [`Samples`] show whether that is necessary.

mod removed;
mod tenant;
mod values;

pub use values::search_files;

use super::SqliteStore;
use super::error::failed;
use super::rebuild;
use super::rekey;
use super::rows;
use super::space;
use super::words::bulk;
use super::writer::Writer;
use crate::durable::{
    ErasedEntries, ErasedTenant, Erasure, FoundSamples, Reclaimed, Samples, Searched,
};
use futures_util::future::BoxFuture;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{StoreError, TenantId, ThreadRow};
use timeline::ThreadId;

/// Free pages that one commit returns.
const PAGES: u32 = 256;
/// How often the write-ahead log is tried to be emptied, and the pause between two trials. Readers prevent it.
const TRIALS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(50);

impl Erasure for SqliteStore {
    fn erase_removed<'a>(
        &'a self,
        thread: &'a ThreadId,
    ) -> BoxFuture<'a, Result<ErasedEntries, StoreError>> {
        Box::pin(async move {
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
        })
    }

    fn erasable<'a>(
        &'a self,
        thread: &'a ThreadId,
    ) -> BoxFuture<'a, Result<ErasedEntries, StoreError>> {
        Box::pin(async move {
            let id = thread.clone();
            let plan = self.readers.run(move |conn| removed::plan(conn, &id));
            let plan = plan.await?;
            Ok(plan.expected())
        })
    }

    fn oldest_threads<'a>(
        &'a self,
        tenant: &'a TenantId,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<ThreadRow>, StoreError>> {
        let tenant = tenant.clone();
        Box::pin(
            self.readers
                .run(move |conn| rows::oldest(conn, &tenant, after, limit)),
        )
    }

    fn with_removed<'a>(
        &'a self,
        tenant: &'a TenantId,
    ) -> BoxFuture<'a, Result<Vec<ThreadId>, StoreError>> {
        let tenant = tenant.clone();
        Box::pin(
            self.readers
                .run(move |conn| removed::threads(conn, &tenant)),
        )
    }

    fn samples_of_removed<'a>(
        &'a self,
        thread: &'a ThreadId,
    ) -> BoxFuture<'a, Result<Samples, StoreError>> {
        let id = thread.clone();
        Box::pin(self.readers.run(move |conn| removed::samples(conn, &id)))
    }

    fn samples_of_thread<'a>(
        &'a self,
        thread: &'a ThreadId,
    ) -> BoxFuture<'a, Result<Samples, StoreError>> {
        let id = thread.clone();
        Box::pin(self.readers.run(move |conn| values::of_thread(conn, &id)))
    }

    fn samples_of_tenant<'a>(
        &'a self,
        tenant: &'a TenantId,
    ) -> BoxFuture<'a, Result<Samples, StoreError>> {
        let tenant = tenant.clone();
        Box::pin(self.readers.run(move |conn| tenant::samples(conn, &tenant)))
    }

    fn erase_tenant<'a>(
        &'a self,
        tenant: &'a TenantId,
    ) -> BoxFuture<'a, Result<ErasedTenant, StoreError>> {
        Box::pin(async move {
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
        })
    }

    fn announce_deletions(&self, bytes: u64) {
        self.deleted_text.add(bytes);
    }

    // It is true after a start: a process may have ended after a deletion.
    fn has_deleted(&self) -> bool {
        self.writer.as_ref().is_some_and(Writer::has_deleted)
    }

    // Takes the words of deletions in bulk out of the full-text index, returns the free pages of the file to the system,
    // and empties the write-ahead log. A file of before version 11 that was never compacted keeps its free pages, which
    // are overwritten.
    fn reclaim(&self) -> BoxFuture<'_, Result<Reclaimed, StoreError>> {
        Box::pin(self.reclaim_trying(TRIALS))
    }

    fn reclaim_at_once(&self) -> BoxFuture<'_, Result<Reclaimed, StoreError>> {
        Box::pin(self.reclaim_trying(1))
    }

    // A store of before version 11 does so once it was compacted.
    fn returns_space(&self) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move { self.writer()?.run(0, space::returns_space).await })
    }

    fn compact(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            self.writer()?.compact().await?;
            self.reclaim().await.map(drop)
        })
    }

    fn search_for(&self, samples: Arc<Samples>) -> BoxFuture<'_, Result<Searched, StoreError>> {
        Box::pin(async move {
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
                .run(move |conn| values::search_values(conn, &wanted))
                .await?;
            Ok(Searched::of(&samples, in_files, in_values))
        })
    }

    fn copies(&self) -> Vec<PathBuf> {
        rekey::backups(&self.path).unwrap_or_default()
    }
}

impl SqliteStore {
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
            is_log_empty: Some(is_log_empty),
        })
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
