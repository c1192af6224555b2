//! The semantic difference of two documents, and exact patches (TP-16).
//!
//! A [`Diff`] lists additions, removals and changes at the levels of the root, an agent, a turn, a
//! message and a part. It contains every difference, so that [`patch()`] restores the second
//! document to the last digit. Each is marked as *semantic* or not; a semantic difference appears
//! in the canonical form too. The order of keys, the spelling of numbers and a `null` in place of
//! an absent optional member are not semantic.
//!
//! Integers of 2^53 and more, which are no I-JSON numbers, are compared by all digits. Two of them
//! can be one double, and so equal in the canonical form, but still differ semantically.
//!
//! # Alignment
//! Turns are aligned with turns, messages of aligned turns with messages, and so on. Equal items at
//! both ends come first, then items with the same canonical hash (unique hashes as anchors, a
//! bounded table between them), then the rest by kind: type, agent, `tool_call_id`. Time grows with
//! `n log n`, memory with `n`. A stretch of more than about 500 repeated items on both sides
//! without an anchor is not searched: it is removed and added as a whole. Free data (`args`,
//! `metadata`, unknown members) is compared key by key and index by index.

mod align;
mod brief;
mod compare;
mod digest;
mod exact;
mod form;
mod location;
mod members;
mod patch;
mod sequence;
mod text;
mod values;

pub use digest::TextHash;
pub use form::DiffFormatError;
pub use patch::{PatchError, patch};
pub use text::Summary;

pub(crate) use brief::{brief, printable};
pub(crate) use location::Location;
pub(crate) use sequence::{Pairing, pairings};

use crate::canonical::CanonicalOptions;
use crate::document::Thread;
use crate::json::Json;

/// The differences between two documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diff {
    /// The exact text that the diff starts from.
    pub from: TextHash,
    /// The exact text that it leads to.
    pub to: TextHash,
    /// The changes of the root, the agents and the turns. Those of messages and parts are inside
    /// the changes of their containers; [`Diff::iter`] returns all of them in sequence.
    pub changes: Vec<DiffChange>,
}

/// Something that is different at one of the levels of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffChange {
    /// The level of the changed thing.
    pub level: Level,
    /// A display name: an agent's name, a message's type, a part's kind.
    pub label: String,
    /// Its JSON Pointer in the first document; `None` for additions.
    pub from: Option<String>,
    /// Its JSON Pointer in the second document; `None` for removals.
    pub to: Option<String>,
    /// Whether the canonical form has the difference too, or would if it had all integers.
    pub semantic: bool,
    /// The change.
    pub kind: DiffKind,
}

/// The levels of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The thread itself.
    Root,
    /// An agent of the registry.
    Agent,
    /// A turn.
    Turn,
    /// A message of an agent's turn.
    Message,
    /// A part of a message or of a user's turn.
    Part,
}

/// A change of an agent, turn, message or part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiffKind {
    /// Only the second document has it.
    Added {
        /// Its index there: of the item, or of the agent's key.
        at: usize,
        /// The added value.
        value: Json,
    },
    /// Only the first document has it.
    Removed {
        /// Its index there: of the item, or of the agent's key.
        at: usize,
        /// The removed value.
        value: Json,
    },
    /// Both have it.
    Changed {
        /// The changes of its own members.
        members: Vec<MemberChange>,
        /// The changes of the messages and parts in it, in order.
        inner: Vec<DiffChange>,
    },
}

/// A difference inside an agent, turn, message or part, or the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberChange {
    /// The JSON Pointer relative to the changed thing; empty for the thing itself.
    pub pointer: String,
    /// Whether the canonical form has the difference too, or would if it had all integers.
    pub semantic: bool,
    /// The difference.
    pub edit: Edit,
}

/// The difference of one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// A member or element that only the second document has.
    Added {
        /// Its index there, of the key or the element.
        at: usize,
        /// Its value.
        new: Json,
    },
    /// A member or element that only the first document has.
    Removed {
        /// Its index there, of the key or the element.
        at: usize,
        /// Its value.
        old: Json,
    },
    /// Another value.
    Replaced {
        /// The value in the first document.
        old: Json,
        /// The value in the second.
        new: Json,
    },
    /// The keys that an object has in both documents, in another order.
    Reordered {
        /// The order in the first document.
        old: Vec<String>,
        /// The order in the second.
        new: Vec<String>,
    },
}

/// Compares two documents.
///
/// ```
/// use loomline_thread::diff::{Level, diff};
/// use loomline_thread::{Thread, patch};
///
/// let from = Thread::decode(r#"{"title":"Looms","turns":[{"turn_type":"user",
///     "parts":[{"part_kind":"user-prompt","content":"Does it fit?"}]}],"x_cost":1.0}"#)?;
/// let to = Thread::decode(r#"{"title":"Looms","turns":[{"turn_type":"user",
///     "parts":[{"part_kind":"user-prompt","content":"Will it fit?"}]}],"x_cost":1}"#)?;
///
/// let diff = diff(&from, &to);
/// let meant: Vec<_> = diff.iter().filter(|change| change.semantic).collect();
/// assert_eq!(meant[0].level, Level::Part);
/// assert_eq!(meant[0].to.as_deref(), Some("/turns/0/parts/0"));
/// assert_eq!(meant.len(), 1); // `1.0` and `1` are the same number,
/// assert_eq!(patch(&from, &diff)?, to); // but the patch knows which is which
/// assert_eq!(diff.to_text(), "\
/// ~ turn 0 (user)
///   - user-prompt \"Does it fit?\"
///   + user-prompt \"Will it fit?\"
/// 1 part changed; 1 difference of form only
/// ");
/// assert_eq!(patch(&to, &diff.invert())?, from);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn diff(from: &Thread, to: &Thread) -> Diff {
    diff_with(from, to, CanonicalOptions::default())
}

/// Compares two documents. If the options exclude telemetry from the canonical form, changes of
/// telemetry are not semantic.
#[must_use]
pub fn diff_with(from: &Thread, to: &Thread, options: CanonicalOptions) -> Diff {
    Diff {
        from: TextHash::of(from),
        to: TextHash::of(to),
        changes: compare::compare(from, to, options),
    }
}

impl Diff {
    /// Whether the documents are the same text, but for white space and escapes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Whether the documents mean something different.
    #[must_use]
    pub fn is_semantic(&self) -> bool {
        self.changes.iter().any(|change| change.semantic)
    }

    /// Every change in document order, without those that only contain other changes.
    pub fn iter(&self) -> impl Iterator<Item = &DiffChange> {
        let mut open = vec![self.changes.iter()];
        std::iter::from_fn(move || {
            loop {
                let Some(change) = open.last_mut()?.next() else {
                    open.pop();
                    continue;
                };
                let DiffKind::Changed { members, inner } = &change.kind else {
                    return Some(change);
                };
                open.push(inner.iter());
                if !members.is_empty() {
                    return Some(change);
                }
            }
        })
    }

    /// The way back: from the second document to the first.
    #[must_use]
    pub fn invert(self) -> Self {
        Self {
            from: self.to,
            to: self.from,
            changes: self.changes.into_iter().map(DiffChange::invert).collect(),
        }
    }
}

impl DiffChange {
    fn invert(self) -> Self {
        let kind = match self.kind {
            DiffKind::Added { at, value } => DiffKind::Removed { at, value },
            DiffKind::Removed { at, value } => DiffKind::Added { at, value },
            DiffKind::Changed { members, inner } => DiffKind::Changed {
                members: members.into_iter().map(MemberChange::invert).collect(),
                inner: inner.into_iter().map(Self::invert).collect(),
            },
        };
        Self {
            level: self.level,
            label: self.label,
            from: self.to,
            to: self.from,
            semantic: self.semantic,
            kind,
        }
    }
}

impl MemberChange {
    fn invert(self) -> Self {
        let edit = match self.edit {
            Edit::Added { at, new } => Edit::Removed { at, old: new },
            Edit::Removed { at, old } => Edit::Added { at, new: old },
            Edit::Replaced { old, new } => Edit::Replaced { old: new, new: old },
            Edit::Reordered { old, new } => Edit::Reordered { old: new, new: old },
        };
        Self { edit, ..self }
    }
}

impl Level {
    /// The level's name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Agent => "agent",
            Self::Turn => "turn",
            Self::Message => "message",
            Self::Part => "part",
        }
    }

    /// The sequences that something of this level holds, by key.
    pub(crate) fn sequences(self) -> &'static [(&'static str, Self)] {
        match self {
            Self::Root => &[("turns", Self::Turn)],
            Self::Turn => &[("messages", Self::Message), ("parts", Self::Part)],
            Self::Message => &[("parts", Self::Part)],
            Self::Agent | Self::Part => &[],
        }
    }
}
