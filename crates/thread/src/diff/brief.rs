//! Values on one line for people: shortened around the difference and safe for a terminal.

use crate::json::Json;

/// Maximum number of characters shown of a value.
const SHOWN: usize = 100;

/// Maximum number of characters shown before and after a difference.
const AROUND: usize = 20;

/// Characters that [`printable`] leaves unescaped: they are safe in a terminal.
const QUOTES: [char; 3] = ['"', '\'', '\\'];

/// A value on one line, shortened at the end.
pub(crate) fn brief(value: &Json) -> String {
    match value {
        Json::String(string) => quoted(string, "", ""),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_) => {
            let (text, cut) = shorten(&value.to_text(), SHOWN);
            format!("{}{}", printable(&text), if cut { "…" } else { "" })
        }
    }
}

/// Two values on one line each, shortened so that the difference is visible.
pub(super) fn brief_pair(old: &Json, new: &Json) -> (String, String) {
    let (Some(old), Some(new)) = (old.as_str(), new.as_str()) else {
        return (brief(old), brief(new));
    };
    let alike = old.chars().zip(new.chars()).take_while(|(a, b)| a == b);
    let start: usize = alike.map(|(char, _)| char.len_utf8()).sum();
    let rest = |text: &'_ str| text.get(start..).unwrap_or_default().to_owned();
    let (old_rest, new_rest) = (rest(old), rest(new));
    let ends = old_rest.chars().rev().zip(new_rest.chars().rev());
    let end: usize = ends
        .take_while(|(a, b)| a == b)
        .map(|(char, _)| char.len_utf8())
        .sum();
    let show = |text: &str, rest: &str| {
        let middle = rest.get(..rest.len() - end).unwrap_or_default();
        quoted(
            middle,
            text.get(..start).unwrap_or_default(),
            rest.get(rest.len() - end..).unwrap_or_default(),
        )
    };
    (show(old, &old_rest), show(new, &new_rest))
}

/// A string in quotes: the end of the text before, the difference, and the start of the text after.
fn quoted(text: &str, before: &str, after: &str) -> String {
    let skipped = before.chars().count().saturating_sub(AROUND);
    let context: String = before.chars().skip(skipped).collect();
    let (middle, middle_cut) = shorten(text, SHOWN);
    let (after, after_cut) = if middle_cut {
        (String::new(), true)
    } else {
        shorten(after, AROUND)
    };
    let shown = format!("{:?}", format!("{context}{middle}{after}"));
    let open = if skipped > 0 { "…" } else { "" };
    let close = if middle_cut || after_cut { "…" } else { "" };
    format!("{open}{shown}{close}")
}

/// The first characters of a text, and whether there are more.
fn shorten(text: &str, length: usize) -> (String, bool) {
    let mut chars = text.chars();
    let kept = chars.by_ref().take(length).collect();
    (kept, chars.next().is_some())
}

/// A text without terminal control characters; quotes stay unchanged.
pub(crate) fn printable(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for piece in text.split_inclusive(QUOTES) {
        let plain = piece.strip_suffix(QUOTES).unwrap_or(piece);
        safe.extend(plain.escape_debug());
        safe.push_str(piece.strip_prefix(plain).unwrap_or_default());
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_in_a_long_text_is_in_sight() {
        let (before, after) = ("a".repeat(500), "z".repeat(500));
        let old = Json::from(format!("{before} red {after}"));
        let new = Json::from(format!("{before} green {after}"));
        let (old, new) = brief_pair(&old, &new);
        assert_eq!(
            old,
            format!("…\"{} red {}\"…", "a".repeat(19), "z".repeat(19))
        );
        assert_eq!(
            new,
            format!("…\"{} green {}\"…", "a".repeat(19), "z".repeat(19))
        );
        assert_eq!(
            brief(&Json::from("x".repeat(101))),
            format!("\"{}\"…", "x".repeat(100))
        );
    }

    #[test]
    fn nothing_from_a_document_reaches_the_terminal_as_it_is() {
        let evil = "\u{1b}[2J\u{7}\u{9b}\u{202e}\u{85}\n";
        for shown in [
            printable(evil),
            brief(&evil.into()),
            brief(&Json::from(vec![evil])),
            brief_pair(&evil.into(), &"x".into()).0,
        ] {
            let obeyed = |char: char| char.is_control() || char == '\u{202e}';
            assert!(!shown.contains(obeyed), "{shown:?}");
        }
    }
}
