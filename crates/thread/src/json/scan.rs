//! Reading a text without building its values: checks, shapes and places.

use super::parse::{self, NO_VALUE};
use super::{DecodeError, Fault, Limits};
use crate::path::{Step, pointer};
use jiter::{Jiter, JiterError, JiterErrorType, Peek};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

/// Objects up to this size are searched for repeated keys from the front.
const SEARCHED: usize = 16;

/// What kind of value comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// A number.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl Shape {
    /// The name of the type, for messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "boolean",
            Self::Number => "number",
            Self::String => "string",
            Self::Array => "array",
            Self::Object => "object",
        }
    }
}

/// Walks a JSON text once, value by value, under the laws of [`Json::parse`](super::Json::parse):
/// what one accepts, the other does. Nothing is built, so it takes a fraction of the time and no
/// memory to speak of.
///
/// ```
/// use loomline_thread::json::{DecodeError, Limits, Scanner};
///
/// let text = r#"{"a":[1,2],"b":"x"}"#;
/// let mut scanner = Scanner::new(text, &Limits::default())?;
/// let mut found = None;
/// scanner.object(|scanner, key| {
///     let span = scanner.skip()?;
///     if key == "a" {
///         found = text.get(span);
///     }
///     Ok::<(), DecodeError>(())
/// })?;
/// scanner.finish()?;
/// assert_eq!(found, Some("[1,2]"));
/// # Ok::<(), DecodeError>(())
/// ```
#[derive(Debug)]
pub struct Scanner<'t> {
    text: &'t str,
    limits: Limits,
    jiter: Jiter<'t>,
    depth: usize,
    nodes: usize,
    /// The keys of the objects that are open, the innermost last.
    keys: Vec<Cow<'t, str>>,
}

impl<'t> Scanner<'t> {
    /// A scanner at the start of a text; refuses a text that is too long.
    pub fn new(text: &'t str, limits: &Limits) -> Result<Self, DecodeError> {
        let scanner = Self {
            text,
            limits: *limits,
            jiter: Jiter::new(text.as_bytes()),
            depth: 0,
            nodes: 0,
            keys: Vec::new(),
        };
        let (bytes, limit) = (text.len(), limits.max_bytes);
        if bytes > limit {
            return Err(scanner.fail_at(0, Fault::TooLarge { bytes, limit }));
        }
        Ok(scanner)
    }

    /// The text being read.
    #[must_use]
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// What comes next.
    pub fn peek(&mut self) -> Result<Shape, DecodeError> {
        Ok(match self.peeked()? {
            Peek::Null => Shape::Null,
            Peek::True | Peek::False => Shape::Bool,
            Peek::String => Shape::String,
            Peek::Array => Shape::Array,
            Peek::Object => Shape::Object,
            _ => Shape::Number,
        })
    }

    /// Checks the next value with all that is in it and says where it stands.
    pub fn skip(&mut self) -> Result<Range<usize>, DecodeError> {
        match self.peek()? {
            Shape::Array => self.array(|scanner, _| scanner.skip().map(drop)),
            Shape::Object => self.object(|scanner, _| scanner.skip().map(drop)),
            Shape::Null | Shape::Bool | Shape::Number | Shape::String => self.scalar(),
        }
    }

    /// The next value, a string; `None` and past it if it is something else.
    pub fn string(&mut self) -> Result<Option<Cow<'t, str>>, DecodeError> {
        if self.peek()? != Shape::String {
            self.skip()?;
            return Ok(None);
        }
        self.count()?;
        let start = self.jiter.current_index();
        match self.jiter.known_str() {
            Ok(string) => Ok(Some(borrowed(self.text, start, string))),
            Err(error) => Err(self.fail(&error)),
        }
    }

    /// Walks the next value, an array: `each` is given each element's place and reads it whole.
    /// Anything else is skipped. Says where the value stands.
    pub fn array<E: From<DecodeError> + Within>(
        &mut self,
        mut each: impl FnMut(&mut Self, usize) -> Result<(), E>,
    ) -> Result<Range<usize>, E> {
        if self.peek()? != Shape::Array {
            return Ok(self.skip()?);
        }
        let start = self.enter()?;
        let first = self.jiter.known_array();
        let mut next = first.map_err(|error| self.fail(&error))?;
        let mut place = 0;
        while next.is_some() {
            let inside = |error: E| error.within(Step::Index(place));
            each(self, place).map_err(inside)?;
            place += 1;
            let step = self.jiter.array_step();
            next = step.map_err(|error| self.fail(&error).within(Step::Index(place)))?;
        }
        self.depth -= 1;
        Ok(start..self.jiter.current_index())
    }

    /// Walks the next value, an object: `each` is given each key and reads its value whole.
    /// Anything else is skipped. Says where the value stands.
    pub fn object<E: From<DecodeError> + Within>(
        &mut self,
        mut each: impl FnMut(&mut Self, &str) -> Result<(), E>,
    ) -> Result<Range<usize>, E> {
        if self.peek()? != Shape::Object {
            return Ok(self.skip()?);
        }
        let start = self.enter()?;
        let base = self.keys.len();
        let mut many: Option<BTreeSet<Cow<'t, str>>> = None;
        let mut from = start + 1;
        let text = self.text;
        let first = self.jiter.known_object();
        let first = first.map(|key| key.map(|key| keyed(text, from, key)));
        let mut next = first.map_err(|error| self.fail(&error))?;
        while let Some(key) = next {
            if self.repeats(base, &mut many, &key) {
                let fault = Fault::DuplicateKey {
                    key: key.clone().into_owned(),
                };
                return Err(E::from(self.fail_here(fault)).within(Step::Key(&key)));
            }
            each(self, &key).map_err(|error| error.within(Step::Key(&key)))?;
            self.keys.push(key);
            from = self.jiter.current_index();
            let step = self.jiter.next_key();
            let step = step.map(|key| key.map(|key| keyed(text, from, key)));
            next = step.map_err(|error| self.fail(&error))?;
        }
        self.keys.truncate(base);
        self.depth -= 1;
        Ok(start..self.jiter.current_index())
    }

    /// Makes sure that nothing follows.
    pub fn finish(mut self) -> Result<(), DecodeError> {
        let end = self.jiter.finish();
        end.map_err(|error| self.fail(&error))
    }

    /// An error about the value that comes next.
    #[must_use]
    pub fn fail_here(&self, fault: Fault) -> DecodeError {
        self.fail_at(self.jiter.current_index(), fault)
    }

    fn repeats(
        &self,
        base: usize,
        many: &mut Option<BTreeSet<Cow<'t, str>>>,
        key: &Cow<'t, str>,
    ) -> bool {
        let known = self.keys.get(base..).unwrap_or_default();
        if known.len() < SEARCHED {
            return known.contains(key);
        }
        let many = many.get_or_insert_with(|| known.iter().cloned().collect());
        !many.insert(key.clone())
    }

    fn peeked(&mut self) -> Result<Peek, DecodeError> {
        let peek = self.jiter.peek();
        peek.map_err(|error| self.fail(&error))
    }

    fn scalar(&mut self) -> Result<Range<usize>, DecodeError> {
        self.count()?;
        let peek = self.peeked()?;
        let start = self.jiter.current_index();
        let rest = || self.text.get(start..).unwrap_or_default();
        let read = match peek {
            Peek::Null => self.jiter.known_null(),
            Peek::True | Peek::False => self.jiter.known_bool(peek).map(drop),
            Peek::String => self.jiter.known_str().map(drop),
            Peek::NaN | Peek::Infinity => return Err(self.fail_here(Fault::NotFinite)),
            Peek::Minus if rest().starts_with("-I") => {
                return Err(self.fail_here(Fault::NotFinite));
            }
            _ => self.jiter.known_number_bytes(peek).map(drop),
        };
        read.map_err(|error| self.fail(&error))?;
        Ok(start..self.jiter.current_index())
    }

    fn count(&mut self) -> Result<(), DecodeError> {
        self.nodes += 1;
        let limit = self.limits.max_nodes;
        if self.nodes > limit {
            return Err(self.fail_here(Fault::TooManyNodes { limit }));
        }
        Ok(())
    }

    /// Enters a container; says where it begins.
    fn enter(&mut self) -> Result<usize, DecodeError> {
        self.count()?;
        let limit = self.limits.max_depth.min(Limits::DEEPEST);
        if self.depth >= limit {
            return Err(self.fail_here(Fault::TooDeep { limit }));
        }
        self.depth += 1;
        Ok(self.jiter.current_index())
    }

    fn fail(&self, error: &JiterError) -> DecodeError {
        let fault = match &error.error_type {
            JiterErrorType::JsonError(kind) => parse::fault(kind),
            JiterErrorType::WrongType { .. } => NO_VALUE,
        };
        self.fail_at(error.index, fault)
    }

    fn fail_at(&self, index: usize, fault: Fault) -> DecodeError {
        let position = self.jiter.error_position(index.min(self.text.len()));
        DecodeError {
            fault,
            pointer: String::new(),
            line: position.line,
            column: position.column,
        }
    }
}

/// An error that learns where it happened on its way out.
pub trait Within {
    /// This error, one step further down.
    #[must_use]
    fn within(self, step: Step<'_>) -> Self;
}

impl Within for DecodeError {
    fn within(mut self, step: Step<'_>) -> Self {
        self.pointer.insert_str(0, &pointer([step]));
        self
    }
}

/// A string as it stands in the text, where nothing in it is escaped.
fn borrowed<'t>(text: &'t str, start: usize, string: &str) -> Cow<'t, str> {
    let inner = start + 1;
    let end = inner + string.len();
    match text.get(inner..end) {
        Some(plain) if plain == string && text.as_bytes().get(end) == Some(&b'"') => {
            Cow::Borrowed(plain)
        }
        _ => Cow::Owned(string.to_owned()),
    }
}

/// The same for a key, which stands after at most a comma and white space.
fn keyed<'t>(text: &'t str, from: usize, key: &str) -> Cow<'t, str> {
    let before = text.as_bytes().get(from..).unwrap_or_default();
    match before.iter().position(|byte| *byte == b'"') {
        Some(quote) => borrowed(text, from + quote, key),
        None => Cow::Owned(key.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(text: &str, limits: &Limits) -> Result<(), DecodeError> {
        let mut scanner = Scanner::new(text, limits)?;
        let span = scanner.skip()?;
        scanner.finish()?;
        assert_eq!(text.get(span), Some(text.trim()));
        Ok(())
    }

    #[test]
    fn what_the_parser_accepts_the_scanner_does_and_nothing_else() {
        let large = |n: usize, last: &str| {
            let members: Vec<String> = (0..n).map(|n| format!("\"k{n}\":{n}")).collect();
            format!("{{{},\"{last}\":0}}", members.join(","))
        };
        let texts = [
            r#" {"z":1.0,"a":[1e2,-0,12345678901234567890123],"n":null,"\u00e9":"\u001f"} "#
                .to_owned(),
            r#"{"a":1,"\u0061":2}"#.to_owned(),
            r#"{"a\"b":1,"a\"b":2}"#.to_owned(),
            r#"{ "a" : { "a" : [ { } , [ ] ] } , "b" : true }"#.to_owned(),
            r#"["\ud800"]"#.to_owned(),
            "[NaN]".to_owned(),
            "[-Infinity]".to_owned(),
            "[1,]".to_owned(),
            "{\"a\" 1}".to_owned(),
            "[1 2]".to_owned(),
            "1 2".to_owned(),
            "nul".to_owned(),
            String::new(),
            "[[[[1]]]]".to_owned(),
            large(40, "k39"),
            large(40, "k40"),
            large(15, "k3"),
        ];
        for limits in [
            Limits::default(),
            Limits {
                max_depth: 3,
                ..Limits::default()
            },
            Limits {
                max_nodes: 4,
                ..Limits::default()
            },
            Limits {
                max_bytes: 16,
                ..Limits::default()
            },
        ] {
            for text in &texts {
                let told = |error: DecodeError| (error.fault, error.line, error.column);
                let parsed = super::super::Json::parse_with(text, &limits).map(drop);
                assert_eq!(
                    scan(text, &limits).map_err(told),
                    parsed.map_err(told),
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn a_fault_is_told_with_its_place() {
        let pointer = |text| scan(text, &Limits::default()).unwrap_err().pointer;
        assert_eq!(pointer(r#"{"a":[0,{"b/c":[1,}]}"#), "/a/1/b~1c/1");
        assert_eq!(pointer(r#"{"a":[0,{"k":1,"k":2}]}"#), "/a/1/k");
    }

    #[test]
    fn strings_are_given_as_they_mean() {
        let mut scanner = Scanner::new(r#"["plain","a\"b","",7]"#, &Limits::default()).unwrap();
        let mut found = Vec::new();
        scanner
            .array(|scanner, _| {
                found.push(scanner.string()?.map(Cow::into_owned));
                Ok::<(), DecodeError>(())
            })
            .unwrap();
        let expected = ["plain", "a\"b", ""].map(|text| Some(text.to_owned()));
        assert_eq!(found.get(..3), Some(expected.as_slice()));
        assert_eq!(found.get(3), Some(&None));
    }
}
