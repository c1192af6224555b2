//! The Model Context Protocol: threads as resources, and conversations as text.
//!
//! This module has the URIs of threads, their plain text, and the progress messages of a run. The
//! server implements the protocol itself with the SDK.

mod progress;
mod resource;
mod text;

pub use progress::ProgressView;
pub use resource::{Resource, View};
pub use text::{message_text, to_text};
