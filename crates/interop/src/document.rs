//! The log ⇄ the ThreadProtocol document.
//!
//! [`to_document`] projects a transcript into the canonical document; [`from_document`] turns a
//! document into the commands that write it into a fresh log. Data for which the log has no name is
//! stored with the log's own data, so that a valid document is restored value for value. Every
//! import is replayed and compared, and each difference is reported as a loss.
//!
//! The additional data of a turn is in the item's `metadata.threadprotocol` or the execution's
//! `run.threadprotocol`, that of a response in its step's `extra`, that of a part in its own
//! `extra`, that of the root in the thread's `metadata.threadprotocol`. Messages that are neither
//! responses nor the returns after them are extension parts of type `threadprotocol-message`, at
//! their position.

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
pub use export::{to_document, turn_bounds};
pub use import::{ImportError, Imported, from_document};
pub use strict::to_strict_document;

pub(crate) use content::data_url;
pub(crate) use delta::read_object;
pub(crate) use usage::total;
