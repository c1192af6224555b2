use super::*;
use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// All shapes that serde knows, but those of [`Value`].
#[derive(serde::Serialize)]
struct Shapes<'a> {
    none: Option<u8>,
    some: Option<i8>,
    unit: (),
    marker: Marker,
    one: One,
    pair: Pair,
    tuple: (u8, char, &'a str),
    bytes: Bytes<'a>,
    numbers: (i128, u128, f32, f64, f64),
    #[serde(rename = "vari\"ants")]
    variants: Vec<Shape<'a>>,
    raw: &'a RawValue,
    displayed: Displayed<'a>,
}

#[derive(serde::Serialize)]
struct Marker;

#[derive(serde::Serialize)]
struct One(u64);

#[derive(serde::Serialize)]
struct Pair(i16, i32);

#[derive(serde::Serialize)]
enum Shape<'a> {
    Unit,
    New(&'a str),
    Tuple(u8, Marker),
    Struct { text: &'a str, inner: Vec<u16> },
}

struct Bytes<'a>(&'a [u8]);

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

struct Displayed<'a>(&'a str);

impl Serialize for Displayed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self.0)
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((text(), inner), 0..5)
                .prop_map(|fields| Value::from(Map::from_iter(fields))),
        ]
    })
}

/// Texts in which what must be escaped is not rare.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        ".{0,40}",
        "[\\x00-\\x7f]{0,40}",
        "[a-z ]{0,80}[\"\\\\\n\u{1f}\u{7f}é]?"
    ]
}

proptest! {
    #[test]
    fn a_value_is_written_as_serde_json_writes_it(value in value()) {
        let written = write(&value, 0).unwrap();
        prop_assert_eq!(written.depth, depth::of_text(&written.text));
        prop_assert_eq!(written.text, value.to_string());
    }

    #[test]
    fn every_shape_is_written_as_serde_json_writes_it(
        text in text(), raw in value(), float in any::<f64>(), big in any::<i128>(),
    ) {
        let raw = serde_json::value::to_raw_value(&raw).unwrap();
        let shapes = Shapes {
            none: None,
            some: Some(-1),
            unit: (),
            marker: Marker,
            one: One(u64::MAX),
            pair: Pair(i16::MIN, 0),
            tuple: (1, '"', &text),
            bytes: Bytes(text.as_bytes()),
            numbers: (big, u128::MAX, 0.1, float, f64::NAN),
            variants: vec![
                Shape::Unit,
                Shape::New(&text),
                Shape::Tuple(2, Marker),
                Shape::Struct { text: &text, inner: vec![] },
            ],
            raw: &raw,
            displayed: Displayed(&text),
        };
        let written = write(&shapes, 0).unwrap();
        prop_assert_eq!(written.depth, depth::of_text(&written.text));
        prop_assert_eq!(written.text, serde_json::to_string(&shapes).unwrap());
    }
}

#[test]
fn a_key_that_is_no_text_is_refused() {
    let map = std::collections::BTreeMap::from([(vec![1], json!(1))]);
    assert!(write(&map, 0).is_err());
}
