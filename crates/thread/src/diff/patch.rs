//! Applying a diff, or refusing to.

use super::members;
use super::{Diff, DiffChange, DiffKind, Level, TextHash};
use crate::document::Thread;
use crate::json::Json;
use crate::path::{Step, pointer};
use std::collections::BTreeMap;

/// The reason why a diff was not applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The document lacks a value that the diff removes or changes.
    #[error("at \"{pointer}\" the document differs from what the diff was made of")]
    Differs {
        /// Its JSON Pointer.
        pointer: String,
    },
    /// The diff contradicts itself at one position, or has an impossible change.
    #[error("the diff is not well formed at \"{pointer}\"")]
    Malformed {
        /// Its JSON Pointer.
        pointer: String,
    },
    /// The diff fits all changed values, but was made for another document.
    #[error("the diff was made of the document {expected}, this is {found}")]
    OtherDocument {
        /// The document that the diff starts from.
        expected: TextHash,
        /// The hash of the document that was passed.
        found: TextHash,
    },
    /// The diff was applied and did not lead to the document it names.
    #[error("the diff leads to the document {found}, expected {expected}")]
    OtherResult {
        /// The document that the diff names.
        expected: TextHash,
        /// The document it leads to.
        found: TextHash,
    },
}

impl PatchError {
    /// The JSON Pointer of the fault, in the document to patch.
    #[must_use]
    pub fn pointer(&self) -> &str {
        match self {
            Self::Differs { pointer } | Self::Malformed { pointer } => pointer,
            Self::OtherDocument { .. } | Self::OtherResult { .. } => "",
        }
    }

    pub(super) fn differs(pointer: impl Into<String>) -> Self {
        let pointer = pointer.into();
        Self::Differs { pointer }
    }

    pub(super) fn malformed(pointer: impl Into<String>) -> Self {
        let pointer = pointer.into();
        Self::Malformed { pointer }
    }
}

/// Applies a diff to the document it was made of; the result is the other document, exactly.
///
/// ```
/// use loomline_thread::{PatchError, Thread, diff, patch};
///
/// let from = Thread::decode(r#"{"title":"Looms"}"#)?;
/// let to = Thread::decode(r#"{"title":"Loom"}"#)?;
/// let diff = diff(&from, &to);
/// assert_eq!(patch(&from, &diff)?, to);
/// let refused = patch(&to, &diff).unwrap_err();
/// assert_eq!(refused.pointer(), "/title");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn patch(from: &Thread, diff: &Diff) -> Result<Thread, PatchError> {
    let mut root = Json::Object(from.root().clone());
    let (own, inner): (Vec<_>, Vec<_>) = diff
        .changes
        .iter()
        .partition(|change| change.level == Level::Root);
    apply_inner(Level::Root, &mut root, ["", ""], inner)?;
    for change in own {
        let DiffKind::Changed { members, inner } = &change.kind else {
            return Err(PatchError::malformed(""));
        };
        if !inner.is_empty() {
            return Err(PatchError::malformed(""));
        }
        members::apply(&mut root, members, "")?;
    }
    let found = TextHash::of(from);
    if found != diff.from {
        let expected = diff.from;
        return Err(PatchError::OtherDocument { expected, found });
    }
    let root = root.into_object();
    let thread = Thread::from_root(root.ok_or_else(|| PatchError::malformed(""))?);
    let found = TextHash::of(&thread);
    if found == diff.to {
        Ok(thread)
    } else {
        let expected = diff.to;
        Err(PatchError::OtherResult { expected, found })
    }
}

/// Applies the changes inside a thing of a level; `above` is its path in the first and the second
/// document.
fn apply_inner(
    level: Level,
    holder: &mut Json,
    above: [&str; 2],
    mut changes: Vec<&DiffChange>,
) -> Result<(), PatchError> {
    if level == Level::Root {
        let (agents, rest) = changes
            .into_iter()
            .partition(|change| change.level == Level::Agent);
        apply_agents(holder, agents)?;
        changes = rest;
    }
    for (key, level) in level.sequences() {
        let (ours, rest): (Vec<_>, Vec<_>) = changes
            .into_iter()
            .partition(|change| change.level == *level && is_below(change, above, key));
        changes = rest;
        if ours.is_empty() {
            continue;
        }
        let above = above.map(|above| format!("{above}/{key}"));
        let items = holder
            .as_object_mut()
            .and_then(|object| object.get_mut(key));
        let items = items.and_then(Json::as_array_mut);
        let items = items.ok_or_else(|| PatchError::differs(&above[0]))?;
        apply_sequence(items, &above, ours)?;
    }
    match changes.first() {
        None => Ok(()),
        Some(stray) => Err(PatchError::malformed(place_of(stray))),
    }
}

fn place_of(change: &DiffChange) -> &str {
    let place = change.from.as_deref().or(change.to.as_deref());
    place.unwrap_or_default()
}

/// Whether a change is about an item of the sequence `key`.
fn is_below(change: &DiffChange, above: [&str; 2], key: &str) -> bool {
    let below = |pointer: &Option<String>, above: &str| {
        pointer.as_ref().is_none_or(|pointer| {
            let rest = pointer.strip_prefix(above);
            let rest = rest.and_then(|rest| rest.strip_prefix('/')?.strip_prefix(key));
            rest.is_some_and(|rest| rest.starts_with('/'))
        })
    };
    let [from, to] = above;
    below(&change.from, from) && below(&change.to, to)
}

fn apply_sequence(
    items: &mut Vec<Json>,
    above: &[String; 2],
    changes: Vec<&DiffChange>,
) -> Result<(), PatchError> {
    let [above_from, above_to] = above;
    let mut removed = BTreeMap::new();
    let mut added = BTreeMap::new();
    let mut kept = BTreeMap::new();
    for change in changes {
        let index = |pointer: &Option<String>, above: &String| {
            let index = pointer.as_ref()?.strip_prefix(above)?.strip_prefix('/')?;
            members::index(index)
        };
        let (from, to) = (index(&change.from, above_from), index(&change.to, above_to));
        let repeated = match (&change.kind, from, to) {
            (DiffKind::Removed { at, value }, Some(from), None) if *at == from => {
                removed.insert(from, value).is_some()
            }
            (DiffKind::Added { at, value }, None, Some(to)) if *at == to => {
                added.insert(to, value.clone()).is_some()
            }
            (DiffKind::Changed { members, inner }, Some(from), Some(to)) => {
                let change = (change.level, to, members, inner);
                kept.insert(from, change).is_some()
            }
            _ => true,
        };
        if repeated {
            return Err(PatchError::malformed(place_of(change)));
        }
    }
    members::rebuild(items, above_from, removed, added, |from, to, item| {
        let Some((level, place, members, inner)) = kept.remove(&from) else {
            return Ok(());
        };
        let pointer = format!("{above_from}/{from}");
        if place != to {
            return Err(PatchError::differs(pointer));
        }
        let there = format!("{above_to}/{to}");
        apply_inner(level, item, [&pointer, &there], inner.iter().collect())?;
        members::apply(item, members, &pointer)
    })?;
    match kept.first_key_value() {
        None => Ok(()),
        Some((from, _)) => Err(PatchError::differs(format!("{above_from}/{from}"))),
    }
}

fn apply_agents(root: &mut Json, changes: Vec<&DiffChange>) -> Result<(), PatchError> {
    if changes.is_empty() {
        return Ok(());
    }
    let registry = root.as_object_mut().and_then(|root| root.get_mut("agents"));
    let registry = registry.filter(|registry| registry.as_object().is_some());
    let registry = registry.ok_or_else(|| PatchError::differs("/agents"))?;
    let mut rebuilt = members::Batch::default();
    for change in changes {
        let place = place_of(change);
        let key = place
            .strip_prefix("/agents/")
            .filter(|key| !key.contains('/'));
        let key = members::unescape(key.ok_or_else(|| PatchError::malformed(place))?);
        match &change.kind {
            DiffKind::Removed { at, value } => rebuilt.remove(*at, key, value, place)?,
            DiffKind::Added { at, value } => rebuilt.add(*at, key, value, place)?,
            DiffKind::Changed { members, inner } => {
                let config = registry.as_object_mut().and_then(|all| all.get_mut(&key));
                let config = config.ok_or_else(|| PatchError::differs(place))?;
                if !inner.is_empty() {
                    return Err(PatchError::malformed(place));
                }
                members::apply(
                    config,
                    members,
                    &pointer([Step::Key("agents"), Step::Key(&key)]),
                )?;
            }
        }
    }
    rebuilt.apply(registry, "/agents")
}
