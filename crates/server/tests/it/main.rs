//! The server as its clients see it.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the helpers of tests fail as tests do"
)]

extern crate runtime as loomline_runtime;

mod a2a;
mod ag_ui;
mod agents;
mod aitp;
mod answers;
mod around;
mod audit;
mod bad_input;
mod bodies;
mod branches;
mod chat;
mod chat_completions;
mod compactions;
mod connections;
mod cors;
mod documented;
mod documents;
mod events;
mod harness;
mod held;
#[path = "../../../../tests/html_form.rs"]
mod html_form;
mod idempotency;
mod kinds;
mod langgraph;
mod limits;
mod matrix;
mod mcp;
mod messages;
#[path = "../../../runtime/tests/it/mortal.rs"]
#[expect(dead_code, reason = "the runtime's own tests use all of it")]
mod mortal;
mod objects;
mod openapi;
mod operation;
mod privilege;
mod readiness;
#[cfg(test)]
mod recorded;
#[path = "../../../../tests/reference.rs"]
mod reference;
mod remote;
mod responses;
mod rights;
mod run_limits;
mod runs;
mod schemas;
mod search;
mod streams;
mod subagents;
#[cfg(feature = "otel")]
mod telemetry;
mod tenants;
mod threads_api;
mod tls;
mod tokens;
mod versions;
mod waiting;
#[cfg(feature = "web")]
mod web_console;
#[cfg(feature = "web")]
mod web_console_thread;
#[cfg(feature = "web")]
mod web_embed;
#[cfg(feature = "web")]
mod web_inbox;
#[cfg(feature = "web")]
mod web_sessions;
mod workers;
