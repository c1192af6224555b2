//! Agents that hand over to each other on one thread.

#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    clippy::indexing_slicing,
    reason = "a failed expectation is the test's failure"
)]

#[path = "../children/rig.rs"]
#[allow(dead_code, reason = "the sub-agents' tests use the rest")]
mod rig;
#[path = "../children/store.rs"]
#[allow(dead_code, reason = "the sub-agents' tests use the rest")]
mod store;

mod limits;
mod transfers;
