//! Lines about places in documents.

use crate::output::{DIM, Output, clean, json_line};
use crate::work::Location;
use serde_json::{Value, json};

/// A line about one place in a document, for a loss or a change.
pub(crate) fn report(
    output: &Output,
    spot: &Location,
    word: &str,
    pointer: &str,
    what: &str,
) -> String {
    if output.is_json() {
        return json_line(at_line(
            json!({"kind": word, "pointer": pointer, "what": what}),
            spot,
        ));
    }
    let what = clean(what).replace('\n', " ");
    let line = before(spot);
    format!("{line}{DIM}{word}{DIM:#}  {}  {what}\n", location(pointer))
}

/// The pointer, for people.
pub(crate) fn location(pointer: &str) -> String {
    if pointer.is_empty() {
        "(document)".into()
    } else {
        clean(pointer)
    }
}

/// The line number for people, if each line is a document.
pub(crate) fn before(spot: &Location) -> String {
    let line = spot.line.map(|line| format!("line {line}: "));
    line.unwrap_or_default()
}

/// Adds the line number to a JSON object if the file has one document a line.
pub(crate) fn at_line(mut value: Value, spot: &Location) -> Value {
    if let (Some(line), Some(object)) = (spot.line, value.as_object_mut()) {
        object.insert("line".to_owned(), line.into());
    }
    value
}
