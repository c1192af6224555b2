//! Agents under the runtime: what is kept, what a crash leaves, and agents that call or follow others.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a failed expectation is the test's failure"
)]

mod children;
mod durable;
mod external;
mod gate;
mod handoff;
mod judged;
mod mortal;
mod poison;
mod recorded;
mod run_limits;
mod say;
mod sleep_model;
mod standstill;
mod stretches;
mod tree;
mod write_behind;
