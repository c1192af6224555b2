//! Comparing free data: members key by key, elements index by index.

use super::exact::is_same_number;
use super::location::Location;
use super::{Edit, MemberChange};
use crate::json::{Json, Object};
use crate::path::{Step, pointer};

/// Compares two values. Inner changes precede those of their container, so that pointers stay valid
/// while a patch is applied.
pub(super) fn value(
    place: &Location<'_>,
    at: &str,
    from: &Json,
    to: &Json,
    changes: &mut Vec<MemberChange>,
) {
    match (from, to) {
        (Json::Object(from), Json::Object(to)) => {
            object(place, at, from, to, &|_| false, changes);
        }
        (Json::Array(from), Json::Array(to)) => array(place, at, from, to, changes),
        _ if from == to => {}
        _ => changes.push(MemberChange {
            pointer: at.to_owned(),
            semantic: !is_same_number(from, to),
            edit: Edit::Replaced {
                old: from.clone(),
                new: to.clone(),
            },
        }),
    }
}

/// Compares the members of two objects, except those that are compared separately.
pub(super) fn object(
    place: &Location<'_>,
    at: &str,
    from: &Object,
    to: &Object,
    apart: &dyn Fn(&str) -> bool,
    changes: &mut Vec<MemberChange>,
) {
    let below = |key: &str| format!("{at}{}", pointer([Step::Key(key)]));
    for (key, old) in from {
        if let Some(new) = to.get(key)
            && !apart(key)
            && old != new
        {
            value(&place.key(from, key), &below(key), old, new, changes);
        }
    }
    let matters = |object, key, value: &Json| {
        !value.is_null() || !place.key(object, key).same(Some(value), None)
    };
    for (index, (key, old)) in from.iter().enumerate() {
        if !to.contains_key(key) {
            changes.push(MemberChange {
                pointer: below(key),
                semantic: matters(from, key, old),
                edit: Edit::Removed {
                    at: index,
                    old: old.clone(),
                },
            });
        }
    }
    for (index, (key, new)) in to.iter().enumerate() {
        if !from.contains_key(key) {
            changes.push(MemberChange {
                pointer: below(key),
                semantic: matters(to, key, new),
                edit: Edit::Added {
                    at: index,
                    new: new.clone(),
                },
            });
        }
    }
    reordered(at, from, to, changes);
}

/// Writes down another order of the keys that both objects have.
pub(super) fn reordered(at: &str, from: &Object, to: &Object, changes: &mut Vec<MemberChange>) {
    let common = |object: &Object, other: &Object| -> Vec<String> {
        let keys = object.keys().filter(|key| other.contains_key(key));
        keys.map(str::to_owned).collect()
    };
    let (old, new) = (common(from, to), common(to, from));
    if old != new {
        changes.push(MemberChange {
            pointer: at.to_owned(),
            semantic: false,
            edit: Edit::Reordered { old, new },
        });
    }
}

/// Compares two arrays: equal elements at the ends are skipped, the rest is paired by index.
fn array(
    place: &Location<'_>,
    at: &str,
    from: &[Json],
    to: &[Json],
    changes: &mut Vec<MemberChange>,
) {
    let shorter = from.len().min(to.len());
    let both = || from.iter().zip(to);
    let start = both().take_while(|(old, new)| old == new).count();
    let ends = from.iter().rev().zip(to.iter().rev());
    let end = ends
        .take(shorter - start)
        .take_while(|(old, new)| old == new)
        .count();
    let n_paired = shorter - end;
    for (index, (old, new)) in both().enumerate().take(n_paired).skip(start) {
        value(
            &place.index(index),
            &format!("{at}/{index}"),
            old,
            new,
            changes,
        );
    }
    let rest = |items: &[Json]| n_paired..items.len() - end;
    for (index, old) in rest(from).zip(from.iter().skip(n_paired)) {
        changes.push(MemberChange {
            pointer: format!("{at}/{index}"),
            semantic: true,
            edit: Edit::Removed {
                at: index,
                old: old.clone(),
            },
        });
    }
    for (index, new) in rest(to).zip(to.iter().skip(n_paired)) {
        changes.push(MemberChange {
            pointer: format!("{at}/{index}"),
            semantic: true,
            edit: Edit::Added {
                at: index,
                new: new.clone(),
            },
        });
    }
}
