//! Every strategy under the runtime: what is kept, what a crash leaves, and answers from outside.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a failed expectation is the test's failure"
)]

mod answers;
mod crashes;
mod middleware;
mod model;
mod reconcile;
mod rig;
mod store;
mod strategies;
mod tools;
