//! Reads the fields of an object one by one and skips the rest.
//!
//! An answer is read once, and most of it is dropped. So its fields are read in place, in one pass and
//! borrowed from the text. Fields without a reader are skipped. A value of an unexpected type counts as
//! absent, because providers add and change fields. Of two fields with one name the last counts.

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A receiver of the fields of an object.
pub(crate) trait Fields<'de>: Default {
    /// Reads the value of this field from `map` with [`take`], or skips it with [`skip`].
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error>;
}

/// Reads a text that is one JSON value; `None` if it is not an object.
pub(crate) fn read<'de, T: Fields<'de>>(text: &'de str) -> Result<Option<T>, serde_json::Error> {
    let mut fields = Object(None);
    read_into(text, &mut fields)?;
    Ok(fields.0)
}

/// Like [`read`], for large values: writes the value in place.
pub(crate) fn read_into<'de, T: Fields<'de>>(
    text: &'de str,
    place: &mut Object<T>,
) -> Result<(), serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    Slot(place).deserialize(&mut reader)?;
    reader.end()
}

/// Skips a value.
pub(crate) fn skip<'de, A: MapAccess<'de>>(map: &mut A) -> Result<(), A::Error> {
    map.next_value::<IgnoredAny>().map(|_| ())
}

/// Puts the value of a field in its place.
pub(crate) fn take<'de, A: MapAccess<'de>, T: FieldValue<'de>>(
    map: &mut A,
    place: &mut T,
) -> Result<(), A::Error> {
    map.next_value_seed(Slot(place))
}

/// Stores the text of a field's value; `None` for null.
pub(crate) fn take_raw<'de, A: MapAccess<'de>>(
    map: &mut A,
    place: &mut Option<&'de RawValue>,
) -> Result<(), A::Error> {
    *place = map.next_value()?;
    Ok(())
}

/// The fields of an object; `None` for any other value.
#[derive(Debug)]
pub(crate) struct Object<T>(pub(crate) Option<T>);

impl<T> Default for Object<T> {
    fn default() -> Self {
        Self(None)
    }
}

/// The objects of an array; empty for any other value. An element that is not an object counts as one
/// without fields.
#[derive(Debug)]
pub(crate) struct Objects<T>(pub(crate) Vec<T>);

impl<T> Default for Objects<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// A count; `None` for any other value.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Count(pub(crate) Option<u64>);

/// A value that usually is a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Field<'a> {
    /// Absent or null.
    #[default]
    Nothing,
    /// A text; borrowed if it has no escapes.
    Text(Cow<'a, str>),
    /// Any other value.
    Other(Box<Value>),
}

impl<'a> From<&'a Value> for Field<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Nothing,
            Value::String(text) => Self::Text(Cow::Borrowed(text)),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                Self::Other(Box::new(value.clone()))
            }
        }
    }
}

impl PartialEq<Value> for Field<'_> {
    fn eq(&self, other: &Value) -> bool {
        match self {
            Self::Nothing => other.is_null(),
            Self::Text(text) => other == &**text,
            Self::Other(value) => **value == *other,
        }
    }
}

impl Field<'_> {
    /// The text, if the value is one and not empty.
    pub(crate) fn text(&self) -> Option<&str> {
        self.as_str().filter(|text| !text.is_empty())
    }

    /// The text.
    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Nothing | Self::Other(_) => None,
        }
    }

    /// The elements of an array; empty for any other value.
    pub(crate) fn elements(&self) -> &[Value] {
        self.array().map_or(&[], Vec::as_slice)
    }

    /// The array, if the value is one.
    pub(crate) fn array(&self) -> Option<&Vec<Value>> {
        match self {
            Self::Other(value) => value.as_array(),
            Self::Nothing | Self::Text(_) => None,
        }
    }

    /// The value, if there is one.
    pub(crate) fn to_value(&self) -> Option<Value> {
        match self {
            Self::Nothing => None,
            Self::Text(text) => Some(Value::from(&**text)),
            Self::Other(value) => Some(Value::clone(value)),
        }
    }
}

/// A receiver of values of each type; types that it does not handle are skipped. A value is written in
/// place, not returned: an answer's values are large, and returning would copy them at each level.
pub(crate) trait FieldValue<'de>: Default {
    /// A number that is a count.
    fn count(&mut self, _: u64) {
        *self = Self::default();
    }

    /// A text.
    fn text(&mut self, _: Cow<'de, str>) {
        *self = Self::default();
    }

    /// Another number, or a truth.
    fn scalar(&mut self, _: impl Into<Value>) {
        *self = Self::default();
    }

    /// An array.
    fn seq<A: SeqAccess<'de>>(&mut self, mut seq: A) -> Result<(), A::Error> {
        *self = Self::default();
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    /// An object.
    fn map<A: MapAccess<'de>>(&mut self, mut map: A) -> Result<(), A::Error> {
        *self = Self::default();
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

impl<'de, T: Fields<'de>> FieldValue<'de> for Object<T> {
    fn map<A: MapAccess<'de>>(&mut self, mut map: A) -> Result<(), A::Error> {
        let fields = self.0.insert(T::default());
        while let Some(name) = map.next_key_seed(Name)? {
            fields.field(&name, &mut map)?;
        }
        Ok(())
    }
}

impl<'de, T: Fields<'de>> FieldValue<'de> for Objects<T> {
    fn seq<A: SeqAccess<'de>>(&mut self, mut seq: A) -> Result<(), A::Error> {
        self.0.clear();
        // Most lists have one element, and a list makes room for four at once.
        self.0.reserve_exact(1);
        while seq.next_element_seed(Next(&mut self.0))?.is_some() {}
        Ok(())
    }
}

impl FieldValue<'_> for Count {
    fn count(&mut self, n: u64) {
        self.0 = Some(n);
    }
}

impl<'de> FieldValue<'de> for Field<'de> {
    fn count(&mut self, n: u64) {
        self.scalar(n);
    }

    fn text(&mut self, text: Cow<'de, str>) {
        *self = Self::Text(text);
    }

    fn scalar(&mut self, value: impl Into<Value>) {
        *self = Self::Other(Box::new(value.into()));
    }

    fn seq<A: SeqAccess<'de>>(&mut self, seq: A) -> Result<(), A::Error> {
        let value = Value::deserialize(SeqAccessDeserializer::new(seq))?;
        *self = Self::Other(Box::new(value));
        Ok(())
    }

    fn map<A: MapAccess<'de>>(&mut self, map: A) -> Result<(), A::Error> {
        let value = Value::deserialize(MapAccessDeserializer::new(map))?;
        *self = Self::Other(Box::new(value));
        Ok(())
    }
}

/// The place for a value.
pub(crate) struct Slot<'p, T>(pub(crate) &'p mut T);

impl<'de, T: FieldValue<'de>> DeserializeSeed<'de> for Slot<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: FieldValue<'de>> Visitor<'de> for Slot<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        *self.0 = T::default();
        Ok(())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.0.scalar(value);
        Ok(())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.0.scalar(value);
        Ok(())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.0.count(value);
        Ok(())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.0.scalar(value);
        Ok(())
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<(), E> {
        self.0.text(Cow::Borrowed(text));
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.0.text(Cow::Owned(text.to_owned()));
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<(), A::Error> {
        self.0.seq(seq)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        self.0.map(map)
    }
}

/// The next object of a list.
struct Next<'p, T>(&'p mut Vec<T>);

impl<'de, T: Fields<'de>> DeserializeSeed<'de> for Next<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let mut object = Object(None);
        Slot(&mut object).deserialize(deserializer)?;
        self.0.push(object.0.unwrap_or_default());
        Ok(())
    }
}

/// The name of a field.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_borrowed_str<E: Error>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}

#[cfg(test)]
mod tests;
