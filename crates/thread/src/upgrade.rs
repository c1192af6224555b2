//! Documents of earlier versions, written in a later one (0.0.4 "Migration from v0.0.3").
//!
//! An upgrade goes step by step, 1.0.0 → 2.0.0 → 0.0.3 → 0.0.4, and loses nothing: what a later
//! version has no name for stays as an unknown member in its place. What a later version does not
//! allow, such as a call that was never answered, or takes for something else, such as a member
//! that it gives a meaning, stays as well and is reported as
//! [`Unchanged`](crate::ChangeKind::Unchanged); [`validate()`](crate::validate()) then says what is wrong.
//!
//! # From 1.0.0
//!
//! `sequence` alone orders the actions; an action without one counts by its position, and gaps
//! and repeats are reported. Consecutive actions of one agent are one turn, which a user's message
//! or another agent's action ends. In a turn:
//!
//! * A response takes in thoughts, then a message, then calls. A return ends it; so does a message
//!   after a message, and a thought after a message, unless calls are open: a model can't have
//!   gone on before it had their answers.
//! * Returns that follow one another are one request of the agent that called, in a new turn if
//!   that agent's turn is over.
//! * A message takes the instant of its first action; others keep theirs on their part. So do
//!   members that two actions of one response share.
//! * An event outside of turns (`system.*` after a user's message) begins the next agent turn, or
//!   ends the last one where none follows.
//! * What no turn can hold, such as an action that names no type, stays in `actions`.

mod actions;
mod content;
mod draft;
mod members;
mod origin;
mod steps;
mod text;

pub(crate) use actions::{in_sequence, to_turns};
pub(crate) use origin::Origin;
pub use text::upgrade_text;

use crate::document::{Thread, Version};
use crate::versioned::{Changes, UnknownVersion, Versioned, known, version_of};

/// Why a document can't be upgraded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpgradeError {
    /// Its version, or the one asked for, is not known.
    #[error(transparent)]
    UnknownVersion(#[from] UnknownVersion),
    /// It is of a later version than the one asked for.
    #[error("version {from} is later than {to}; downgrade the document instead")]
    Backward {
        /// Its version.
        from: Version,
        /// The version asked for.
        to: Version,
    },
}

/// The document in the newest version, and what was changed.
///
/// Unknown members keep their places at every level. A document of the newest version comes back
/// as it was.
///
/// ```
/// use loomline_thread::{ChangeKind, Thread, Version, upgrade};
///
/// let old = Thread::decode(r#"{"version":"2.0.0","x_cost":1.50,"turns":[
///   {"turn_type":"agent","agent_id":"a","messages":[
///     {"message_type":"system","event_type":"agent.handoff","event_data":{"to":"b"}}]}]}"#)?;
/// let upgraded = upgrade(&old)?;
/// assert_eq!(upgraded.thread.version(), Version::V0_0_4);
/// assert!(upgraded.thread.encode().starts_with(r#"{"version":"0.0.4","x_cost":1.50"#));
/// let changes: Vec<_> = upgraded.changes.iter().map(|c| (c.kind, c.pointer.as_str())).collect();
/// assert_eq!(changes, [
///     (ChangeKind::Added, "/turns/0"),
///     (ChangeKind::Renamed, "/turns/0/messages/0/event_type"),
/// ]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn upgrade(thread: &Thread) -> Result<Versioned, UpgradeError> {
    upgrade_to(thread, &Version::NEWEST)
}

/// The document in the given version, its own or a later one, and what was changed.
pub fn upgrade_to(thread: &Thread, to: &Version) -> Result<Versioned, UpgradeError> {
    upgrade_whole(thread.clone(), to)
}

/// Upgrades a document that the caller gives up, so it is never in memory twice.
pub fn upgrade_whole(mut thread: Thread, to: &Version) -> Result<Versioned, UpgradeError> {
    let from = version_of(&thread)?;
    let to = known(to.clone())?;
    if from > to {
        return Err(UpgradeError::Backward { from, to });
    }
    let mut changes = Changes::default();
    let mut origin = Origin::Turns;
    let passes = |step: Version| from < step && step <= to;
    if passes(Version::V2_0_0) {
        origin = to_turns(&mut thread, &mut changes);
    }
    if passes(Version::V0_0_3) {
        steps::to_0_0_3(&mut thread, &mut changes, &origin);
    }
    if passes(Version::V0_0_4) {
        steps::to_0_0_4(&mut thread, &mut changes, &origin);
    }
    if from != to {
        thread.root_mut().insert("version", to.as_str());
    }
    Ok(Versioned {
        thread,
        changes: changes.0,
    })
}
