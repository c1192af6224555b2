//! Reading a text without building its values: checks, shapes and places.

mod counts;
mod tokens;

pub use counts::{Counts, check};

use super::fault::NO_VALUE;
use super::parse;
use super::{DecodeError, JsonFault, Limits};
use crate::path::{Step, pointer};
use jiter::Jiter;
use std::borrow::Cow;
use std::ops::Range;
use tokens::{Next, Seen};

/// The kind of the next value.
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

/// A member of an object, and the position of its value in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member<'t> {
    /// Its key, unescaped.
    pub key: Cow<'t, str>,
    /// The kind of the value.
    pub shape: Shape,
    /// The byte range of the value, without surrounding white space.
    pub span: Range<usize>,
}

/// Walks a JSON text once, value by value. It accepts exactly the texts that
/// [`Json::parse`](super::Json::parse) accepts. It builds no values, so it takes a fraction of the
/// time and almost no memory.
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
    counts: Counts,
    /// The plain keys of the objects that are open, the innermost last.
    keys: Vec<&'t str>,
}

impl<'t> Scanner<'t> {
    /// A scanner at the start of a text; refuses a text that is too long.
    pub fn new(text: &'t str, limits: &Limits) -> Result<Self, DecodeError> {
        let scanner = Self {
            text,
            limits: *limits,
            jiter: Jiter::new(text.as_bytes()),
            depth: 0,
            counts: Counts::default(),
            keys: Vec::new(),
        };
        let (bytes, limit) = (text.len(), limits.max_bytes);
        if bytes > limit {
            return Err(scanner.fail_at(0, JsonFault::TooLarge { bytes, limit }));
        }
        Ok(scanner)
    }

    /// The text being read.
    #[must_use]
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// The kind of the next value.
    pub fn peek(&mut self) -> Result<Shape, DecodeError> {
        self.next_shape().ok_or_else(|| self.fail(self.depth))
    }

    /// Checks the next value with everything in it, and returns its byte range.
    pub fn skip(&mut self) -> Result<Range<usize>, DecodeError> {
        let outer = self.depth;
        let start = self.next_shape().map(|_| self.at());
        let end = self.value().map(|()| self.at());
        match (start, end) {
            (Some(start), Some(end)) => Ok(start..end),
            _ => Err(self.fail(outer)),
        }
    }

    /// Reads the next value, a string. Skips any other value and returns `None`.
    pub fn string(&mut self) -> Result<Option<Cow<'t, str>>, DecodeError> {
        if self.peek()? != Shape::String {
            self.skip()?;
            return Ok(None);
        }
        let read = self.count().and_then(|()| self.string_token());
        read.map(Some).ok_or_else(|| self.fail(self.depth))
    }

    /// Walks the next value, an array: calls `each` with each element's index; `each` must read the
    /// whole element. Skips any other value. Returns the value's byte range.
    pub fn array<E: From<DecodeError> + Within>(
        &mut self,
        mut each: impl FnMut(&mut Self, usize) -> Result<(), E>,
    ) -> Result<Range<usize>, E> {
        if self.peek()? != Shape::Array {
            return Ok(self.skip()?);
        }
        let (start, outer) = (self.at(), self.depth);
        let mut next = self.enter_array();
        let mut place = 0;
        loop {
            match next {
                None => return Err(self.fail(outer).into()),
                Some(false) => return Ok(start..self.at()),
                Some(true) => {}
            }
            each(self, place).map_err(|error| error.within(Step::Index(place)))?;
            place += 1;
            next = self.array_step();
        }
    }

    /// Walks the next value, an object: calls `each` with each key; `each` must read the whole
    /// value. Skips any other value. Returns the value's byte range.
    pub fn object<E: From<DecodeError> + Within>(
        &mut self,
        mut each: impl FnMut(&mut Self, &str) -> Result<(), E>,
    ) -> Result<Range<usize>, E> {
        if self.peek()? != Shape::Object {
            return Ok(self.skip()?);
        }
        let (start, outer) = (self.at(), self.depth);
        let base = self.keys.len();
        let mut seen = Seen::default();
        let mut next = self.enter_object();
        loop {
            let key = match next {
                None => return Err(self.fail(outer).into()),
                Some(Next::End) => break,
                Some(Next::Key(key)) => key,
            };
            if self.push_key(base, &mut seen, &key).is_none() {
                return Err(self.fail(outer).into());
            }
            each(self, &key).map_err(|error| error.within(Step::Key(&key)))?;
            next = self.object_step();
        }
        self.keys.truncate(base);
        Ok(start..self.at())
    }

    /// Checks the next value, an object, and lists its members. Skips any other value and lists
    /// none. Returns the value's byte range.
    pub fn members(&mut self, into: &mut Vec<Member<'t>>) -> Result<Range<usize>, DecodeError> {
        if self.peek()? != Shape::Object {
            return self.skip();
        }
        let (start, outer) = (self.at(), self.depth);
        match self.list(into) {
            Some(()) => Ok(start..self.at()),
            None => Err(self.fail(outer)),
        }
    }

    fn list(&mut self, into: &mut Vec<Member<'t>>) -> Option<()> {
        let base = into.len();
        let mut seen = Seen::default();
        let mut next = self.enter_object()?;
        while let Next::Key(key) = next {
            let before = into.get(base..)?.iter().map(|member| &*member.key);
            let is_escaped = matches!(key, Cow::Owned(_));
            if seen.repeats(before, &key, is_escaped) {
                return None;
            }
            let shape = self.next_shape()?;
            let start = self.at();
            self.value()?;
            let span = start..self.at();
            into.push(Member { key, shape, span });
            next = self.object_step()?;
        }
        Some(())
    }

    /// Checks that nothing follows.
    pub fn finish(mut self) -> Result<(), DecodeError> {
        let end = self.jiter.finish();
        end.map_err(|_| self.fail(self.depth))
    }

    /// An error about the next value.
    #[must_use]
    pub fn fail_here(&self, fault: JsonFault) -> DecodeError {
        self.fail_at(self.at(), fault)
    }

    /// The error that the parser reports for the text; this walk only detects that there is one.
    /// Drops the first `outer` steps of the pointer, because the callers add them.
    fn fail(&self, outer: usize) -> DecodeError {
        let Some(mut error) = parse::error_of(self.text, &self.limits) else {
            return self.fail_at(self.at(), NO_VALUE);
        };
        let mut rest = error.pointer.as_str();
        for _ in 0..outer {
            let step = rest.strip_prefix('/').unwrap_or_default();
            rest = step.find('/').and_then(|end| step.get(end..)).unwrap_or("");
        }
        error.pointer = rest.to_owned();
        error
    }

    fn at(&self) -> usize {
        self.jiter.current_index()
    }

    fn fail_at(&self, index: usize, fault: JsonFault) -> DecodeError {
        let position = self.jiter.error_position(index.min(self.text.len()));
        DecodeError {
            fault,
            pointer: String::new(),
            line: position.line,
            column: position.column,
        }
    }
}

/// An error whose pointer grows as callers return it.
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
            large(80, "k79"),
            large(80, "k81"),
            r#"{"long enough a string":"eight by\u00e9 eight \ud83d\ude00 \" \\","é":"日本語日本語"}"#.to_owned(),
            "[\"eight by\u{1} eight\"]".to_owned(),
            r#"["\ud83dx"]"#.to_owned(),
            r#"["\udc00"]"#.to_owned(),
            r#"["\u12"]"#.to_owned(),
            r#"["\x"]"#.to_owned(),
            "[01]".to_owned(),
            "[-]".to_owned(),
            "[1.]".to_owned(),
            "[1e]".to_owned(),
            "[-0.5e+10,0e0,1E-2]".to_owned(),
            format!("[{}]", "1".repeat(4300)),
            format!("[{}]", "1".repeat(4301)),
            format!("[1.{}]", "1".repeat(5000)),
            format!("[{}.5]", "1".repeat(4200)),
            "[nullx]".to_owned(),
            "[tru]".to_owned(),
            r#"{"a":1,}"#.to_owned(),
            "{a:1}".to_owned(),
            r#"{"a"#.to_owned(),
            r#"{"a":{"b":[1,2"#.to_owned(),
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
                let parsed = super::super::Json::parse_with(text, &limits).map(drop);
                assert_eq!(scan(text, &limits), parsed, "{text}");
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
    fn a_fault_met_on_the_way_down_is_told_with_its_place_all_the_same() {
        for text in [
            r#"{"a":[0,{"b/c":[1,}]}"#,
            r#"{"a":[0,{"k":1,"k":2}]}"#,
            r#"{"a":[0 1]}"#,
            r#"{"a":[0,{"b":1 "c":2}]}"#,
            r#"{"a":{"b":{"c":nul}}}"#,
        ] {
            let mut scanner = Scanner::new(text, &Limits::default()).unwrap();
            let walked = scanner.object(|scanner, _| {
                scanner.array(|scanner, _| {
                    let mut members = Vec::new();
                    scanner.members(&mut members).map(drop)
                })?;
                Ok::<(), DecodeError>(())
            });
            let expected = super::super::Json::parse(text).unwrap_err();
            assert_eq!(walked.map(drop), Err(expected), "{text}");
        }
    }

    #[test]
    fn members_are_listed_with_their_shapes_and_places() {
        let text = r#" {"a" : 1 ,"\u0062":[{}]} "#;
        let mut members = Vec::new();
        let mut scanner = Scanner::new(text, &Limits::default()).unwrap();
        scanner.members(&mut members).unwrap();
        let told: Vec<_> = members
            .iter()
            .map(|member| (&*member.key, member.shape, text.get(member.span.clone())))
            .collect();
        let expected = [
            ("a", Shape::Number, Some("1")),
            ("b", Shape::Array, Some("[{}]")),
        ];
        assert_eq!(told, expected);
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
