//! All data of one tenant as lines of JSON, and back into a store. The lines are those of the SQLite store.

mod export;
mod import;

use super::error::statement;
use super::{PostgresStore, derive};
use crate::durable::lines::{LineReader, MAX_LINE, next, whole};
use crate::durable::{TransferError, Transferred};
use std::io::{BufReader, Read, Seek, SeekFrom, Write};

impl PostgresStore {
    /// Writes all data of a tenant, from one snapshot. The store may be served meanwhile. Each line is one write, which
    /// blocks. One block of events or one content is in memory. The checkpoints come in the order of their sessions.
    ///
    /// # Errors
    ///
    /// [`TransferError::NoTenant`] if there is nothing of the tenant, [`TransferError::Io`] if it can't be written,
    /// [`TransferError::Store`] if the store can't be read.
    pub async fn export_tenant(
        &self,
        tenant: &str,
        to: &mut (dyn Write + Send),
    ) -> Result<Transferred, TransferError> {
        let conn = self.connector.connect().await?;
        let sql = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL idle_in_transaction_session_timeout = 0";
        conn.batch(sql).await.map_err(statement)?;
        let exported = export::export(&conn, tenant, to).await;
        if let Err(TransferError::Store(error)) = &exported {
            self.work.health.read_failed(error);
        }
        let counts = exported?;
        conn.batch("COMMIT").await.map_err(statement)?;
        Ok(counts)
    }

    /// Reads an export into the store, in one transaction. Ids, numbers, instants, tokens and texts stay as they are. Its
    /// threads come before all later changes in the tenant's list. Other nodes may serve the store, and see the tenant's
    /// data once all of it is there. Reading blocks. One line is in memory, and some blocks.
    ///
    /// # Errors
    ///
    /// [`TransferError::NotWhole`] if the file is cut or changed, [`TransferError::Line`] if a line is wrong,
    /// [`StoreError::Duplicate`](store::StoreError::Duplicate) or [`StoreError::KeyTaken`](store::StoreError::KeyTaken) if
    /// an id or a key is in use, [`StoreError::InUse`](store::StoreError::InUse) if the store is only read. Nothing is
    /// written then.
    pub async fn import_tenant(
        &self,
        from: &mut (impl Read + Seek + Send),
    ) -> Result<Transferred, TransferError> {
        self.import(from, false).await
    }

    /// Like [`import_tenant`](Self::import_tenant), for threads without runs and queued messages.
    ///
    /// # Errors
    ///
    /// Those of [`import_tenant`](Self::import_tenant), and [`TransferError::Unfinished`].
    pub async fn import_tenant_at_rest(
        &self,
        from: &mut (impl Read + Seek + Send),
    ) -> Result<Transferred, TransferError> {
        self.import(from, true).await
    }

    async fn import(
        &self,
        from: &mut (impl Read + Seek + Send),
        at_rest: bool,
    ) -> Result<Transferred, TransferError> {
        self.pool.writable()?;
        let expected = whole(from)?;
        from.seek(SeekFrom::Start(0))?;
        let last = import::last_change(from)?;
        from.seek(SeekFrom::Start(0))?;
        let conn = self.connector.connect_to_write().await?;
        let change = import::reserve_changes(&conn, &last).await?;
        derive::begin(&conn, "READ COMMITTED").await?;
        let mut import = import::Import::new(&conn, change, at_rest);
        let mut lines = BufReader::new(from);
        let (mut reader, mut text) = (LineReader::default(), Vec::new());
        while next(&mut lines, &mut text, MAX_LINE)? {
            let line = reader.read(&text)?;
            import.take(&reader, line).await?;
        }
        let counts = reader.end(expected)?;
        import.finish(reader.tenant()?).await?;
        self.pool.commit(&conn).await?;
        // Runs that go on may be among them.
        self.notifier.due();
        Ok(counts)
    }
}
