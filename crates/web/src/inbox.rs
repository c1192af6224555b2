//! The inbox: all that waits for a person, in all threads.

mod entry;
mod filter;
mod kind;
mod opened;
mod page;

pub use entry::{InboxEntry, answered};
pub use filter::{InboxAge, InboxFilter};
pub use kind::InboxKind;
pub use opened::{LeadingMessage, OpenedEntry};
pub use page::{InboxPage, inbox_state};
