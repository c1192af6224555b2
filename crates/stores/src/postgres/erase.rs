//! Erasing: removed messages of threads that stay, all data of a tenant, and the space of what was deleted.
//!
//! A row that was deleted or changed stays in the files of the server until `VACUUM` takes it out of its page, and its
//! bytes until something else is written there. The write-ahead log, standby servers, archives and backups have it
//! longer. They are the server's. The full-text index has each word that it ever had, until `VACUUM FULL` makes it anew.

mod removed;
mod tenant;
mod values;

use super::PostgresStore;
use super::connection::Conn;
use super::error::{is_overtaken, statement};
use super::pool::Isolation;
use super::storage;
use super::{TRIES, rows};
use crate::durable::{ErasedEntries, ErasedTenant, Erasure, Reclaimed, Samples, Searched};
use futures_util::future::BoxFuture;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::{StoreError, TenantId, ThreadRow};
use timeline::ThreadId;

/// The tables whose rows were deleted or erased, and not taken out of their pages since.
#[derive(Debug, Default)]
pub(super) struct Deleted(Mutex<BTreeSet<&'static str>>);

impl Deleted {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<&'static str>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note(&self, tables: &[&'static str]) {
        self.lock().extend(tables);
    }

    fn take(&self) -> ToReclaim<'_> {
        ToReclaim {
            deleted: self,
            tables: std::mem::take(&mut *self.lock()),
        }
    }
}

/// Tables whose deleted rows are being taken out. Those that are left are noted again.
struct ToReclaim<'a> {
    deleted: &'a Deleted,
    tables: BTreeSet<&'static str>,
}

impl Drop for ToReclaim<'_> {
    fn drop(&mut self) {
        self.deleted.lock().append(&mut self.tables);
    }
}

impl Erasure for PostgresStore {
    fn oldest_threads<'a>(
        &'a self,
        tenant: &'a TenantId,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<ThreadRow>, StoreError>> {
        self.noting(async move {
            let conn = self.pool.begin(Isolation::LongSnapshot).await?;
            let found = rows::oldest(&conn, tenant, after, limit).await;
            conn.end(found).await
        })
    }

    fn with_removed<'a>(
        &'a self,
        tenant: &'a TenantId,
    ) -> BoxFuture<'a, Result<Vec<ThreadId>, StoreError>> {
        self.noting(async move {
            let conn = self.pool.begin(Isolation::LongSnapshot).await?;
            let found = removed::threads(&conn, tenant).await;
            conn.end(found).await
        })
    }

    fn erase_removed<'a>(
        &'a self,
        thread: &'a ThreadId,
    ) -> BoxFuture<'a, Result<ErasedEntries, StoreError>> {
        self.noting(async move {
            self.pool.writable()?;
            let conn = self.pool.begin(Isolation::LongSnapshot).await?;
            let plan = removed::plan(&conn, thread).await;
            let plan = conn.end(plan).await?;
            let mut erased = plan.counts();
            for first in plan.blocks() {
                let mut tries = 0;
                let is_erased = loop {
                    let conn = self.pool.begin(Isolation::Write).await?;
                    conn.set_brief(false);
                    let is_erased = removed::erase_block(&conn, &plan, first).await;
                    match conn.end(is_erased).await {
                        Ok(is_erased) => break is_erased,
                        Err(error) if tries < TRIES && is_overtaken(&error) => tries += 1,
                        Err(error) => return Err(error),
                    }
                };
                if is_erased {
                    self.deleted.note(&removed::TABLES);
                    erased.blocks += 1;
                }
            }
            // Also after an erasure that was stopped before its hint.
            let conn = self.pool.get().await?;
            let hint = self
                .notifier
                .send_erased(&conn, &self.listener.channel, thread);
            hint.await?;
            Ok(erased)
        })
    }

    fn erasable<'a>(
        &'a self,
        thread: &'a ThreadId,
    ) -> BoxFuture<'a, Result<ErasedEntries, StoreError>> {
        self.noting(async move {
            let conn = self.pool.begin(Isolation::LongSnapshot).await?;
            let plan = removed::plan(&conn, thread).await;
            Ok(conn.end(plan).await?.expected())
        })
    }

    fn erase_tenant<'a>(
        &'a self,
        tenant: &'a TenantId,
    ) -> BoxFuture<'a, Result<ErasedTenant, StoreError>> {
        self.noting(async move {
            let mut erased = ErasedTenant::default();
            let mut tries = 0;
            loop {
                let conn = self.pool.begin(Isolation::Write).await?;
                conn.set_brief(false);
                let some = tenant::erase_some(&conn, tenant).await;
                let some = match conn.end(some).await {
                    Ok(some) => some,
                    Err(error) if tries < TRIES && is_overtaken(&error) => {
                        tries += 1;
                        continue;
                    }
                    Err(error) => return Err(error),
                };
                if some == ErasedTenant::default() {
                    return Ok(erased);
                }
                self.deleted.note(&tenant::TABLES);
                erased.objects += some.objects;
                erased.checkpoints += some.checkpoints;
            }
        })
    }

    fn samples_of_removed<'a>(
        &'a self,
        thread: &'a ThreadId,
    ) -> BoxFuture<'a, Result<Samples, StoreError>> {
        self.noting(async move {
            let conn = self.pool.begin(Isolation::LongSnapshot).await?;
            let samples = removed::samples(&conn, thread).await;
            conn.end(samples).await
        })
    }

    fn samples_of_thread<'a>(
        &'a self,
        thread: &'a ThreadId,
    ) -> BoxFuture<'a, Result<Samples, StoreError>> {
        self.noting(async move {
            let conn = self.pool.begin(Isolation::LongSnapshot).await?;
            let samples = values::of_thread(&conn, thread).await;
            conn.end(samples).await
        })
    }

    fn samples_of_tenant<'a>(
        &'a self,
        tenant: &'a TenantId,
    ) -> BoxFuture<'a, Result<Samples, StoreError>> {
        self.noting(async move {
            let conn = self.pool.begin(Isolation::LongSnapshot).await?;
            let samples = tenant::samples(&conn, tenant).await;
            conn.end(samples).await
        })
    }

    // The files are the server's, so they are not searched.
    fn search_for(&self, samples: Arc<Samples>) -> BoxFuture<'_, Result<Searched, StoreError>> {
        self.noting(async move {
            let conn = self.pool.begin(Isolation::LongSnapshot).await?;
            let found = values::search(&conn, &samples).await;
            let found = conn.end(found).await?;
            Ok(Searched::of(&samples, None, found))
        })
    }

    // Words are deleted with their rows.
    fn announce_deletions(&self, _bytes: u64) {}

    // It is false after a start: the server's own `VACUUM` does what an earlier process has left.
    fn has_deleted(&self) -> bool {
        !self.deleted.lock().is_empty()
    }

    // `VACUUM` of the tables that lost rows. Their files become smaller only at their ends; the space is used again.
    fn reclaim(&self) -> BoxFuture<'_, Result<Reclaimed, StoreError>> {
        self.noting(async move {
            self.pool.writable()?;
            let conn = self.connector.connect().await?;
            let before = size(&conn).await?;
            let mut to_do = self.deleted.take();
            while let Some(table) = to_do.tables.first().copied() {
                let done = conn.batch(&format!("VACUUM {table}")).await;
                done.map_err(statement)?;
                to_do.tables.remove(table);
            }
            Ok(Reclaimed {
                bytes: before.saturating_sub(size(&conn).await?),
                is_log_empty: None,
            })
        })
    }

    fn reclaim_at_once(&self) -> BoxFuture<'_, Result<Reclaimed, StoreError>> {
        self.reclaim()
    }

    fn returns_space(&self) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async { Ok(true) })
    }

    // `VACUUM FULL`, one table after the other. Readers of a table wait, too.
    fn compact(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.noting(async move {
            self.pool.writable()?;
            let conn = self.connector.connect().await?;
            for (table, _) in storage::tables(&conn).await? {
                let done = conn.batch(&format!("VACUUM FULL {table}")).await;
                done.map_err(statement)?;
            }
            self.deleted.lock().clear();
            Ok(())
        })
    }

    fn copies(&self) -> Vec<PathBuf> {
        Vec::new()
    }
}

/// The bytes of all tables.
async fn size(conn: &Conn) -> Result<u64, StoreError> {
    let tables = storage::tables(conn).await?;
    Ok(tables.iter().map(|(_, bytes)| bytes).sum())
}
