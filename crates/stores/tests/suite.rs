//! The SQLite store keeps every promise of a store.
#![cfg(feature = "sqlite")]
#![allow(clippy::unwrap_used, reason = "tests")]

use futures_util::future::BoxFuture;
use loomline_stores::{SqliteOptions, SqliteStore};
use runtime::Store;
use runtime::suite::Subject;
use std::sync::Arc;
use tempfile::TempDir;

struct Opened {
    store: Option<Arc<SqliteStore>>,
    directory: TempDir,
}

impl Opened {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut opened = Self {
            store: None,
            directory,
        };
        opened.open();
        opened
    }

    fn open(&mut self) {
        let path = self.directory.path().join("loomline.db");
        self.store = Some(Arc::new(
            SqliteStore::open(&path, SqliteOptions::default()).unwrap(),
        ));
    }
}

impl Subject for Opened {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone().unwrap()
    }

    fn reopen(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.store.take().unwrap().close().await.unwrap();
            self.open();
        })
    }
}

runtime::store_suite!(Opened::new());
