use super::*;
use crate::usage::CycleUsage;
use serde_json::json;

const AT: &str = "2026-01-02T03:04:05Z";

fn turn_json() -> Value {
    json!({
        "messages": [
            {"type": "user", "id": "u", "content": [], "timestamp": AT},
            {"type": "assistant", "id": "a", "content": [], "timestamp": AT},
            {"type": "assistant", "id": "b", "content": [{"type": "text", "text": "x"}], "timestamp": AT},
            {"type": "tool_result", "id": "r", "content": [], "results": [], "timestamp": AT},
        ],
        "toolExecutions": [
            {"toolName": "t", "toolCallId": "c", "arguments": {}, "result": 1, "isError": false, "duration": 5, "approved": true},
            {"toolName": "t", "toolCallId": "d", "arguments": {}, "result": "no", "isError": true, "duration": 0},
        ],
        "usage": {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7, "cacheReadTokens": 1, "cacheWriteTokens": 2,
            "cycles": [{"inputTokens": 3, "outputTokens": 4, "cacheReadTokens": 1, "cacheWriteTokens": 2}]},
        "cycles": 1,
        "data": {"n": 1},
        "stopReason": "max_tokens",
    })
}

#[test]
fn a_turn_is_written_without_its_response_and_read_with_the_last_answer() {
    let turn: Turn = serde_json::from_value(turn_json()).unwrap();
    assert_eq!(turn.response.id.as_str(), "b");
    assert_eq!(turn.stop_reason, StopReason::MaxTokens);
    assert_eq!(serde_json::to_value(&turn).unwrap(), turn_json());
}

#[test]
fn a_turn_without_an_assistant_message_is_refused() {
    let mut json = turn_json();
    json["messages"].as_array_mut().unwrap().truncate(1);
    let error = serde_json::from_value::<Turn>(json).unwrap_err();
    assert!(error.to_string().contains("assistant message"), "{error}");
}

#[test]
fn a_turn_of_another_implementation_is_read() {
    let mut json = turn_json();
    let fields = json.as_object_mut().unwrap();
    fields.remove("stopReason");
    fields.remove("data");
    fields.insert("response".into(), json!({"anything": true}));
    let turn: Turn = serde_json::from_value(json).unwrap();
    assert_eq!((turn.stop_reason, turn.data), (StopReason::EndTurn, None));
}

#[test]
fn the_usage_of_a_turn_is_the_sum_of_its_cycles() {
    let mut usage = TokenUsage::default();
    for n in [1, 10] {
        usage.push(CycleUsage {
            input_tokens: n,
            output_tokens: 2 * n,
            cache_read_tokens: 3 * n,
            cache_write_tokens: 4 * n,
            ..CycleUsage::default()
        });
    }
    let json = serde_json::to_value(&usage).unwrap();
    assert_eq!(
        json,
        json!({"inputTokens": 11, "outputTokens": 22, "totalTokens": 33, "cacheReadTokens": 33, "cacheWriteTokens": 44,
            "cycles": [
                {"inputTokens": 1, "outputTokens": 2, "cacheReadTokens": 3, "cacheWriteTokens": 4},
                {"inputTokens": 10, "outputTokens": 20, "cacheReadTokens": 30, "cacheWriteTokens": 40}]})
    );
    assert_eq!(serde_json::from_value::<TokenUsage>(json).unwrap(), usage);
    let null: TokenUsage = serde_json::from_value(json!({"cycles": null})).unwrap();
    assert_eq!(null, TokenUsage::default());
}
