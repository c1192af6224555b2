//! The size of a regular expression with its bounded repetitions written out.

/// Size of a class of Unicode characters, such as `\p{L}`, in characters: it has many ranges.
const UNICODE_CLASS: u64 = 100;

/// How many characters a pattern has when `x{3}` is written `xxx`. Saturates; an unusual or wrong
/// pattern gets an upper bound.
pub(super) fn size(pattern: &str) -> u64 {
    let mut outer = Vec::new();
    let mut group = Group::default();
    let mut chars = pattern.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '(' => outer.push(std::mem::take(&mut group)),
            ')' => {
                let closed = group.total().saturating_add(1);
                group = outer.pop().unwrap_or_default();
                group.atom(closed);
            }
            '\\' => {
                let escaped = chars.next();
                let is_class = matches!(escaped, Some('p' | 'P'));
                group.atom(if is_class { UNICODE_CLASS } else { 1 });
                if is_class || matches!(escaped, Some('u' | 'x')) {
                    // `\p{L}` and `\u{1F600}` are no repetitions.
                    skip_braces(&mut chars);
                }
            }
            '{' => {
                let bounds: String = chars.by_ref().take_while(|it| *it != '}').collect();
                match factor(&bounds) {
                    Some(factor) => group.repeat(factor),
                    None => group.atom(2 + bounds.len() as u64),
                }
            }
            '[' => group.atom(class(&mut chars)),
            '*' | '+' | '?' => {}
            _ => group.atom(1),
        }
    }
    let sizes = outer.iter().map(Group::total);
    sizes.fold(group.total(), u64::saturating_add)
}

#[derive(Default)]
struct Group {
    before: u64,
    atom: u64,
}

impl Group {
    fn atom(&mut self, size: u64) {
        self.before = self.total();
        self.atom = size;
    }

    fn repeat(&mut self, factor: u64) {
        self.atom = self.atom.saturating_mul(factor);
    }

    fn total(&self) -> u64 {
        self.before.saturating_add(self.atom)
    }
}

/// The size of a class such as `[a-z\d]`, whose bracket is read already.
fn class(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> u64 {
    let mut size: u64 = 1;
    while let Some(char) = chars.next() {
        match char {
            ']' if size > 1 => break,
            '\\' if matches!(chars.next(), Some('p' | 'P')) => size += UNICODE_CLASS,
            _ => size += 1,
        }
    }
    size
}

fn skip_braces(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    if chars.peek() == Some(&'{') {
        chars.find(|it| *it == '}');
    }
}

/// How many times the repetition `{bounds}` expands its atom; `None` if it is not a repetition.
fn factor(bounds: &str) -> Option<u64> {
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
        is_number.then(|| text.parse().unwrap_or(u64::MAX))
    };
    let (low, high) = bounds.split_once(',').unwrap_or((bounds, bounds));
    let (low, high) = (low.trim(), high.trim());
    if low.is_empty() && high.is_empty() {
        return None;
    }
    let low = if low.is_empty() { 0 } else { number(low)? };
    let high = if high.is_empty() { low } else { number(high)? };
    Some(low.max(high).saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_are_written_out() {
        assert_eq!(size("abc"), 3);
        assert_eq!(size("a{3}"), 4);
        assert_eq!(size("a{2,9}b"), 11);
        assert!(size("(a{100}){100}") > 10_000);
        assert!(size("((((((((((a{99}){99}){99}){99}){99}){99}){99}){99}){99}){99})") > 1 << 60);
        assert!(size(r"\p{L}{50}") > 5_000 - 100);
    }

    #[test]
    fn braces_that_are_no_repetition_count_as_text() {
        assert_eq!(size("{a}"), 3);
        assert_eq!(size(r"\u{1F600}"), 1);
        assert_eq!(size("[{(]{2}"), 9);
        assert_eq!(size("x{"), 3);
        assert!(size(")))((") < 10);
    }
}
