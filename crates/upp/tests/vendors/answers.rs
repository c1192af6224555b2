//! What is read.

use crate::support::{chunk, decode, end};
use loomline_upp::{ChatCompletions, CycleUsage, Dialect};
use serde_json::{Value, json};

fn used(dialect: Dialect, last: Value) -> CycleUsage {
    let codec = ChatCompletions::new(dialect, "m");
    let frames = [chunk(&json!({"content": "so"})), last];
    decode(&codec, &frames).expect("as the test has it").usage
}

#[test]
fn reasoning_that_a_provider_counts_apart_is_output_too() {
    let usage = |total: u64| {
        let usage = json!({"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": total,
            "completion_tokens_details": {"reasoning_tokens": 5}});
        let used = used(Dialect::xai(), end("stop", &usage));
        (used.output_tokens, used.reasoning_tokens)
    };
    assert_eq!(usage(32 + 9 + 5), (14, 5));
    assert_eq!(usage(32 + 9), (9, 5));
}

#[test]
fn tokens_written_to_a_cache_are_counted() {
    let usage = json!({"prompt_tokens": 30, "completion_tokens": 1,
        "prompt_tokens_details": {"cached_tokens": 10, "cache_write_tokens": 20}});
    let used = used(Dialect::openrouter(), end("stop", &usage));
    assert_eq!((used.cache_read_tokens, used.cache_write_tokens), (10, 20));
}

#[test]
fn moonshot_counts_in_places_of_its_own() {
    let usage = json!({"prompt_tokens": 19, "completion_tokens": 13, "cached_tokens": 10});
    let mut last = end("stop", &Value::Null);
    last["choices"][0]["usage"] = usage;
    let used = used(Dialect::moonshot(), last);
    assert_eq!((used.input_tokens, used.output_tokens), (19, 13));
    assert_eq!(used.cache_read_tokens, 10);
}

#[test]
fn parallel_calls_under_one_id_are_two_calls_with_two_ids() {
    let piece = |index: u32, name: &str, text: &str| {
        let function = json!({"name": name, "arguments": text});
        chunk(&json!({"tool_calls": [{"index": index, "id": "call", "function": function}]}))
    };
    let frames = [
        piece(0, "f", "{\"a\":"),
        piece(1, "g", "{\"b\":"),
        piece(0, "f", "1}"),
        piece(1, "g", "2}"),
        end("tool_calls", &Value::Null),
    ];
    let codec = ChatCompletions::openai("m");
    let message = decode(&codec, &frames).expect("as the test has it").message;
    let [one, two] = message.tool_calls.as_slice() else {
        panic!("{message:?}")
    };
    assert_eq!((&*one.tool_name, one.arguments.text()), ("f", "{\"a\":1}"));
    assert_eq!((&*two.tool_name, two.arguments.text()), ("g", "{\"b\":2}"));
    assert_eq!(one.tool_call_id.as_str(), "call");
    assert_ne!(two.tool_call_id, one.tool_call_id);
}
