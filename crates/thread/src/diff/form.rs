//! A diff as JSON.
//!
//! ```json
//! {"from": "sha256:…", "to": "sha256:…", "changes": [
//!   {"level": "turn", "kind": "changed", "label": "user", "from": "/turns/0", "to": "/turns/0",
//!    "semantic": true,
//!    "members": [{"pointer": "/submitted_at", "kind": "replaced", "semantic": true, "old": …, "new": …}],
//!    "inner": [{"level": "part", "kind": "added", …, "to": "/turns/0/parts/1", "at": 1, "value": …}]}
//! ]}
//! ```

use super::{Diff, DiffChange, DiffKind, Edit, Level, MemberChange, TextHash};
use crate::json::{Json, Object};
use crate::path::Path;

/// The error for a JSON value that is not a diff.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{pointer}\" of the diff is not {expected}")]
pub struct DiffFormatError {
    /// The JSON Pointer of the faulty or missing value.
    pub pointer: String,
    /// The expected value.
    pub expected: &'static str,
}

impl Diff {
    /// The diff as JSON; [`Diff::from_json`] reads it.
    ///
    /// An object of `from` and `to` (hashes of the exact texts) and `changes`. A change has `level`
    /// (`root`, `agent`, `turn`, `message`, `part`), `kind`, `label`, `from` and `to` (JSON
    /// Pointers, if they exist) and `semantic`. A change of the kind `added` or `removed` has `at`
    /// (its index) and `value`. A `changed` one has `members`, and `inner` with the changes of the
    /// messages and parts in it. A member has `pointer` (relative to the changed thing), `kind` and
    /// `semantic`: `added` has `at` and `new`, `removed` has `at` and `old`, `replaced` has `old`
    /// and `new`, and `reordered` has the keys in the `old` and the `new` order.
    #[must_use]
    pub fn to_json(&self) -> Json {
        Json::object([
            ("from", self.from.to_string().into()),
            ("to", self.to.to_string().into()),
            (
                "changes",
                self.changes.iter().map(DiffChange::to_json).collect(),
            ),
        ])
    }

    /// Reads a diff back.
    pub fn from_json(json: &Json) -> Result<Self, DiffFormatError> {
        let here = Path::ROOT;
        let object = whole(here, json)?;
        let hash = |key| {
            let hash = TextHash::parse(text(here, object, key)?);
            hash.ok_or_else(|| wrong(here.key(key), "`sha256:` and 64 hexadecimal digits"))
        };
        Ok(Self {
            from: hash("from")?,
            to: hash("to")?,
            changes: changes(
                here,
                object,
                "changes",
                &[Level::Root, Level::Agent, Level::Turn],
            )?,
        })
    }
}

impl DiffChange {
    /// The change as JSON; [`Diff::to_json`] has the shape.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let kind = match self.kind {
            DiffKind::Added { .. } => "added",
            DiffKind::Removed { .. } => "removed",
            DiffKind::Changed { .. } => "changed",
        };
        let object = Object::new()
            .with("level", self.level.as_str())
            .with("kind", kind)
            .with("label", self.label.as_str())
            .with_some("from", self.from.as_deref())
            .with_some("to", self.to.as_deref())
            .with("semantic", self.semantic);
        let object = match &self.kind {
            DiffKind::Added { at, value } | DiffKind::Removed { at, value } => {
                object.with("at", *at as u64).with("value", value.clone())
            }
            DiffKind::Changed { members, inner } => {
                let members: Json = members.iter().map(MemberChange::to_json).collect();
                let inner: Json = inner.iter().map(Self::to_json).collect();
                object.with("members", members).with("inner", inner)
            }
        };
        object.into()
    }

    fn from_json(here: Path<'_>, json: &Json, levels: &[Level]) -> Result<Self, DiffFormatError> {
        let object = whole(here, json)?;
        let name = text(here, object, "level")?;
        let level = levels.iter().copied().find(|level| level.as_str() == name);
        let level = level.ok_or_else(|| wrong(here.key("level"), "a level that can be here"))?;
        let value = || member(here, object, "value").cloned();
        let kind = match text(here, object, "kind")? {
            "added" => DiffKind::Added {
                at: index(here, object)?,
                value: value()?,
            },
            "removed" => DiffKind::Removed {
                at: index(here, object)?,
                value: value()?,
            },
            "changed" => {
                let below: Vec<_> = level.sequences().iter().map(|(_, level)| *level).collect();
                let below = if level == Level::Root { &[] } else { &*below };
                DiffKind::Changed {
                    members: each(here, object, "members", MemberChange::from_json)?,
                    inner: changes(here, object, "inner", below)?,
                }
            }
            _ => return Err(wrong(here.key("kind"), "`added`, `removed` or `changed`")),
        };
        let place = |key| match object.get(key) {
            None => Ok(None),
            Some(_) => text(here, object, key).map(|place| Some(place.to_owned())),
        };
        Ok(Self {
            level,
            label: text(here, object, "label")?.to_owned(),
            from: place("from")?,
            to: place("to")?,
            semantic: flag(here, object)?,
            kind,
        })
    }
}

impl MemberChange {
    /// The change as JSON; [`Diff::to_json`] has the shape.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let kind = match self.edit {
            Edit::Added { .. } => "added",
            Edit::Removed { .. } => "removed",
            Edit::Replaced { .. } => "replaced",
            Edit::Reordered { .. } => "reordered",
        };
        let object = Object::new()
            .with("pointer", self.pointer.as_str())
            .with("kind", kind)
            .with("semantic", self.semantic);
        let keys = |keys: &[String]| keys.iter().map(String::as_str).collect::<Json>();
        let object = match &self.edit {
            Edit::Added { at, new } => object.with("at", *at as u64).with("new", new.clone()),
            Edit::Removed { at, old } => object.with("at", *at as u64).with("old", old.clone()),
            Edit::Replaced { old, new } => object.with("old", old.clone()).with("new", new.clone()),
            Edit::Reordered { old, new } => object.with("old", keys(old)).with("new", keys(new)),
        };
        object.into()
    }

    fn from_json(here: Path<'_>, json: &Json) -> Result<Self, DiffFormatError> {
        let object = whole(here, json)?;
        let old = || member(here, object, "old").cloned();
        let new = || member(here, object, "new").cloned();
        let keys = |key| {
            each(here, object, key, |here, json| {
                let key = json.as_str().map(str::to_owned);
                key.ok_or_else(|| wrong(here, "a key"))
            })
        };
        let edit = match text(here, object, "kind")? {
            "added" => Edit::Added {
                at: index(here, object)?,
                new: new()?,
            },
            "removed" => Edit::Removed {
                at: index(here, object)?,
                old: old()?,
            },
            "replaced" => Edit::Replaced {
                old: old()?,
                new: new()?,
            },
            "reordered" => Edit::Reordered {
                old: keys("old")?,
                new: keys("new")?,
            },
            _ => {
                let expected = "`added`, `removed`, `replaced` or `reordered`";
                return Err(wrong(here.key("kind"), expected));
            }
        };
        Ok(Self {
            pointer: text(here, object, "pointer")?.to_owned(),
            semantic: flag(here, object)?,
            edit,
        })
    }
}

fn wrong(here: Path<'_>, expected: &'static str) -> DiffFormatError {
    DiffFormatError {
        pointer: here.to_pointer(),
        expected,
    }
}

fn whole<'a>(here: Path<'_>, json: &'a Json) -> Result<&'a Object, DiffFormatError> {
    json.as_object().ok_or_else(|| wrong(here, "an object"))
}

fn member<'a>(here: Path<'_>, object: &'a Object, key: &str) -> Result<&'a Json, DiffFormatError> {
    object.get(key).ok_or_else(|| wrong(here.key(key), "there"))
}

fn text<'a>(here: Path<'_>, object: &'a Object, key: &str) -> Result<&'a str, DiffFormatError> {
    let text = member(here, object, key)?.as_str();
    text.ok_or_else(|| wrong(here.key(key), "a string"))
}

fn flag(here: Path<'_>, object: &Object) -> Result<bool, DiffFormatError> {
    let flag = member(here, object, "semantic")?.as_bool();
    flag.ok_or_else(|| wrong(here.key("semantic"), "a boolean"))
}

fn index(here: Path<'_>, object: &Object) -> Result<usize, DiffFormatError> {
    let index = member(here, object, "at")?.as_u64();
    let index = index.and_then(|index| usize::try_from(index).ok());
    index.ok_or_else(|| wrong(here.key("at"), "an index"))
}

fn each<T>(
    here: Path<'_>,
    object: &Object,
    key: &str,
    read: impl Fn(Path<'_>, &Json) -> Result<T, DiffFormatError>,
) -> Result<Vec<T>, DiffFormatError> {
    let here = here.key(key);
    let items = object.get(key).and_then(Json::as_array);
    let items = items.ok_or_else(|| wrong(here, "an array"))?;
    let items = items.iter().enumerate();
    items.map(|(n, json)| read(here.index(n), json)).collect()
}

/// Reads changes of these levels. Each level holds only deeper ones, so the recursion ends.
fn changes(
    here: Path<'_>,
    object: &Object,
    key: &str,
    levels: &[Level],
) -> Result<Vec<DiffChange>, DiffFormatError> {
    each(here, object, key, |here, json| {
        DiffChange::from_json(here, json, levels)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_diff_is_said_with_its_place() {
        let hash = format!("sha256:{}", "0".repeat(64));
        let read = |changes: &str| {
            let text = format!(r#"{{"from":"{hash}","to":"{hash}","changes":{changes}}}"#);
            let error = Diff::from_json(&Json::parse(&text).unwrap()).unwrap_err();
            error.pointer
        };
        assert_eq!(read("7"), "/changes");
        assert_eq!(read(r#"[{"level":"part"}]"#), "/changes/0/level");
        assert_eq!(
            read(r#"[{"level":"turn","kind":"changed","members":[{"kind":"added","at":-1}]}]"#),
            "/changes/0/members/0/at"
        );
        let error = Diff::from_json(&Json::Null).unwrap_err();
        assert_eq!(error.to_string(), "\"\" of the diff is not an object");
    }
}
