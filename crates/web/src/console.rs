//! The console: what agents did, and why.

mod agents;
mod branches;
mod connect;
mod console_run;
mod diff;
mod diff_row;
mod document;
mod event_text;
mod events;
mod frame;
mod health;
mod json_tree;
mod protocols;
mod requests;
mod run;
mod samples;
mod step_details;
#[cfg(test)]
mod tests;
mod threads;
mod time_scale;
mod timeline;
mod waterfall;
#[cfg(test)]
mod waterfall_tests;

pub use agents::{AgentEntry, AgentsPage, ToolEffect, ToolEntry};
pub use branches::{BranchesPage, RelatedThread};
pub use connect::ConnectPage;
pub use console_run::{ConsoleRun, RunContinuation};
pub use diff::DiffPage;
pub use document::{DocumentPage, DocumentView};
pub use events::{EventDetail, EventSelection, EventTable, EventsPage, TableChange};
pub use frame::{ConsoleFrame, ConsoleSection, ThreadSection};
pub use health::{HealthFigures, HealthPage, LatencyFigures};
pub use protocols::ConnectTarget;
pub use requests::{ActorBinding, ActorEntry, RequestsPage};
pub use run::{EventPoint, RunPage};
pub use threads::{MarkedText, ThreadEntry, ThreadListQuery, ThreadsPage};
pub use timeline::{TimelinePage, TimelineRun};
