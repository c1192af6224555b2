//! What the provider said goes back as it was.

use super::codec;
use super::wire::{self, Host, call, reasoning, stream, text};
use loomline_upp::{
    AssistantContent, AssistantMessage, Codec, Message, Omission, Request, Response, Responses,
    StreamEvent,
};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Reads a whole answer that was not streamed.
pub(super) fn whole(codec: &Responses, response: &Value) -> Response {
    let mut decoder = codec.decoder(&Request::default());
    decoder.whole(&response.to_string()).unwrap();
    decoder.finish().unwrap().1
}

/// Reads a stream of these items.
pub(super) fn streamed(codec: &Responses, pieces: &[String]) -> (Vec<StreamEvent>, Response) {
    let mut decoder = codec.decoder(&Request::default());
    let mut events = Vec::new();
    for piece in pieces {
        if let Some((_, data)) = piece.split_once("data: ") {
            events.extend(decoder.push(data.trim()).unwrap());
        }
    }
    let (last, response) = decoder.finish().unwrap();
    events.extend(last);
    (events, response)
}

/// The message after a stay in a store.
pub(super) fn stored(response: &Response) -> Message {
    let text = serde_json::to_string(&Message::from(response.message.clone())).unwrap();
    serde_json::from_str(&text).unwrap()
}

pub(super) fn params(params: Value) -> Arc<Map<String, Value>> {
    let Value::Object(params) = params else {
        panic!("params are an object")
    };
    Arc::new(params)
}

/// The input items that a conversation becomes, and what of it was left out.
pub(super) fn sent(
    codec: &Responses,
    messages: impl IntoIterator<Item = Message>,
    with: Value,
) -> (Value, Vec<Omission>) {
    let request = Request {
        messages: messages.into_iter().collect(),
        params: params(with),
        ..Request::default()
    };
    let encoded = codec.encode(&request).unwrap();
    let body: Value = serde_json::from_str(&encoded.body).unwrap();
    (body["input"].clone(), encoded.omitted)
}

pub(super) fn what(omitted: &[Omission]) -> Vec<&str> {
    omitted
        .iter()
        .map(|omission| omission.what.as_str())
        .collect()
}

/// One of each: several reasoning items, interleaved with text, hosted tools and calls.
pub(super) fn everything() -> Vec<Value> {
    let cited = json!({
        "id": "msg_0a", "type": "message", "status": "completed", "role": "assistant",
        "phase": "commentary",
        "content": [
            {"type": "output_text", "text": "Oslo is cold.", "logprobs": [],
                "annotations": [{"type": "url_citation", "start_index": 0, "end_index": 4,
                    "url": "https://example.org", "title": "Oslo"}]},
            {"type": "acme:chart", "rows": [1, 2]},
            {"type": "output_text", "text": "Very.", "annotations": [], "logprobs": [
                {"token": "Very", "logprob": -0.25, "bytes": [86], "top_logprobs": []}]},
        ],
    });
    vec![
        reasoning(
            "rs_1",
            &["**First**\n\nthink", "**Then** act"],
            Some("gAAAAA1=="),
        ),
        json!({"id": "ws_1", "type": "web_search_call", "status": "completed",
            "action": {"type": "search", "query": "oslo", "sources": null}}),
        reasoning("rs_2", &[], Some("gAAAAA2==")),
        cited,
        json!({"id": "fs_1", "type": "file_search_call", "status": "completed",
            "queries": ["q"], "results": null}),
        json!({"id": "ci_1", "type": "code_interpreter_call", "status": "completed",
            "container_id": "cntr_1", "code": "1+1", "outputs": [{"type": "logs", "logs": "2"}]}),
        json!({"id": "mcpl_1", "type": "mcp_list_tools", "server_label": "s", "tools": []}),
        json!({"id": "mcp_1", "type": "mcp_call", "server_label": "s", "name": "roll",
            "arguments": "{\"n\": 6}", "output": "4", "error": null}),
        json!({"id": "cu_1", "type": "computer_call", "call_id": "call_c", "status": "completed",
            "action": {"type": "screenshot"}, "pending_safety_checks": []}),
        json!({"id": "ig_1", "type": "image_generation_call", "status": "completed",
            "result": "/9j/4AAQSkZJRg==", "output_format": "jpeg", "size": "1024x1024",
            "revised_prompt": "a cat"}),
        json!({"id": "cmp_1", "type": "compaction", "encrypted_content": "gAAAAAc=="}),
        json!({"id": "x_1", "type": "acme:telepathy", "status": "completed", "waves": [0.5, 1e100]}),
        call("fc_1", "call_1", "f", "{ \"x\" : 1.0,\n\t\"x\": 2 }"),
        json!({"id": "ctc_1", "type": "custom_tool_call", "call_id": "call_2", "name": "sh",
            "input": "echo \"hi\"\n\\ 🌍", "status": "completed"}),
        call("fc_2", "call_3", "g", ""),
        json!({"id": "msg_0b", "type": "message", "status": "completed", "role": "assistant",
            "phase": "final_answer", "content": [{"type": "refusal", "refusal": "No."}]}),
    ]
}

#[test]
fn every_item_goes_back_as_it_was_streamed_or_not() {
    let items = everything();
    for host in [Host::OpenAi, Host::Xai, Host::OpenRouter, Host::Open] {
        let codec = codec(host);
        let at_once = whole(&codec, &wire::response("completed", &items, &Value::Null));
        let (_, in_pieces) = streamed(&codec, &stream(host, &items));
        assert_eq!(in_pieces.message.content, at_once.message.content);
        assert_eq!(in_pieces.message.tool_calls, at_once.message.tool_calls);
        assert_eq!(in_pieces.message.metadata, at_once.message.metadata);
        for response in [at_once, in_pieces] {
            let (input, omitted) = sent(&codec, [stored(&response)], json!({}));
            assert_eq!(omitted, []);
            assert_eq!(input, Value::from(items.clone()));
        }
    }
}

#[test]
fn the_message_shows_what_a_person_and_a_tool_need() {
    let codec = codec(Host::OpenAi);
    let (events, response) = streamed(&codec, &stream(Host::OpenAi, &everything()));
    let seen: Vec<(&str, &str)> = response
        .message
        .content
        .iter()
        .map(|block| match block {
            AssistantContent::Text { text } => ("text", text.as_str()),
            AssistantContent::Reasoning { text, .. } => ("reasoning", text.as_str()),
            AssistantContent::Image(media) => ("image", media.mime_type.as_str()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("reasoning", "**First**\n\nthink"),
            ("reasoning", "**Then** act"),
            ("reasoning", ""),
            ("text", "Oslo is cold."),
            ("text", "Very."),
            ("image", "image/jpeg"),
            ("text", "No."),
        ]
    );
    let calls: Vec<_> = response
        .message
        .tool_calls
        .iter()
        .map(|call| (&*call.tool_name, call.arguments.parse().unwrap()))
        .collect();
    assert_eq!(
        calls,
        [
            ("f", json!({"x": 2})),
            ("sh", json!({"input": "echo \"hi\"\n\\ 🌍"})),
            ("g", json!({})),
        ]
    );
    let starts = |event: &&StreamEvent| matches!(event, StreamEvent::ContentBlockStart { .. });
    assert_eq!(events.iter().filter(starts).count(), 7);
}

#[test]
fn nothing_is_kept_twice() {
    let items = everything();
    let response = whole(
        &codec(Host::OpenAi),
        &wire::response("completed", &items, &Value::Null),
    );
    let text = serde_json::to_string(&response.message).unwrap();
    for once in [
        "/9j/4AAQSkZJRg==",
        "gAAAAA1==",
        "Oslo is cold.",
        "Then** act",
        "call_3",
    ] {
        assert_eq!(text.matches(once).count(), 1, "{once} in {text}");
    }
}

#[test]
fn reasoning_that_is_not_encrypted_is_left_out_with_its_ties() {
    let hosted = json!({"id": "ws_1", "type": "web_search_call", "status": "completed"});
    let items = [
        reasoning("rs_1", &["think"], None),
        hosted.clone(),
        call("fc_1", "call_1", "f", "{}"),
        text("msg_1", "so"),
        reasoning("rs_2", &[], Some("gAAA")),
        hosted.clone(),
        text("msg_2", "yes"),
    ];
    let codec = codec(Host::OpenAi);
    let response = whole(&codec, &wire::response("completed", &items, &Value::Null));
    let (input, omitted) = sent(&codec, [stored(&response)], json!({}));
    assert_eq!(what(&omitted), ["reasoning", "provider_item"]);
    let content = items[3]["content"].clone();
    assert_eq!(
        input,
        json!([
            {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"},
            {"type": "message", "role": "assistant", "content": content},
            items[4], hosted, items[6],
        ])
    );
}

#[test]
fn stored_reasoning_goes_back_by_its_id_while_it_is_stored() {
    let items = [
        reasoning("rs_1", &[], None),
        reasoning("rs_2", &["think"], None),
        text("msg_1", "yes"),
    ];
    let codec = codec(Host::OpenAi);
    let mut resource = wire::response("completed", &items, &Value::Null);
    resource["store"] = json!(true);
    let kept = stored(&whole(&codec, &resource));
    let (input, omitted) = sent(&codec, [kept.clone()], json!({"store": true}));
    assert_eq!((input, what(&omitted)), (json!(items), vec![]));
    let (_, omitted) = sent(&codec, [kept], json!({}));
    assert_eq!(what(&omitted), ["reasoning", "reasoning"]);
    // An answer that was never stored is not found later.
    resource["store"] = json!(false);
    let kept = stored(&whole(&codec, &resource));
    let (_, omitted) = sent(&codec, [kept], json!({"store": true}));
    assert_eq!(what(&omitted), ["reasoning", "reasoning"]);
}

#[test]
fn reasoning_that_nothing_follows_is_left_out() {
    let items = [
        text("msg_1", "so"),
        reasoning("rs_1", &["hm"], Some("gAAA")),
    ];
    let codec = codec(Host::OpenAi);
    let response = whole(&codec, &wire::response("completed", &items, &Value::Null));
    let (input, omitted) = sent(&codec, [stored(&response), "go on".into()], json!({}));
    assert_eq!(what(&omitted), ["reasoning"]);
    assert_eq!(input[0], items[0]);
    assert_eq!(input.as_array().unwrap().len(), 2);
}

#[test]
fn a_host_of_open_models_gets_its_readable_reasoning_if_it_takes_it() {
    let readable = json!({"id": "rs_1", "type": "reasoning", "summary": [],
        "content": [{"type": "reasoning_text", "text": "let me think"}]});
    let items = [readable, text("msg_1", "yes")];
    let strict = codec(Host::Open);
    let response = whole(&strict, &wire::response("completed", &items, &Value::Null));
    let (_, omitted) = sent(&strict, [stored(&response)], json!({}));
    assert_eq!(what(&omitted), ["reasoning"]);
    let open = strict.with_plain_reasoning(true);
    let (input, omitted) = sent(&open, [stored(&response)], json!({}));
    assert_eq!((input, what(&omitted)), (json!(items), vec![]));
}

#[test]
fn another_model_gets_texts_and_calls_and_a_report() {
    let codec = codec(Host::OpenAi);
    let items = everything();
    let kept = stored(&whole(
        &codec,
        &wire::response("completed", &items, &Value::Null),
    ));
    for other in [Responses::openai("gpt-6"), Responses::xai("gpt-5.1")] {
        let (input, omitted) = sent(&other, [kept.clone()], json!({}));
        let kinds: Vec<&str> = input
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["type"].as_str().unwrap())
            .collect();
        assert_eq!(
            kinds,
            [
                "message",
                "message",
                "message",
                "function_call",
                "function_call",
                "function_call"
            ]
        );
        assert_eq!(input[0]["content"], "Oslo is cold.");
        assert_eq!(input[5]["arguments"], "{}");
        let mut what = what(&omitted);
        what.sort_unstable();
        what.dedup();
        assert_eq!(what, ["citation", "image", "provider_item", "reasoning"]);
        assert!(!input.to_string().contains("gAAA"));
    }
    // Back at the model it is from, all of it is there.
    assert_eq!(sent(&codec, [kept], json!({})).0, Value::from(items));
}

#[test]
fn an_edited_message_goes_as_it_is_now() {
    let codec = codec(Host::OpenAi);
    let items = [text("msg_1", "one"), text("msg_2", "two")];
    let response = whole(&codec, &wire::response("completed", &items, &Value::Null));
    let mut edited = response.message.clone();
    edited.content.remove(0);
    let (input, _) = sent(&codec, [edited.into()], json!({}));
    let two = json!({"type": "message", "role": "assistant", "content": "two"});
    assert_eq!(input, json!([two]));
    let mut edited = response.message;
    edited.content[0] = AssistantContent::Text { text: "ONE".into() };
    let (input, _) = sent(&codec, [edited.into()], json!({}));
    assert_eq!(input[0]["content"][0]["text"], "ONE");
}

#[test]
fn a_message_of_another_format_of_the_provider_is_not_taken_for_ours() {
    let metadata = json!({"openai": {"model": "gpt-5.1", "finish_reason": "stop",
        "items": [{"content": 0, "with": {"x": 1}}, {"native": {"type": "x"}}]}});
    let options = loomline_upp::MessageOptions {
        metadata: metadata.as_object().cloned().map(Into::into),
        ..Default::default()
    };
    let said = vec![AssistantContent::Text { text: "hi".into() }];
    let message = AssistantMessage::new(said, Vec::new(), options);
    let (input, omitted) = sent(&codec(Host::OpenAi), [message.into()], json!({}));
    let hi = json!({"type": "message", "role": "assistant", "content": "hi"});
    assert_eq!(
        (input, what(&omitted)),
        (json!([hi]), vec!["provider_item"])
    );
}
