//! Walking three documents side by side.

use super::{Conflict, ConflictKind};
use crate::diff::{Level, Location};
use crate::json::{Json, Object};
use std::collections::BTreeMap;

/// The shape of a value, which determines how it is merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Root,
    /// The registry: each agent separately.
    Agents,
    /// A configuration: member by member.
    Agent,
    /// Free data: member by member.
    Metadata,
    Relationships,
    /// A set.
    Links,
    /// A sequence.
    Items(Level),
    /// A turn or message: member by member.
    Item(Level),
    /// An instant; the later one is used.
    Later,
    /// One thing.
    Whole,
}

impl Shape {
    fn member(self, key: &str) -> Self {
        match (self, key) {
            (Self::Root, "agents") => Self::Agents,
            (Self::Root, "relationships") => Self::Relationships,
            (Self::Root, "updated_at") => Self::Later,
            (Self::Agents, _) => Self::Agent,
            (Self::Metadata, _)
            | (Self::Root | Self::Agent | Self::Item(_), "metadata")
            | (Self::Item(Level::Turn), "client_metadata") => Self::Metadata,
            (Self::Relationships, "links") => Self::Links,
            (Self::Root, _) => Self::items(Level::Root, key),
            (Self::Item(level), _) => Self::items(level, key),
            (
                Self::Agent
                | Self::Relationships
                | Self::Links
                | Self::Items(_)
                | Self::Later
                | Self::Whole,
                _,
            ) => Self::Whole,
        }
    }

    fn items(level: Level, key: &str) -> Self {
        let found = level.sequences().iter().find(|(name, _)| *name == key);
        found.map_or(Self::Whole, |(_, level)| Self::Items(*level))
    }

    /// The shape of the items of a sequence.
    pub(super) fn item(self) -> Self {
        match self {
            Self::Items(level @ (Level::Turn | Level::Message)) => Self::Item(level),
            Self::Items(Level::Root | Level::Agent | Level::Part)
            | Self::Root
            | Self::Agents
            | Self::Agent
            | Self::Metadata
            | Self::Relationships
            | Self::Links
            | Self::Item(_)
            | Self::Later
            | Self::Whole => Self::Whole,
        }
    }

    /// Whether two that were added apart are merged, rather than being two things.
    fn is_container(self) -> bool {
        !matches!(self, Self::Agent | Self::Item(_))
    }
}

/// The value of the common ancestor, ours and theirs.
pub(super) type Three<'a> = [Option<&'a Json>; 3];

/// The conflicts so far.
#[derive(Default)]
pub(super) struct Walk {
    pub(super) conflicts: Vec<Conflict>,
}

impl Walk {
    pub(super) fn root(&mut self, roots: [&Object; 3]) -> Object {
        self.object(Shape::Root, &Location::ROOT, roots)
    }

    pub(super) fn conflict(&mut self, kind: ConflictKind, place: &Location<'_>, three: Three<'_>) {
        let [base, ours, theirs] = three.map(Option::<&Json>::cloned);
        self.conflicts.push(Conflict {
            kind,
            pointer: place.pointer(),
            base,
            ours,
            theirs,
        });
    }

    /// Merges a value that each side may have or not.
    pub(super) fn value(
        &mut self,
        shape: Shape,
        place: &Location<'_>,
        three: Three<'_>,
    ) -> Option<Json> {
        let [base, ours, theirs] = three;
        if base == ours {
            return theirs.cloned();
        }
        if base == theirs || ours == theirs {
            return ours.cloned();
        }
        if let Some(merged) = self.inside(shape, place, three) {
            return Some(merged);
        }
        if place.same(base, ours) {
            return theirs.cloned();
        }
        if place.same(base, theirs) || place.same(ours, theirs) {
            return ours.cloned();
        }
        if shape == Shape::Later
            && let Some(later) = later(ours, theirs)
        {
            return Some(later.clone());
        }
        let kind = if ours.is_some() && theirs.is_some() {
            ConflictKind::BothChanged
        } else {
            ConflictKind::RemovedAndChanged
        };
        self.conflict(kind, place, three);
        ours.or(theirs).cloned()
    }

    /// Merges the contents of containers; `None` if the values are not containers.
    fn inside(&mut self, shape: Shape, place: &Location<'_>, three: Three<'_>) -> Option<Json> {
        let [base, ours, theirs] = three;
        let base = base.filter(|base| !base.is_null());
        if base.is_none() && !shape.is_container() {
            return None;
        }
        match shape {
            Shape::Later | Shape::Whole => None,
            Shape::Links | Shape::Items(_) => {
                let base = base.map_or(Some(&[][..]), Json::as_array)?;
                let sides = [base, ours?.as_array()?, theirs?.as_array()?];
                Some(Json::Array(self.sequence(shape, place, sides)))
            }
            Shape::Root
            | Shape::Agents
            | Shape::Agent
            | Shape::Metadata
            | Shape::Relationships
            | Shape::Item(_) => {
                let empty = Object::new();
                let base = base.map_or(Some(&empty), Json::as_object)?;
                let sides = [base, ours?.as_object()?, theirs?.as_object()?];
                Some(self.object(shape, place, sides).into())
            }
        }
    }

    fn object(&mut self, shape: Shape, place: &Location<'_>, sides: [&Object; 3]) -> Object {
        let [base, ours, theirs] = sides;
        let mut merged = Object::new();
        for key in keys(base, ours, theirs) {
            let three = sides.map(|side| side.get(key));
            let place = place.key(base, key);
            if let Some(value) = self.value(shape.member(key), &place, three) {
                merged.insert(key, value);
            }
        }
        merged
    }
}

/// Our keys in order, with the keys of theirs inserted after the key that they follow there. Of
/// keys that both sides insert after one key, ours come first.
fn keys<'a>(base: &Object, ours: &'a Object, theirs: &'a Object) -> Vec<&'a str> {
    let mut follows: BTreeMap<Option<&str>, Vec<&str>> = BTreeMap::new();
    let mut last = None;
    for key in theirs.keys() {
        if ours.contains_key(key) {
            last = Some(key);
        } else {
            follows.entry(last).or_default().push(key);
        }
    }
    let mut keys = Vec::with_capacity(ours.len() + theirs.len());
    let mut waiting = follows.remove(&None).unwrap_or_default();
    for key in ours.keys() {
        if base.contains_key(key) || theirs.contains_key(key) {
            keys.append(&mut waiting);
        }
        keys.push(key);
        waiting.extend(follows.remove(&Some(key)).unwrap_or_default());
    }
    keys.append(&mut waiting);
    keys
}

/// The later of two instants; of one instant in two spellings, always the same.
fn later<'a>(ours: Option<&'a Json>, theirs: Option<&'a Json>) -> Option<&'a Json> {
    let instant = |json: &'a Json| {
        let text = json.as_str()?;
        Some((text.parse::<jiff::Timestamp>().ok()?, text))
    };
    let (ours, theirs) = (ours?, theirs?);
    if instant(ours)? < instant(theirs)? {
        Some(theirs)
    } else {
        Some(ours)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_only_theirs_has_follow_what_they_follow_there() {
        let object = |keys: &str| -> Object {
            let keys = keys.chars().map(|char| (char.to_string(), Json::Null));
            keys.collect()
        };
        let merged = |base, ours, theirs| {
            let (base, ours, theirs) = (object(base), object(ours), object(theirs));
            keys(&base, &ours, &theirs).concat()
        };
        assert_eq!(merged("az", "aoz", "atz"), "aotz");
        assert_eq!(merged("a", "ao", "at"), "aot");
        assert_eq!(merged("ab", "ba", "xaby"), "xbya");
    }
}
