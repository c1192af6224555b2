//! Answers in all their shapes: unfinished, failed, late, and from hosts that stray.

use super::codec;
use super::round_trip::{params, sent, stored, streamed, what, whole};
use super::wire::{self, Host, Wire, call, reasoning, text, usage};
use crate::chunks::any_cut_is_the_same;
use loomline_upp::{
    AssistantContent, Code, Codec, Error, Media, Request, Response, Responses, StopReason,
};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

fn events(pieces: &[Value]) -> Result<Response, Error> {
    read(&codec(Host::Open), &Request::default(), pieces)
}

fn read(codec: &Responses, request: &Request, pieces: &[Value]) -> Result<Response, Error> {
    let mut decoder = codec.decoder(request);
    for piece in pieces {
        decoder.push(&piece.to_string())?;
    }
    decoder.finish().map(|(_, response)| response)
}

fn completed(output: &[Value]) -> Value {
    let response = wire::response("completed", output, &usage(1, 0, 1, 0));
    json!({"type": "response.completed", "response": response})
}

fn done(at: usize, item: &Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": at, "item": item})
}

#[test]
fn a_stream_is_read_the_same_however_it_is_cut() {
    let items = [
        reasoning("rs_1", &["Grüße"], Some("gA==")),
        call("fc_1", "call_1", "f", "{\"x\": \"🌍\"}"),
        text("msg_1", "né"),
    ];
    let mut wire = Wire::new(Host::Open);
    // The long resource would only repeat itself.
    wire.pieces.truncate(2);
    for (at, item) in items.iter().enumerate() {
        wire.item(at, item);
    }
    let end = json!({"response": {"id": "resp_0123456789", "status": "completed"}});
    wire.event("response.completed", end);
    any_cut_is_the_same(&codec(Host::Open), &wire.pieces.concat());
}

#[test]
fn an_answer_cut_short_by_the_limit_keeps_what_it_has() {
    let mut wire = Wire::new(Host::OpenAi);
    wire.item(0, &reasoning("rs_1", &["hm"], Some("gAAA")));
    wire.begun(1, &text("msg_1", "Hel"));
    wire.begun(2, &call("fc_1", "call_1", "f", "{\"x\": "));
    wire.begun(3, &reasoning("rs_2", &["unfinished"], Some("gBBB")));
    let mut response = wire::response("incomplete", &[], &usage(5, 0, 3, 1));
    response["incomplete_details"] = json!({"reason": "max_output_tokens"});
    wire.event("response.incomplete", json!({"response": response}));
    let codec = codec(Host::OpenAi);
    let (_, response) = streamed(&codec, &wire.pieces);
    assert_eq!(response.stop_reason, StopReason::MaxTokens);
    assert_eq!(response.message.joined_text(), "Hel");
    assert_eq!(response.message.tool_calls[0].arguments.text(), "{\"x\": ");
    let metadata = &response.message.metadata["openai"];
    assert_eq!(metadata["status"], "incomplete");
    assert_eq!(
        metadata["incomplete_details"],
        json!({"reason": "max_output_tokens"})
    );
    assert_eq!(response.usage.reasoning_tokens, 1);
    let (input, omitted) = sent(&codec, [stored(&response)], json!({}));
    // What was announced of the last reasoning may not be all of it.
    assert_eq!(what(&omitted), ["reasoning"]);
    assert_eq!(
        (&input[1]["status"], &input[2]["status"]),
        (&json!("incomplete"), &json!("incomplete"))
    );
    assert_eq!(input.as_array().unwrap().len(), 3);
}

#[test]
fn reasons_to_stop_are_translated() {
    let stop = |status: &str, reason: Value, output: &[Value]| {
        let mut response = wire::response(status, output, &Value::Null);
        response["incomplete_details"] = reason;
        whole(&codec(Host::OpenAi), &response).stop_reason
    };
    let said = [text("msg_1", "x")];
    assert_eq!(stop("completed", json!(null), &said), StopReason::EndTurn);
    let called = [call("fc_1", "c", "f", "{}")];
    assert_eq!(stop("completed", json!(null), &called), StopReason::ToolUse);
    let filtered = json!({"reason": "content_filter"});
    assert_eq!(
        stop("incomplete", filtered, &said),
        StopReason::ContentFilter
    );
    let own = json!({"reason": "max_tool_calls"});
    assert_eq!(
        stop("incomplete", own, &said),
        StopReason::Other("max_tool_calls".into())
    );
}

#[test]
fn a_refusal_counts_however_it_is_told() {
    let refusal = |text: &str| json!({"type": "refusal", "refusal": text});
    let item = |parts: Value| json!({"id": "msg_1", "type": "message", "role": "assistant", "content": parts});
    let empty = completed(&[]);
    let added =
        json!({"type": "response.output_item.added", "output_index": 0, "item": item(json!([]))});
    let part = json!({"type": "response.content_part.added", "item_id": "msg_1", "output_index": 0,
        "content_index": 0, "part": refusal("No.")});
    let delta = json!({"type": "response.refusal.delta", "item_id": "msg_1", "output_index": 0,
        "content_index": 0, "delta": "No."});
    for told in [
        vec![completed(&[item(json!([refusal("No.")]))])],
        vec![done(0, &item(json!([refusal("No.")]))), empty.clone()],
        vec![added.clone(), delta, empty.clone()],
        // The part is never said to be whole.
        vec![added, part, empty],
    ] {
        let response = events(&told).unwrap();
        assert_eq!(response.stop_reason, StopReason::ContentFilter, "{told:?}");
        assert_eq!(response.message.joined_text(), "No.");
    }
}

#[test]
fn a_failed_response_is_an_error_with_the_providers_reason() {
    let failed = |code: &str| {
        let mut response = wire::response("failed", &[], &Value::Null);
        response["error"] = json!({"code": code, "message": "Please try again in 20s."});
        let streamed = events(&[json!({"type": "response.failed", "response": response})]);
        let mut decoder = codec(Host::Open).decoder(&Request::default());
        let at_once = decoder.whole(&response.to_string()).unwrap_err();
        let error = streamed.unwrap_err();
        assert_eq!(
            (error.code, error.retry_after),
            (at_once.code, at_once.retry_after)
        );
        assert_eq!(error.retry_after, Some(Duration::from_secs(20)));
        error.code
    };
    assert_eq!(failed("rate_limit_exceeded"), Code::RateLimited);
    assert_eq!(failed("server_error"), Code::ProviderError);
    assert_eq!(
        failed("context_length_exceeded"),
        Code::ContextLengthExceeded
    );
    assert_eq!(failed("invalid_prompt"), Code::ContentFiltered);
    assert_eq!(failed("image_parse_error"), Code::InvalidRequest);
    assert_eq!(failed("of_the_future"), Code::ProviderError);
}

#[test]
fn errors_are_read_flat_and_nested() {
    let flat =
        json!({"type": "error", "code": "insufficient_quota", "message": "m", "param": null});
    let nested = json!({"type": "error", "error": {"type": "too_many_requests", "code": null,
        "message": "m", "param": null, "headers": {"retry-after": "3"}}});
    let gateway = json!({"error": {"code": 502, "message": "upstream"}});
    let plain = json!({"code": "The service is unavailable", "error": "Try later"});
    for (event, code) in [
        (flat, Code::QuotaExceeded),
        (nested, Code::RateLimited),
        (gateway, Code::ProviderError),
        (plain, Code::ProviderError),
    ] {
        let error = events(&[event]).unwrap_err();
        assert_eq!((error.code, error.provider.as_str()), (code, "acme"));
    }
}

#[test]
fn a_response_that_did_not_end_is_an_error() {
    let code = |pieces: &[Value]| events(pieces).unwrap_err().code;
    assert_eq!(code(&[]), Code::InvalidResponse);
    assert_eq!(code(&[json!({"hello": 1})]), Code::InvalidResponse);
    assert_eq!(code(&[done(0, &text("msg_1", "x"))]), Code::NetworkError);
    let queued = wire::response("queued", &[], &Value::Null);
    let event = json!({"type": "response.queued", "response": queued});
    assert_eq!(code(&[event]), Code::NetworkError);
    let cancelled = wire::response("cancelled", &[], &Value::Null);
    let event = json!({"type": "response.cancelled", "response": cancelled});
    assert_eq!(code(&[event]), Code::Cancelled);
    let mut decoder = codec(Host::Open).decoder(&Request::default());
    assert_eq!(decoder.push("[1]").unwrap_err().code, Code::InvalidResponse);
    assert_eq!(
        decoder.push("{oops").unwrap_err().code,
        Code::InvalidResponse
    );
    decoder.push("[DONE]").unwrap();
    assert_eq!(decoder.finish().unwrap_err().code, Code::InvalidResponse);
    let mut decoder = codec(Host::Open).decoder(&Request::default());
    let queued = queued.to_string();
    assert_eq!(
        decoder.whole(&queued).unwrap_err().code,
        Code::InvalidResponse
    );
}

#[test]
fn the_end_of_the_answer_adds_what_items_lacked() {
    let bare = reasoning("rs_1", &["hm"], None);
    let rich = reasoning("rs_1", &["hm"], Some("gAAA"));
    let mut cited = text("msg_1", "yes");
    cited["content"][0]["annotations"] = json!([{"type": "url_citation", "url": "https://x"}]);
    let output = [rich, cited, call("fc_1", "c", "f", "{}")];
    let pieces = [
        done(0, &bare),
        done(1, &text("msg_1", "yes")),
        completed(&output),
    ];
    let response = events(&pieces).unwrap();
    let (input, _) = sent(&codec(Host::Open), [stored(&response)], json!({}));
    assert_eq!(input, json!(output));
    // An end that says less takes nothing away.
    let response = events(&[done(0, &output[0]), done(1, &output[1]), completed(&[])]).unwrap();
    let (input, _) = sent(&codec(Host::Open), [stored(&response)], json!({}));
    assert_eq!(input, json!(output[..2]));
}

#[test]
fn hosts_that_leave_events_out_are_understood() {
    let said = [text("msg_1", "Hello"), call("fc_1", "c", "f", "{\"x\":1}")];
    let of = |pieces: &[Value]| {
        let response = events(pieces).unwrap();
        assert_eq!(response.message.joined_text(), "Hello", "{pieces:?}");
        let calls = &response.message.tool_calls;
        assert_eq!(calls.len(), 1, "{pieces:?}");
        assert_eq!(calls[0].arguments.text(), "{\"x\":1}", "{pieces:?}");
    };
    // Nothing but the end.
    of(&[completed(&said)]);
    let response = wire::response("completed", &said, &Value::Null);
    of(&[json!({"type": "response.done", "response": response})]);
    of(&[response]);
    // Items that are whole at once, without an index.
    let done = |item: &Value| json!({"type": "response.output_item.done", "item": item});
    of(&[done(&said[0]), done(&said[1]), completed(&[])]);
    // Pieces without a beginning.
    let delta = |kind: &str, at: usize, text: &str| json!({"type": kind, "output_index": at, "delta": text});
    of(&[
        delta("response.output_text.delta", 0, "Hel"),
        delta("response.content_part.delta", 0, "lo"),
        delta("response.function_call_arguments.delta", 1, "{\"x\""),
        json!({"type": "response.output_item.added", "output_index": 1,
            "item": {"type": "function_call", "call_id": "c", "name": "f", "arguments": ""}}),
        delta("response.function_call_arguments.delta", 1, ":1}"),
        completed(&[]),
    ]);
    // Pieces whose item is known by its id alone, their members in any order, among pieces of nothing.
    let added = |item: &Value| json!({"type": "response.output_item.added", "item": item});
    let piece =
        |kind: &str, id: &str, text: Value| json!({"delta": text, "item_id": id, "type": kind});
    let part = "response.output_text.delta";
    let arguments = "response.function_call_arguments.delta";
    of(&[
        added(&json!({"type": "message", "id": "msg_1", "role": "assistant", "content": []})),
        added(
            &json!({"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": ""}),
        ),
        piece(part, "msg_1", json!("Hel")),
        piece(arguments, "fc_1", json!("{\"x\"")),
        piece(part, "msg_1", json!({"text": "no"})),
        piece(part, "msg_1", json!("lo")),
        piece(part, "msg_1", Value::Null),
        piece(arguments, "fc_1", json!(":1}")),
        completed(&[]),
    ]);
    // The text as a string, and ids that change with each event.
    let mut plain = said[0].clone();
    plain["content"] = json!("Hello");
    let mut renamed = said[1].clone();
    renamed["id"] = json!("fc_other");
    of(&[
        delta("response.output_text.delta", 0, "Hel"),
        completed(&[plain, renamed]),
    ]);
}

#[test]
fn calls_that_share_an_id_are_told_apart() {
    let items = [
        call("fc_1", "call_0", "f", "{}"),
        call("fc_2", "call_0", "g", "{}"),
    ];
    let response = events(&[completed(&items)]).unwrap();
    let [f, g] = response.message.tool_calls.as_slice() else {
        panic!("two calls")
    };
    assert_eq!(f.tool_call_id.as_str(), "call_0");
    assert_ne!(f.tool_call_id, g.tool_call_id);
}

#[test]
fn the_data_is_the_last_message_only() {
    let structured = Request {
        structure: Some(Arc::new(json!({"type": "object"}))),
        ..Request::default()
    };
    let data = |output: &[Value]| {
        let pieces = [completed(output)];
        read(&codec(Host::OpenAi), &structured, &pieces).map(|response| response.data)
    };
    let preface = text("msg_1", "Let me see.");
    let answer = text("msg_2", "{\"n\": 1}");
    assert_eq!(
        data(&[preface.clone(), answer.clone()]).unwrap(),
        Some(json!({"n": 1}))
    );
    assert_eq!(
        data(&[answer.clone(), call("fc_1", "c", "f", "{}")]).unwrap(),
        None
    );
    let mut refused = preface.clone();
    refused["content"] = json!([{"type": "refusal", "refusal": "No."}]);
    assert_eq!(data(&[refused]).unwrap(), None);
    assert_eq!(data(&[preface]).unwrap_err().code, Code::InvalidResponse);
    let unasked = read(
        &codec(Host::OpenAi),
        &Request::default(),
        &[completed(&[answer])],
    );
    assert_eq!(unasked.unwrap().data, None);
}

#[test]
fn usage_is_counted_in_the_protocols_terms() {
    let count = |usage: Value| {
        let response = wire::response("completed", &[text("msg_1", "x")], &usage);
        whole(&codec(Host::Xai), &response).usage
    };
    let raw = json!({"input_tokens": 20, "input_tokens_details": {"cached_tokens": 12, "cache_write_tokens": 4},
        "output_tokens": 9, "output_tokens_details": {"reasoning_tokens": 5}, "total_tokens": 29, "num_sources_used": 1});
    let usage = count(raw.clone());
    assert_eq!((usage.input_tokens, usage.output_tokens), (20, 9));
    assert_eq!((usage.cache_read_tokens, usage.cache_write_tokens), (12, 4));
    assert_eq!((usage.reasoning_tokens, usage.raw), (5, Some(raw.into())));
    // Here the total shows that reasoning is counted apart.
    let apart = json!({"input_tokens": 32, "output_tokens": 9,
        "output_tokens_details": {"reasoning_tokens": 110}, "total_tokens": 151});
    assert_eq!(count(apart).output_tokens, 119);
}

#[test]
fn a_generated_image_is_a_block() {
    let image = json!({"id": "ig_1", "type": "image_generation_call", "status": "completed",
        "result": "iVBORw0KGgo="});
    let codec = codec(Host::OpenAi);
    let (_, response) = streamed(
        &codec,
        &wire::stream(Host::OpenAi, std::slice::from_ref(&image)),
    );
    let source = loomline_upp::MediaSource::Base64 {
        data: "iVBORw0KGgo=".into(),
    };
    let media = Media::new(source, "image/png");
    assert_eq!(response.message.content, [AssistantContent::Image(media)]);
    let (input, _) = sent(&codec, [stored(&response)], json!({}));
    assert_eq!(input, json!([image]));
}

#[test]
fn the_metadata_says_what_answered_and_how() {
    let mut response = wire::response("completed", &[text("msg_1", "x")], &Value::Null);
    response["citations"] = json!(["https://x.example"]);
    let read = whole(&codec(Host::Xai), &response);
    assert_eq!((&*read.model_id, &*read.provider), (wire::SNAPSHOT, "xai"));
    assert_eq!(read.message.id.as_str(), response["id"]);
    assert_eq!(read.response_id.as_deref(), response["id"].as_str());
    let mut metadata = read.message.metadata["xai"].clone();
    metadata.as_object_mut().unwrap().remove("items");
    assert_eq!(
        metadata,
        json!({
            "model": wire::SNAPSHOT, "requested_model": "gpt-5.1", "status": "completed",
            "service_tier": "default", "response_id": response["id"],
            "citations": ["https://x.example"],
        })
    );
    // Whether it is stored is remembered, from the request if the host does not say.
    response.as_object_mut().unwrap().remove("store");
    let asked = Request {
        params: params(json!({"store": true})),
        ..Request::default()
    };
    let read = read_whole(&asked, &response);
    assert_eq!(read.message.metadata["openai"]["store"], true);
}

fn read_whole(request: &Request, response: &Value) -> Response {
    let mut decoder = codec(Host::OpenAi).decoder(request);
    decoder.whole(&response.to_string()).unwrap();
    decoder.finish().unwrap().1
}
