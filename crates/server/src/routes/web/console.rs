//! The pages of the console: what agents did, and why.

pub(super) mod agents;
pub(super) mod branches;
pub(super) mod connect;
pub(super) mod diff;
pub(super) mod document;
pub(super) mod events;
pub(super) mod health;
pub(super) mod live_events;
pub(super) mod requests;
pub(super) mod run;
mod shown_section;
pub(super) mod threads;
pub(super) mod timeline;
