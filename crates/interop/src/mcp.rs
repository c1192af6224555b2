//! The Model Context Protocol: threads as resources, what is said on them as text.
//!
//! What a thread is called, what it reads like as plain text, and what a client is told while a run is at work.
//! The protocol itself is spoken by the server, with the SDK.

mod progress;
mod resource;
mod text;

pub use progress::ProgressView;
pub use resource::{Resource, View};
pub use text::{message_text, to_text};
