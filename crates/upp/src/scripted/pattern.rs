//! Makes a text that a simple regular expression matches.

use std::iter::Peekable;
use std::str::Chars;

/// How many repetitions are made at most.
const REPEATS: usize = 4_096;

/// A text that matches, at least `low` characters long where a `+` or `*` lets it grow. Knows
/// literals, `.`, classes such as `[A-Z_]` and `\d`, anchors, and the quantifiers `{n}`, `{n,m}`,
/// `+`, `*` and `?`; a pattern with groups or alternatives gets `None`.
pub(super) fn example(pattern: &str, low: usize) -> Option<String> {
    let mut rest = pattern.chars().peekable();
    let mut pieces: Vec<(char, usize, bool)> = Vec::new();
    while let Some(next) = rest.next() {
        let sample = match next {
            '^' | '$' => continue,
            '(' | ')' | '|' | '*' | '+' | '?' | '{' | '}' => return None,
            '.' => 'a',
            '\\' => escaped(rest.next()?)?,
            '[' => class(&mut rest)?,
            literal => literal,
        };
        let (least, grows) = quantity(&mut rest)?;
        pieces.push((sample, least, grows));
    }
    let length: usize = pieces.iter().map(|(_, least, _)| least).sum();
    let mut missing = low.saturating_sub(length);
    let mut text = String::new();
    for (sample, least, grows) in pieces {
        let more = if grows { std::mem::take(&mut missing) } else { 0 };
        text.extend(std::iter::repeat_n(sample, (least + more).min(REPEATS)));
    }
    Some(text)
}

fn escaped(class: char) -> Option<char> {
    match class {
        'd' => Some('1'),
        'w' | 'D' | 'S' => Some('a'),
        's' | 'W' => Some(' '),
        'n' => Some('\n'),
        't' => Some('\t'),
        literal if !literal.is_alphanumeric() => Some(literal),
        _ => None,
    }
}

fn class(rest: &mut Peekable<Chars<'_>>) -> Option<char> {
    let first = match rest.next()? {
        '^' | ']' => return None,
        '\\' => escaped(rest.next()?)?,
        literal => literal,
    };
    let mut escape = false;
    for next in rest {
        match next {
            ']' if !escape => return Some(first),
            '\\' if !escape => escape = true,
            _ => escape = false,
        }
    }
    None
}

fn quantity(rest: &mut Peekable<Chars<'_>>) -> Option<(usize, bool)> {
    let quantity = match rest.peek() {
        Some('+') => (1, true),
        Some('*') => (0, true),
        Some('?') => (0, false),
        Some('{') => {
            rest.next();
            let inside: String = rest.by_ref().take_while(|next| *next != '}').collect();
            let (least, most) = inside.split_once(',').unwrap_or((&inside, "0"));
            return Some((least.trim().parse().ok()?, most.trim().is_empty()));
        }
        Some(_) | None => return Some((1, false)),
    };
    rest.next();
    Some(quantity)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simple_patterns_get_a_match() {
        let of = |pattern| example(pattern, 0);
        assert_eq!(of(r"^[A-Z]{3}-\d{2,4}$").as_deref(), Some("AAA-11"));
        assert_eq!(of("^[a-z0-9_]+$").as_deref(), Some("a"));
        assert_eq!(example("^[a-z]+$", 3).as_deref(), Some("aaa"));
        assert_eq!(of("^(a|b)$"), None);
        assert_eq!(of("[^a]"), None);
    }
}
