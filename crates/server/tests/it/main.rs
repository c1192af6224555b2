//! The server as its clients see it.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the helpers of tests fail as tests do"
)]

mod a2a;
mod agents;
mod answers;
mod audit;
mod bad_input;
mod chat;
mod documents;
mod events;
mod harness;
mod langgraph;
mod messages;
mod openapi;
mod operation;
mod responses;
mod rights;
mod subagents;
#[cfg(feature = "otel")]
mod telemetry;
mod tenants;
mod threads_api;
mod tls;
