//! The pages of the console: what agents did, and why.

pub(super) mod events;
pub(super) mod live_events;
pub(super) mod run;
pub(super) mod threads;
pub(super) mod timeline;
