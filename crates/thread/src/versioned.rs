//! A document in another version, and what became of it on the way.

pub(crate) mod events;

use crate::document::{Thread, Version};
use crate::json::{Json, Object};

/// A document that [`upgrade`](crate::upgrade()) or [`downgrade`](crate::downgrade()) made.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned {
    /// The document in the version asked for.
    pub thread: Thread,
    /// What was changed, step by step. The version itself is not listed.
    pub changes: Vec<Change>,
}

impl Versioned {
    /// What the document says no longer.
    pub fn losses(&self) -> impl Iterator<Item = &Change> {
        let changes = self.changes.iter();
        changes.filter(|change| change.kind == ChangeKind::Dropped)
    }
}

/// One thing that another version says otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Where it stands in the source, or what it was added to: a JSON Pointer.
    pub pointer: String,
    /// What became of it.
    pub kind: ChangeKind,
    /// What it is, for people.
    pub what: String,
}

/// What became of a piece of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// The source did not say it.
    Added,
    /// It has another name in the same place.
    Renamed,
    /// It stands in another place.
    Moved,
    /// The target has no place for it.
    Dropped,
    /// It is as it was, and the target takes it for something else or does not allow it.
    Unchanged,
}

impl ChangeKind {
    /// The kind in a word, as reports spell it.
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
    /// The version it names; `None` where it names none.
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

/// The version of a document, if it is a known one.
pub(crate) fn version_of(thread: &Thread) -> Result<Version, UnknownVersion> {
    known(thread.version()).map_err(|unknown| UnknownVersion {
        found: unknown.found.filter(|_| {
            let version = thread.root().get("version");
            version.and_then(Json::as_str).is_some()
        }),
    })
}

/// The version, if it is a known one.
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

/// The elements of an array member, to change; none where it is no array.
pub(crate) fn items_mut<'a>(object: &'a mut Object, key: &str) -> &'a mut [Json] {
    let items = object.get_mut(key).and_then(Json::as_array_mut);
    items.map(Vec::as_mut_slice).unwrap_or_default()
}

/// The object with its members mapped, each to any number of them, in their order. A key that
/// comes twice keeps its first place and its last value.
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
