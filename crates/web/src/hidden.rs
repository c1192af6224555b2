//! Characters that a reader can't see.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a reader can't see the character, though it may change what they read: control characters,
/// direction controls and characters without a width. Joiners that scripts and emoji need are not among
/// them.
pub(crate) fn is_hidden(c: char) -> bool {
    let is_control = c.is_control() && !matches!(c, '\t' | '\n' | '\r');
    let is_direction = matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    is_control || is_direction || matches!(c, '\u{200b}' | '\u{2060}' | '\u{feff}')
}

/// A text with the number of each hidden character in its place.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) {
            // Writing to a string can't fail.
            let _ = write!(out, "⟨U+{:04X}⟩", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_of_direction_is_shown() {
        assert_eq!(visible("a\u{202e}b"), "a⟨U+202E⟩b");
        assert_eq!(visible("a\nb"), "a\nb");
    }
}
