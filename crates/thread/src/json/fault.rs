//! Converts jiter's faults to those of this crate.

use super::JsonFault;
use jiter::JsonErrorType;

/// The text has no value at this position.
pub(super) const NO_VALUE: JsonFault = JsonFault::Syntax {
    what: "something is no JSON value",
    expected: "a value",
};

/// Converts a fault of the tokenizer.
pub(super) fn fault(kind: &JsonErrorType) -> JsonFault {
    let (what, expected) = match kind {
        JsonErrorType::DuplicateKey(key) => return JsonFault::DuplicateKey { key: key.clone() },
        JsonErrorType::LoneLeadingSurrogateInHexEscape
        | JsonErrorType::InvalidUnicodeCodePoint
        | JsonErrorType::UnexpectedEndOfHexEscape => return JsonFault::LoneSurrogate,
        JsonErrorType::TrailingCharacters => return JsonFault::TrailingData,
        JsonErrorType::NumberOutOfRange => return JsonFault::NumberTooLong,
        JsonErrorType::EofWhileParsingList
        | JsonErrorType::EofWhileParsingObject
        | JsonErrorType::EofWhileParsingString
        | JsonErrorType::EofWhileParsingValue => return JsonFault::Truncated,
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
    JsonFault::Syntax { what, expected }
}
