use super::*;
use crate::codec::Decoder as _;
use crate::content::{AssistantContent, Media, MediaSource, UserContent};
use crate::error::{Code, Error};
use crate::event::StreamEvent;
use crate::message::{AssistantMessage, Message, MessageOptions, ToolResultMessage, UserMessage};
use crate::model::{Request, Response, StopReason, ToolChoice};
use crate::tool::{Arguments, Tool, ToolCall, ToolOutput, ToolResult};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use std::sync::Arc;

fn decode(chunks: &[Value], structured: bool) -> Result<(Vec<StreamEvent>, Response), Error> {
    decode_as(&Dialect::openai(), chunks, structured)
}

fn decode_as(
    dialect: &Dialect,
    chunks: &[Value],
    structured: bool,
) -> Result<(Vec<StreamEvent>, Response), Error> {
    let mut decoder = Box::new(Decoder::new(dialect, "m".into(), structured));
    let mut events = Vec::new();
    for chunk in chunks {
        events.extend(decoder.push(&chunk.to_string())?);
    }
    let (last, response) = decoder.finish()?;
    events.extend(last);
    Ok((events, response))
}

fn delta(delta: &Value) -> Value {
    json!({"id": "chatcmpl-0123456789", "model": "m-1", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn end(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn calls(response: &Response) -> Vec<(&str, &str, &str)> {
    response
        .message
        .tool_calls
        .iter()
        .map(|call| {
            (
                call.tool_call_id.as_str(),
                &*call.tool_name,
                call.arguments.text(),
            )
        })
        .collect()
}

fn tool_delta(call: &Value) -> Value {
    delta(&json!({"tool_calls": [call]}))
}

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

fn media(source: MediaSource, mime_type: &str) -> Media {
    Media::new(source, mime_type)
}

fn request() -> Request {
    let call = ToolCall {
        tool_call_id: "c1".into(),
        tool_name: "f".into(),
        arguments: Arguments::from_text("{ \"x\": 1.0 }"),
        after: Vec::new(),
    };
    let result = |id: &str, result: Value| ToolResult {
        tool_call_id: id.into(),
        result: result.into(),
        is_error: false,
    };
    let user = UserMessage::new(
        vec![
            UserContent::Text { text: "see".into() },
            UserContent::Image(media(
                MediaSource::Base64 {
                    data: "QUJD".into(),
                },
                "image/png",
            )),
            UserContent::Document(media(
                MediaSource::Base64 {
                    data: "QUJD".into(),
                },
                "application/pdf",
            )),
        ],
        MessageOptions::default(),
    );
    let text = vec![AssistantContent::Reasoning {
        text: "hm".into(),
        signature: None,
    }];
    Request {
        messages: [
            Message::from("hi"),
            user.into(),
            AssistantMessage::new(text, vec![call], MessageOptions::default()).into(),
            ToolResultMessage::new(
                vec![result("c1", json!("text")), result("c2", json!({"a": 1}))],
                MessageOptions::default(),
            )
            .into(),
        ]
        .into_iter()
        .collect(),
        system: Some("be kind".into()),
        ..Request::default()
    }
}

fn encoded(request: &Request) -> Value {
    encoded_as(&ChatCompletions::openai("gpt"), request)
}

fn encoded_as(codec: &ChatCompletions, request: &Request) -> Value {
    serde_json::from_str(&codec.encode(request).unwrap().body).unwrap()
}

#[test]
fn messages_are_written_as_the_format_wants() {
    let body = encoded(&request());
    assert_eq!(
        body["messages"],
        json!([
            {"role": "system", "content": "be kind"},
            {"role": "user", "content": "hi"},
            {"role": "user", "content": [
                {"type": "text", "text": "see"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
                {"type": "file", "file": {"filename": "document.pdf", "file_data": "data:application/pdf;base64,QUJD"}},
            ]},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{ \"x\": 1.0 }"}},
            ]},
            {"role": "tool", "tool_call_id": "c1", "content": "text"},
            {"role": "tool", "tool_call_id": "c2", "content": "{\"a\":1}"},
        ])
    );
}

#[test]
fn params_come_first_and_never_win() {
    let mut asked = request();
    let params =
        json!({"temperature": 0.5, "model": "other", "stream": false, "stream_options": {"x": 1}});
    asked.params = Arc::new(params.as_object().unwrap().clone());
    asked.tool_choice = ToolChoice::Tool("f".into());
    let mut tool = Tool::new(
        "f",
        "does",
        json!({"type": "object"}),
        |_: Value, _| -> BoxFuture<'static, ToolOutput> { Box::pin(async { Ok(Value::Null) }) },
    );
    tool.metadata
        .insert("openai".into(), json!({"strict": true}));
    asked.tools = [tool].into();
    asked.structure = Some(Arc::new(json!({"type": "object", "description": "d"})));
    let mut body = encoded(&asked);
    body.as_object_mut().unwrap().shift_remove("messages");
    assert_eq!(
        body,
        json!({
            "temperature": 0.5, "model": "gpt", "stream": true,
            "stream_options": {"x": 1, "include_usage": true},
            "tools": [{"type": "function", "function": {
                "name": "f", "description": "does", "parameters": {"type": "object"}, "strict": true}}],
            "tool_choice": {"type": "function", "function": {"name": "f"}},
            "response_format": {"type": "json_schema", "json_schema": {
                "name": "json_response", "description": "d",
                "schema": {"type": "object", "description": "d"}}},
        })
    );
}

#[test]
fn nothing_is_said_about_calls_where_there_are_no_tools() {
    let mut asked = request();
    let params = json!({"parallel_tool_calls": false, "tool_choice": "auto"});
    asked.params = Arc::new(params.as_object().unwrap().clone());
    let body = encoded(&asked);
    assert_eq!(body.get("parallel_tool_calls"), None);
    assert_eq!(body.get("tool_choice"), None);
    let native = json!({"parallel_tool_calls": false, "tools": [{"type": "web_search"}]});
    asked.params = Arc::new(native.as_object().unwrap().clone());
    assert_eq!(encoded(&asked)["parallel_tool_calls"], json!(false));
}

#[test]
fn an_answer_has_one_limit_and_settings_have_the_last_word() {
    let settings = Settings {
        max_output_tokens: Some(7),
        ..Settings::default()
    };
    let (older, newer) = ("max_tokens", "max_completion_tokens");
    for (dialect, name) in [(Dialect::openai(), newer), (Dialect::groq(), older)] {
        let codec = ChatCompletions::new(dialect, "m");
        for own in [older, newer] {
            let mut params = Map::from_iter([(own.to_owned(), json!(9))]);
            let mut asked = request();
            asked.params = Arc::new(params.clone());
            assert_eq!(encoded_as(&codec, &asked)[own], json!(9));
            crate::settings::merge(&mut params, &codec.settings(&settings).params);
            asked.params = Arc::new(params);
            let body = encoded_as(&codec, &asked);
            let limits: Vec<_> = [older, newer].map(|it| body.get(it)).into();
            let expected = [older, newer].map(|it| (it == name).then_some(json!(7)));
            assert_eq!(limits, expected.each_ref().map(Option::as_ref));
        }
    }
}

#[test]
fn what_the_format_can_not_say_is_refused() {
    for block in [
        UserContent::Document(media(
            MediaSource::Url {
                url: "https://x".into(),
            },
            "application/pdf",
        )),
        UserContent::Video(media(
            MediaSource::Url {
                url: "https://x".into(),
            },
            "video/mp4",
        )),
        UserContent::Binary(media(
            MediaSource::Base64 {
                data: String::new(),
            },
            "x/y",
        )),
    ] {
        let asked = Request {
            messages: [Message::from(block)].into_iter().collect(),
            ..Request::default()
        };
        assert_eq!(
            ChatCompletions::openai("gpt")
                .encode(&asked)
                .unwrap_err()
                .code,
            Code::InvalidRequest
        );
    }
}

#[cfg(feature = "http")]
mod bytes {
    use super::*;
    use crate::answer;
    use crate::model::ModelEvent;
    use ::bytes::Bytes;
    use futures_util::StreamExt;
    use proptest::prelude::*;

    const STREAM: &str = "\u{feff}: hello\r\n\r\nevent: x\ndata: {\"id\":\"chatcmpl-0123456789\",\"choices\":[{\"delta\":{\"content\":\"Grüße \"}}]}\n\n\
        data: {\"choices\":[{\"delta\":{\"content\":\"🌍\",\ndata: \"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}}]}\r\n\r\n\
        data:{\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n\
        data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n";

    async fn read(
        pieces: Vec<Vec<u8>>,
        most: usize,
    ) -> (Vec<StreamEvent>, Result<Response, Error>) {
        let pieces = pieces.into_iter().map(|piece| Ok(Bytes::from(piece)));
        let codec = ChatCompletions::openai("m");
        let decoder = codec.decoder(&Request::default());
        let bytes = futures_util::stream::iter(pieces);
        let mut stream = std::pin::pin!(answer(&codec, decoder, bytes, most));
        let mut events = Vec::new();
        while let Some(item) = stream.next().await {
            match item {
                Ok(ModelEvent::Event(event)) => events.push(event),
                Ok(ModelEvent::Done(response)) => return (events, Ok(*response)),
                Err(error) => return (events, Err(error)),
            }
        }
        panic!("no end")
    }

    fn same(response: &Response) -> Value {
        json!([
            response.message.content,
            response.message.tool_calls,
            response.message.id,
            response.usage
        ])
    }

    #[tokio::test]
    async fn a_cut_at_any_byte_changes_nothing() {
        let bytes = STREAM.as_bytes();
        let (events, whole) = read(vec![bytes.to_vec()], 1 << 20).await;
        let whole = whole.unwrap();
        assert_eq!(whole.message.joined_text(), "Grüße 🌍");
        assert_eq!(
            (calls(&whole), whole.usage.output_tokens),
            (vec![("a", "f", "{}")], 2)
        );
        for at in 0..=bytes.len() {
            let (left, right) = bytes.split_at(at);
            let (cut_events, cut) = read(vec![left.to_vec(), right.to_vec()], 1 << 20).await;
            assert_eq!(
                (cut_events, same(&cut.unwrap())),
                (events.clone(), same(&whole)),
                "cut at {at}"
            );
        }
    }

    #[tokio::test]
    async fn an_end_at_any_byte_gives_the_whole_answer_or_an_error() {
        let bytes = STREAM.as_bytes();
        let finished = STREAM.find("\"tool_calls\"}]}").unwrap() + "\"tool_calls\"}]}".len();
        for at in 0..=bytes.len() {
            let (_, outcome) = read(vec![bytes[..at].to_vec()], 1 << 20).await;
            match outcome {
                Ok(response) => {
                    assert!(at >= finished, "ended at {at}");
                    assert_eq!(calls(&response), [("a", "f", "{}")]);
                }
                Err(error) => {
                    assert!(at < finished, "ended at {at}: {error}");
                    assert!(matches!(
                        error.code,
                        Code::NetworkError | Code::InvalidResponse
                    ));
                }
            }
        }
    }

    #[tokio::test]
    async fn an_endless_event_is_refused() {
        let pieces = vec![vec![b'x'; 1000]; 20];
        let (_, outcome) = read(pieces, 10_000).await;
        let error = outcome.unwrap_err();
        assert_eq!(error.code, Code::InvalidResponse);
        assert!(error.message.contains("10000"), "{error}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn any_chunking_gives_the_same_answer(cuts in prop::collection::vec(0..STREAM.len(), 0..12)) {
            let mut cuts = cuts;
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts {
                pieces.push(STREAM.as_bytes()[from..cut].to_vec());
                from = cut;
            }
            pieces.push(STREAM.as_bytes()[from..].to_vec());
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let (events, cut) = runtime.block_on(read(pieces, 1 << 20));
            let (expected, whole) = runtime.block_on(read(vec![STREAM.as_bytes().to_vec()], 1 << 20));
            prop_assert_eq!(events, expected);
            prop_assert_eq!(same(&cut.unwrap()), same(&whole.unwrap()));
        }
    }
}
