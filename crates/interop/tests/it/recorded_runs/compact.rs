//! Texts in which a piece that was there before is only pointed at, so that the files stay small.

use std::collections::BTreeMap;

/// How many characters a piece has at the least.
const MIN: usize = 16;
const OPENS: char = '^';
const CLOSES: char = '|';

/// A text with `^START+LENGTH|` for each piece of it that was there before, in characters of the text.
pub(super) fn compact(text: &str) -> String {
    assert!(!text.contains([OPENS, CLOSES]));
    let chars: Vec<char> = text.chars().collect();
    let mut known: BTreeMap<&[char], usize> = BTreeMap::new();
    let (mut out, mut at) = (String::new(), 0);
    while at < chars.len() {
        let piece = chars.get(at..at + MIN);
        let found = piece.and_then(|piece| known.get(piece).copied());
        let found = found.filter(|start| start + MIN <= at);
        let found = found.map(|start| (start, length_of(&chars, start, at)));
        let (text, length) = match found {
            Some((start, length)) => (format!("{OPENS}{start}+{length}{CLOSES}"), length),
            None => (chars[at].to_string(), 1),
        };
        out.push_str(&text);
        for start in at..at + length {
            if let Some(piece) = chars.get(start..start + MIN) {
                known.entry(piece).or_insert(start);
            }
        }
        at += length;
    }
    out
}

/// How many characters there are the same from both places on, up to the second one.
fn length_of(chars: &[char], start: usize, at: usize) -> usize {
    let earlier = chars[start..at].iter();
    let same = earlier
        .zip(&chars[at..])
        .take_while(|(one, other)| one == other);
    same.count()
}

/// The text that was made compact.
pub(super) fn whole(compact: &str) -> String {
    let mut chars: Vec<char> = Vec::new();
    let mut pieces = compact.split(OPENS);
    chars.extend(pieces.next().unwrap_or_default().chars());
    for piece in pieces {
        let (place, rest) = piece.split_once(CLOSES).unwrap();
        let (start, length) = place.split_once('+').unwrap();
        let (start, length): (usize, usize) = (start.parse().unwrap(), length.parse().unwrap());
        chars.extend_from_within(start..start + length);
        chars.extend(rest.chars());
    }
    chars.into_iter().collect()
}

#[test]
fn a_compact_text_gives_the_whole_text_again() {
    let line = "an évent with a rather long text\n";
    let text = format!("{line}x{line}{line}{}", "ab".repeat(40));
    let short = compact(&text);
    assert!(short.len() < text.len());
    assert_eq!(whole(&short), text);
}
