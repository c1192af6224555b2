//! Every provider in the same situations, against a local server that speaks its wire format.
//!
//! A [`Vendor`] has the fixtures of one wire format, written after its documentation; [`scenarios`]
//! has what must hold for all of them. `vendor!` makes one test a scenario.
#![cfg(feature = "http")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::wildcard_enum_match_arm,
    reason = "all of this is tests, helpers included"
)]

mod chunks;
mod cut_calls;
mod fixtures;
mod matrix;
mod scenarios;
mod server;
mod vendor;

mod anthropic;
mod chat_completions;
mod gemini;
mod ollama;
mod responses;
