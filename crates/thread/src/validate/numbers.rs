//! Numbers that the canonical form changes (RFC 7493 §2.2).

use super::{Report, Rule};
use crate::json::{Json, Object, ObjectIter};
use crate::path::{Step, pointer};

/// A container being walked, and where in it the walk is.
enum Open<'a> {
    Array(std::iter::Enumerate<std::slice::Iter<'a, Json>>, usize),
    Object(ObjectIter<'a>, &'a str),
}

/// Looks at every number of a document, without recursion.
pub(super) fn check(report: &mut Report<'_>, root: &Object) {
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
                let steps = open.iter().map(|open| match open {
                    Open::Array(_, place) => Step::Index(*place),
                    Open::Object(_, place) => Step::Key(place),
                });
                let message = format!("{number} is not an I-JSON number");
                report.add_at(Rule::IJsonNumber, pointer(steps), message);
            }
            Some(Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_)) => {}
        }
    }
}
