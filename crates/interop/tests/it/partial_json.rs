//! JSON that is still being written.

use crate::ui_streams::{in_javascript, json, recorded};
use loomline_interop::ai_sdk::{Major, PartialJson, PartialState, parse_partial_json};
use proptest::prelude::*;
use serde_json::Value;

fn value_of(text: &str) -> Option<String> {
    parse_partial_json(text).0.map(|value| value.to_text())
}

fn read_by(major: Major, text: &str) -> Option<String> {
    let mut partial = PartialJson::new(major);
    partial.push(text);
    partial.value().0.map(|value| value.to_text())
}

#[test]
fn what_is_open_is_closed_and_what_makes_no_sense_yet_is_left_out() {
    for (text, value) in [
        (r#"{"a":"x\u00e"#, r#"{"a":"x"}"#),
        (r#"{"a":tr"#, r#"{"a":true}"#),
        (r#"{"a":1.0,"b":-"#, r#"{"a":1.0}"#),
        ("[1e", "[1]"),
        (r#"[1,[2,{"k"#, "[1,[2,{}]]"),
        (r#"{"a":[],"#, r#"{"a":[]}"#),
        ("\"ž\\", "\"ž\""),
        ("[-", "[]"),
    ] {
        assert_eq!(value_of(text).as_deref(), Some(value), "{text}");
        assert_eq!(parse_partial_json(text).1, PartialState::Repaired, "{text}");
    }
}

#[test]
fn what_is_no_json_fails() {
    for text in ["", " ", "-", "x", "[1 2]", r#"{"__proto__":1}"#] {
        assert_eq!(
            parse_partial_json(text),
            (None, PartialState::Failed),
            "{text}"
        );
    }
}

#[test]
fn older_clients_fail_where_newer_ones_leave_out() {
    assert_eq!(read_by(Major::V6, "[-"), None);
    assert_eq!(read_by(Major::V7, "[-").as_deref(), Some("[]"));
    assert_eq!(read_by(Major::V5, r#"["\u00"#), None);
    assert_eq!(read_by(Major::V6, r#"["\u00"#).as_deref(), Some(r#"[""]"#));
}

#[test]
fn no_text_is_not_an_empty_text() {
    let mut partial = PartialJson::new(Major::V7);
    assert_eq!(partial.value(), (None, PartialState::Undefined));
    partial.push("");
    assert_eq!(partial.value(), (None, PartialState::Failed));
}

#[test]
fn every_recorded_beginning_is_read_as_the_real_library_does() {
    let Some(folder) = recorded("ai-sdk") else {
        return;
    };
    let vectors = json(&folder.join("partial_json_vectors.json"));
    let vectors = vectors.as_array().unwrap();
    assert!(vectors.len() > 100);
    for vector in vectors {
        let [text, state, expected] = vector.as_array().unwrap() else {
            panic!("{vector}");
        };
        let (value, read) = parse_partial_json(text.as_str().unwrap());
        let read = match read {
            PartialState::Undefined => "undefined-input",
            PartialState::Successful => "successful-parse",
            PartialState::Repaired => "repaired-parse",
            PartialState::Failed => "failed-parse",
        };
        assert_eq!(read, state.as_str().unwrap(), "{text}");
        let expected = (expected.as_str() != Some("__undefined__")).then_some(expected);
        let [value, expected] = [value.as_ref(), expected].map(|value| value.map(in_javascript));
        assert_eq!(value, expected, "{text}");
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9f64).prop_map(Value::from),
        "[a-z\"\\\\ž😀\u{1}]{0,5}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 30, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z\"]{0,3}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn every_beginning_of_an_object_has_a_value(value in any_json()) {
        let whole = serde_json::json!({ "value": value }).to_string();
        let (read, state) = parse_partial_json(&whole);
        prop_assert_eq!(read.map(|read| read.to_text()), Some(whole.clone()));
        prop_assert_eq!(state, PartialState::Successful);
        let ends = whole.char_indices().map(|(start, _)| start).filter(|start| *start > 0);
        for end in ends {
            let (read, state) = parse_partial_json(&whole[..end]);
            prop_assert_eq!(state, PartialState::Repaired, "{}", &whole[..end]);
            prop_assert!(read.is_some_and(|read| read.as_object().is_some()));
        }
    }

    #[test]
    fn pieces_are_read_as_the_whole(text in "[\\[\\]{}\":,a-z0-9\\\\ ž😀-]{0,40}", at in any::<prop::sample::Index>()) {
        let places: Vec<usize> = text.char_indices().map(|(start, _)| start).chain([text.len()]).collect();
        let (first, second) = text.split_at(places[at.index(places.len())]);
        let mut partial = PartialJson::new(Major::V7);
        partial.push(first);
        partial.push(second);
        prop_assert_eq!(partial.text(), &text);
        prop_assert_eq!(partial.value(), parse_partial_json(&text));
    }
}
