//! The pages of the web interface, as pure functions: views in, HTML and patches out.
//!
//! The server reads threads and passes their transcripts and records. This crate folds them with
//! `interop::run` and draws the events. It has no I/O and no clock.

mod assets;
mod chat;
pub mod ids;
mod json;
mod link;
pub mod markdown;
mod patch;
mod shell;
mod time;

pub use assets::{Asset, Assets};
pub use chat::{
    AgentChoice, ChatPage, ChatThread, Conversation, StarterChoice, VersionEntry, VersionsPage,
    WaitingCall, message_text, older,
};
pub use link::path_segment;
pub use maud::Markup;
pub use patch::{Patch, write_patches};
pub use shell::{ErrorPage, RailThread, Shell};
