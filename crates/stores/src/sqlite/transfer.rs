//! All data of one tenant as lines of JSON, and back into a store.
//!
//! The first line names the tenant, the last one counts the others and has their SHA-256. A file that is cut or
//! changed is refused before anything is written.

mod export;
mod import;

pub use export::export_tenant;
pub use import::import_tenant;
