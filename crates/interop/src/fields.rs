//! Reads the members of a request's objects with their JSON Pointers. All protocols share it; each
//! has its own error messages ([`Refusal`]).

use crate::request::token;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::marker::PhantomData;

/// The fault of a value.
pub(crate) enum Wrong<'v> {
    /// A member is missing; the expected value.
    Missing(&'static str),
    /// A value of another kind; the expected kind, and the value found.
    Kind(&'static str, &'v Value),
    /// A text is longer than it may be, in the protocol's unit.
    Long(&'v str, usize),
    /// A list has too many entries: the number found, and the maximum.
    Many(usize, usize),
}

/// As most protocols say it.
impl std::fmt::Display for Wrong<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing(expected) | Self::Kind(expected, _) => write!(f, "expected {expected}"),
            Self::Long(_, max) => write!(f, "expected at most {max} bytes"),
            Self::Many(_, max) => write!(f, "expected at most {max} entries"),
        }
    }
}

/// A protocol's error of a request, and how its JSON is read.
pub(crate) trait Refusal: Sized {
    /// The description of a flag's values in messages.
    const FLAG: &'static str = "true or false";

    /// The error of a place, a JSON pointer.
    fn refuse(pointer: String, wrong: Wrong<'_>) -> Self;

    /// The member of this name.
    fn find<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
        map.get(key)
    }

    /// Reads a flag.
    fn flag(value: &Value) -> Option<bool> {
        value.as_bool()
    }

    /// Whether a text is longer than this: in bytes, or in characters ([`has_more_characters`]).
    fn is_longer(text: &str, max: usize) -> bool {
        text.len() > max
    }
}

/// Whether a text has more than `max` characters. It counts them only if the bytes exceed `max`.
pub(crate) fn has_more_characters(text: &str, max: usize) -> bool {
    text.len() > max && text.chars().count() > max
}

/// Refuses a text that is longer than it may be.
pub(crate) fn check_length<E: Refusal>(at: &str, text: &str, max: usize) -> Result<(), E> {
    if E::is_longer(text, max) {
        return Err(E::refuse(at.to_owned(), Wrong::Long(text, max)));
    }
    Ok(())
}

/// Refuses more entries than there may be.
pub(crate) fn check_count<E: Refusal>(at: &str, n: usize, max: usize) -> Result<(), E> {
    if n > max {
        return Err(E::refuse(at.to_owned(), Wrong::Many(n, max)));
    }
    Ok(())
}

/// An object of a request, with its JSON Pointer. A member with the value null counts as absent.
pub(crate) struct Fields<'a, E> {
    map: &'a Map<String, Value>,
    pointer: Cow<'a, str>,
    error: PhantomData<fn() -> E>,
}

impl<'a, E: Refusal> Fields<'a, E> {
    /// The members of this value, if it is an object.
    pub(crate) fn of(value: &'a Value, pointer: impl Into<Cow<'a, str>>) -> Result<Self, E> {
        let (pointer, error) = (pointer.into(), PhantomData);
        let Some(map) = value.as_object() else {
            let wrong = Wrong::Kind("an object", value);
            return Err(E::refuse(pointer.into_owned(), wrong));
        };
        Ok(Self {
            map,
            pointer,
            error,
        })
    }

    /// The JSON Pointer of the object.
    pub(crate) fn pointer(&self) -> &str {
        &self.pointer
    }

    /// The JSON Pointer of a member.
    pub(crate) fn at(&self, key: &str) -> String {
        format!("{}/{}", self.pointer, token(key))
    }

    /// All members.
    pub(crate) fn map(&self) -> &'a Map<String, Value> {
        self.map
    }

    /// A member that is present, even if it is null.
    pub(crate) fn present(&self, key: &str) -> Option<&'a Value> {
        E::find(self.map, key)
    }

    /// A member that is present and not null.
    pub(crate) fn get(&self, key: &str) -> Option<&'a Value> {
        self.present(key).filter(|value| !value.is_null())
    }

    /// The error of a member that must be there.
    pub(crate) fn missing(&self, key: &str) -> E {
        E::refuse(self.at(key), Wrong::Missing("a value"))
    }

    /// A member that may be absent.
    pub(crate) fn read<T>(
        &self,
        key: &str,
        expected: &'static str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, E> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let wrong = || E::refuse(self.at(key), Wrong::Kind(expected, value));
        read(value).map(Some).ok_or_else(wrong)
    }

    /// A member that must be there.
    pub(crate) fn expect<T>(
        &self,
        key: &str,
        expected: &'static str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<T, E> {
        let missing = || E::refuse(self.at(key), Wrong::Missing(expected));
        self.read(key, expected, read)?.ok_or_else(missing)
    }

    /// A text of at most this length.
    pub(crate) fn text(&self, key: &str, max: usize) -> Result<Option<&'a str>, E> {
        let text = self.read(key, "a string", Value::as_str)?;
        match text.filter(|text| E::is_longer(text, max)) {
            Some(text) => Err(E::refuse(self.at(key), Wrong::Long(text, max))),
            None => Ok(text),
        }
    }

    /// A text that must be there.
    pub(crate) fn required(&self, key: &str, max: usize) -> Result<&'a str, E> {
        let missing = || E::refuse(self.at(key), Wrong::Missing("a string"));
        self.text(key, max)?.ok_or_else(missing)
    }

    /// A text that must be there and say something.
    pub(crate) fn id(&self, key: &str, max: usize) -> Result<String, E> {
        let said = |value: &'a Value| value.as_str().filter(|id| !id.is_empty());
        let id = self.expect(key, "a string that is not empty", said)?;
        check_length(&self.at(key), id, max)?;
        Ok(id.to_owned())
    }

    pub(crate) fn flag(&self, key: &str) -> Result<Option<bool>, E> {
        self.read(key, E::FLAG, E::flag)
    }

    /// A list of at most `max` entries.
    pub(crate) fn list(&self, key: &str, max: usize) -> Result<Option<&'a [Value]>, E> {
        match self.read(key, "an array", Value::as_array)? {
            Some(list) if list.len() > max => {
                Err(E::refuse(self.at(key), Wrong::Many(list.len(), max)))
            }
            list => Ok(list.map(Vec::as_slice)),
        }
    }

    /// A list of at most `max` entries, each with its JSON Pointer.
    pub(crate) fn placed(
        &self,
        key: &str,
        max: usize,
    ) -> Result<Option<Vec<(String, &'a Value)>>, E> {
        let at = self.at(key);
        let placed = |(place, value)| (format!("{at}/{place}"), value);
        let list = self.list(key, max)?;
        Ok(list.map(|list| list.iter().enumerate().map(placed).collect()))
    }

    pub(crate) fn object(&self, key: &str) -> Result<Option<Self>, E> {
        let value = self.get(key);
        value.map(|it| Self::of(it, self.at(key))).transpose()
    }

    /// An object that must be there.
    pub(crate) fn inner(&self, key: &str) -> Result<Self, E> {
        self.object(key)?.ok_or_else(|| self.missing(key))
    }
}
