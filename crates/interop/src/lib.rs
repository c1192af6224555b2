//! Converters between the vocabularies of a thread, each saying what it could not carry.
//!
//! This is the only crate that sees two vocabularies at once: the log's (`timeline`), the model's
//! (`upp`) and the document's (`thread`). One module a foreign format; foreign wire types never
//! leave their module. Every converter returns [`Converted`]: the value, and the list of what the
//! target can't carry (architecture rule 10).
//!
//! The crate is pure: no I/O, no clock, no randomness. Ids and times come in as arguments.

pub mod ai_sdk;
pub mod archive;
mod canonical;
pub mod convert;
pub mod document;
mod loss;
#[cfg(feature = "model")]
pub mod model;
pub mod parts;
pub mod pydantic_ai;
pub mod runs;

pub use loss::{Converted, Loss};
