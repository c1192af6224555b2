//! Durable stores.
//!
//! [`SqliteStore`] stores all data of a deployment in one file: the log of every
//! thread, and the nine tables of EK §9. The tables are written with the log and can be rebuilt from it.
//! `PostgresStore` (feature `postgres`) stores the same data in a database that several processes may use at once.
//! [`store::Store`] defines the contract, and the suite of the crate `store` tests it.
//!
//! ```
//! use loomline_stores::{SqliteOptions, SqliteStore};
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("loomline.db");
//! let store = SqliteStore::open(&path, &SqliteOptions::default())?;
//! # drop(store);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! With the feature `encryption` the file can be encrypted: set a [`StoreKey`] in [`SqliteOptions`].

mod block;
mod durable;
#[cfg(feature = "postgres")]
mod postgres;
pub mod private;
mod sqlite;
mod sum;
mod value;

pub use durable::{
    Activity, Chain, ChainBlock, ChainEnd, Compared, DurableStore, ErasedEntries, ErasedTenant,
    Erasure, Evidence, FoundSamples, OpenMode, PoisonedRun, Reclaimed, Remedy, Samples, Searched,
    Stats, StoreFault, StoreHealth, StoreStorage, TenantStorage, ThreadStorage, TransferError,
    Transferred, Upkeep,
};
#[cfg(feature = "postgres")]
pub use postgres::{
    DatabaseReport, DatabaseWarning, JoinedNode, PostgresOptions, PostgresStore, Standby,
};
pub use sqlite::{
    BackupError, BackupKind, Manifest, NoStoreKey, Restored, SqliteOptions, SqliteStore, StoreKey,
    Verified, back_up, export_tenant, import_tenant, rekey, restore_backup, search_files,
    verify_backups,
};
