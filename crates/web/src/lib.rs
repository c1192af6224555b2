//! The pages of the web interface, as pure functions: views in, HTML and patches out.
//!
//! The server reads threads and passes their transcripts and records. This crate folds them with
//! `interop::run` and draws the events. It has no I/O and no clock.

mod assets;
mod chat;
mod console;
mod execution;
mod form_field;
#[cfg(test)]
#[path = "../../../tests/html_form.rs"]
mod html_form;
pub mod ids;
mod json;
mod link;
pub mod markdown;
mod patch;
#[cfg(test)]
#[path = "../../../tests/reference.rs"]
mod reference;
mod requests;
mod schema_form;
mod shell;
mod time;

pub use assets::{Asset, Assets};
pub use chat::{
    AgentChoice, ChatPage, ChatThread, Conversation, RequestPage, StarterChoice, VersionEntry,
    VersionsPage, WaitingCall, message_text, older,
};
pub use console::{ConsoleFrame, ConsolePlace, ThreadSection};
pub use console::{
    ConsoleRun, EventDetail, EventPoint, EventSelection, EventTable, EventsPage, MarkedText,
    RunContinuation, RunPage, TableChange, ThreadEntry, ThreadListQuery, ThreadsPage, TimelinePage,
    TimelineRun,
};
pub use form_field::{FilledForm, FormError};
pub use link::path_segment;
pub use maud::Markup;
pub use patch::{Patch, write_patches};
pub use requests::{Answerability, CapabilityRequest, RequestAnswer, RequestClosing, ThreadParty};
pub use schema_form::SchemaForm;
pub use shell::{Area, ErrorPage, Menu, RailThread, Shell};
