//! Text as HTML, with invisible characters made visible.

use std::fmt::Write as _;

/// Whether a reader can't see the character, though it may change what they read: control characters,
/// direction controls and characters without a width. Joiners that scripts and emoji need are not among them.
pub(super) fn is_hidden(c: char) -> bool {
    let is_control = c.is_control() && !matches!(c, '\t' | '\n' | '\r');
    let is_direction = matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    is_control || is_direction || matches!(c, '\u{200b}' | '\u{2060}' | '\u{feff}')
}

/// Adds text as HTML. Hidden characters become elements that name them.
pub(super) fn escape(out: &mut String, text: &str) {
    let mut from = 0;
    for (at, c) in text.char_indices() {
        let entity = match c {
            '&' => "&amp;",
            '<' => "&lt;",
            '>' => "&gt;",
            '"' => "&quot;",
            '\r' => "",
            _ if is_hidden(c) => "",
            _ => continue,
        };
        out.push_str(&text[from..at]);
        out.push_str(entity);
        if is_hidden(c) {
            // Writing to a string can't fail.
            let _ = write!(out, r#"<span class="esc">U+{:04X}</span>"#, u32::from(c));
        }
        from = at + c.len_utf8();
    }
    out.push_str(&text[from..]);
}

/// Text without hidden characters: each becomes its name.
pub(super) fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars().filter(|c| *c != '\r') {
        if is_hidden(c) {
            let _ = write!(out, "U+{:04X}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

/// Adds the value of an attribute that is written in double quotes.
pub(super) fn attribute(out: &mut String, text: &str) {
    escape(out, &visible(text));
}
