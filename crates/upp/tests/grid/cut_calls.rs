//! A call that is cut off never reads as whole, streamed or not, whoever the provider is.

use loomline_upp::{
    Aggregate, Anthropic, ArgumentsError, ChatCompletions, Codec, Gemini, Message, Ollama, Request,
    Response, Responses, StopReason,
};
use serde_json::{Value, json};

enum Answer {
    Streamed(Vec<Value>),
    Whole(Value),
}

use Answer::{Streamed, Whole};

fn read(codec: &dyn Codec, answer: &Answer) -> Response {
    let mut decoder = codec.decoder(&Request::default());
    let mut events = Vec::new();
    match answer {
        Streamed(frames) => {
            for frame in frames {
                events.extend(decoder.push(&frame.to_string()).unwrap());
            }
        }
        Whole(body) => events.extend(decoder.whole(&body.to_string()).unwrap()),
    }
    let (last, response) = decoder.finish().unwrap();
    let mut aggregate = Aggregate::default();
    for event in events.iter().chain(&last) {
        aggregate.push(event);
    }
    assert_eq!(aggregate.finish().1, response.message.tool_calls);
    response
}

/// Whether the last call is cut off, after a stay in a store.
fn is_cut(response: &Response) -> bool {
    let text = serde_json::to_string(&Message::from(response.message.clone())).unwrap();
    let Message::Assistant(stored) = serde_json::from_str(&text).unwrap() else {
        panic!("another kind")
    };
    let arguments = &stored.tool_calls.last().unwrap().arguments;
    assert_eq!(
        *arguments,
        response.message.tool_calls.last().unwrap().arguments
    );
    matches!(arguments.parse(), Err(ArgumentsError::CutOff(_)))
}

fn assert_cut(codec: &dyn Codec, stopped: &dyn Fn(&str) -> Answer, word: &str) {
    let response = read(codec, &stopped(word));
    assert_eq!(response.stop_reason, StopReason::MaxTokens);
    assert!(is_cut(&response), "{:?}", response.message.tool_calls);
}

fn assert_whole(codec: &dyn Codec, answer: &Answer) {
    let response = read(codec, answer);
    let call = response.message.tool_calls.last().unwrap();
    assert!(call.arguments.parse().is_ok(), "{call:?}");
}

fn chat(streamed: bool, arguments: &str, reason: &str) -> Answer {
    let call = json!({"index": 0, "id": "call_1", "type": "function",
        "function": {"name": "f", "arguments": arguments}});
    let said = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    if streamed {
        return Streamed(vec![
            json!({"choices": [{"index": 0, "delta": said}]}),
            json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}),
        ]);
    }
    Whole(json!({"choices": [{"index": 0, "message": said, "finish_reason": reason}]}))
}

#[test]
fn chat_completions_shows_a_call_that_is_cut_off() {
    let codec = ChatCompletions::openai("m");
    for streamed in [true, false] {
        for cut in ["", " ", "{", "{}", r#"{"a": "#, r#"{"a": {}"#] {
            assert_cut(&codec, &|reason| chat(streamed, cut, reason), "length");
        }
        assert_whole(&codec, &chat(streamed, r#"{"a": 1}"#, "length"));
        assert_whole(&codec, &chat(streamed, "", "tool_calls"));
        assert_whole(&codec, &chat(streamed, "{}", "stop"));
        let filtered = read(&codec, &chat(streamed, "", "content_filter"));
        assert!(is_cut(&filtered));
    }
}

fn anthropic(streamed: bool, pieces: &[&str], input: &Value, reason: &str) -> Answer {
    let block = |input: &Value| json!({"type": "tool_use", "id": "t", "name": "f", "input": input});
    let mut message = json!({"id": "m", "type": "message", "role": "assistant", "model": "m",
        "content": [], "stop_reason": null, "usage": {"input_tokens": 1, "output_tokens": 1}});
    if streamed {
        let mut frames = vec![
            json!({"type": "message_start", "message": message}),
            json!({"type": "content_block_start", "index": 0, "content_block": block(input)}),
        ];
        frames.extend(pieces.iter().map(|piece| {
            let delta = json!({"type": "input_json_delta", "partial_json": piece});
            json!({"type": "content_block_delta", "index": 0, "delta": delta})
        }));
        frames.push(json!({"type": "content_block_stop", "index": 0}));
        frames.push(json!({"type": "message_delta", "delta": {"stop_reason": reason}}));
        frames.push(json!({"type": "message_stop"}));
        return Streamed(frames);
    }
    message["content"] = json!([block(input)]);
    message["stop_reason"] = json!(reason);
    Whole(message)
}

#[test]
fn the_messages_format_shows_a_call_that_is_cut_off() {
    let codec = Anthropic::new("m");
    let empty = json!({});
    for pieces in [&[][..], &[""], &["{"], &["{\"a\": \"x"], &["{}"]] {
        let stopped = |reason: &str| anthropic(true, pieces, &empty, reason);
        assert_cut(&codec, &stopped, "max_tokens");
        assert_cut(&codec, &stopped, "model_context_window_exceeded");
    }
    assert_whole(
        &codec,
        &anthropic(true, &["{\"a\":", "1}"], &empty, "max_tokens"),
    );
    // What is sent whole may have been closed by the vendor.
    for input in [json!({}), json!({"a": "x"})] {
        assert_cut(
            &codec,
            &|reason| anthropic(false, &[], &input, reason),
            "max_tokens",
        );
        assert_whole(&codec, &anthropic(false, &[], &input, "tool_use"));
    }
    assert_whole(&codec, &anthropic(true, &[], &empty, "tool_use"));
    let mut followed = anthropic(false, &[], &empty, "max_tokens");
    if let Whole(message) = &mut followed {
        let text = json!({"type": "text", "text": "And"});
        message["content"].as_array_mut().unwrap().push(text);
    }
    assert_whole(&codec, &followed);
}

fn responses(streamed: bool, item: &Value, status: &str) -> Answer {
    let reason = json!({"reason": "max_output_tokens"});
    let response = json!({"id": "resp_0123456789", "object": "response", "status": status,
        "output": [item], "incomplete_details": (status == "incomplete").then_some(reason)});
    if !streamed {
        return Whole(response);
    }
    let mut begun = item.clone();
    begun["status"] = json!("in_progress");
    for key in ["arguments", "input"] {
        if begun.get(key).is_some() {
            begun[key] = json!("");
        }
    }
    Streamed(vec![
        json!({"type": "response.output_item.added", "output_index": 0, "item": begun}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": format!("response.{status}"), "response": response}),
    ])
}

#[test]
fn responses_show_a_call_that_is_cut_off() {
    let codec = Responses::openai("m");
    let call = |arguments: &str, status: Option<&str>| {
        let mut item = json!({"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f",
            "arguments": arguments});
        if let Some(status) = status {
            item["status"] = json!(status);
        }
        item
    };
    for streamed in [true, false] {
        for arguments in ["", "{}", "{\"a\": "] {
            for status in [Some("incomplete"), Some("completed"), None] {
                let item = call(arguments, status);
                assert_cut(
                    &codec,
                    &|status| responses(streamed, &item, status),
                    "incomplete",
                );
            }
        }
        let whole = call("{\"a\": 1}", Some("completed"));
        assert_whole(&codec, &responses(streamed, &whole, "incomplete"));
        assert_whole(&codec, &responses(streamed, &call("", None), "completed"));
    }
}

#[test]
fn free_text_that_is_cut_off_is_no_input_and_goes_back_as_it_was() {
    let codec = Responses::openai("m");
    let item = json!({"type": "custom_tool_call", "id": "ctc_1", "call_id": "c", "name": "patch",
        "input": "*** Begin \"Pat", "status": "incomplete"});
    for streamed in [true, false] {
        let response = read(&codec, &responses(streamed, &item, "incomplete"));
        assert_eq!(response.stop_reason, StopReason::MaxTokens);
        assert!(is_cut(&response));
        let request = Request {
            messages: [Message::from("hi"), response.message.into()]
                .into_iter()
                .collect(),
            ..Request::default()
        };
        let body: Value = serde_json::from_str(&codec.encode(&request).unwrap().body).unwrap();
        assert_eq!(body["input"][1], item);
    }
    let mut whole = item;
    whole["status"] = json!("completed");
    assert_whole(&codec, &responses(true, &whole, "completed"));
}

#[test]
fn gemini_and_ollama_show_a_call_that_is_cut_off() {
    let gemini = |call: &Value, reason: &str| {
        let parts = json!([{"functionCall": call}]);
        let candidate = json!({"content": {"parts": parts}, "finishReason": reason});
        json!({"candidates": [candidate]})
    };
    let ollama = |arguments: &Value, reason: &str| {
        let call = json!({"function": {"name": "f", "arguments": arguments}});
        json!({"message": {"role": "assistant", "content": "", "tool_calls": [call]},
            "done": true, "done_reason": reason})
    };
    let codec = Gemini::new("m");
    for call in [json!({"name": "f"}), json!({"name": "f", "args": {}})] {
        assert_cut(&codec, &|reason| Whole(gemini(&call, reason)), "MAX_TOKENS");
        assert_cut(
            &codec,
            &|reason| Streamed(vec![gemini(&call, reason)]),
            "MAX_TOKENS",
        );
        assert_whole(&codec, &Whole(gemini(&call, "STOP")));
    }
    let whole = json!({"name": "f", "args": {"a": 1}});
    assert_whole(&codec, &Whole(gemini(&whole, "MAX_TOKENS")));
    let codec = Ollama::new("m");
    assert_cut(
        &codec,
        &|reason| Whole(ollama(&json!({}), reason)),
        "length",
    );
    assert_cut(
        &codec,
        &|reason| Streamed(vec![ollama(&json!({}), reason)]),
        "length",
    );
    assert_whole(&codec, &Whole(ollama(&json!({}), "stop")));
    assert_whole(&codec, &Whole(ollama(&json!({"a": 1}), "length")));
}
