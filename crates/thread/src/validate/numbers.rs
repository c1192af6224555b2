//! Numbers that the canonical form changes (RFC 7493 §2.2).

use super::{Report, Rule};
use crate::json::{Json, Number, Object, ObjectIter};
use crate::path::{Step, pointer};

/// A container being walked, and where in it the walk is.
enum Open<'a> {
    Array(std::iter::Enumerate<std::slice::Iter<'a, Json>>, usize),
    Object(ObjectIter<'a>, &'a str),
}

/// Reports every number of a document that the canonical form changes.
pub(super) fn check(report: &mut Report<'_>, root: &Object) {
    each_inexact(root, |number, open| {
        let message = format!("{number} is not an I-JSON number");
        report.add_at(Rule::IJsonNumber, place(open), message);
    });
}

/// Numbers of a document that the canonical form changes, so that its hash is also the hash of
/// documents with other numbers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the hash is not exact: the canonical form rounds {n_numbers} number{}, the first is {first} at \"{pointer}\"",
    if *n_numbers == 1 { "" } else { "s" }
)]
pub struct InexactNumbers {
    /// How many there are.
    pub n_numbers: usize,
    /// The JSON Pointer of the first.
    pub pointer: String,
    /// The first.
    pub first: Number,
}

/// The numbers of an object that the canonical form changes, if there are any.
pub(crate) fn inexact(root: &Object) -> Option<InexactNumbers> {
    let mut found: Option<InexactNumbers> = None;
    each_inexact(root, |number, open| match &mut found {
        Some(found) => found.n_numbers += 1,
        None => {
            found = Some(InexactNumbers {
                n_numbers: 1,
                pointer: place(open),
                first: number.clone(),
            });
        }
    });
    found
}

fn place(open: &[Open<'_>]) -> String {
    pointer(open.iter().map(|open| match open {
        Open::Array(_, place) => Step::Index(*place),
        Open::Object(_, place) => Step::Key(place),
    }))
}

/// Looks at every number of a document, without recursion.
fn each_inexact(root: &Object, mut found: impl FnMut(&Number, &[Open<'_>])) {
    let mut open = vec![Open::Object(root.iter(), "")];
    while let Some(container) = open.last_mut() {
        let next = match container {
            Open::Array(items, place) => items.next().map(|(next, item)| {
                *place = next;
                item
            }),
            Open::Object(members, place) => members.next().map(|(next, value)| {
                *place = next;
                value
            }),
        };
        match next {
            None => {
                open.pop();
            }
            Some(Json::Array(items)) => open.push(Open::Array(items.iter().enumerate(), 0)),
            Some(Json::Object(object)) => open.push(Open::Object(object.iter(), "")),
            Some(Json::Number(number)) if !number.is_i_json() => {
                found(number, &open);
            }
            Some(Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_)) => {}
        }
    }
}
