//! The work of an operator on the SQLite store.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "operator/suite.rs"]
mod suite;

use futures_util::future::BoxFuture;
use loomline_stores::{
    DurableStore, SqliteOptions, SqliteStore, TransferError, Transferred, export_tenant,
    import_tenant,
};
use rusqlite::Connection;
use std::io::Cursor;
use std::path::PathBuf;
use std::sync::Arc;
use suite::Operated;
use tempfile::TempDir;

struct File {
    directory: TempDir,
    store: Option<Arc<SqliteStore>>,
}

impl File {
    fn new() -> Self {
        let mut file = Self {
            directory: tempfile::tempdir().unwrap(),
            store: None,
        };
        file.open();
        file
    }

    fn open(&mut self) {
        let store = SqliteStore::open(&self.path(), &SqliteOptions::default()).unwrap();
        self.store = Some(Arc::new(store));
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("loomline.db")
    }
}

impl Operated for File {
    fn durable(&self) -> Arc<dyn DurableStore> {
        self.store.clone().unwrap()
    }

    fn execute<'a>(&'a self, sql: &'a str) -> BoxFuture<'a, u64> {
        let n_rows = Connection::open(self.path()).unwrap().execute(sql, []);
        Box::pin(async { n_rows.unwrap() as u64 })
    }

    fn export<'a>(
        &'a self,
        tenant: &'a str,
    ) -> BoxFuture<'a, Result<(Vec<u8>, Transferred), TransferError>> {
        Box::pin(async move {
            let mut lines = Vec::new();
            let counts = export_tenant(&self.path(), None, tenant, &mut lines)?;
            Ok((lines, counts))
        })
    }

    fn import<'a>(
        &'a mut self,
        lines: &'a [u8],
    ) -> BoxFuture<'a, Result<Transferred, TransferError>> {
        Box::pin(async move {
            store::Store::close(&*self.store.take().unwrap())
                .await
                .unwrap();
            let mut lines = Cursor::new(lines);
            let imported = import_tenant(&self.path(), &SqliteOptions::default(), &mut lines);
            self.open();
            imported
        })
    }
}

mod operated {
    use super::File;

    crate::suite::operator_suite!(File::new());
}
