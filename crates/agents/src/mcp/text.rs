//! Prepares servers' texts for messages.

/// The first `max_bytes` bytes of a text, cut at a character boundary, with a mark if it was cut.
pub(super) fn clipped(text: &str, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    let mut end = max_bytes;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", text.get(..end).unwrap_or_default())
}

/// An error with its causes, in one line of at most 512 bytes.
pub(super) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let more = inner.to_string();
        // Many errors repeat what is under them.
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = inner.source();
    }
    clipped(&text, 512)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(clipped("abc", 3), "abc");
        assert_eq!(clipped("aéb", 2), "a…");
        assert_eq!(clipped("éé", 0), "…");
    }
}
