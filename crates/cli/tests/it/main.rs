//! The binary, tried as a user uses it.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a failed expectation is the test's failure"
)]

mod agents;
mod backup;
mod beside;
mod commands;
mod conformance;
mod contents;
mod convert;
mod crash;
#[cfg(target_os = "linux")]
mod descriptors;
mod diff_merge;
mod documents;
mod encryption;
mod evidence;
#[cfg(target_os = "linux")]
mod full_disk;
#[cfg(unix)]
mod hang_up;
mod hostile;
mod hostile_schemas;
mod jsonl;
#[cfg(target_os = "linux")]
mod large;
mod logs;
mod main_job;
mod manners;
#[cfg(unix)]
mod medium;
#[cfg(unix)]
mod modes;
#[cfg(all(unix, feature = "postgres"))]
mod nodes;
mod older_stores;
mod poison;
mod policies;
mod purge;
#[cfg(test)]
mod recorded;
#[path = "../../../../tests/reference.rs"]
mod reference;
mod render;
mod resume;
mod runs;
mod schema;
mod search;
mod setup;
#[cfg(all(unix, feature = "postgres"))]
mod shards;
mod shutdown;
mod support;
mod tail_check;
mod threads;
mod vendors;
mod versions;
