//! Simple regular expressions: generates a text that matches, and checks whether a text matches.

use std::iter::Peekable;
use std::str::Chars;

/// How many repetitions are made at most.
const REPEATS: usize = 4_096;
/// How many steps a pattern may have, repetitions counted, to be matched.
const STEPS: usize = 512;

/// Literals, `.`, classes such as `[A-Z_]` and `\d`, anchors at both ends, and the quantifiers
/// `{n}`, `{n,m}`, `+`, `*` and `?`. Groups and alternatives are not understood.
#[derive(Debug)]
pub(super) struct Pattern {
    pieces: Vec<Piece>,
    from_start: bool,
    to_end: bool,
}

#[derive(Debug)]
struct Piece {
    class: Class,
    least: usize,
    most: Option<usize>,
}

#[derive(Debug, Default)]
struct Class {
    negated: bool,
    ranges: Vec<(char, char)>,
}

impl Class {
    fn of(ranges: &[(char, char)], negated: bool) -> Self {
        Self {
            negated,
            ranges: ranges.to_vec(),
        }
    }

    fn has(&self, c: char) -> bool {
        self.ranges
            .iter()
            .any(|(low, high)| (*low..=*high).contains(&c))
            != self.negated
    }

    fn sample(&self) -> Option<char> {
        let first = self.ranges.first().map(|(low, _)| *low);
        first
            .into_iter()
            .chain("a0A_ -.~".chars())
            .find(|c| self.has(*c))
    }
}

impl Pattern {
    /// Reads a pattern; `None` when it is not simple.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (from_start, text) = match text.strip_prefix('^') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let mut rest = text.chars().peekable();
        let mut pattern = Self {
            pieces: Vec::new(),
            from_start,
            to_end: false,
        };
        while let Some(next) = rest.next() {
            let class = match next {
                '$' => {
                    pattern.to_end = true;
                    return rest.next().is_none().then_some(pattern);
                }
                '^' | '(' | ')' | '|' | '*' | '+' | '?' | '{' | '}' => return None,
                '.' => Class::of(&[('\n', '\n'), ('\r', '\r')], true),
                '\\' => escaped(rest.next()?)?,
                '[' => class(&mut rest)?,
                literal => Class::of(&[(literal, literal)], false),
            };
            let (least, most) = quantity(&mut rest)?;
            pattern.pieces.push(Piece { class, least, most });
        }
        Some(pattern)
    }

    /// A text that matches, with at least `low` characters if a quantifier allows it.
    pub(super) fn example(&self, low: usize) -> Option<String> {
        let length: usize = self.pieces.iter().map(|piece| piece.least).sum();
        let mut missing = low.saturating_sub(length);
        let mut text = String::new();
        for piece in &self.pieces {
            let room = piece.most.unwrap_or(REPEATS).saturating_sub(piece.least);
            let more = missing.min(room);
            missing -= more;
            let sample = piece.class.sample()?;
            text.extend(std::iter::repeat_n(
                sample,
                (piece.least + more).min(REPEATS),
            ));
        }
        Some(text)
    }

    /// Whether `text` matches; `None` if the pattern is too long to check. Takes time proportional to
    /// the length of text and pattern.
    pub(super) fn matches(&self, text: &str) -> Option<bool> {
        let steps = self.steps()?;
        let mut at = vec![false; steps.len() + 1];
        enter(&steps, &mut at);
        for c in text.chars() {
            if !self.to_end && at.last() == Some(&true) {
                return Some(true);
            }
            let mut next = vec![false; at.len()];
            for (i, (class, kind)) in steps.iter().enumerate() {
                if at.get(i) == Some(&true) && class.has(c) {
                    let to = if *kind == Kind::Many { i } else { i + 1 };
                    set(&mut next, to);
                }
            }
            at = next;
            skip(&steps, &mut at);
            if !self.from_start {
                enter(&steps, &mut at);
            }
        }
        Some(at.last() == Some(&true))
    }

    fn steps(&self) -> Option<Vec<(&Class, Kind)>> {
        let mut steps = Vec::new();
        for piece in &self.pieces {
            if piece.least.max(piece.most.unwrap_or(0)) > STEPS {
                return None;
            }
            steps.extend((0..piece.least).map(|_| (&piece.class, Kind::One)));
            match piece.most {
                None => steps.push((&piece.class, Kind::Many)),
                Some(most) => {
                    steps.extend((piece.least..most).map(|_| (&piece.class, Kind::Perhaps)));
                }
            }
        }
        (steps.len() <= STEPS).then_some(steps)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    One,
    Perhaps,
    Many,
}

fn set(at: &mut [bool], index: usize) {
    if let Some(place) = at.get_mut(index) {
        *place = true;
    }
}

fn enter(steps: &[(&Class, Kind)], at: &mut [bool]) {
    set(at, 0);
    skip(steps, at);
}

/// Skips optional steps.
fn skip(steps: &[(&Class, Kind)], at: &mut [bool]) {
    for (i, (_, kind)) in steps.iter().enumerate() {
        if *kind != Kind::One && at.get(i) == Some(&true) {
            set(at, i + 1);
        }
    }
}

fn escaped(c: char) -> Option<Class> {
    const DIGIT: &[(char, char)] = &[('0', '9')];
    const WORD: &[(char, char)] = &[('a', 'z'), ('A', 'Z'), ('0', '9'), ('_', '_')];
    const SPACE: &[(char, char)] = &[(' ', ' '), ('\t', '\r')];
    Some(match c {
        'd' => Class::of(DIGIT, false),
        'D' => Class::of(DIGIT, true),
        'w' => Class::of(WORD, false),
        'W' => Class::of(WORD, true),
        's' => Class::of(SPACE, false),
        'S' => Class::of(SPACE, true),
        'n' => Class::of(&[('\n', '\n')], false),
        't' => Class::of(&[('\t', '\t')], false),
        literal if !literal.is_alphanumeric() => Class::of(&[(literal, literal)], false),
        _ => return None,
    })
}

fn class(rest: &mut Peekable<Chars<'_>>) -> Option<Class> {
    let mut class = Class {
        negated: rest.next_if_eq(&'^').is_some(),
        ranges: Vec::new(),
    };
    loop {
        let low = match rest.next()? {
            ']' => return (!class.ranges.is_empty()).then_some(class),
            '\\' => {
                let inner = escaped(rest.next()?)?;
                match inner.ranges.as_slice() {
                    _ if inner.negated => return None,
                    [(low, high)] if low == high => *low,
                    ranges => {
                        class.ranges.extend(ranges);
                        continue;
                    }
                }
            }
            literal => literal,
        };
        if rest.next_if_eq(&'-').is_none() {
            class.ranges.push((low, low));
            continue;
        }
        match rest.next()? {
            // A dash at the end means itself.
            ']' => {
                class.ranges.extend([(low, low), ('-', '-')]);
                return Some(class);
            }
            '\\' => return None,
            high => class.ranges.push((low, high)),
        }
    }
}

fn quantity(rest: &mut Peekable<Chars<'_>>) -> Option<(usize, Option<usize>)> {
    let quantity = match rest.peek() {
        Some('+') => (1, None),
        Some('*') => (0, None),
        Some('?') => (0, Some(1)),
        Some('{') => {
            rest.next();
            let inside: String = rest.by_ref().take_while(|next| *next != '}').collect();
            let number = |text: &str| text.trim().parse().ok();
            return match inside.split_once(',') {
                None => number(&inside).map(|times| (times, Some(times))),
                Some((least, "")) => number(least).map(|least| (least, None)),
                Some((least, most)) => Some((number(least)?, Some(number(most)?))),
            };
        }
        Some(_) | None => return Some((1, Some(1))),
    };
    rest.next();
    Some(quantity)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(pattern: &str, low: usize) -> Option<String> {
        Pattern::parse(pattern)?.example(low)
    }

    fn matches(pattern: &str, text: &str) -> bool {
        Pattern::parse(pattern).unwrap().matches(text).unwrap()
    }

    #[test]
    fn simple_patterns_get_a_match() {
        let of = |pattern| example(pattern, 0);
        assert_eq!(of(r"^[A-Z]{3}-\d{2,4}$").as_deref(), Some("AAA-00"));
        assert_eq!(of("^[a-z0-9_]+$").as_deref(), Some("a"));
        assert_eq!(example("^[a-z]{1,3}$", 3).as_deref(), Some("aaa"));
        assert_eq!(of("[^a]").as_deref(), Some("0"));
        assert_eq!(of("^(a|b)$"), None);
    }

    #[test]
    fn texts_are_matched() {
        assert!(matches(r"^[A-Z]{3}-\d{2,4}$", "XYZ-123"));
        assert!(!matches(r"^[A-Z]{3}-\d{2,4}$", "XYZ-12345"));
        assert!(matches("b+", "abbc") && !matches("^b+$", "abbc"));
        assert!(matches(r"^\w*x?$", "") && matches(r"^[\d-]+$", "1-2"));
        assert!(!matches("^a.c$", "a\nc"));
    }

    #[test]
    fn a_hostile_pattern_takes_no_time() {
        let pattern = format!("^{}$", "a*".repeat(200));
        assert!(!matches(&pattern, &("a".repeat(2_000) + "b")));
    }
}
