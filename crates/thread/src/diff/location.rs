//! The position of a value and its canonical form there.
//!
//! Whether a null has a meaning depends on its position. The meaning of a value is therefore
//! computed from the canonical form of a document that holds only this value at its position. So
//! comparison and canonical form always agree. Large integers, which the canonical form rounds, are
//! added with all digits.

use super::exact::large_integers;
use crate::canonical::{CanonicalOptions, hash};
use crate::document::Thread;
use crate::json::{Json, Object};
use crate::path::{Step, pointer};
use sha2::{Digest, Sha256};

/// The members that name the kind of an object.
const TAGS: [&str; 3] = ["turn_type", "message_type", "part_kind"];

/// The meaning of a value, as a hash over its canonical form and the integers that it rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MeaningHash([u8; 32]);

/// A place in a document, chained to the place above it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Location<'a> {
    above: Option<&'a Location<'a>>,
    step: Step<'a>,
    /// The object that has this member; its tags determine the optional members.
    holder: Option<&'a Object>,
}

impl<'a> Location<'a> {
    /// The root of the document.
    pub(crate) const ROOT: Location<'static> = Location {
        above: None,
        step: Step::Index(0),
        holder: None,
    };

    /// The member `key` of the object `holder`, which is here.
    pub(crate) fn key(&'a self, holder: &'a Object, key: &'a str) -> Location<'a> {
        Location {
            above: Some(self),
            step: Step::Key(key),
            holder: Some(holder),
        }
    }

    /// The element `index` of the array here.
    pub(crate) fn index(&'a self, index: usize) -> Location<'a> {
        Location {
            above: Some(self),
            step: Step::Index(index),
            holder: None,
        }
    }

    /// The JSON Pointer of this place.
    pub(crate) fn pointer(&self) -> String {
        let mut steps = Vec::new();
        let mut here = self;
        while let Some(above) = here.above {
            steps.push(here.step);
            here = above;
        }
        steps.reverse();
        pointer(steps)
    }

    /// The hash of the meaning of a value, or of its absence, at this position. `None` for a number
    /// without a canonical form.
    pub(crate) fn meaning(&self, value: Option<Json>) -> Option<MeaningHash> {
        let mut value = value;
        let mut here = self;
        while let Some(above) = here.above {
            value = Some(match here.step {
                Step::Index(_) => Json::Array(value.into_iter().collect()),
                Step::Key(key) => {
                    let object = here.holder.map(tags).unwrap_or_default();
                    object.with_some(key, value).into()
                }
            });
            here = above;
        }
        let root = value.and_then(Json::into_object).unwrap_or_default();
        let integers = large_integers(&root);
        let hash = hash(&Thread::from_root(root), CanonicalOptions::default()).ok()?;
        if integers.is_empty() {
            return Some(MeaningHash(*hash.as_bytes()));
        }
        let mut both = Sha256::new_with_prefix(hash.as_bytes());
        for (pointer, integer) in integers {
            both.update(format!("{pointer}\0{integer}\0"));
        }
        Some(MeaningHash(both.finalize().into()))
    }

    /// Whether two values mean the same here.
    pub(crate) fn same(&self, one: Option<&Json>, other: Option<&Json>) -> bool {
        one == other || {
            let meaning = self.meaning(one.cloned());
            meaning.is_some() && meaning == self.meaning(other.cloned())
        }
    }
}

/// The members of an object that name its kind.
fn tags(object: &Object) -> Object {
    let tag = |key| {
        let tag = object.get_str(key)?;
        Some((key, Json::from(tag)))
    };
    TAGS.into_iter().filter_map(tag).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_null_means_nothing_where_the_member_is_optional() {
        let root = Object::new();
        let user = Object::new().with("turn_type", "user");
        let other = Object::new().with("turn_type", "robot");
        let turns = Location::ROOT.key(&root, "turns");
        let turn = turns.index(7);
        let null = Some(&Json::Null);
        assert!(turn.key(&user, "client_metadata").same(null, None));
        assert!(!turn.key(&other, "client_metadata").same(null, None));
        assert!(!turn.key(&user, "x").same(null, None));
        assert_eq!(turn.key(&user, "a/b").pointer(), "/turns/7/a~1b");
    }

    #[test]
    fn numbers_mean_the_same_if_they_are_the_same_double() {
        let root = Object::new();
        let place = Location::ROOT.key(&root, "x");
        let number = |text| Json::parse(text).unwrap();
        assert!(place.same(Some(&number("1.0")), Some(&number("1"))));
        assert!(place.same(Some(&number("1e999")), Some(&number("1e999"))));
        assert!(!place.same(Some(&number("1e999")), Some(&number("1E999"))));
    }

    #[test]
    fn large_integers_mean_the_same_only_to_the_last_digit() {
        let root = Object::new();
        let place = Location::ROOT.key(&root, "x");
        let same = |one, other| {
            let [one, other] = [one, other].map(|text| Json::parse(text).unwrap());
            place.same(Some(&one), Some(&other))
        };
        assert!(!same("[9007199254740993]", "[9007199254740992]"));
        assert!(!same("[9007199254740993,0]", "[0,9007199254740993]"));
        assert!(same("[9007199254740993.0]", "[9007199254740993]"));
    }
}
