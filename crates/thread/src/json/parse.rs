//! The parser: jiter's tokens put together without recursion, within limits.

use super::{DecodeError, Fault, Json, Number, Object};
use crate::path::{Step, pointer};
use jiter::{Jiter, JiterError, JiterErrorType, JsonErrorType, Peek};

/// How large a JSON text may be.
///
/// The limit on nesting is what makes it safe to clone, compare and drop what was parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Levels of arrays and objects; more than [`Limits::DEEPEST`] counts as that.
    pub max_depth: usize,
    /// Bytes of text.
    pub max_bytes: usize,
    /// Values of any type, keys not counted.
    pub max_nodes: usize,
}

impl Limits {
    /// The deepest nesting that can be asked for.
    pub const DEEPEST: usize = 1024;
}

impl Default for Limits {
    /// 128 levels, 256 MiB, sixteen million values.
    fn default() -> Self {
        Self {
            max_depth: 128,
            max_bytes: 256 << 20,
            max_nodes: 16 << 20,
        }
    }
}

/// A container being read.
enum Open {
    Array(Vec<Json>),
    /// The members so far, and the key whose value is being read.
    Object(Object, Option<Box<str>>),
}

struct Parser<'t> {
    text: &'t str,
    limits: &'t Limits,
    jiter: Jiter<'t>,
    open: Vec<Open>,
    nodes: usize,
}

/// Parses one JSON text.
pub(super) fn parse(text: &str, limits: &Limits) -> Result<Json, DecodeError> {
    let mut parser = Parser {
        text,
        limits,
        jiter: Jiter::new(text.as_bytes()),
        open: Vec::new(),
        nodes: 0,
    };
    if text.len() > limits.max_bytes {
        return Err(parser.fail_at(
            0,
            Fault::TooLarge {
                bytes: text.len(),
                limit: limits.max_bytes,
            },
        ));
    }
    parser.document()
}

impl Parser<'_> {
    fn document(&mut self) -> Result<Json, DecodeError> {
        let mut peek = self.peek()?;
        loop {
            self.count()?;
            let mut value = match peek {
                Peek::Array => match self.open_array()? {
                    Some(first) => {
                        peek = first;
                        continue;
                    }
                    None => Json::Array(Vec::new()),
                },
                Peek::Object => match self.open_object()? {
                    Some(first) => {
                        peek = first;
                        continue;
                    }
                    None => Json::Object(Object::new()),
                },
                _ => self.scalar(peek)?,
            };
            peek = loop {
                match self.close(value)? {
                    Closed::Document(document) => return self.finish(document),
                    Closed::Container(container) => value = container,
                    Closed::Next(next) => break next,
                }
            };
        }
    }

    fn open_array(&mut self) -> Result<Option<Peek>, DecodeError> {
        self.deepen()?;
        let first = self.jiter.known_array();
        let first = first.map_err(|error| self.fail(&error))?;
        if first.is_some() {
            self.open.push(Open::Array(Vec::new()));
        }
        Ok(first)
    }

    fn open_object(&mut self) -> Result<Option<Peek>, DecodeError> {
        self.deepen()?;
        let key = self.jiter.known_object().map(|key| key.map(Box::from));
        let Some(key) = key.map_err(|error| self.fail(&error))? else {
            return Ok(None);
        };
        self.open.push(Open::Object(Object::new(), Some(key)));
        self.peek().map(Some)
    }

    /// Puts a finished value where it belongs and finds what comes next.
    fn close(&mut self, value: Json) -> Result<Closed, DecodeError> {
        match self.open.last_mut() {
            None => Ok(Closed::Document(value)),
            Some(Open::Array(items)) => {
                items.push(value);
                let next = self.jiter.array_step();
                match next.map_err(|error| self.fail(&error))? {
                    Some(next) => Ok(Closed::Next(next)),
                    None => Ok(Closed::Container(self.pop())),
                }
            }
            Some(Open::Object(object, key)) => {
                if let Some(key) = key.take() {
                    object.insert(key, value);
                }
                let next = self.jiter.next_key().map(|key| key.map(Box::<str>::from));
                match next.map_err(|error| self.fail(&error))? {
                    Some(next) => self.member(next).map(Closed::Next),
                    None => Ok(Closed::Container(self.pop())),
                }
            }
        }
    }

    /// Begins the next member of the innermost object.
    fn member(&mut self, next: Box<str>) -> Result<Peek, DecodeError> {
        if let Some(Open::Object(object, key)) = self.open.last_mut() {
            let repeated = object.contains_key(&next).then(|| next.to_string());
            *key = Some(next);
            if let Some(key) = repeated {
                return Err(self.fail_here(Fault::DuplicateKey { key }));
            }
        }
        self.peek()
    }

    fn pop(&mut self) -> Json {
        match self.open.pop() {
            Some(Open::Array(items)) => Json::Array(items),
            Some(Open::Object(object, _)) => Json::Object(object),
            None => Json::Null,
        }
    }

    fn scalar(&mut self, peek: Peek) -> Result<Json, DecodeError> {
        let start = self.jiter.current_index();
        let read = match peek {
            Peek::Null => self.jiter.known_null().map(|()| Json::Null),
            Peek::True | Peek::False => self.jiter.known_bool(peek).map(Json::Bool),
            Peek::String => self.jiter.known_str().map(Json::from),
            Peek::NaN | Peek::Infinity => return Err(self.fail_here(Fault::NotFinite)),
            Peek::Minus
                if self
                    .text
                    .get(start..)
                    .is_some_and(|rest| rest.starts_with("-I")) =>
            {
                return Err(self.fail_here(Fault::NotFinite));
            }
            _ => match self.jiter.known_number_bytes(peek).map(<[u8]>::len) {
                Ok(length) => {
                    let spelled = self.text.get(start..start + length).unwrap_or_default();
                    Ok(Json::Number(Number::trusted(spelled)))
                }
                Err(error) => Err(error),
            },
        };
        read.map_err(|error| self.fail(&error))
    }

    fn finish(&mut self, document: Json) -> Result<Json, DecodeError> {
        let end = self.jiter.finish();
        end.map_err(|error| self.fail(&error))?;
        Ok(document)
    }

    fn peek(&mut self) -> Result<Peek, DecodeError> {
        let peek = self.jiter.peek();
        peek.map_err(|error| self.fail(&error))
    }

    fn count(&mut self) -> Result<(), DecodeError> {
        self.nodes += 1;
        let limit = self.limits.max_nodes;
        if self.nodes > limit {
            return Err(self.fail_here(Fault::TooManyNodes { limit }));
        }
        Ok(())
    }

    fn deepen(&mut self) -> Result<(), DecodeError> {
        let limit = self.limits.max_depth.min(Limits::DEEPEST);
        if self.open.len() >= limit {
            return Err(self.fail_here(Fault::TooDeep { limit }));
        }
        Ok(())
    }

    fn fail(&self, error: &JiterError) -> DecodeError {
        let fault = match &error.error_type {
            JiterErrorType::JsonError(kind) => fault(kind),
            JiterErrorType::WrongType { .. } => NO_VALUE,
        };
        self.fail_at(error.index, fault)
    }

    fn fail_here(&self, fault: Fault) -> DecodeError {
        self.fail_at(self.jiter.current_index(), fault)
    }

    fn fail_at(&self, index: usize, fault: Fault) -> DecodeError {
        let position = self.jiter.error_position(index.min(self.text.len()));
        let steps = self.open.iter().filter_map(|open| match open {
            Open::Array(items) => Some(Step::Index(items.len())),
            Open::Object(_, key) => key.as_deref().map(Step::Key),
        });
        DecodeError {
            fault,
            pointer: pointer(steps),
            line: position.line,
            column: position.column,
        }
    }
}

enum Closed {
    Document(Json),
    Container(Json),
    Next(Peek),
}

/// What stands there is no value.
pub(super) const NO_VALUE: Fault = Fault::Syntax {
    what: "something is no JSON value",
    expected: "a value",
};

/// What a fault of the tokens is in our words.
pub(super) fn fault(kind: &JsonErrorType) -> Fault {
    let (what, expected) = match kind {
        JsonErrorType::DuplicateKey(key) => return Fault::DuplicateKey { key: key.clone() },
        JsonErrorType::LoneLeadingSurrogateInHexEscape
        | JsonErrorType::InvalidUnicodeCodePoint
        | JsonErrorType::UnexpectedEndOfHexEscape => return Fault::LoneSurrogate,
        JsonErrorType::TrailingCharacters => return Fault::TrailingData,
        JsonErrorType::NumberOutOfRange => return Fault::NumberTooLong,
        JsonErrorType::EofWhileParsingList
        | JsonErrorType::EofWhileParsingObject
        | JsonErrorType::EofWhileParsingString
        | JsonErrorType::EofWhileParsingValue => return Fault::Truncated,
        JsonErrorType::ExpectedSomeValue
        | JsonErrorType::FloatExpectingInt
        | JsonErrorType::InternalError(_)
        | JsonErrorType::RecursionLimitExceeded => return NO_VALUE,
        JsonErrorType::ExpectedColon => ("a key stands without a value", "`:`"),
        JsonErrorType::ExpectedListCommaOrEnd => ("an array is not closed", "`,` or `]`"),
        JsonErrorType::ExpectedObjectCommaOrEnd => ("an object is not closed", "`,` or `}`"),
        JsonErrorType::ExpectedSomeIdent => ("a word is misspelled", "`true`, `false` or `null`"),
        JsonErrorType::InvalidEscape => ("a string holds an invalid escape", "an escape of JSON"),
        JsonErrorType::InvalidNumber => ("a number is malformed", "a number of JSON"),
        JsonErrorType::ControlCharacterWhileParsingString => {
            ("a string holds a bare control character", "its escape")
        }
        JsonErrorType::KeyMustBeAString => ("a key is not a string", "a string"),
        JsonErrorType::TrailingComma => ("a comma is followed by nothing", "a value"),
    };
    Fault::Syntax { what, expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault_of(text: &str) -> Fault {
        Json::parse(text).unwrap_err().fault
    }

    #[test]
    fn spelling_order_and_nulls_are_kept() {
        let text = r#"{"z":1.0,"a":[1e2,-0,12345678901234567890123,1E+2],"n":null,"é":"\u001fß"}"#;
        assert_eq!(Json::parse(text).unwrap().to_text(), text);
    }

    #[test]
    fn a_repeated_key_is_refused_where_it_stands() {
        let error = Json::parse("{\"a\":[0,\n {\"k\":1,\"k\":2}]}").unwrap_err();
        let key = "k".to_owned();
        assert_eq!(error.fault, Fault::DuplicateKey { key });
        assert_eq!((error.pointer.as_str(), error.line), ("/a/1/k", 2));
    }

    #[test]
    fn a_fault_between_members_is_told_of_their_object() {
        for (text, expected) in [
            (r#"{"version":"0.0.4""#, ""),
            (r#"{"a":1,}"#, ""),
            (r#"{"a":1 "b":2}"#, ""),
            (r#"{"":1,"#, ""),
            (r#"{"turns":[{"a":1"#, "/turns/0"),
            (r#"{"turns":[{"a":1,"b" 2}]}"#, "/turns/0"),
            (r#"{"":"#, "/"),
            (r#"{"turns":[{"a":1,"b":"#, "/turns/0/b"),
        ] {
            let error = Json::parse(text).unwrap_err();
            assert_eq!(error.pointer, expected, "{text}");
        }
    }

    #[test]
    fn a_repeated_key_in_a_large_object_is_refused() {
        let members: Vec<String> = (0..40).map(|n| format!("\"k{}\":1", n % 39)).collect();
        let text = format!("{{{}}}", members.join(","));
        assert!(matches!(fault_of(&text), Fault::DuplicateKey { .. }));
    }

    #[test]
    fn lone_surrogates_are_refused() {
        for text in [
            r#""\ud800""#,
            r#""\udc00""#,
            r#""\ud800x""#,
            r#""\ud800\n""#,
            r#""\ud800\u0041""#,
        ] {
            assert_eq!(fault_of(text), Fault::LoneSurrogate, "{text}");
        }
    }

    #[test]
    fn what_is_not_json_is_refused_by_name() {
        assert_eq!(fault_of("NaN"), Fault::NotFinite);
        assert_eq!(fault_of("[-Infinity]"), Fault::NotFinite);
        assert_eq!(fault_of("Infinity"), Fault::NotFinite);
        assert_eq!(fault_of("1 2"), Fault::TrailingData);
        assert_eq!(fault_of("[1,"), Fault::Truncated);
        assert_eq!(fault_of(""), Fault::Truncated);
        for text in [
            "[1,]",
            "{\"a\" 1}",
            "{a:1}",
            "01",
            "+1",
            "tru",
            "nulL",
            "\"\\x\"",
            "\"\u{1}\"",
            "[}",
            "\u{feff}1",
        ] {
            assert!(Json::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn every_limit_holds_at_its_edge() {
        let limits = Limits {
            max_depth: 2,
            max_bytes: 12,
            max_nodes: 4,
        };
        let fault = |text| Json::parse_with(text, &limits).map_err(|error| error.fault);
        assert!(fault("[[1,2]]").is_ok());
        assert_eq!(fault("[[[]]]"), Err(Fault::TooDeep { limit: 2 }));
        assert_eq!(fault("[1,2,3,4]"), Err(Fault::TooManyNodes { limit: 4 }));
        assert_eq!(
            fault("\"0123456789a\""),
            Err(Fault::TooLarge {
                bytes: 13,
                limit: 12
            })
        );
    }

    #[test]
    fn very_deep_text_is_refused_before_it_is_built() {
        let text = "[".repeat(1_000_000);
        let limits = Limits {
            max_depth: usize::MAX,
            ..Limits::default()
        };
        let error = Json::parse_with(&text, &limits).unwrap_err();
        let limit = Limits::DEEPEST;
        assert_eq!(error.fault, Fault::TooDeep { limit });
    }
}
