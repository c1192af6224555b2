//! JSON that borrows from its text.
//!
//! An answer is read once and most of it dropped. A [`Value`] owns every key and hashes it, which
//! costs more than all the rest of a small answer; here keys and plain strings are slices of the
//! text, and a document is one list of its values.

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};
use std::borrow::Cow;

/// A JSON text that was read. It takes what [`Value`] takes.
#[derive(Clone, Debug)]
pub(crate) struct Document<'a>(Vec<Node<'a>>);

/// A value, or the name of a field; arrays and objects come before what they hold.
#[derive(Clone, Debug)]
enum Node<'a> {
    Null,
    Bool(bool),
    Number(Number),
    /// Borrowed where it has no escapes.
    String(Cow<'a, str>),
    /// How many nodes it holds.
    Array(usize),
    /// How many nodes it holds, names included.
    Object(usize),
}

impl<'a> Document<'a> {
    /// Reads a text.
    pub(crate) fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        // About what answers have; a guess that is wrong costs one more growth.
        let mut nodes = Vec::with_capacity(text.len() / 8);
        let mut reader = serde_json::Deserializer::from_str(text);
        Build(&mut nodes).deserialize(&mut reader)?;
        reader.end()?;
        Ok(Self(nodes))
    }

    /// The value of the text.
    pub(crate) fn root(&self) -> Json<'_> {
        Json(&self.0)
    }
}

/// A value of a document: a list that begins with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Json<'t>(&'t [Node<'t>]);

impl<'t> Json<'t> {
    /// The values right below an array, or the names and values below an object.
    fn children(self) -> impl Iterator<Item = Json<'t>> {
        let mut rest = match self.0.first() {
            Some(Node::Array(n) | Node::Object(n)) => self.0.get(1..=*n).unwrap_or_default(),
            Some(Node::Null | Node::Bool(_) | Node::Number(_) | Node::String(_)) | None => &[],
        };
        std::iter::from_fn(move || {
            let child = rest;
            let n = match child.first()? {
                Node::Array(n) | Node::Object(n) => *n,
                Node::Null | Node::Bool(_) | Node::Number(_) | Node::String(_) => 0,
            };
            rest = child.get(n.saturating_add(1)..).unwrap_or_default();
            Some(Json(child))
        })
    }

    /// The fields of an object, in the order of the text.
    fn fields(self) -> impl Iterator<Item = (&'t str, Json<'t>)> {
        let mut children = self.is_object().then(|| self.children());
        std::iter::from_fn(move || {
            let children = children.as_mut()?;
            Some((children.next()?.as_str()?, children.next()?))
        })
    }

    /// The field of this name, where this is an object that has it; the last one of that name.
    pub(crate) fn get(self, key: &str) -> Option<Self> {
        let named = self.fields().filter(|(name, _)| *name == key);
        named.last().map(|(_, value)| value)
    }

    /// The field of this name, where it holds something else than null.
    pub(crate) fn known(self, key: &str) -> Option<Self> {
        let is_null = |value: &Self| matches!(value.0.first(), Some(Node::Null));
        self.get(key).filter(|value| !is_null(value))
    }

    /// Whether it is an object.
    pub(crate) fn is_object(self) -> bool {
        matches!(self.0.first(), Some(Node::Object(_)))
    }

    /// Whether it is an array.
    pub(crate) fn is_array(self) -> bool {
        matches!(self.0.first(), Some(Node::Array(_)))
    }

    /// The elements of the array in this field; none where there is no such array.
    pub(crate) fn elements(self, key: &str) -> impl Iterator<Item = Self> {
        let array = self.get(key).filter(|value| value.is_array());
        array.into_iter().flat_map(Self::children)
    }

    /// The text of a string.
    pub(crate) fn as_str(self) -> Option<&'t str> {
        match self.0.first() {
            Some(Node::String(text)) => Some(text),
            Some(
                Node::Null | Node::Bool(_) | Node::Number(_) | Node::Array(_) | Node::Object(_),
            )
            | None => None,
        }
    }

    /// The text of a field that is there and not empty.
    pub(crate) fn text_at(self, key: &str) -> Option<&'t str> {
        self.get(key)?.as_str().filter(|text| !text.is_empty())
    }

    /// A number that is a count.
    pub(crate) fn as_u64(self) -> Option<u64> {
        match self.0.first() {
            Some(Node::Number(number)) => number.as_u64(),
            Some(
                Node::Null | Node::Bool(_) | Node::String(_) | Node::Array(_) | Node::Object(_),
            )
            | None => None,
        }
    }

    /// The same value, owned.
    pub(crate) fn to_value(self) -> Value {
        match self.0.first() {
            Some(Node::Null) | None => Value::Null,
            Some(Node::Bool(value)) => Value::Bool(*value),
            Some(Node::Number(number)) => Value::Number(number.clone()),
            Some(Node::String(text)) => Value::String(text.clone().into_owned()),
            Some(Node::Array(_)) => self.children().map(Self::to_value).collect(),
            Some(Node::Object(_)) => {
                let fields = self.fields();
                Value::Object(
                    fields
                        .map(|(key, it)| (key.to_owned(), it.to_value()))
                        .collect(),
                )
            }
        }
    }
}

/// Appends a value to the list.
struct Build<'n, 'a>(&'n mut Vec<Node<'a>>);

impl<'a> Build<'_, 'a> {
    /// How many nodes came after the one at this place.
    fn since(&self, at: usize) -> usize {
        self.0.len().saturating_sub(at.saturating_add(1))
    }

    fn replace(self, at: usize, node: Node<'a>) {
        if let Some(place) = self.0.get_mut(at) {
            *place = node;
        }
    }
}

impl<'de> DeserializeSeed<'de> for Build<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Build<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.0.push(Node::Null);
        Ok(())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.0.push(Node::Bool(value));
        Ok(())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.0.push(Node::Number(value.into()));
        Ok(())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.0.push(Node::Number(value.into()));
        Ok(())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.0
            .push(Number::from_f64(value).map_or(Node::Null, Node::Number));
        Ok(())
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<(), E> {
        self.0.push(Node::String(Cow::Borrowed(text)));
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.0.push(Node::String(Cow::Owned(text.to_owned())));
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let at = self.0.len();
        self.0.push(Node::Array(0));
        while seq.next_element_seed(Build(self.0))?.is_some() {}
        let n = self.since(at);
        self.replace(at, Node::Array(n));
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let at = self.0.len();
        self.0.push(Node::Object(0));
        while map.next_key_seed(Build(self.0))?.is_some() {
            map.next_value_seed(Build(self.0))?;
        }
        let n = self.since(at);
        self.replace(at, Node::Object(n));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".*".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((".*", inner), 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn it_reads_what_a_value_reads(value in value()) {
            let text = value.to_string();
            let expected: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(Document::parse(&text).unwrap().root().to_value(), expected);
        }
    }

    #[test]
    fn of_two_fields_with_one_name_the_last_counts() {
        let text = r#"{"a": 1, "b": {"\u0061": 2}, "a": 3}"#;
        let json = Document::parse(text).unwrap();
        let json = json.root();
        assert_eq!(json.get("a").and_then(Json::as_u64), Some(3));
        let inner = json.get("b").and_then(|inner| inner.get("a"));
        assert_eq!(inner.and_then(Json::as_u64), Some(2));
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(json.to_value().to_string(), value.to_string());
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for text in [
            "",
            "{",
            "{\"a\" 1}",
            "[1,]",
            "{} {}",
            "nul",
            &"[".repeat(200),
        ] {
            assert!(Document::parse(text).is_err(), "{text}");
        }
    }
}
