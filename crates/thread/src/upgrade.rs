//! Conversion of documents to a later version (0.0.4 "Migration from v0.0.3").
//!
//! An upgrade goes step by step, 1.0.0 → 2.0.0 → 0.0.3 → 0.0.4, and loses nothing. A member without
//! a name in the later version stays in place as an unknown member. Two things stay and are
//! reported as [`Unchanged`](crate::ChangeKind::Unchanged): data that the later version does not
//! allow, such as a call without an answer, and data that it interprets differently, such as a
//! member to which it assigns a meaning. [`validate()`](crate::validate()) then reports the errors.
//!
//! # From 1.0.0
//!
//! Only `sequence` orders the actions. An action without one counts by its position; gaps and
//! repeats are reported. Consecutive actions of one agent form one turn. A user's message or an
//! action of another agent ends it. In a turn:
//!
//! * A response consists of thoughts, then a message, then calls. A return ends it. A message or a
//!   thought after a message ends it too, unless calls are open: a model can't continue before it
//!   has their answers.
//! * Consecutive returns form one request of the calling agent, in a new turn if that agent's turn
//!   is over.
//! * A message gets the timestamp of its first action; other actions keep theirs on their part. The
//!   same applies to members that two actions of one response share.
//! * An event outside of turns (`system.*` after a user's message) begins the next agent turn. If
//!   there is none, it ends the last one.
//! * Anything that no turn can hold, such as an action without a type, stays in `actions`.

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

/// The reason why a document can't be upgraded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpgradeError {
    /// The document's version or the requested version is unknown.
    #[error(transparent)]
    UnknownVersion(#[from] UnknownVersion),
    /// The document's version is later than the requested one.
    #[error("version {from} is later than {to}; downgrade the document instead")]
    Backward {
        /// The document's version.
        from: Version,
        /// The requested version.
        to: Version,
    },
}

/// The document in the newest version, and the changes.
///
/// Unknown members keep their places at every level. A document of the newest version stays
/// unchanged.
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

/// Converts the document to the version `to`, which is its own or a later one, and lists the
/// changes.
pub fn upgrade_to(thread: &Thread, to: &Version) -> Result<Versioned, UpgradeError> {
    upgrade_whole(thread.clone(), to)
}

/// Upgrades a document that the caller passes by value, so that it is never in memory twice.
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
