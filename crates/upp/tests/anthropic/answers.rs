//! What an answer says: why it ended, what it used, its data, its events.

use crate::support::{codec, end, read, read_as, request, sent, stored, stream_of};
use loomline_upp::anthropic::StructureForm;
use loomline_upp::{
    Aggregate, Anthropic, AssistantContent, Code, Error, Request, Response, StopReason, StreamEvent,
};
use serde_json::{Value, json};
use std::sync::Arc;

fn hello() -> Value {
    json!({"type": "text", "text": "Hello"})
}

#[test]
fn stop_reasons_are_translated_and_the_vendors_word_is_kept() {
    for (theirs, ours) in [
        ("end_turn", StopReason::EndTurn),
        ("stop_sequence", StopReason::EndTurn),
        ("max_tokens", StopReason::MaxTokens),
        ("model_context_window_exceeded", StopReason::MaxTokens),
        ("tool_use", StopReason::ToolUse),
        ("refusal", StopReason::ContentFilter),
        ("pause_turn", StopReason::Other("pause_turn".into())),
        ("brand_new", StopReason::Other("brand_new".into())),
    ] {
        let events = stream_of(&[hello()]).into_iter().chain(end(theirs));
        let response = read(events).unwrap();
        assert_eq!(response.stop_reason, ours);
        assert_eq!(
            response.message.metadata["anthropic"]["stop_reason"],
            theirs
        );
    }
}

#[test]
fn a_paused_turn_goes_on_where_it_was() {
    let searching = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}});
    let events = stream_of(&[hello(), searching.clone()]);
    let paused = read(events.into_iter().chain(end("pause_turn"))).unwrap();
    let (messages, omitted) = sent(&codec(), ["q?".into(), stored(&paused.message)]);
    assert_eq!(
        messages[1],
        json!({"role": "assistant", "content": [hello(), searching]})
    );
    assert_eq!(omitted, [""; 0]);
}

#[test]
fn all_prompt_tokens_are_counted_and_later_counts_win() {
    let mut events = stream_of(&[hello()]);
    events[0]["message"]["usage"] = json!({
        "input_tokens": 5, "cache_creation_input_tokens": 3, "cache_read_input_tokens": 12,
        "output_tokens": 1, "service_tier": "standard",
        "cache_creation": {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 0},
    });
    let [mut delta, stop] = end("end_turn");
    delta["usage"] = json!({
        "input_tokens": 7, "cache_read_input_tokens": null, "output_tokens": 40,
        "output_tokens_details": {"thinking_tokens": 30}, "server_tool_use": {"web_search_requests": 1},
    });
    let usage = read(events.into_iter().chain([delta, stop])).unwrap().usage;
    assert_eq!((usage.input_tokens, usage.output_tokens), (22, 40));
    assert_eq!((usage.cache_read_tokens, usage.cache_write_tokens), (12, 3));
    assert_eq!(usage.reasoning_tokens, 30);
    let raw = usage.raw.unwrap();
    assert_eq!(
        (&raw["input_tokens"], &raw["cache_read_input_tokens"]),
        (&json!(7), &json!(12))
    );
    assert_eq!(raw["server_tool_use"]["web_search_requests"], 1);
    assert_eq!(raw["service_tier"], "standard");
}

#[test]
fn the_answer_names_its_model_and_has_the_vendors_id() {
    let response = read(stream_of(&[hello()]).into_iter().chain(end("end_turn"))).unwrap();
    assert_eq!(&*response.model_id, "claude-opus-4-5-20251101");
    assert_eq!(response.message.id.as_str(), "msg_01XFDUDYJgAACzvnptvVoYEL");
    let mut events = stream_of(&[hello()]);
    events[0]["message"]["id"] = json!("msg_1");
    let response = read(events.into_iter().chain(end("end_turn"))).unwrap();
    assert_eq!(response.response_id.as_deref(), Some("msg_1"));
    assert_ne!(response.message.id.as_str(), "msg_1");
}

#[test]
fn the_events_alone_give_content_and_calls() {
    let blocks = [
        json!({"type": "thinking", "thinking": "hm", "signature": "s"}),
        json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}),
        hello(),
        json!({"type": "tool_use", "id": "toolu_01A", "name": "f", "input": {"x": 1}}),
        json!({"type": "tool_use", "id": "toolu_01B", "name": "g", "input": {}}),
    ];
    let events = stream_of(&blocks).into_iter().chain(end("tool_use"));
    let (events, response) = read_as(&codec(), &Request::default(), events).unwrap();
    let mut aggregate = Aggregate::default();
    for event in &events {
        aggregate.push(event);
    }
    let (content, calls) = aggregate.finish();
    assert_eq!(calls, response.message.tool_calls);
    assert_eq!(
        content[1],
        AssistantContent::Text {
            text: "Hello".into()
        }
    );
    let stops = events
        .iter()
        .filter(|event| matches!(event, StreamEvent::ContentBlockStop { .. }));
    assert_eq!(stops.count(), 2);
    assert_eq!(events.last(), Some(&StreamEvent::MessageStop));
}

fn structured(codec: &Anthropic, blocks: &[Value], reason: &str) -> Result<Response, Error> {
    let asked = Request {
        structure: Some(Arc::new(json!({"type": "object"}))),
        ..request([])
    };
    let events = stream_of(blocks).into_iter().chain(end(reason));
    read_as(codec, &asked, events).map(|(_, response)| response)
}

#[test]
fn data_is_read_from_a_whole_answer_only() {
    let text = |text: &str| json!({"type": "text", "text": text});
    let call = json!({"type": "tool_use", "id": "toolu_01A", "name": "f", "input": {}});
    let data = |blocks: &[Value], reason| structured(&codec(), blocks, reason).unwrap().data;
    let one = text("{\"n\":1}");
    assert_eq!(
        data(std::slice::from_ref(&one), "end_turn"),
        Some(json!({"n": 1}))
    );
    assert_eq!(
        data(&[text("{\"n\""), text(":1}")], "end_turn"),
        Some(json!({"n": 1}))
    );
    assert_eq!(
        data(&[text("I looked."), one.clone()], "end_turn"),
        Some(json!({"n": 1}))
    );
    for reason in ["max_tokens", "refusal", "stop_sequence", "pause_turn"] {
        assert_eq!(data(std::slice::from_ref(&one), reason), None);
    }
    assert_eq!(data(&[one, call], "tool_use"), None);
    let error = structured(&codec(), &[text("hello")], "end_turn").unwrap_err();
    assert_eq!(error.code, Code::InvalidResponse);
    let events = stream_of(&[text("{}")]).into_iter().chain(end("end_turn"));
    assert_eq!(read(events).unwrap().data, None);
}

#[test]
fn the_answer_tool_gives_data_and_text_and_is_no_call() {
    let forced = codec().with_structure_form(StructureForm::ForcedTool);
    let answer =
        json!({"type": "tool_use", "id": "toolu_01A", "name": "json_response", "input": {"n": 1}});
    let blocks = [
        json!({"type": "thinking", "thinking": "hm", "signature": "s"}),
        json!({"type": "text", "text": "Here it is."}),
        answer.clone(),
    ];
    let response = structured(&forced, &blocks, "tool_use").unwrap();
    assert_eq!(response.data, Some(json!({"n": 1})));
    assert_eq!(response.stop_reason, StopReason::EndTurn);
    assert_eq!(response.message.tool_calls, []);
    let (messages, omitted) = sent(&forced, [stored(&response.message)]);
    assert_eq!(
        messages[0]["content"][2],
        json!({"type": "text", "text": "{\"n\":1}"})
    );
    assert_eq!(omitted, [""; 0]);
    let call = json!({"type": "tool_use", "id": "toolu_01B", "name": "f", "input": {}});
    let response = structured(&forced, &[call, answer.clone()], "tool_use").unwrap();
    assert_eq!(
        (response.data, response.stop_reason),
        (None, StopReason::ToolUse)
    );
    // Where no structure was asked for, it is a tool like any other.
    let events = stream_of(&[answer]).into_iter().chain(end("tool_use"));
    assert_eq!(read(events).unwrap().message.tool_calls.len(), 1);
}

#[test]
fn an_answer_with_calls_ends_for_a_tool_though_the_host_says_it_is_done() {
    let call = json!({"type": "tool_use", "id": "toolu_01A", "name": "f", "input": {}});
    for (word, ours) in [
        ("end_turn", StopReason::ToolUse),
        ("tool_use", StopReason::ToolUse),
        ("max_tokens", StopReason::MaxTokens),
    ] {
        let events = stream_of(&[hello(), call.clone()]);
        let response = read(events.into_iter().chain(end(word))).unwrap();
        assert_eq!(response.stop_reason, ours, "{word}");
        assert_eq!(response.message.metadata["anthropic"]["stop_reason"], word);
    }
}
