//! What agents do, from the outside.

#![expect(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

mod agent;
mod approvals;
mod durable;
mod hooks;
mod laws;
mod middleware;
mod stream;
mod subagents;
mod support;
mod tool_context;
mod tools;
mod waiting;
