//! What agents do, from the outside.

#![expect(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

mod agent;
mod approvals;
mod capabilities;
mod checkpoint_files;
mod checkpoints;
mod context;
mod crashing;
mod custom;
mod damage;
mod depth;
mod durable;
mod edges;
mod equivalence;
mod hooks;
mod interface;
mod laws;
mod logging;
mod middleware;
mod moments;
mod plan;
mod planning;
mod react;
mod replan;
mod spans;
mod strategies;
mod stream;
mod subagents;
mod support;
mod surface;
mod tool_context;
mod tools;
mod waiting;
