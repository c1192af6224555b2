//! The inbox: all that waits for a person, in all threads.

mod entry;
mod filter;
mod page;

pub use entry::{InboxEntry, InboxKind, answered};
pub use filter::{InboxAge, InboxFilter};
pub use page::{InboxPage, LeadingMessage, OpenedEntry, inbox_state};
