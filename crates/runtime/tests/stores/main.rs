//! The runtime over every store: trees, changes and pages of threads are there when a store is opened again.
#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a failed expectation is the test's failure"
)]

mod changes;
mod checkpoints;
mod stretches;
mod trees;

use futures_util::future::BoxFuture;
use loomline_runtime as runtime;
use runtime::{Reactor, Reactors, Runtime, RuntimeOptions};
use std::sync::Arc;
use store::suite::Subject;
use store::{MemoryStore, Quotas, Store};
use stores::{SqliteOptions, SqliteStore};
use tempfile::TempDir;

/// Nothing outlives it: opening it again changes nothing.
#[derive(Default)]
struct Memory(Arc<MemoryStore>);

impl Subject for Memory {
    fn store(&self) -> Arc<dyn Store> {
        self.0.clone()
    }

    fn quotas(&self) -> Quotas {
        Quotas::default()
    }

    fn reopen(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

struct Sqlite {
    store: Arc<SqliteStore>,
    directory: TempDir,
    options: SqliteOptions,
}

impl Sqlite {
    fn new(options: SqliteOptions) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = Self::open(&directory, &options);
        Self {
            store,
            directory,
            options,
        }
    }

    fn open(directory: &TempDir, options: &SqliteOptions) -> Arc<SqliteStore> {
        let path = directory.path().join("loomline.db");
        Arc::new(SqliteStore::open(&path, options).unwrap())
    }
}

impl Default for Sqlite {
    fn default() -> Self {
        Self::new(SqliteOptions::default())
    }
}

impl Subject for Sqlite {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    fn quotas(&self) -> Quotas {
        self.options.quotas.clone()
    }

    fn reopen(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.store.close().await.unwrap();
            self.store = Self::open(&self.directory, &self.options);
        })
    }
}

/// Nobody reacts.
struct Nobody;

impl Reactors for Nobody {
    fn find(&self, _agent: Option<&str>) -> Option<Arc<dyn Reactor>> {
        None
    }
}

fn runtime_on(subject: &impl Subject) -> Runtime {
    Runtime::new(subject.store(), Arc::new(Nobody), RuntimeOptions::default())
}

macro_rules! on_every_store {
    ($($place:ident::$name:ident)*) => {
        mod memory {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                crate::$place::$name(crate::Memory::default()).await;
            })*
        }

        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                crate::$place::$name(crate::Sqlite::default()).await;
            })*
        }

        #[cfg(feature = "encryption")]
        mod encrypted {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let key = Some("5a".repeat(32).parse().unwrap());
                let options = stores::SqliteOptions { key, ..Default::default() };
                crate::$place::$name(crate::Sqlite::new(options)).await;
            })*
        }
    };
}

on_every_store! {
    changes::a_title_and_metadata_that_change_are_the_threads
    changes::what_is_removed_is_read_no_more
    changes::what_can_not_be_removed_is_refused
    stretches::pages_of_a_thread_are_its_conversation
    stretches::pages_of_a_fork_begin_with_its_ancestors
    stretches::a_stretch_of_an_execution_has_what_belongs_to_it
    stretches::a_run_without_a_message_is_a_stretch_of_its_own
    stretches::what_was_kept_before_the_first_message_is_read_with_it
    stretches::a_place_within_an_execution_stands_for_all_of_it
    trees::a_stored_tree_is_the_same_after_reopening
}
