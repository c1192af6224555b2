//! The SQLite store keeps every promise of a store.
#![allow(clippy::unwrap_used, reason = "tests")]

use futures_util::future::BoxFuture;
use loomline_stores::{SqliteOptions, SqliteStore};
use std::sync::Arc;
use store::suite::Subject;
use store::{Quotas, Store};
use tempfile::TempDir;

struct Opened {
    store: Option<Arc<SqliteStore>>,
    directory: TempDir,
    options: SqliteOptions,
}

impl Opened {
    fn new(options: SqliteOptions) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut opened = Self {
            store: None,
            directory,
            options,
        };
        opened.open();
        opened
    }

    fn open(&mut self) {
        let path = self.directory.path().join("loomline.db");
        let store = SqliteStore::open(&path, &self.options).unwrap();
        self.store = Some(Arc::new(store));
    }
}

impl Subject for Opened {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone().unwrap()
    }

    fn quotas(&self) -> Quotas {
        self.options.quotas.clone()
    }

    fn reopen(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.store.take().unwrap().close().await.unwrap();
            self.open();
        })
    }
}

store::store_suite!(Opened::new(SqliteOptions::default()));

/// Runs the suite on an encrypted store.
#[cfg(feature = "encryption")]
mod encrypted {
    use super::{Opened, SqliteOptions};

    fn encrypted() -> Opened {
        let key = Some("5a".repeat(32).parse().unwrap());
        Opened::new(SqliteOptions {
            key,
            ..SqliteOptions::default()
        })
    }

    store::store_suite!(encrypted());
}
