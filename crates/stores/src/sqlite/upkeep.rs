//! The work of an operator on a SQLite store.

use super::connection::wal;
use super::writer::Writer;
use super::{SqliteStore, chain, check, rebuild, schema, storage};
use crate::durable::{
    Activity, Chain, ChainEnd, Compared, Evidence, PoisonedRun, Remedy, Stats, StoreFault,
    StoreHealth, StoreStorage, ThreadStorage, Upkeep,
};
use futures_util::future::BoxFuture;
use std::path::Path;
use store::{StoreError, TenantId};
use timeline::ThreadId;

impl Upkeep for SqliteStore {
    fn health(&self) -> BoxFuture<'_, StoreHealth> {
        Box::pin(async move {
            if let Some(writer) = self.writer.as_ref().filter(|_| self.health.wants_trial())
                && writer.run(0, schema::touch).await.is_ok()
            {
                self.health.committed();
            }
            self.health.now()
        })
    }

    fn rebuild_tables(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { self.writer()?.run(0, rebuild::rebuild).await })
    }

    fn findings(&self) -> BoxFuture<'_, Result<Vec<StoreFault>, StoreError>> {
        Box::pin(async move {
            let torn = self.torn_log.iter();
            let torn = torn.map(|what| StoreFault::of_store(what, Remedy::Restore));
            let mut found: Vec<_> = torn.collect();
            found.append(&mut self.readers.run(check::check).await?);
            Ok(found)
        })
    }

    fn activity(&self) -> Activity {
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        let counts = self.writer.as_ref().map(Writer::counts).unwrap_or_default();
        Activity {
            file_bytes: size(&self.path),
            wal_bytes: size(&wal(&self.path)),
            n_commits: counts.n_commits,
            n_requests: counts.n_requests,
            n_failures: self.health.n_failures(),
            n_damaged: self.health.n_damaged(),
            health: self.health.now(),
        }
    }

    fn poisoned(&self) -> BoxFuture<'_, Result<Vec<PoisonedRun>, StoreError>> {
        Box::pin(self.readers.run(check::poisoned))
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats, StoreError>> {
        Box::pin(self.readers.run(check::stats))
    }

    fn storage(&self) -> BoxFuture<'_, Result<StoreStorage, StoreError>> {
        let path = self.path.clone();
        Box::pin(self.readers.run(move |conn| storage::of_store(conn, &path)))
    }

    fn largest_threads<'a>(
        &'a self,
        tenant: &'a TenantId,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<ThreadStorage>, StoreError>> {
        let tenant = tenant.clone();
        Box::pin(
            self.readers
                .run(move |conn| storage::largest(conn, &tenant, limit)),
        )
    }

    fn thread_storage<'a>(
        &'a self,
        thread: &'a ThreadId,
    ) -> BoxFuture<'a, Result<ThreadStorage, StoreError>> {
        let thread = thread.clone();
        Box::pin(
            self.readers
                .run(move |conn| storage::of_thread(conn, &thread)),
        )
    }
}

impl Evidence for SqliteStore {
    fn chain<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<Chain, StoreError>> {
        let thread = thread.clone();
        Box::pin(self.readers.run(move |conn| chain::chain(conn, &thread)))
    }

    fn chain_ends(&self) -> BoxFuture<'_, Result<Vec<ChainEnd>, StoreError>> {
        Box::pin(self.readers.run(chain::ends))
    }

    fn compare(&self, sealed: ChainEnd) -> BoxFuture<'_, Result<Compared, StoreError>> {
        Box::pin(self.readers.run(move |conn| chain::compare(conn, &sealed)))
    }
}

impl SqliteStore {
    /// The [findings](Upkeep::findings) as texts.
    pub async fn check(&self) -> Result<Vec<String>, StoreError> {
        let found = self.findings().await?;
        Ok(found.iter().map(ToString::to_string).collect())
    }
}
