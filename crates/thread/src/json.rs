//! JSON values that preserve a document's key order, explicit nulls and number spellings.
//!
//! They do not preserve what has no meaning: white space between tokens and the escapes of a
//! string. A compact text with the usual escapes is reproduced byte for byte.

mod error;
mod fault;
mod limits;
mod number;
mod object;
mod parse;
mod scan;
mod serde_value;
mod write;

pub(crate) use write::{write_object, write_string};

pub use crate::path::{Step, pointer};
pub use error::{DecodeError, JsonFault};
pub use limits::Limits;
pub use number::Number;
pub use object::{Iter as ObjectIter, Object};
pub use scan::{Counts, Member, Scanner, Shape, Within, check};
pub use serde_value::UnrepresentableNumber;

/// A JSON value.
///
/// Equality is structural and exact: `1` and `1.0` differ, and so do two objects with the same
/// members in another order. To compare meanings, compare canonical forms.
///
/// Clone, comparison and drop use one stack frame per level of nesting. [`Limits`] bounds the
/// levels of parsed values, so they can't overflow the stack. Code that builds values must limit
/// its own nesting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Json {
    /// `null`.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as it was spelled.
    Number(Number),
    /// A string, unescaped.
    String(String),
    /// An array.
    Array(Vec<Json>),
    /// An object, in the order of its keys.
    Object(Object),
}

impl Json {
    /// Parses one JSON text under the default [`Limits`].
    pub fn parse(text: &str) -> Result<Self, DecodeError> {
        parse::parse(text, &Limits::default())
    }

    /// Parses one JSON text under these limits.
    pub fn parse_with(text: &str, limits: &Limits) -> Result<Self, DecodeError> {
        parse::parse(text, limits)
    }

    /// The compact text of this value.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        write::write(self, &mut text);
        text
    }

    /// An object with these members; a repeated key keeps its first place and its last value.
    ///
    /// ```
    /// use loomline_thread::Json;
    ///
    /// let part = Json::object([("part_kind", "text".into()), ("content", "hi".into())]);
    /// assert_eq!(part.to_text(), r#"{"part_kind":"text","content":"hi"}"#);
    /// ```
    #[must_use]
    pub fn object<K: Into<Box<str>>>(members: impl IntoIterator<Item = (K, Json)>) -> Self {
        Self::Object(members.into_iter().collect())
    }

    /// The name of this value's type, for messages.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Number(_) => "number",
            Self::String(_) => "string",
            Self::Array(_) => "array",
            Self::Object(_) => "object",
        }
    }

    /// Whether this is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The boolean, if this is one.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(bool) = self {
            Some(*bool)
        } else {
            None
        }
    }

    /// The number, if this is one.
    #[must_use]
    pub fn as_number(&self) -> Option<&Number> {
        if let Self::Number(number) = self {
            Some(number)
        } else {
            None
        }
    }

    /// The number as a signed integer, if it is one and fits.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        self.as_number()?.as_i64()
    }

    /// The number as an unsigned integer, if it is one and fits.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        self.as_number()?.as_u64()
    }

    /// The number as the nearest double, if it is finite.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        self.as_number()?.as_f64()
    }

    /// The string, if this is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(string) = self {
            Some(string)
        } else {
            None
        }
    }

    /// The elements, if this is an array.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Json]> {
        if let Self::Array(items) = self {
            Some(items)
        } else {
            None
        }
    }

    /// The elements to change, if this is an array.
    #[must_use]
    pub fn as_array_mut(&mut self) -> Option<&mut Vec<Json>> {
        if let Self::Array(items) = self {
            Some(items)
        } else {
            None
        }
    }

    /// The object, if this is one.
    #[must_use]
    pub fn as_object(&self) -> Option<&Object> {
        if let Self::Object(object) = self {
            Some(object)
        } else {
            None
        }
    }

    /// The object to change, if this is one.
    #[must_use]
    pub fn as_object_mut(&mut self) -> Option<&mut Object> {
        if let Self::Object(object) = self {
            Some(object)
        } else {
            None
        }
    }

    /// Converts the value to its object, if it is one.
    #[must_use]
    pub fn into_object(self) -> Option<Object> {
        if let Self::Object(object) = self {
            Some(object)
        } else {
            None
        }
    }

    /// Converts the value to its elements, if it is an array.
    #[must_use]
    pub fn into_array(self) -> Option<Vec<Json>> {
        if let Self::Array(items) = self {
            Some(items)
        } else {
            None
        }
    }

    /// The member `key`, if this is an object that has it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Json> {
        self.as_object()?.get(key)
    }

    /// The value at a JSON Pointer (RFC 6901), if there is one.
    #[must_use]
    pub fn pointer(&self, pointer: &str) -> Option<&Json> {
        if pointer.is_empty() {
            return Some(self);
        }
        let mut here = self;
        for token in pointer.strip_prefix('/')?.split('/') {
            here = match here {
                Self::Array(items) => items.get(array_index(token)?)?,
                Self::Object(object) => object.get(&token.replace("~1", "/").replace("~0", "~"))?,
                Self::Null | Self::Bool(_) | Self::Number(_) | Self::String(_) => return None,
            };
        }
        Some(here)
    }
}

/// A pointer's array index: digits without a leading zero.
fn array_index(token: &str) -> Option<usize> {
    let digits = token.bytes().all(|byte| byte.is_ascii_digit());
    let padded = token.len() > 1 && token.starts_with('0');
    if digits && !padded {
        token.parse().ok()
    } else {
        None
    }
}

impl std::fmt::Display for Json {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write::write_to(self, formatter)
    }
}

impl std::str::FromStr for Json {
    type Err = DecodeError;

    fn from_str(text: &str) -> Result<Self, DecodeError> {
        Self::parse(text)
    }
}

impl From<&str> for Json {
    fn from(string: &str) -> Self {
        Self::String(string.to_owned())
    }
}

impl From<String> for Json {
    fn from(string: String) -> Self {
        Self::String(string)
    }
}

impl From<bool> for Json {
    fn from(bool: bool) -> Self {
        Self::Bool(bool)
    }
}

impl From<i64> for Json {
    fn from(integer: i64) -> Self {
        Self::Number(integer.into())
    }
}

impl From<u64> for Json {
    fn from(integer: u64) -> Self {
        Self::Number(integer.into())
    }
}

impl From<i32> for Json {
    fn from(integer: i32) -> Self {
        Self::Number(i64::from(integer).into())
    }
}

impl From<u32> for Json {
    fn from(integer: u32) -> Self {
        Self::Number(u64::from(integer).into())
    }
}

impl From<Number> for Json {
    fn from(number: Number) -> Self {
        Self::Number(number)
    }
}

impl From<Object> for Json {
    fn from(object: Object) -> Self {
        Self::Object(object)
    }
}

impl<T: Into<Json>> From<Vec<T>> for Json {
    fn from(items: Vec<T>) -> Self {
        Self::Array(items.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Json>> FromIterator<T> for Json {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self::Array(items.into_iter().map(Into::into).collect())
    }
}

/// `None` becomes an explicit `null`; use [`Object::with_some`] to omit a member.
impl<T: Into<Json>> From<Option<T>> for Json {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_finds_escaped_keys_and_indices() {
        let json = Json::parse(r#"{"a/b":[{"~":1}]}"#).unwrap();
        assert_eq!(json.pointer("/a~1b/0/~0").and_then(Json::as_u64), Some(1));
        assert_eq!(json.pointer("/a~1b/00"), None);
        assert_eq!(json.pointer("a"), None);
    }

    #[test]
    fn a_value_is_small_enough_to_hold_by_the_million() {
        assert!(size_of::<Json>() <= 32);
    }
}
