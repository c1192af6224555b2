//! What agents do, from the outside.

#![expect(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

mod agent;
mod checkpoint_files;
mod checkpoints;
mod context;
mod durable;
mod hooks;
mod laws;
mod logging;
mod middleware;
mod stream;
mod support;
mod tools;
