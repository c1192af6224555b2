//! Whatever the provider says goes back as it was.

use super::codec;
use super::round_trip::{sent, stored, streamed, whole};
use super::wire::{self, Host, call, reasoning, stream, text};
use proptest::prelude::*;
use serde_json::{Value, json};

fn annotation() -> impl Strategy<Value = Value> {
    any::<u16>().prop_map(|n| json!({"type": "file_citation", "index": n, "file_id": "f"}))
}

fn part() -> impl Strategy<Value = Value> {
    let annotations = prop::collection::vec(annotation(), 0..3);
    prop_oneof![
        4 => (".*", annotations).prop_map(|(text, annotations)| {
            json!({"type": "output_text", "text": text, "annotations": annotations})
        }),
        1 => ".*".prop_map(|text| json!({"type": "refusal", "refusal": text})),
        1 => ".*".prop_map(|text| json!({"type": "acme:part", "text": text})),
    ]
}

fn item() -> impl Strategy<Value = Value> {
    let id = || any::<u32>();
    let texts = prop::collection::vec(".*", 0..3);
    let raw = prop::collection::vec(".*", 0..2);
    prop_oneof![
        (id(), prop::collection::vec(part(), 0..4), any::<bool>()).prop_map(
            |(id, parts, phase)| {
                let mut item = text(&format!("msg_{id}"), "");
                item["content"] = Value::from(parts);
                if phase {
                    item["phase"] = json!("commentary");
                }
                item
            }
        ),
        (id(), texts, raw, ".+").prop_map(|(id, summary, raw, encrypted)| {
            let summary: Vec<&str> = summary.iter().map(String::as_str).collect();
            let mut item = reasoning(&format!("rs_{id}"), &summary, Some(&encrypted));
            if !raw.is_empty() {
                let raw = raw
                    .iter()
                    .map(|text| json!({"type": "reasoning_text", "text": text}));
                item["content"] = raw.collect();
            }
            item
        }),
        (id(), prop_oneof![4 => ".*", 1 => r"(\{\})?[ \n]?\{[ \n]?"]).prop_map(|(id, text)| {
            call(&format!("fc_{id}"), &format!("call_{id}"), "f", &text)
        }),
        (id(), ".*").prop_map(|(id, input)| json!({
            "type": "custom_tool_call", "id": format!("ctc_{id}"), "name": "sh",
            "call_id": format!("ccall_{id}"), "input": input,
        })),
        (id(), "[a-zA-Z0-9+/]{0,8}").prop_map(|(id, data)| json!({
            "type": "image_generation_call", "id": format!("ig_{id}"), "result": data,
            "status": "completed",
        })),
        (id(), ".*").prop_map(|(id, text)| json!({
            "type": "acme:thing", "id": id, "content": [{"type": "output_text", "text": text}],
        })),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_items_go_back_as_they_were(items in prop::collection::vec(item(), 0..6), open: bool) {
        // The ids of calls are unique, and reasoning is followed by something.
        let mut items = items;
        let mut seen = std::collections::BTreeSet::new();
        items.retain(|item| seen.insert(item["call_id"].to_string()) || item.get("call_id").is_none());
        items.push(text("msg_end", "end"));
        let host = if open { Host::Open } else { Host::OpenAi };
        let codec = codec(host);
        let at_once = whole(&codec, &wire::response("completed", &items, &Value::Null));
        let (_, in_pieces) = streamed(&codec, &stream(host, &items));
        prop_assert_eq!(&in_pieces.message.content, &at_once.message.content);
        for response in [at_once, in_pieces] {
            let (input, omitted) = sent(&codec, [stored(&response)], json!({}));
            prop_assert_eq!(&omitted, &[]);
            prop_assert_eq!(&input, &Value::from(items.clone()));
        }
    }
}
