//! What is special in Anthropic's Messages format: its blocks come back exactly, whatever they are.
#![cfg(feature = "http")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "all of this is tests, helpers included"
)]

mod answers;
mod failures;
mod heads;
mod histories;
mod round_trips;
mod support;
mod user_content;
