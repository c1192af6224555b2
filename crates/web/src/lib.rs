//! The pages of the web interface, as pure functions: views in, HTML and patches out.
//!
//! The server reads threads and passes their transcripts and records. This crate folds them with
//! `interop::run` and draws the events. It has no I/O and no clock.

mod assets;
mod chat;
mod console;
mod elements;
mod embed;
mod execution;
mod form_field;
mod hidden;
#[cfg(test)]
#[path = "../../../tests/html_form.rs"]
mod html_form;
pub mod ids;
mod inbox;
mod json;
mod link;
mod login;
pub mod markdown;
mod patch;
#[cfg(test)]
#[path = "../../../tests/reference.rs"]
mod reference;
mod requests;
mod schema_form;
mod shell;
mod time;
mod words;

pub use assets::{Asset, Assets};
pub use chat::{
    AgentChoice, ChatPage, ChatThread, CompactedRuns, Conversation, RequestPage, StarterChoice,
    ToolFact, ToolFacts, VersionEntry, VersionsPage, WaitingCall, call_facts, call_form,
    message_text, older,
};
pub use console::{
    ActorBinding, ActorEntry, AgentEntry, AgentsPage, BranchesPage, ConnectPage, ConnectTarget,
    ConsoleFrame, ConsoleRun, ConsoleSection, DiffPage, DocumentPage, DocumentView, EventDetail,
    EventPoint, EventSelection, EventTable, EventsPage, HealthFigures, HealthPage, LatencyFigures,
    MarkedText, RelatedThread, RequestsPage, RunContinuation, RunPage, TableChange, ThreadEntry,
    ThreadListQuery, ThreadSection, ThreadsPage, TimelinePage, TimelineRun, ToolEffect, ToolEntry,
};
pub use embed::EmbedPage;
pub use form_field::{FilledForm, FormError};
pub use inbox::{
    InboxAge, InboxEntry, InboxFilter, InboxKind, InboxPage, LeadingMessage, OpenedEntry, answered,
    inbox_state,
};
pub use link::path_segment;
pub use login::{ContinuePage, LoginPage};
pub use maud::Markup;
pub use patch::{Patch, write_patches};
pub use requests::{Answerability, CapabilityRequest, RequestAnswer, RequestClosing, ThreadParty};
pub use schema_form::SchemaForm;
pub use shell::{Area, ErrorPage, Menu, RailThread, Shell, count_text, rail_patch, waiting_patch};
