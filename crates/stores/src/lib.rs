//! Durable stores of the runtime.
//!
//! [`SqliteStore`] (feature `sqlite`) keeps everything of a deployment in one file: the log of
//! every thread, and the nine tables of EK §9 that are written with it and can be rebuilt from it.
//! What a store must do is [`runtime::Store`]'s to say and [`runtime::suite`]'s to check.
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
//! With the feature `encryption` the file can be encrypted: give [`SqliteOptions`] a [`StoreKey`].

#[cfg(feature = "sqlite")]
pub mod private;
#[cfg(feature = "sqlite")]
mod sqlite;

#[cfg(feature = "sqlite")]
pub use sqlite::{
    Activity, NoStoreKey, OpenMode, PoisonedRun, SqliteOptions, SqliteStore, Stats, StoreHealth,
    StoreKey, rekey,
};

/// Compiles and runs the programs of the guide.
#[cfg(all(doctest, feature = "sqlite"))]
#[doc = include_str!("../../../docs/guides/durable-agent.md")]
struct Guide;
