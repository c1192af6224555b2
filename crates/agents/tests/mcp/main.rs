//! Tools from MCP servers, against real servers made with the official SDK.
#![expect(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

mod agent;
mod calls;
mod ends;
mod hostile;
mod http;
mod support;
mod tools;
mod toys;
