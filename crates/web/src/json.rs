//! JSON and foreign texts, for people.

pub(crate) use crate::hidden::visible;

use crate::words::counted;
use serde_json::Value;
use std::borrow::Cow;

/// Maximum length of an argument in the head of a card, in characters.
const MAX_FIRST: usize = 80;
/// Size from which a text is cut, in bytes.
pub(crate) const MAX_TEXT: usize = 64 << 10;

/// JSON with line breaks and indentation; any other text unchanged. Long texts are cut, with a note.
pub(crate) fn pretty(text: &str) -> String {
    pretty_within(text, MAX_TEXT)
}

/// As [`pretty`], for at most `max` bytes.
pub(crate) fn pretty_within(text: &str, max: usize) -> String {
    let readable = (text.len() <= max)
        .then(|| serde_json::from_str::<Value>(text).ok())
        .flatten()
        .filter(|value| value.is_object() || value.is_array());
    let indented = readable.and_then(|value| serde_json::to_string_pretty(&value).ok());
    let shown = indented.as_deref().unwrap_or(text);
    visible(&cut(shown, max)).into_owned()
}

/// The beginning of a text in one line, of at most `max` characters.
pub(crate) fn line(text: &str, max: usize) -> String {
    let mut words = String::new();
    let mut n_chars = 0;
    for c in text
        .chars()
        .map(|c| if c.is_whitespace() { ' ' } else { c })
    {
        if c == ' ' && (words.is_empty() || words.ends_with(' ')) {
            continue;
        }
        if n_chars == max {
            words.push('…');
            break;
        }
        words.push(c);
        n_chars += 1;
    }
    visible(words.trim_end()).into_owned()
}

/// The beginning of a text, with a note about the rest.
pub(crate) fn cut(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return text.into();
    }
    let end = text.floor_char_boundary(max);
    let (start, rest) = text.split_at(end);
    format!("{start}\n… {}", counted(rest.len(), "more byte")).into()
}

/// The first argument of a call as one line of text.
pub(crate) fn first_argument(arguments: &str) -> Option<String> {
    if arguments.len() > MAX_TEXT {
        return None;
    }
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    let (name, value) = arguments.as_object()?.iter().next()?;
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    };
    Some(line(&format!("{name}: {text}"), MAX_FIRST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_with_a_note() {
        let text = "ä".repeat(MAX_TEXT);
        let shown = pretty(&text);
        assert!(shown.len() < text.len() && shown.ends_with("more bytes"));
    }

    #[test]
    fn a_line_has_no_breaks_and_ends_with_an_ellipsis() {
        assert_eq!(line("  a\n\n b\u{202e}c", 10), "a b⟨U+202E⟩c");
        assert_eq!(line("abcdef", 3), "abc…");
        assert_eq!(line("abc", 3), "abc");
    }

    #[test]
    fn the_first_argument_names_the_call() {
        let first = |text| first_argument(text);
        assert_eq!(
            first(r#"{"city":"Lis\nbon"}"#).as_deref(),
            Some("city: Lis bon")
        );
        let long = first_argument(&format!(r#"{{"text":"{}"}}"#, "a".repeat(100))).unwrap();
        assert!(long.ends_with("a…"), "{long}");
        assert_eq!(first("{}"), None);
        assert_eq!(first("not JSON"), None);
    }
}
