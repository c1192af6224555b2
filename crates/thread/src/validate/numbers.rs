//! Numbers that the canonical form changes (RFC 7493 §2.2).

use super::{Report, Rule};
use crate::json::{Json, Number, Object, ObjectIter};
use crate::path::{Step, pointer};

/// A container in a walk, and the position in it.
enum Open<'a> {
    Array(std::iter::Enumerate<std::slice::Iter<'a, Json>>, usize),
    Object(ObjectIter<'a>, &'a str),
}

/// Reports every number of a document that the canonical form changes.
pub(super) fn check(report: &mut Report<'_>, root: &Object) {
    for (key, value) in root {
        each_inexact(value, |number, open| {
            let message = format!("{number} is not an I-JSON number");
            let pointer = format!("{}{}", pointer([Step::Key(key)]), place(open));
            report.add_at(Rule::IJsonNumber, pointer, message);
        });
    }
}

/// The numbers of a document that the canonical form changes. The hash is then also that of
/// documents with other numbers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the hash is not exact: the canonical form rounds {n_numbers} number{}, such as {example} at \"{pointer}\"",
    if *n_numbers == 1 { "" } else { "s" }
)]
pub struct InexactNumbers {
    /// The number of such numbers.
    pub n_numbers: usize,
    /// One of them.
    pub example: Number,
    /// The JSON Pointer of that one.
    pub pointer: String,
}

impl InexactNumbers {
    /// The numbers of an object, if there are any.
    pub(crate) fn of(root: &Object) -> Option<Self> {
        let mut found = None;
        for (key, value) in root {
            Self::add(&mut found, &[Step::Key(key)], value);
        }
        found
    }

    /// Adds the numbers of a value at this path.
    pub(crate) fn add(found: &mut Option<Self>, steps: &[Step<'_>], json: &Json) {
        each_inexact(json, |number, open| match &mut *found {
            Some(found) => found.n_numbers += 1,
            None => {
                *found = Some(Self {
                    n_numbers: 1,
                    pointer: format!("{}{}", pointer(steps.iter().copied()), place(open)),
                    example: number.clone(),
                });
            }
        });
    }
}

fn place(open: &[Open<'_>]) -> String {
    pointer(open.iter().map(|open| match open {
        Open::Array(_, place) => Step::Index(*place),
        Open::Object(_, place) => Step::Key(place),
    }))
}

/// Looks at every number of a value, without recursion.
fn each_inexact(json: &Json, mut found: impl FnMut(&Number, &[Open<'_>])) {
    let mut open = Vec::new();
    let mut next = Some(json);
    loop {
        match next {
            Some(Json::Array(items)) => open.push(Open::Array(items.iter().enumerate(), 0)),
            Some(Json::Object(object)) => open.push(Open::Object(object.iter(), "")),
            Some(Json::Number(number)) if !number.is_i_json() => found(number, &open),
            Some(Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_)) => {}
            None => drop(open.pop()),
        }
        let Some(container) = open.last_mut() else {
            return;
        };
        next = match container {
            Open::Array(items, place) => items.next().map(|(next, item)| {
                *place = next;
                item
            }),
            Open::Object(members, place) => members.next().map(|(next, value)| {
                *place = next;
                value
            }),
        };
    }
}
