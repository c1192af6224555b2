//! jiter's tokens with this crate's limits. `None` means that there is an error; the parser then
//! finds out which.

use super::{Scanner, Shape};
use crate::json::Limits;
use jiter::Peek;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// A key, borrowed from the text if it contains no escapes.
type Key<'t> = Cow<'t, str>;

/// Objects up to this size are searched for repeated keys from the front.
const SEARCHED: usize = 64;

/// The kind of a value that begins with this token.
fn shape(peek: Peek) -> Option<Shape> {
    Some(match peek {
        Peek::String => Shape::String,
        Peek::Object => Shape::Object,
        Peek::Array => Shape::Array,
        Peek::Null => Shape::Null,
        Peek::True | Peek::False => Shape::Bool,
        Peek::NaN | Peek::Infinity => return None,
        _ if peek.is_num() => Shape::Number,
        _ => return None,
    })
}

/// The next entry of an object.
pub(super) enum Next<'t> {
    /// A member with this key.
    Key(Cow<'t, str>),
    /// Nothing more.
    End,
}

/// The keys of one object so far, in brief.
#[derive(Default)]
pub(super) struct Seen {
    /// One bit for each key; two keys may share one.
    bits: u64,
    /// Every key, once there are many or one is escaped.
    all: Option<BTreeSet<Box<str>>>,
}

impl Seen {
    /// Whether a key equals an earlier one of the object; records it.
    #[inline]
    pub(super) fn repeats<'k>(
        &mut self,
        mut before: impl ExactSizeIterator<Item = &'k str>,
        key: &str,
        is_escaped: bool,
    ) -> bool {
        if is_escaped || self.all.is_some() || before.len() >= SEARCHED {
            return self.is_among_all(before, key);
        }
        let bytes = key.as_bytes();
        let at = |place: usize| bytes.get(place).copied().map_or(0, usize::from);
        let (half, len) = (at(bytes.len() / 2), bytes.len());
        let last = at(len.wrapping_sub(1));
        let hash = len * 7 + at(0) * 31 + half * 13 + last * 17;
        let bit = 1_u64 << (hash & 63);
        let is_fresh = self.bits & bit == 0;
        self.bits |= bit;
        !is_fresh && before.any(|known| known == key)
    }

    #[cold]
    fn is_among_all<'k>(&mut self, before: impl Iterator<Item = &'k str>, key: &str) -> bool {
        let all = self
            .all
            .get_or_insert_with(|| before.map(Box::from).collect());
        !all.insert(key.into())
    }
}

impl<'t> Scanner<'t> {
    /// The kind of the next value. Afterwards the scanner is at the value's first byte.
    #[inline]
    pub(super) fn next_shape(&mut self) -> Option<Shape> {
        self.jiter.peek().ok().and_then(shape)
    }

    /// The next value with all that is in it.
    pub(super) fn value(&mut self) -> Option<()> {
        let peek = self.jiter.peek().ok()?;
        match peek {
            Peek::Object => {
                let base = self.keys.len();
                let mut seen = Seen::default();
                let mut next = self.enter_object()?;
                while let Next::Key(key) = next {
                    self.push_key(base, &mut seen, &key)?;
                    self.value()?;
                    next = self.object_step()?;
                }
                self.keys.truncate(base);
                Some(())
            }
            Peek::Array => {
                let mut more = self.enter_array()?;
                while more {
                    self.value()?;
                    more = self.array_step()?;
                }
                Some(())
            }
            _ => {
                self.count()?;
                self.scalar(peek)
            }
        }
    }

    fn scalar(&mut self, peek: Peek) -> Option<()> {
        match peek {
            Peek::String => self.jiter.known_str().map(drop),
            Peek::Null => self.jiter.known_null(),
            Peek::True | Peek::False => self.jiter.known_bool(peek).map(drop),
            Peek::NaN | Peek::Infinity => return None,
            Peek::Minus if self.rest().starts_with("-I") => return None,
            _ => self.jiter.known_number_bytes(peek).map(drop),
        }
        .ok()
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at()..).unwrap_or_default()
    }

    #[inline]
    pub(super) fn count(&mut self) -> Option<()> {
        self.counts.values += 1;
        (self.counts.values <= self.limits.max_nodes).then_some(())
    }

    fn enter(&mut self) -> Option<()> {
        self.count()?;
        self.depth += 1;
        self.counts.depth = self.counts.depth.max(self.depth);
        (self.depth <= self.limits.max_depth.min(Limits::DEEPEST)).then_some(())
    }

    /// Enters an array; returns whether it has an element.
    pub(super) fn enter_array(&mut self) -> Option<bool> {
        self.enter()?;
        let first = self.jiter.known_array().ok()?;
        self.depth -= usize::from(first.is_none());
        self.counts.containers += usize::from(first.is_some());
        Some(first.is_some())
    }

    /// Moves past an element; returns whether there is another.
    #[inline]
    pub(super) fn array_step(&mut self) -> Option<bool> {
        let next = self.jiter.array_step().ok()?;
        self.depth -= usize::from(next.is_none());
        Some(next.is_some())
    }

    /// Enters an object; returns its first key, if there is one.
    pub(super) fn enter_object(&mut self) -> Option<Next<'t>> {
        self.enter()?;
        let (text, from) = (self.text, self.at() + 1);
        let key = self.jiter.known_object().ok()?;
        let Some(key) = key else {
            self.depth -= 1;
            return Some(Next::End);
        };
        self.counts.containers += 1;
        self.counts.members += 1;
        Some(Next::Key(keyed(text, from, key)))
    }

    /// Moves past a member; returns the next key, if there is one.
    #[inline]
    pub(super) fn object_step(&mut self) -> Option<Next<'t>> {
        let (text, from) = (self.text, self.at());
        let key = self.jiter.next_key().ok()?;
        let Some(key) = key else {
            self.depth -= 1;
            return Some(Next::End);
        };
        self.counts.members += 1;
        Some(Next::Key(keyed(text, from, key)))
    }

    /// Records a key, unless it is repeated. The object's earlier keys begin at index `base`.
    /// Escaped keys are recorded only in `seen`.
    #[inline]
    pub(super) fn push_key(&mut self, base: usize, seen: &mut Seen, key: &Key<'t>) -> Option<()> {
        let before = self.keys.get(base..)?.iter().copied();
        let plain = match key {
            Cow::Borrowed(plain) => Some(*plain),
            Cow::Owned(_) => None,
        };
        if seen.repeats(before, key, plain.is_none()) {
            return None;
        }
        self.keys.extend(plain);
        Some(())
    }

    /// Reads the next value, a string.
    pub(super) fn string_token(&mut self) -> Option<Cow<'t, str>> {
        let (text, from) = (self.text, self.at());
        let string = self.jiter.known_str().ok()?;
        Some(borrowed(text, from + 1, string))
    }
}

/// A string, borrowed from the text if it contains no escapes.
#[inline]
fn borrowed<'t>(text: &'t str, start: usize, string: &str) -> Cow<'t, str> {
    match text.get(start..start + string.len()) {
        Some(plain) if std::ptr::eq(plain.as_ptr(), string.as_ptr()) => Cow::Borrowed(plain),
        _ => Cow::Owned(string.to_owned()),
    }
}

/// A key as it is in the text. Only a comma and white space may precede it.
#[inline]
fn keyed<'t>(text: &'t str, from: usize, key: &str) -> Cow<'t, str> {
    let before = text.as_bytes().get(from..).unwrap_or_default();
    let quote = before.iter().position(|byte| *byte == b'"');
    borrowed(text, from + quote.unwrap_or_default() + 1, key)
}
