//! Values of columns.

use std::borrow::Cow;
use store::StoreError;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, ToSql, Type};

/// A value of a statement with its type, which the server needs not look up.
pub(super) type Param<'a> = (&'a (dyn ToSql + Sync), Type);

const ESCAPE: char = '\u{1}';

/// A text as it is stored. PostgreSQL has no U+0000, so that is an escape and another character. The order of texts and
/// their prefixes stay the same.
pub(super) fn stored(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', ESCAPE]) {
        return text.into();
    }
    let mut stored = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\0' => stored.extend([ESCAPE, '\u{1}']),
            ESCAPE => stored.extend([ESCAPE, '\u{2}']),
            c => stored.push(c),
        }
    }
    stored.into()
}

/// A stored text as it was before.
pub(super) fn original(stored: String) -> String {
    if !stored.contains(ESCAPE) {
        return stored;
    }
    let mut text = String::with_capacity(stored.len());
    let mut chars = stored.chars();
    while let Some(c) = chars.next() {
        match c {
            ESCAPE if chars.next() == Some('\u{1}') => text.push('\0'),
            c => text.push(c),
        }
    }
    text
}

/// A column.
pub(super) fn get<'r, T: FromSql<'r>>(row: &'r Row, column: usize) -> Result<T, StoreError> {
    let value = row.try_get(column);
    value.map_err(|error| StoreError::Damaged(error.to_string()))
}

/// A column with a text.
pub(super) fn text(row: &Row, column: usize) -> Result<String, StoreError> {
    get(row, column).map(original)
}

/// A column with a text, or without.
pub(super) fn optional_text(row: &Row, column: usize) -> Result<Option<String>, StoreError> {
    Ok(get::<Option<String>>(row, column)?.map(original))
}

/// A column with this many bytes.
pub(super) fn array<const N: usize>(row: &Row, column: usize) -> Result<[u8; N], StoreError> {
    let bytes: &[u8] = get(row, column)?;
    let array = bytes.try_into();
    array.map_err(|_| StoreError::Damaged(format!("a column of {N} bytes has {}", bytes.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_read_as_it_was_stored() {
        for text in [
            "",
            "a",
            "a\0b",
            "\u{1}",
            "\0\u{1}\u{1}\0",
            "\u{1}\u{2}",
            "é\0",
        ] {
            let stored = stored(text).into_owned();
            assert!(!stored.contains('\0'));
            assert_eq!(original(stored), text);
        }
    }

    #[test]
    fn stored_texts_have_the_order_and_the_prefixes_of_the_texts() {
        let texts = [
            "", "\0", "\0\0", "\0\u{1}", "\0a", "\u{1}", "\u{1}\0", "\u{2}", "a", "a\0", "a\u{1}",
            "ab",
        ];
        for one in texts {
            for other in texts {
                let (a, b) = (stored(one), stored(other));
                assert_eq!(a.cmp(&b), one.cmp(other), "{one:?} {other:?}");
                assert_eq!(
                    a.starts_with(&*b),
                    one.starts_with(other),
                    "{one:?} {other:?}"
                );
            }
        }
    }
}
