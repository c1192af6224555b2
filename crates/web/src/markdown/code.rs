//! A lexer of lines that marks comments, strings, numbers and keywords.

use super::text::escape;
use std::fmt::Write as _;

mod languages;

use languages::{Kind, Quote, Rules, find};

/// Maximum length of a line that is highlighted, in bytes.
const MAX_LINE: usize = 64 * 1024;

/// The state at the end of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Code,
    Comment,
    /// A string. The number is that of its quote.
    Quoted(usize),
}

/// A part of a line: its class, its length and the state after it.
type Token = (Option<char>, usize, State);

/// The language that the first line of a code fence names, in a form that is safe in a class name.
pub(super) fn language(info: &str) -> String {
    let end = [' ', '\t', ',', '{', ':'];
    let name = info.split(end).next().unwrap_or_default();
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "+#-_.".contains(c);
    if name.len() <= 32 && name.chars().all(is_safe) {
        name.to_ascii_lowercase()
    } else {
        String::new()
    }
}

/// Adds code as HTML. If the language is not known, it is plain text.
pub(super) fn write(out: &mut String, language: &str, text: &str) {
    let Some(rules) = find(language) else {
        return escape(out, text);
    };
    let words = rules.words.split(' ').collect();
    let lexer = Lexer { rules, words };
    let mut state = State::Code;
    for line in text.split_inclusive('\n') {
        let (body, end) = match line.strip_suffix('\n') {
            Some(body) => (body, "\n"),
            None => (line, ""),
        };
        if body.len() > MAX_LINE {
            escape(out, body);
        } else {
            state = lexer.line(body, state, out);
        }
        out.push_str(end);
    }
}

struct Lexer {
    rules: &'static Rules,
    words: Vec<&'static str>,
}

impl Lexer {
    /// Adds a line, and returns the state at its end.
    fn line(&self, line: &str, mut state: State, out: &mut String) -> State {
        let (mut at, mut plain) = (0, 0);
        while at < line.len() {
            let (class, length, next) = self.token(&line[..at], &line[at..], state);
            if let Some(class) = class {
                escape(out, &line[plain..at]);
                // Writing to a string can't fail.
                let _ = write!(out, r#"<span class="{class}">"#);
                escape(out, &line[at..at + length]);
                out.push_str("</span>");
                plain = at + length;
            }
            at += length;
            state = next;
        }
        escape(out, &line[plain..]);
        state
    }

    fn token(&self, before: &str, rest: &str, state: State) -> Token {
        match state {
            State::Comment => self.comment(rest, 0),
            State::Quoted(index) => match self.rules.quotes.get(index) {
                Some(quote) => string(rest, 0, quote, index),
                None => (None, rest.len(), State::Code),
            },
            State::Code => self.code(before, rest),
        }
    }

    fn code(&self, before: &str, rest: &str) -> Token {
        let rules = self.rules;
        if rules.kind == Kind::Diff {
            let class = match rest.as_bytes().first() {
                Some(b'+') => Some('s'),
                Some(b'-') => Some('k'),
                Some(b'@') => Some('c'),
                _ => None,
            };
            return (class, rest.len(), State::Code);
        }
        let is_after_word = before.ends_with(|c: char| c.is_alphanumeric());
        let may_begin = !matches!(rules.kind, Kind::Prose | Kind::Markup) || !is_after_word;
        if may_begin && rules.line.iter().any(|it| rest.starts_with(it)) {
            return (Some('c'), rest.len(), State::Code);
        }
        if !rules.block.0.is_empty() && rest.starts_with(rules.block.0) {
            return self.comment(rest, rules.block.0.len());
        }
        for (index, quote) in rules.quotes.iter().enumerate() {
            if may_begin && rest.starts_with(quote.open) && (!quote.is_char || is_char(rest)) {
                return string(rest, quote.open.len(), quote, index);
            }
        }
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || rules.extra.contains(c);
        let length =
            |is_part: &dyn Fn(char) -> bool| rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        if rest.starts_with(|c: char| c.is_ascii_digit()) {
            let length = length(&|c| c.is_alphanumeric() || c == '_' || c == '.');
            return (Some('n'), length, State::Code);
        }
        let length = length(&is_word);
        if length == 0 {
            let first = rest.chars().next().map_or(1, char::len_utf8);
            return (None, first, State::Code);
        }
        let word = &rest[..length];
        let is_keyword = match rules.kind {
            Kind::Markup => before.ends_with('<') || before.ends_with("</"),
            Kind::AnyCase => self.words.contains(&word.to_ascii_lowercase().as_str()),
            Kind::Code | Kind::Prose | Kind::Diff => self.words.contains(&word),
        };
        (is_keyword.then_some('k'), length, State::Code)
    }

    /// A block comment. `from` is the length of what opens it.
    fn comment(&self, rest: &str, from: usize) -> Token {
        let end = self.rules.block.1;
        match rest[from..].find(end) {
            Some(at) => (Some('c'), from + at + end.len(), State::Code),
            None => (Some('c'), rest.len(), State::Comment),
        }
    }
}

/// A string. `from` is the length of what opens it.
fn string(rest: &str, from: usize, quote: &Quote, index: usize) -> Token {
    let mut at = from;
    let bytes = rest.as_bytes();
    while at < bytes.len() {
        if bytes[at] == b'\\' && quote.escapes {
            at += 2;
        } else if bytes[at..].starts_with(quote.close.as_bytes()) {
            return (Some('s'), at + quote.close.len(), State::Code);
        } else {
            at += 1;
        }
    }
    let next = if quote.lines {
        State::Quoted(index)
    } else {
        State::Code
    };
    (Some('s'), rest.len(), next)
}

/// Whether a `'` begins a character and not a lifetime.
fn is_char(rest: &str) -> bool {
    let mut chars = rest.chars().skip(1);
    match chars.next() {
        Some('\\') => true,
        Some(_) => chars.next() == Some('\''),
        None => false,
    }
}
