//! The pages of the console.

pub(super) mod agents;
pub(super) mod branches;
pub(super) mod connect;
pub(super) mod diff;
pub(super) mod document;
pub(super) mod health;
pub(super) mod requests;
mod shown_section;
