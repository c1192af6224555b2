use super::*;
use serde_json::json;

fn answer(value: Value) -> CallToolResult {
    serde_json::from_value(value).unwrap()
}

fn read_any(value: Value) -> ToolOutput {
    read("toy", answer(value), None, 1 << 20)
}

#[test]
fn nothing_at_all_is_an_empty_text() {
    assert_eq!(read_any(json!({"content": []})).unwrap(), json!(""));
}

#[test]
fn structured_null_is_a_result() {
    let value = json!({"content": [], "structuredContent": null});
    assert_eq!(read_any(value).unwrap(), Value::Null);
}

#[test]
fn resources_keep_what_they_are_and_lose_what_is_for_clients() {
    let content = json!([
        {"type": "audio", "data": "AA==", "mimeType": "audio/wav", "_meta": {"a": 1}},
        {"type": "resource_link", "uri": "file:///a", "name": "a"},
        {"type": "resource", "resource": {"uri": "file:///b", "mimeType": "text/plain", "text": "b", "_meta": {"a": 1}}},
    ]);
    let expected = json!({"content": [
        {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "file:///a", "name": "a"},
        {"type": "resource", "resource": {"uri": "file:///b", "mimeType": "text/plain", "text": "b"}},
    ]});
    assert_eq!(read_any(json!({ "content": content })).unwrap(), expected);
}

#[test]
fn an_error_without_a_text_is_still_a_failure() {
    let failure = read_any(json!({"content": [], "isError": true})).unwrap_err();
    assert_eq!(
        failure.message,
        "The tool 'toy' failed and does not say why."
    );
}

#[test]
fn a_long_error_is_cut() {
    let text = "é".repeat(100);
    let value = json!({"content": [{"type": "text", "text": text}], "isError": true});
    let failure = read("toy", answer(value), None, 11).unwrap_err();
    assert_eq!(failure.message, "ééééé…");
}

#[test]
fn a_schema_asks_for_a_structured_result() {
    let validator = Schema::compile(&json!({"type": "object"})).unwrap();
    let text = json!({"content": [{"type": "text", "text": "a"}]});
    let failure = read("toy", answer(text.clone()), Some(&validator), 100).unwrap_err();
    assert!(failure.message.contains("no structured result"));
    let mut failed = text;
    failed["isError"] = json!(true);
    let failure = read("toy", answer(failed), Some(&validator), 100).unwrap_err();
    assert_eq!(failure.message, "a");
}

#[test]
fn the_limit_counts_the_bytes_of_the_json() {
    let value = json!({"content": [{"type": "text", "text": "a\n"}]});
    assert!(read("toy", answer(value.clone()), None, 5).is_ok());
    assert!(read("toy", answer(value), None, 4).is_err());
}
