//! The console: what agents did, and why.

mod console_run;
mod elements;
mod event_text;
mod events;
mod frame;
mod run;
mod step_details;
mod threads;
mod time_scale;
mod timeline;
mod waterfall;
#[cfg(test)]
mod waterfall_tests;

pub use console_run::{ConsoleRun, RunContinuation};
pub use events::{EventDetail, EventSelection, EventTable, EventsPage, TableChange};
pub use frame::{ConsoleFrame, ConsolePlace, ThreadSection};
pub use run::{EventPoint, RunPage};
pub use threads::{MarkedText, ThreadEntry, ThreadListQuery, ThreadsPage};
pub use timeline::{TimelinePage, TimelineRun};
