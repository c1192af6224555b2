//! The errors of decoding a text.

/// The error of decoding a text, with its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault} at line {line}, column {column} (in \"{pointer}\"), expected {}", fault.expected())]
pub struct DecodeError {
    /// The fault.
    pub fault: JsonFault,
    /// The JSON Pointer of the value being read.
    pub pointer: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in bytes, from 1.
    pub column: usize,
}

/// The fault of a text that could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonFault {
    /// The text is longer than the limit.
    #[error("the text has {bytes} bytes")]
    TooLarge {
        /// The size of the text in bytes.
        bytes: usize,
        /// How long it may be.
        limit: usize,
    },
    /// The text nests deeper than the limit.
    #[error("nesting is deeper than {limit} levels")]
    TooDeep {
        /// How deep it may be.
        limit: usize,
    },
    /// The text holds more values than the limit.
    #[error("there are more than {limit} values")]
    TooManyNodes {
        /// How many there may be.
        limit: usize,
    },
    /// An object has the same key twice.
    #[error("the key {key:?} is repeated")]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// A string escapes half of a surrogate pair, or an invalid one.
    #[error("a string holds a lone surrogate")]
    LoneSurrogate,
    /// `NaN`, `Infinity` or `-Infinity`, which JSON has not.
    #[error("a number is not finite")]
    NotFinite,
    /// An integer of thousands of digits.
    #[error("a number has too many digits")]
    NumberTooLong,
    /// Something follows the value.
    #[error("there is data after the value")]
    TrailingData,
    /// The text ends inside the value.
    #[error("the text ends early")]
    Truncated,
    /// The text is not JSON in another way.
    #[error("{what}")]
    Syntax {
        /// The input that was found.
        what: &'static str,
        /// The input that the grammar requires there.
        expected: &'static str,
    },
    /// The text is JSON but not an object, and therefore not a document.
    #[error("the document is of type {found}")]
    NotAnObject {
        /// The name of its type.
        found: &'static str,
    },
}

impl JsonFault {
    /// The input that was expected instead.
    #[must_use]
    pub fn expected(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "a smaller text",
            Self::TooDeep { .. } => "flatter data",
            Self::TooManyNodes { .. } => "fewer values",
            Self::DuplicateKey { .. } => "each key once",
            Self::LoneSurrogate => "a whole surrogate pair or none",
            Self::NotFinite => "a finite number",
            Self::NumberTooLong => "fewer digits",
            Self::TrailingData => "the end of the text",
            Self::Truncated => "the rest of the value",
            Self::Syntax { expected, .. } => expected,
            Self::NotAnObject { .. } => "an object",
        }
    }
}
