//! The log ⇄ the ThreadProtocol document.
//!
//! [`to_document`] projects a transcript into the canonical document; [`from_document`] turns a
//! document into the commands that write it into a fresh log. What the log's own shapes have no
//! name for is kept beside them, so that a valid document comes back value for value: every import
//! is replayed and compared, and what would not come back is reported as a loss.
//!
//! Where things are kept: a turn's in the item's `metadata.threadprotocol` or the execution's
//! `run.threadprotocol`, a response's in its step's `extra`, a part's in its own `extra`, the
//! root's in the thread's `metadata.threadprotocol`. Messages that are neither responses nor the
//! returns that follow them are extension parts of type `threadprotocol-message` in their place.

mod agents;
mod check;
mod clock;
mod content;
mod delta;
mod events;
mod export;
mod import;
mod message;
mod open_calls;
mod parts;
mod resolve_open_calls;
mod strict;
mod turns;
mod upgrade;
mod usage;

pub use agents::{UNNAMED, agent_id};
pub use export::to_document;
pub use import::{ImportError, Imported, from_document};
pub use strict::to_strict_document;

pub(crate) use content::data_url;
pub(crate) use delta::read_object;
pub(crate) use usage::total;
