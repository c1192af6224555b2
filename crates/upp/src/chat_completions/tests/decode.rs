//! Answers, chunk by chunk.

use super::*;

#[test]
fn text_and_reasoning_become_blocks_in_order() {
    let (events, response) = decode(
        &[
            delta(&json!({"role": "assistant", "content": ""})),
            delta(&json!({"reasoning_content": "hm"})),
            delta(&json!({"reasoning": "m"})),
            delta(&json!({"content": "Hel"})),
            delta(&json!({"content": "lo"})),
            end("stop"),
            json!({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13,
                "prompt_tokens_details": {"cached_tokens": 5}, "completion_tokens_details": {"reasoning_tokens": 2}}}),
        ],
        false,
    )
    .unwrap();
    assert_eq!(
        response.message.content,
        [
            AssistantContent::Reasoning {
                text: "hmm".into(),
                signature: None
            },
            AssistantContent::Text {
                text: "Hello".into()
            }
        ]
    );
    assert_eq!(events.first(), Some(&StreamEvent::MessageStart));
    assert_eq!(events.last(), Some(&StreamEvent::MessageStop));
    assert_eq!(response.stop_reason, StopReason::EndTurn);
    assert_eq!(response.message.id.as_str(), "chatcmpl-0123456789");
    assert_eq!(
        response.message.metadata["openai"],
        json!({"model": "m-1", "finish_reason": "stop", "requested_model": "m"})
    );
    let usage = &response.usage;
    assert_eq!((usage.input_tokens, usage.output_tokens), (9, 4));
    assert_eq!((usage.cache_read_tokens, usage.reasoning_tokens), (5, 2));
    assert_eq!(usage.raw.as_ref().unwrap()["total_tokens"], 13);
}

#[test]
fn parallel_calls_are_told_apart_by_index() {
    let (_, response) = decode(
        &[
            tool_delta(&json!({"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}})),
            tool_delta(&json!({"index": 1, "id": "b", "function": {"name": "g", "arguments": "{"}})),
            tool_delta(&json!({"index": 0, "function": {"arguments": "{\"x\" :"}})),
            tool_delta(&json!({"index": 1, "function": {"arguments": "}"}})),
            tool_delta(&json!({"index": 0, "function": {"arguments": "1}"}})),
            end("tool_calls"),
        ],
        false,
    )
    .unwrap();
    assert_eq!(
        calls(&response),
        [("a", "f", "{\"x\" :1}"), ("b", "g", "{}")]
    );
    assert_eq!(response.stop_reason, StopReason::ToolUse);
    assert!(response.message.content.is_empty());
}

#[test]
fn calls_without_index_or_with_one_index_for_all_are_told_apart_by_id() {
    let whole = |index: Option<u32>, id: &str| {
        let mut call = json!({"id": id, "function": {"name": "f", "arguments": "{}"}});
        if let Some(index) = index {
            call["index"] = json!(index);
        }
        tool_delta(&call)
    };
    for index in [None, Some(0)] {
        let (_, response) =
            decode(&[whole(index, "a"), whole(index, "b"), end("stop")], false).unwrap();
        assert_eq!(calls(&response), [("a", "f", "{}"), ("b", "f", "{}")]);
        assert_eq!(response.stop_reason, StopReason::ToolUse);
    }
}

#[test]
fn many_calls_are_told_apart_like_few() {
    let piece = |at: usize, by_index: bool, text: &str| {
        let mut call = json!({"function": {"arguments": text}});
        if by_index {
            call["index"] = json!(at);
        } else {
            call["id"] = json!(format!("call_{at}"));
        }
        tool_delta(&call)
    };
    for n in [2, 8, 9, 30] {
        let begin = |at: usize| {
            tool_delta(&json!({
                "index": at, "id": format!("call_{at}"), "function": {"name": format!("f{at}")}
            }))
        };
        let mut chunks: Vec<_> = (0..n).map(begin).collect();
        chunks.extend(
            (0..n)
                .rev()
                .map(|at| piece(at, true, &format!("{{\"at\":{at}"))),
        );
        chunks.extend((0..n).map(|at| piece(at, false, "}")));
        // Another call under the first one's id gets an id of ours.
        chunks.push(tool_delta(&json!({
            "index": n, "id": "call_0", "function": {"name": "again", "arguments": "{}"}
        })));
        chunks.push(end("tool_calls"));
        let (_, response) = decode(&chunks, false).unwrap();
        let (last, first) = response.message.tool_calls.split_last().unwrap();
        assert_eq!(first.len(), n);
        for (at, call) in first.iter().enumerate() {
            assert_eq!(call.tool_call_id.as_str(), format!("call_{at}"));
            assert_eq!(*call.tool_name, *format!("f{at}"));
            assert_eq!(call.arguments.text(), format!("{{\"at\":{at}}}"));
        }
        assert_ne!(last.tool_call_id.as_str(), "call_0");
        assert_eq!(last.arguments.text(), "{}");
    }
}

#[test]
fn of_many_choices_the_first_of_index_0_counts() {
    let choice = |index: u32, text: &str| json!({"index": index, "delta": {"content": text}});
    let chunk = |choices: Vec<Value>| json!({"id": "x", "choices": choices});
    let all = [
        chunk(vec![
            choice(1, "no"),
            choice(0, "yes"),
            choice(0, "nor this"),
        ]),
        chunk(vec![choice(1, "no")]),
        chunk(Vec::new()),
        end("stop"),
    ];
    let (_, response) = decode(&all, false).unwrap();
    assert_eq!(response.message.joined_text(), "yes");
}

#[test]
fn repeated_ids_and_names_change_nothing() {
    let piece =
        |text: &str| tool_delta(&json!({"id": "a", "function": {"name": "f", "arguments": text}}));
    let (_, response) = decode(&[piece("{"), piece("}"), end("tool_calls")], false).unwrap();
    assert_eq!(calls(&response), [("a", "f", "{}")]);
    let (_, response) = decode(
        &[
            tool_delta(&json!({"function": {"name": "f", "arguments": {"x": 1}}})),
            end("tool_calls"),
        ],
        false,
    )
    .unwrap();
    let [call] = response.message.tool_calls.as_slice() else {
        panic!()
    };
    assert_eq!(call.arguments.text(), r#"{"x":1}"#);
    assert!(call.tool_call_id.as_str().starts_with("call_"));
}

#[test]
fn a_refusal_is_text_that_the_filter_stopped() {
    let (_, response) = decode(&[delta(&json!({"refusal": "No."})), end("stop")], true).unwrap();
    assert_eq!(response.message.joined_text(), "No.");
    assert_eq!(
        (response.stop_reason, response.data),
        (StopReason::ContentFilter, None)
    );
}

#[test]
fn finish_reasons_are_translated() {
    for (theirs, ours) in [
        ("stop", StopReason::EndTurn),
        ("length", StopReason::MaxTokens),
        ("content_filter", StopReason::ContentFilter),
        ("eos", StopReason::Other("eos".into())),
    ] {
        let (_, response) = decode(&[delta(&json!({"content": "x"})), end(theirs)], false).unwrap();
        assert_eq!(response.stop_reason, ours);
        assert_eq!(response.usage, crate::CycleUsage::default());
    }
}

#[test]
fn a_structured_answer_is_parsed_and_must_be_json() {
    let (_, response) = decode(
        &[delta(&json!({"content": "{\"n\":1}"})), end("stop")],
        true,
    )
    .unwrap();
    assert_eq!(response.data, Some(json!({"n": 1})));
    let error = decode(&[delta(&json!({"content": "hello"})), end("stop")], true).unwrap_err();
    assert_eq!(error.code, Code::InvalidResponse);
    let (_, response) = decode(
        &[delta(&json!({"content": "{\"n\":1}"})), end("stop")],
        false,
    )
    .unwrap();
    assert_eq!(response.data, None);
}

#[test]
fn broken_streams_are_errors() {
    let code = |chunks: &[Value]| decode(chunks, false).unwrap_err().code;
    assert_eq!(code(&[]), Code::InvalidResponse);
    assert_eq!(code(&[delta(&json!({"content": "x"}))]), Code::NetworkError);
    assert_eq!(
        code(&[json!({"error": {"message": "no"}})]),
        Code::ProviderError
    );
    assert_eq!(
        code(&[json!({"error": {"message": "no", "code": "rate_limit_exceeded"}})]),
        Code::RateLimited
    );
    assert_eq!(code(&[json!([1])]), Code::InvalidResponse);
    let mut decoder = Box::new(Decoder::new(&Dialect::openai(), "m".into(), false));
    assert_eq!(
        decoder.push("{oops").unwrap_err().code,
        Code::InvalidResponse
    );
    decoder
        .push(&delta(&json!({"content": "x"})).to_string())
        .unwrap();
    decoder.push("[DONE]").unwrap();
    assert_eq!(decoder.finish().unwrap_err().code, Code::InvalidResponse);
}

#[test]
fn images_follow_the_rest_and_are_told_as_any_block_is() {
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}});
    let shown = delta(&json!({"images": [image], "content": "see"}));
    let (events, response) =
        decode_as(&Dialect::openrouter(), &[shown, end("stop")], false).unwrap();
    let mut told = crate::event::Aggregate::default();
    for event in &events {
        told.push(event);
    }
    assert_eq!(response.message.content.len(), 2);
    assert_eq!(told.finish().0, response.message.content);
    for index in [0, 1] {
        assert!(events.contains(&StreamEvent::ContentBlockStop { index }));
    }
    assert_eq!(events.last(), Some(&StreamEvent::MessageStop));
}

#[test]
fn an_answer_that_ends_with_a_call_ends_for_a_tool_whatever_its_word() {
    let call = json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}});
    for (word, with_call, without) in [
        ("tool_calls", StopReason::ToolUse, StopReason::ToolUse),
        ("function_call", StopReason::ToolUse, StopReason::ToolUse),
        ("stop", StopReason::ToolUse, StopReason::EndTurn),
        ("length", StopReason::MaxTokens, StopReason::MaxTokens),
    ] {
        let (_, response) = decode(&[tool_delta(&call), end(word)], false).unwrap();
        assert_eq!(response.stop_reason, with_call, "{word}, with a call");
        let said = delta(&json!({"content": "so"}));
        let (_, response) = decode(&[said, end(word)], false).unwrap();
        assert_eq!(response.stop_reason, without, "{word}, without a call");
    }
}
