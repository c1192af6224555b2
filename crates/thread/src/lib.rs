//! The ThreadProtocol document: decode, validate, canonical form and hash, complete cycles,
//! versions, diff and merge, and rendering for an agent.
//!
//! A document is the history of a conversation of users and agents. This crate reads one without
//! losing a meaningful byte, reports its errors, and writes it back. Read [`Thread`] first, then
//! [`Json`], which it wraps, then [`validate()`].
//!
//! Decoding and validation are two steps. [`Thread::decode`] refuses only what is not a JSON object
//! of tolerable size; every breach of the protocol is a [`Violation`], which is data.
//!
//! Each operation on a document has a module:
//!
//! - [`upgrade`](mod@upgrade) and [`downgrade`](mod@downgrade) between versions
//! - [`diff`](mod@diff) and [`merge`](mod@merge) of branches
//! - [`render`] for an agent that continues it
//! - [`partial`] for a turn that is still streaming
//! - [`content`] for large contents in an external store
//! - [`search`]
//!
//! Operations that omit something report it.
//!
//! The crate deliberately does no I/O, reads no clock, mints no ids and never sorts or repairs what
//! it reads. It knows no other format: converters live in `interop`.
//!
//! ```
//! use loomline_thread::{Profile, Thread, validate};
//!
//! let text = r#"{"version":"0.0.4","thread_id":"7c7e9d0a-5c1f-4f43-9a53-0c6f0a6b6f01",
//!   "created_at":"2026-01-05T08:00:00Z","updated_at":"2026-01-05T08:00:00Z",
//!   "agents":{},"turns":[],"x_cost":1.50}"#;
//! let thread = Thread::decode(text)?;
//! assert!(validate(&thread, Profile::Strict).is_empty());
//! assert!(thread.encode().ends_with(r#""x_cost":1.50}"#));
//! # Ok::<(), loomline_thread::DecodeError>(())
//! ```

pub mod json;

pub mod document;

pub mod validate;

pub mod canonical;

pub mod cycles;

pub mod render;

pub mod partial;

pub mod content;

pub mod search;

pub mod upgrade;

pub mod downgrade;

pub mod schema;

mod versioned;

pub mod diff;

pub mod merge;

mod path;

pub use crate::canonical::{CanonicalOptions, canonical, hash};
pub use crate::cycles::{complete_cycles, pending_tool_calls};
pub use crate::diff::{Diff, PatchError, diff, patch};
pub use crate::document::{Thread, Version};
pub use crate::downgrade::{DowngradeError, downgrade};
pub use crate::json::{DecodeError, Json, Limits, Number, Object};
pub use crate::merge::{Conflict, Merged, merge};
pub use crate::schema::schema;
pub use crate::upgrade::{UpgradeError, upgrade, upgrade_text, upgrade_to, upgrade_whole};
pub use crate::validate::{Profile, Rules, Severity, Violation, validate};
pub use crate::versioned::{Change, ChangeKind, UnknownVersion, Versioned};
