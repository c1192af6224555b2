//! Any text is read the same in one piece and in many. JSON is read as its value, and repaired text is
//! JSON.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loomline_interop::ai_sdk::{Major, PartialJson, PartialState, parse_partial_json};
use loomline_thread::Json;

fuzz_target!(|text: &str| {
    let (value, state) = parse_partial_json(text);
    assert_eq!(
        value.is_some(),
        matches!(state, PartialState::Successful | PartialState::Repaired)
    );
    if let Ok(whole) = Json::parse(text) {
        // Keys that reach for the prototype are refused.
        assert!(value.as_ref() == Some(&whole) || text.contains("proto") || text.contains("\\u"));
    }
    if let Some(value) = &value {
        let again = parse_partial_json(&value.to_text());
        assert_eq!(again, (Some(value.clone()), PartialState::Successful));
    }
    for major in [Major::V5, Major::V6, Major::V7] {
        let mut pieces = PartialJson::new(major);
        let mut whole = PartialJson::new(major);
        whole.push(text);
        pieces.push("");
        for char in text.chars() {
            pieces.push(char.encode_utf8(&mut [0; 4]));
        }
        assert_eq!(pieces.value(), whole.value());
    }
});
