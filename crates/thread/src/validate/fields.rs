//! The shapes of objects as tables, and the one function that checks them.

use super::{Report, Rule, instants};
use crate::json::{Json, Object};
use crate::path::Path;

/// A member that the protocol defines.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) need: Need,
    pub(crate) shape: Shape,
}

/// Whether a member may be missing.
#[derive(Clone, Copy)]
pub(crate) enum Need {
    /// The member is required.
    Required,
    /// Required, but real documents often omit it.
    Expected,
    /// The member may be missing or `null`.
    Optional,
}

/// The type of a member.
#[derive(Clone, Copy)]
pub(crate) enum Shape {
    /// Anything, `null` included.
    Any,
    Text,
    Timestamp,
    /// A string that should be a UUID.
    Uuid,
    Object,
    Array,
    Texts,
    /// An integer from 0.
    Count,
    TextOrArray,
    OneOf(&'static [&'static str]),
}

/// A member with this need.
pub(crate) const fn field(name: &'static str, need: Need, shape: Shape) -> Field {
    Field { name, need, shape }
}

/// A member that must be there.
pub(crate) const fn required(name: &'static str, shape: Shape) -> Field {
    let need = Need::Required;
    Field { name, need, shape }
}

/// A required member that real documents often omit.
pub(crate) const fn expected(name: &'static str, shape: Shape) -> Field {
    let need = Need::Expected;
    Field { name, need, shape }
}

/// A member that may be missing.
pub(crate) const fn optional(name: &'static str, shape: Shape) -> Field {
    let need = Need::Optional;
    Field { name, need, shape }
}

/// Checks every member of a table.
pub(super) fn check(report: &mut Report<'_>, path: Path<'_>, object: &Object, fields: &[Field]) {
    for field in fields {
        let value = object.get(field.name);
        let any = matches!(field.shape, Shape::Any);
        match (value, field.need) {
            (Some(value), _) if any || !value.is_null() => {
                check_shape(report, path.key(field.name), value, field.shape);
            }
            (_, Need::Optional) => {}
            (_, Need::Required) => missing(report, Rule::Required, path, field.name),
            (_, Need::Expected) => missing(report, Rule::Expected, path, field.name),
        }
    }
}

/// The object here, or a violation.
pub(super) fn object<'a>(
    report: &mut Report<'_>,
    path: Path<'_>,
    json: &'a Json,
) -> Option<&'a Object> {
    let object = json.as_object();
    if object.is_none() {
        wrong(report, path, json, "an object");
    }
    object
}

pub(super) fn missing(report: &mut Report<'_>, rule: Rule, path: Path<'_>, name: &str) {
    report.add(rule, path, format!("`{name}` is missing"));
}

pub(super) fn wrong(report: &mut Report<'_>, path: Path<'_>, json: &Json, expected: &str) {
    let found = json.type_name();
    report.add(
        Rule::Shape,
        path,
        format!("expected {expected}, found {found}"),
    );
}

fn check_shape(report: &mut Report<'_>, path: Path<'_>, value: &Json, shape: Shape) {
    match shape {
        Shape::Any => {}
        Shape::Text => {
            text(report, path, value);
        }
        Shape::Timestamp => {
            if let Some(text) = text(report, path, value) {
                instants::check(report, path, text);
            }
        }
        Shape::Uuid => {
            if let Some(text) = text(report, path, value) {
                uuid(report, Rule::Uuid, path, text);
            }
        }
        Shape::Object => {
            object(report, path, value);
        }
        Shape::Array => {
            if value.as_array().is_none() {
                wrong(report, path, value, "an array");
            }
        }
        Shape::Texts => match value.as_array() {
            None => wrong(report, path, value, "an array of strings"),
            Some(items) => {
                for (place, item) in items.iter().enumerate() {
                    text(report, path.index(place), item);
                }
            }
        },
        Shape::Count => {
            if value
                .as_number()
                .is_none_or(|number| !number.is_integer() || number.as_str().starts_with('-'))
            {
                wrong(report, path, value, "an integer from 0");
            }
        }
        Shape::TextOrArray => {
            if value.as_str().is_none() && value.as_array().is_none() {
                wrong(report, path, value, "a string or an array");
            }
        }
        Shape::OneOf(legal) => {
            if let Some(text) = text(report, path, value)
                && !legal.contains(&text)
            {
                let message = format!("{text:?} is none of {}", legal.join(", "));
                report.add(Rule::Shape, path, message);
            }
        }
    }
}

fn text<'a>(report: &mut Report<'_>, path: Path<'_>, value: &'a Json) -> Option<&'a str> {
    let text = value.as_str();
    if text.is_none() {
        wrong(report, path, value, "a string");
    }
    text
}

/// Reports a string that is not a UUID in its usual, hyphenated form.
pub(super) fn uuid(report: &mut Report<'_>, rule: Rule, path: Path<'_>, text: &str) {
    if text.len() != 36 || uuid::Uuid::try_parse(text).is_err() {
        report.add(rule, path, format!("{text:?} is no UUID"));
    }
}
