//! Sub-agents on threads of their own (UAP §8).

#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    clippy::indexing_slicing,
    reason = "a failed expectation is the test's failure"
)]

mod crash;
mod memory;
mod rig;
mod runs;
mod stop;
mod store;
mod watch;
