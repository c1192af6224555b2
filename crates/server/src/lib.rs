//! HTTP, server-sent events, authentication, tenants and metrics over the runtime.
//!
//! Read [`Config`], [`App`] and [`serve`] first. A [`Config`] is one TOML file; an [`App`] is the
//! composition root, used by the server and the command line alike; [`serve`] puts it on a socket.
//! HTTP statuses and stable error codes are decided in one module and nowhere else.
//!
//! ```
//! use loomline_server::{App, Config, DEV_TENANT, OpenMode};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let directory = tempfile::tempdir()?;
//! let app = App::open(Config::default(), directory.path(), OpenMode::ReadWrite).await?;
//! app.recover().await?;
//! let threads = app.runtime(&DEV_TENANT.into()).list(&DEV_TENANT.into(), runtime::ThreadRows { limit: 10, ..Default::default() }).await?;
//! assert!(threads.is_empty());
//! app.shutdown().await?;
//! # Ok(())
//! # }
//! ```

pub mod config;

pub mod inspect;
mod reactors;
pub mod remote;
mod tools;

mod aitp;
mod app;

mod audit;
pub mod auth;
mod drain_body;
mod error;
mod event_id;
mod guard;
mod health;
mod held;
mod hex;
mod idempotency;
mod local;
mod serde_messages;
#[cfg(feature = "web")]
mod sessions;
mod state;
mod watchdog;

mod body;
mod budgets;
mod connections;
mod metrics;
mod openapi;
mod operator;
pub mod outbound;
mod pause;
mod protocol;
pub mod purge;
mod retention;
mod routes;
mod serve;
mod sse;
mod strict_struct;
pub mod telemetry;
mod thread_key;
mod thread_locks;
mod threads;
mod tls;

pub use app::{
    App, Exported, ImportSource, OpenError, TenantsRefused, open_to_others, store_file, store_files,
};
pub use auth::DEV_TENANT;
pub use config::{Config, ConfigError};
pub use error::{ExchangeError, render_error};
pub use inspect::{Inspection, inspect};
pub use local::{LocalError, LocalListener, LocalServer, TENANT_HEADER};
pub use reactors::{AgentSummary, AgentsError, ToolSummary};
pub use serve::{ServeError, Sockets, openapi, router, serve};
pub use stores::{
    ChainEnd, Compared, OpenMode, PoisonedRun, Remedy, SqliteOptions, StoreFault, StoreKey,
    StoreStorage, TenantStorage, ThreadStorage,
};
#[cfg(feature = "postgres")]
pub use stores::{DatabaseReport, DatabaseWarning, PostgresStore};
/// All data of a tenant as lines, and back.
pub mod transfer {
    pub use stores::{TransferError, Transferred, export_tenant, import_tenant};
}
/// Backups of a store, and stores from them.
pub mod backup {
    pub use stores::{
        BackupError, BackupKind, Manifest, Restored, Verified, back_up, restore_backup,
        verify_backups,
    };
}
pub use thread_key::{InvalidKey, MAX_KEY_BYTES, check_key};
pub use tls::TlsError;

/// Compiles and runs the programs of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/tutorials/rust-program.md")]
struct Guide;
