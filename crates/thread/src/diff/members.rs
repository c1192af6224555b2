//! Applying the changes inside one value.

use super::patch::PatchError;
use super::{Edit, MemberChange};
use crate::json::{Json, Object};
use std::collections::{BTreeMap, BTreeSet};

/// Applies changes in order to the value at `above` in the first document. All additions and
/// removals of one container are applied together, so that each container is rebuilt once.
pub(super) fn apply(
    value: &mut Json,
    changes: &[MemberChange],
    above: &str,
) -> Result<(), PatchError> {
    let mut batch = Batch::default();
    let mut container = "";
    let mut built = BTreeSet::new();
    for change in changes {
        let pointer = change.pointer.as_str();
        let place = format!("{above}{pointer}");
        let (holder, key) = pointer.rsplit_once('/').unwrap_or_default();
        if holder != container && !batch.is_empty() {
            finish(value, std::mem::take(&mut batch), above, container)?;
        }
        match &change.edit {
            Edit::Replaced { old, new } => {
                let target = find(value, pointer).filter(|target| *target == old);
                *target.ok_or_else(|| PatchError::differs(place))? = new.clone();
            }
            Edit::Reordered { old, new } => {
                let target = find(value, pointer).and_then(Json::as_object_mut);
                reorder(
                    target.ok_or_else(|| PatchError::differs(&place))?,
                    old,
                    new,
                    &place,
                )?;
            }
            Edit::Removed { .. } | Edit::Added { .. }
                if pointer.is_empty() || (batch.is_empty() && !built.insert(holder)) =>
            {
                return Err(PatchError::malformed(place));
            }
            Edit::Removed { at, old } => {
                container = holder;
                batch.remove(*at, unescape(key), old, &place)?;
            }
            Edit::Added { at, new } => {
                container = holder;
                batch.add(*at, unescape(key), new, &place)?;
            }
        }
    }
    finish(value, batch, above, container)
}

fn finish(
    value: &mut Json,
    batch: Batch<'_>,
    above: &str,
    container: &str,
) -> Result<(), PatchError> {
    if batch.is_empty() {
        return Ok(());
    }
    let place = format!("{above}{container}");
    let target = find(value, container);
    batch.apply(target.ok_or_else(|| PatchError::differs(&place))?, &place)
}

/// The additions to and removals from one container, by index.
#[derive(Default)]
pub(super) struct Batch<'a> {
    removed: BTreeMap<usize, (String, &'a Json)>,
    added: BTreeMap<usize, (String, &'a Json)>,
}

impl<'a> Batch<'a> {
    fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.added.is_empty()
    }

    pub(super) fn remove(
        &mut self,
        at: usize,
        key: String,
        old: &'a Json,
        place: &str,
    ) -> Result<(), PatchError> {
        match self.removed.insert(at, (key, old)) {
            None => Ok(()),
            Some(_) => Err(PatchError::malformed(place)),
        }
    }

    pub(super) fn add(
        &mut self,
        at: usize,
        key: String,
        new: &'a Json,
        place: &str,
    ) -> Result<(), PatchError> {
        match self.added.insert(at, (key, new)) {
            None => Ok(()),
            Some(_) => Err(PatchError::malformed(place)),
        }
    }

    /// Rebuilds the container, which is at `place` in the first document.
    pub(super) fn apply(self, container: &mut Json, place: &str) -> Result<(), PatchError> {
        match container {
            Json::Array(items) => {
                let numbered = |(at, (key, value)): (usize, (String, &'a Json))| {
                    let fits = index(&key) == Some(at);
                    let malformed = || PatchError::malformed(format!("{place}/{key}"));
                    fits.then_some((at, value)).ok_or_else(malformed)
                };
                let removed: Result<BTreeMap<_, _>, _> =
                    self.removed.into_iter().map(numbered).collect();
                let added: Result<Vec<_>, _> = self.added.into_iter().map(numbered).collect();
                let added = added?.into_iter().map(|(at, value)| (at, value.clone()));
                rebuild(items, place, removed?, added.collect(), |_, _, _| Ok(()))
            }
            Json::Object(object) => {
                let mut members: Vec<Member> = std::mem::take(object).into_iter().collect();
                let added = self.added.into_iter().map(|(at, (key, value))| {
                    let member: Member = (key.into(), value.clone());
                    (at, member)
                });
                rebuild(
                    &mut members,
                    place,
                    self.removed,
                    added.collect(),
                    |_, _, _| Ok(()),
                )?;
                let n_members = members.len();
                *object = members.into_iter().collect();
                if object.len() == n_members {
                    Ok(())
                } else {
                    Err(PatchError::differs(place))
                }
            }
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {
                Err(PatchError::differs(place))
            }
        }
    }
}

/// A member of an object.
type Member = (Box<str>, Json);

/// Comparison of an item with the removed item of a patch.
pub(super) trait Is<R> {
    fn is(&self, removed: &R) -> bool;
}

impl Is<&Json> for Json {
    fn is(&self, removed: &&Json) -> bool {
        self == *removed
    }
}

impl Is<(String, &Json)> for Member {
    fn is(&self, (key, value): &(String, &Json)) -> bool {
        *self.0 == **key && self.1 == **value
    }
}

/// Removes items by their old index, inserts others at their new index, and passes the remaining
/// ones to `each`, with both indexes.
pub(super) fn rebuild<T: Is<R>, R>(
    items: &mut Vec<T>,
    place: &str,
    mut removed: BTreeMap<usize, R>,
    mut added: BTreeMap<usize, T>,
    mut each: impl FnMut(usize, usize, &mut T) -> Result<(), PatchError>,
) -> Result<(), PatchError> {
    let mut rebuilt = Vec::with_capacity(items.len() + added.len());
    let mut old = std::mem::take(items).into_iter().enumerate();
    loop {
        if let Some(item) = added.remove(&rebuilt.len()) {
            rebuilt.push(item);
            continue;
        }
        let Some((from, mut item)) = old.next() else {
            break;
        };
        match removed.remove(&from) {
            Some(expected) if item.is(&expected) => {}
            Some(_) => return Err(PatchError::differs(format!("{place}/{from}"))),
            None => {
                each(from, rebuilt.len(), &mut item)?;
                rebuilt.push(item);
            }
        }
    }
    *items = rebuilt;
    if removed.is_empty() && added.is_empty() {
        Ok(())
    } else {
        Err(PatchError::differs(place))
    }
}

/// Reorders the keys `old` of an object to the order `new`; all other members stay in place.
fn reorder(
    object: &mut Object,
    old: &[String],
    new: &[String],
    place: &str,
) -> Result<(), PatchError> {
    let keys: BTreeSet<&str> = old.iter().map(String::as_str).collect();
    let targets: BTreeSet<&str> = new.iter().map(String::as_str).collect();
    if keys != targets || keys.len() != old.len() || old.len() != new.len() {
        return Err(PatchError::malformed(place));
    }
    let found = object.keys().filter(|key| keys.contains(key));
    if !found.eq(old.iter().map(String::as_str)) {
        return Err(PatchError::differs(place));
    }
    let mut slots = Vec::with_capacity(object.len());
    let mut taken: BTreeMap<Box<str>, Json> = BTreeMap::new();
    for (key, value) in std::mem::take(object) {
        if keys.contains(&*key) {
            taken.insert(key, value);
            slots.push(None);
        } else {
            slots.push(Some((key, value)));
        }
    }
    let mut next = new.iter();
    for slot in slots {
        let member = slot.or_else(|| taken.remove_entry(next.next()?.as_str()));
        if let Some((key, value)) = member {
            object.insert(key, value);
        }
    }
    Ok(())
}

/// The value at a JSON Pointer, to change.
fn find<'a>(value: &'a mut Json, pointer: &str) -> Option<&'a mut Json> {
    if pointer.is_empty() {
        return Some(value);
    }
    let mut here = value;
    for token in pointer.strip_prefix('/')?.split('/') {
        here = match here {
            Json::Array(items) => items.get_mut(index(token)?)?,
            Json::Object(object) => object.get_mut(&unescape(token))?,
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => return None,
        };
    }
    Some(here)
}

/// A pointer's array index: digits without a leading zero.
pub(super) fn index(token: &str) -> Option<usize> {
    let index = token.parse::<usize>().ok()?;
    (index.to_string() == token).then_some(index)
}

/// A pointer's key.
pub(super) fn unescape(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}
