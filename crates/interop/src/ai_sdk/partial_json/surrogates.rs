//! Characters of which only one surrogate is present.

/// How long an escaped code unit is.
pub(in crate::ai_sdk) const ESCAPE: usize = "\\u0000".len();

/// The escaped halves of surrogate pairs that have no other half: where each escape is, and which
/// half.
pub(in crate::ai_sdk) fn lone_surrogates(text: &str) -> impl Iterator<Item = (usize, u16)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while let Some(found) = text.get(at..).and_then(|rest| rest.find('\\')) {
            let escape = at + found;
            at = match (unit(text, escape), unit(text, escape + ESCAPE)) {
                (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => escape + 2 * ESCAPE,
                (Some(half @ 0xD800..=0xDFFF), _) => {
                    at = escape + ESCAPE;
                    return Some((escape, half));
                }
                (Some(_), _) => escape + ESCAPE,
                (None, _) => escape + 2,
            };
        }
        None
    })
}

/// The escaped code unit at `at`.
fn unit(text: &str, at: usize) -> Option<u16> {
    let digits = text.get(at..at + ESCAPE)?.strip_prefix("\\u")?;
    let plain = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    plain
        .then(|| u16::from_str_radix(digits, 16).ok())
        .flatten()
}
