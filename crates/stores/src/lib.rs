//! Durable stores.
//!
//! [`SqliteStore`] (feature `sqlite`) stores all data of a deployment in one file: the log of every
//! thread, and the nine tables of EK §9. The tables are written with the log and can be rebuilt from it.
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

#[cfg(feature = "sqlite")]
mod block;
#[cfg(feature = "sqlite")]
pub mod private;
#[cfg(feature = "sqlite")]
mod sqlite;

#[cfg(feature = "sqlite")]
pub use sqlite::{
    Activity, BackupError, BackupKind, Chain, ChainBlock, ChainEnd, Compared, ErasedEntries,
    ErasedTenant, FoundSamples, Manifest, NoStoreKey, OpenMode, PoisonedRun, Reclaimed, Remedy,
    Restored, Samples, Searched, SqliteOptions, SqliteStore, Stats, StoreFault, StoreHealth,
    StoreKey, StoreStorage, TenantStorage, ThreadStorage, TransferError, Transferred, Verified,
    back_up, export_tenant, import_tenant, rekey, restore_backup, search_files, verify_backups,
};
