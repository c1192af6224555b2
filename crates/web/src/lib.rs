//! The pages of the web interface, as pure functions: views in, HTML and patches out.
//!
//! The server reads threads and folds their logs with `interop::run`. This crate renders the events.
//! It has no I/O and no clock.

pub mod markdown;
mod patch;

pub use patch::{Patch, write_patches};
