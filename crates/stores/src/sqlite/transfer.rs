//! All data of one tenant as lines of JSON, and back into a store.
//!
//! The first line names the tenant, the last one counts the others and has their SHA-256. A file that is cut or
//! changed is refused before anything is written.

mod export;
mod import;
mod line;

pub use export::export_tenant;
pub use import::import_tenant;
pub use line::Transferred;

use store::StoreError;

/// Why an export or an import failed.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The store has nothing of this tenant.
    #[error("the store has nothing of a tenant {0:?}")]
    NoTenant(String),
    /// The file can't be read or written.
    #[error("the file of the tenant can't be read or written")]
    Io(#[from] std::io::Error),
    /// The file is cut, or was changed.
    #[error("this is no whole export of a tenant: {0}")]
    NotWhole(&'static str),
    /// A line is not what it should be.
    #[error("line {number} of the export is wrong: {what}")]
    Line {
        /// The number, from 1.
        number: u64,
        /// The fault.
        what: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
