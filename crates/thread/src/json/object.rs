//! Objects in the order of their keys.

use super::Json;
use std::collections::BTreeMap;

/// Objects up to this size are searched from the front, which is faster than a tree.
const SEARCHED: usize = 16;

/// A JSON object that preserves the order of its keys.
#[derive(Clone, Debug, Default)]
pub struct Object {
    members: Vec<(Box<str>, Json)>,
    /// The index of each key. Only objects larger than [`SEARCHED`] have it, so that reading a
    /// large one takes less than quadratic time.
    #[expect(
        clippy::box_collection,
        reason = "few objects are large and every value pays for the width"
    )]
    index: Option<Box<BTreeMap<Box<str>, usize>>>,
}

impl Object {
    /// An object without members.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            members: Vec::new(),
            index: None,
        }
    }

    /// Releases unused capacity.
    pub(super) fn shrink_to_fit(&mut self) {
        self.members.shrink_to_fit();
    }

    /// The number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The member `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Json> {
        let place = self.place(key)?;
        self.members.get(place).map(|(_, value)| value)
    }

    /// The member `key`, to change.
    #[must_use]
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Json> {
        let place = self.place(key)?;
        self.members.get_mut(place).map(|(_, value)| value)
    }

    /// The member `key`, if it is a string.
    #[must_use]
    pub fn get_str(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }

    /// Whether there is a member `key`, even if it is `null`.
    #[must_use]
    pub fn contains_key(&self, key: &str) -> bool {
        self.place(key).is_some()
    }

    /// Sets a member: in its place if the key exists, at the end otherwise. Returns the old value.
    pub fn insert(&mut self, key: impl Into<Box<str>>, value: impl Into<Json>) -> Option<Json> {
        let key = key.into();
        let value = value.into();
        if let Some(old) = self.get_mut(&key) {
            return Some(std::mem::replace(old, value));
        }
        if let Some(index) = &mut self.index {
            index.insert(key.clone(), self.members.len());
        }
        self.members.push((key, value));
        if self.index.is_none() && self.members.len() > SEARCHED {
            self.reindex();
        }
        None
    }

    /// Removes a member; those after it stay in order. Linear: use [`Object::retain`] to remove
    /// many.
    pub fn remove(&mut self, key: &str) -> Option<Json> {
        let place = self.place(key)?;
        let (_, value) = self.members.remove(place);
        self.reindex();
        Some(value)
    }

    /// Removes the members for which `keep` returns false.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &Json) -> bool) {
        self.members.retain(|(key, value)| keep(key, value));
        self.reindex();
    }

    /// The members in order.
    pub fn iter(&self) -> Iter<'_> {
        Iter(self.members.iter())
    }

    /// The keys in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|(key, _)| &**key)
    }

    /// The values in order, to change.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Json> {
        self.members.iter_mut().map(|(_, value)| value)
    }

    /// This object with one member more, for building documents.
    #[must_use]
    pub fn with(mut self, key: impl Into<Box<str>>, value: impl Into<Json>) -> Self {
        self.insert(key, value);
        self
    }

    /// This object with one member more, or as it is for `None`.
    #[must_use]
    pub fn with_some(self, key: impl Into<Box<str>>, value: Option<impl Into<Json>>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    fn place(&self, key: &str) -> Option<usize> {
        match &self.index {
            Some(index) => index.get(key).copied(),
            None => self.members.iter().position(|(known, _)| **known == *key),
        }
    }

    fn reindex(&mut self) {
        self.index = (self.members.len() > SEARCHED).then(|| {
            let keys = self.members.iter().enumerate();
            Box::new(keys.map(|(place, (key, _))| (key.clone(), place)).collect())
        });
    }
}

/// The members alone decide; the index follows from them.
impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        self.members == other.members
    }
}

impl Eq for Object {}

impl<K: Into<Box<str>>> FromIterator<(K, Json)> for Object {
    fn from_iter<I: IntoIterator<Item = (K, Json)>>(members: I) -> Self {
        let mut object = Self::new();
        for (key, value) in members {
            object.insert(key, value);
        }
        object
    }
}

/// The members of an [`Object`] in order.
#[derive(Clone, Debug)]
pub struct Iter<'a>(std::slice::Iter<'a, (Box<str>, Json)>);

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a str, &'a Json);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(key, value)| (&**key, value))
    }
}

impl<'a> IntoIterator for &'a Object {
    type Item = (&'a str, &'a Json);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl IntoIterator for Object {
    type Item = (Box<str>, Json);
    type IntoIter = std::vec::IntoIter<(Box<str>, Json)>;

    fn into_iter(self) -> Self::IntoIter {
        self.members.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_object_finds_inserts_and_removes_in_place() {
        let mut object: Object = (0..100u32).map(|n| (format!("k{n}"), n.into())).collect();
        assert_eq!(object.insert("k50", "fifty"), Some(50u32.into()));
        assert_eq!(object.remove("k10"), Some(10u32.into()));
        assert_eq!(object.get("k99"), Some(&99u32.into()));
        assert_eq!(object.keys().nth(49), Some("k50"));
        assert_eq!(object.len(), 99);
    }

    #[test]
    fn with_some_leaves_an_absent_member_out() {
        let object = Object::new().with("a", 1i64).with_some("b", None::<&str>);
        assert_eq!(Json::from(object).to_text(), r#"{"a":1}"#);
    }
}
