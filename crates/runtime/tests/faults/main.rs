//! What happens when the store stalls, fails or loses an answer, and when requests are dropped.

#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a failed expectation is the test's failure"
)]

mod doubt;
mod makes;
mod reactors;
mod rig;
mod runners;
mod store;
mod threads;
mod tools;
