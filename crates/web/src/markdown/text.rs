//! Text as HTML, with invisible characters made visible.

use crate::hidden::{is_hidden, visible};
use std::fmt::Write as _;

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

/// Adds the value of an attribute that is written in double quotes.
pub(super) fn attribute(out: &mut String, text: &str) {
    escape(out, &visible(text));
}
