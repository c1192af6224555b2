//! A document in another version, with the list of changes.

pub(crate) mod events;

use crate::document::{Thread, Version};
use crate::json::{Json, Object};

/// A document that [`upgrade`](crate::upgrade()) or [`downgrade`](crate::downgrade()) made.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned {
    /// The document in the requested version.
    pub thread: Thread,
    /// The changes, step by step, without that of the version itself.
    pub changes: Vec<Change>,
}

impl Versioned {
    /// The changes that dropped a piece of the document.
    pub fn losses(&self) -> impl Iterator<Item = &Change> {
        let changes = self.changes.iter();
        changes.filter(|change| change.kind == ChangeKind::Dropped)
    }
}

/// One difference between two versions of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The JSON Pointer of the piece in the source, or of the value it was added to.
    pub pointer: String,
    /// The kind of the change.
    pub kind: ChangeKind,
    /// A description of the piece, for people.
    pub what: String,
}

/// The kind of a change to a piece of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// The source did not say it.
    Added,
    /// It has another name in the same place.
    Renamed,
    /// It has another position.
    Moved,
    /// The target can't hold it.
    Dropped,
    /// It is unchanged, but the target interprets it differently or does not allow it.
    Unchanged,
}

impl ChangeKind {
    /// The name of the kind in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Renamed => "renamed",
            Self::Moved => "moved",
            Self::Dropped => "dropped",
            Self::Unchanged => "kept",
        }
    }
}

impl std::fmt::Display for Change {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            pointer,
            kind,
            what,
        } = self;
        write!(formatter, "{} at \"{pointer}\": {what}", kind.as_str())
    }
}

/// A document names a version that this crate does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownVersion {
    /// The version in the document; `None` if there is none.
    pub found: Option<String>,
}

impl std::fmt::Display for UnknownVersion {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.found {
            Some(found) => write!(formatter, "version {found:?} is not known")?,
            None => formatter.write_str("the document names no version")?,
        }
        let known = Version::KNOWN.map(|version| version.to_string());
        write!(formatter, "; known are {}", known.join(", "))
    }
}

impl std::error::Error for UnknownVersion {}

/// The version of a document; an error if it is unknown.
pub(crate) fn version_of(thread: &Thread) -> Result<Version, UnknownVersion> {
    known(thread.version()).map_err(|unknown| UnknownVersion {
        found: unknown.found.filter(|_| {
            let version = thread.root().get("version");
            version.and_then(Json::as_str).is_some()
        }),
    })
}

/// The version; an error if it is unknown.
pub(crate) fn known(version: Version) -> Result<Version, UnknownVersion> {
    match version {
        Version::V1_0_0 | Version::V2_0_0 | Version::V0_0_3 | Version::V0_0_4 => Ok(version),
        Version::Other(found) => Err(UnknownVersion { found: Some(found) }),
    }
}

/// The changes so far.
#[derive(Debug, Default)]
pub(crate) struct Changes(pub(crate) Vec<Change>);

impl Changes {
    pub(crate) fn add(&mut self, kind: ChangeKind, pointer: String, what: impl Into<String>) {
        let what = what.into();
        self.0.push(Change {
            pointer,
            kind,
            what,
        });
    }
}

/// The elements of an array member, mutable; empty if it is not an array.
pub(crate) fn items_mut<'a>(object: &'a mut Object, key: &str) -> &'a mut [Json] {
    let items = object.get_mut(key).and_then(Json::as_array_mut);
    items.map(Vec::as_mut_slice).unwrap_or_default()
}

/// Maps the members of an object in order, each to up to `N` members. A repeated key keeps its
/// first place and its last value.
pub(crate) fn rebuild<const N: usize>(
    object: &mut Object,
    mut change: impl FnMut(Box<str>, Json) -> [Option<(Box<str>, Json)>; N],
) {
    let members = std::mem::take(object).into_iter();
    *object = members
        .flat_map(|(key, value)| change(key, value))
        .flatten()
        .collect();
}
