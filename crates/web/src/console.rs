//! The console: what agents did, and why.

mod agents;
mod branches;
mod connect;
mod diff;
mod diff_row;
mod document;
mod frame;
mod health;
mod json_tree;
mod protocols;
mod requests;
mod samples;
mod status;
#[cfg(test)]
mod tests;

pub use agents::{AgentEntry, AgentsPage, ToolEffect, ToolEntry};
pub use branches::{BranchesPage, RelatedThread};
pub use connect::ConnectPage;
pub use diff::DiffPage;
pub use document::{DocumentPage, DocumentView};
pub use frame::{ConsoleFrame, ConsolePlace, ThreadSection};
pub use health::{HealthFigures, HealthPage, LatencyFigures};
pub use protocols::ConnectTarget;
pub use requests::{ActorBinding, ActorEntry, RequestsPage};
