//! The line and column of a JSON pointer's value.

use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The line and the column, from 1, of the value at a JSON pointer. If it does not exist, those of the
/// last existing value on the path.
pub(super) fn of(text: &str, pointer: &str) -> (usize, usize) {
    let mut value = text.trim_start();
    for key in pointer.split('/').skip(1) {
        let key = key.replace("~1", "/").replace("~0", "~");
        match inner(value, &key) {
            Some(found) => value = found,
            None => break,
        }
    }
    let offset = value.as_ptr().addr() - text.as_ptr().addr();
    let before = text.get(..offset).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = before.matches('\n').count() + 1;
    let column = before.get(line_start..).unwrap_or_default().chars().count() + 1;
    (line, column)
}

/// The text of a member or an element.
fn inner<'a>(value: &'a str, key: &str) -> Option<&'a str> {
    if value.starts_with('[') {
        let items: Vec<&RawValue> = serde_json::from_str(value).ok()?;
        let index: usize = key.parse().ok()?;
        return items.get(index).map(|it| it.get());
    }
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(value).ok()?;
    members.get(key).map(|it| it.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_leads_to_a_line_and_a_column() {
        let text = "\n {\"a\": {\n  \"b/c\": [1,\n   true]}, \"é\": 2}";
        assert_eq!(of(text, ""), (2, 2));
        assert_eq!(of(text, "/a"), (2, 8));
        assert_eq!(of(text, "/a/b~1c/1"), (4, 4));
        assert_eq!(of(text, "/é"), (4, 17));
        assert_eq!(of(text, "/a/none"), (2, 8));
        assert_eq!(of("no json", "/a"), (1, 1));
    }
}
