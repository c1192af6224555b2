//! The cases of the Open Responses compliance suite (2026-04-24), with what each of them asserts, and
//! those that other published versions of it have beside them. They are asked at once, as the suite asks.

use super::socket::{Socket, gone};
use super::{fits, last, output, output_types, text_of, weather};
use crate::harness::{Served, Server};
use axum::body::Body;
use futures_util::StreamExt;
use futures_util::future::join_all;
use http::header;
use serde_json::{Value, json};

/// The suite's model.
const MODEL: &str = "gpt-4o-mini";
/// What the scripted model answers with a call of the suite's tool, as the suite wants of models.
const WEATHER: &str = "What's the weather like in San Francisco?";

/// The suite's model as an agent: one for all cases.
async fn server() -> Server {
    let config = "default_agent = \"gpt-4o-mini\"\n[models.plain]\nprovider = \"scripted\"\n[agents.gpt-4o-mini]\nmodel = \"plain\"\n";
    Server::new(config).await
}

fn said(role: &str, content: impl Into<Value>) -> Value {
    json!({"type": "message", "role": role, "content": content.into()})
}

fn phase(text: &str, phase: &str) -> Value {
    let mut message = said("assistant", text);
    message["phase"] = phase.into();
    message
}

/// A user's message of a text and another part.
fn with_part(text: &str, part: &Value) -> Value {
    said("user", json!([{"type": "input_text", "text": text}, part]))
}

fn is_completed(case: &str, response: &Value) {
    fits("ResponseResource", response);
    assert_eq!(response["status"], "completed", "{case}");
    assert!(!output_types(response).is_empty(), "{case}");
}

/// The name and the input of each case that is one request over HTTP.
fn requests() -> Vec<(&'static str, Value)> {
    let png = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII=";
    let image = json!({"type": "input_image", "image_url": png});
    let pdf = "data:application/pdf;base64,JVBERi0xLjEKJSVFT0Y=";
    let file = json!({"type": "input_file", "filename": "notes.pdf", "file_data": pdf});
    vec![
        ("basic-response", json!([said("user", "Say hello.")])),
        (
            "assistant-phase",
            json!([
                phase("Looking.", "commentary"),
                phase("Found.", "final_answer"),
                said("user", "Thanks")
            ]),
        ),
        (
            "system-prompt",
            json!([
                said("system", "You are a pirate."),
                said("user", "Say hello.")
            ]),
        ),
        ("tool-calling", json!([said("user", WEATHER)])),
        ("image-input", json!([with_part("What is it?", &image)])),
        (
            "file-input",
            json!([with_part("What is its title?", &file)]),
        ),
        (
            "multi-turn",
            json!([
                said("user", "I am Alice."),
                said("assistant", "Hello Alice!"),
                said("user", "Who am I?")
            ]),
        ),
    ]
}

#[tokio::test]
async fn every_case_over_http_is_answered_as_the_suite_wants_it() {
    let server = server().await;
    let cases = requests().into_iter().map(async |(case, input)| {
        let mut body = json!({"model": MODEL, "input": input});
        if case == "tool-calling" {
            body["tools"] = json!([weather()]);
        }
        let response = server.respond(body.clone()).await;
        is_completed(case, &response);
        // streaming-response, for each of them; every event was held against its schema.
        let events = server.respond_streaming(body.clone()).await;
        is_completed(case, last(&events));
        // Some versions say of each request whether it is a stream.
        body["stream"] = false.into();
        is_completed(case, &server.respond(body).await);
        if case != "tool-calling" {
            return;
        }
        for response in [&response, last(&events)] {
            assert_eq!(output_types(response), ["function_call"]);
        }
        // tool-calling-streaming
        let told: Vec<(&str, &Value)> = events
            .iter()
            .filter_map(|event| Some((event["type"].as_str()?, &event["item"]["type"])))
            .collect();
        let call = json!("function_call");
        for wanted in [
            ("response.output_item.added", &call),
            ("response.function_call_arguments.delta", &Value::Null),
            ("response.function_call_arguments.done", &Value::Null),
            ("response.output_item.done", &call),
        ] {
            assert!(told.contains(&wanted), "{wanted:?} is not in {told:?}");
        }
    });
    join_all(cases).await;
}

#[tokio::test]
async fn each_piece_of_a_stream_ends_with_a_whole_event() {
    // The suite's reader forgets the first half of an event that comes in two pieces.
    let server = server().await;
    let body = json!({"model": MODEL, "stream": true, "input": "say 200 words"}).to_string();
    let request = server.request("POST", "/v1/responses");
    let request = request.header(header::CONTENT_TYPE, "application/json");
    let request = request.body(Body::from(body)).unwrap();
    let (_, mut pieces) = server.open(request).await;
    let mut n_pieces = 0;
    while let Some(piece) = pieces.next().await {
        let piece = String::from_utf8(piece.unwrap().into()).unwrap();
        assert!(piece.ends_with("\n\n") && !piece.contains('\r'), "{piece}");
        n_pieces += 1;
    }
    assert!(n_pieces > 0);
}

#[tokio::test]
async fn what_was_said_in_phases_is_listed_with_them() {
    let server = server().await;
    let input = json!([
        phase("Looking.", "commentary"),
        phase("Found.", "final_answer"),
        said("user", "Thanks")
    ]);
    let response = server
        .respond(json!({"model": MODEL, "input": input}))
        .await;
    let path = format!(
        "/v1/responses/{}/input_items?order=asc",
        response["id"].as_str().unwrap()
    );
    let items = server.get(&path).await.json()["data"].clone();
    let phases: Vec<&Value> = items
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["phase"])
        .collect();
    assert_eq!(
        phases,
        [&json!("commentary"), &json!("final_answer"), &Value::Null]
    );
    // response-output-phase-schema
    let mut response = response;
    response["output"] = items;
    fits("ResponseResource", &response);
}

#[tokio::test]
async fn a_response_is_gone_on_with_as_the_suite_wants_it() {
    let server = server().await;
    // previous-response-id
    let first = server
        .respond(json!({"model": MODEL, "input": "Remember: papaya."}))
        .await;
    let body = json!({"model": MODEL, "previous_response_id": first["id"], "input": "Which word?"});
    is_completed("previous-response-id", &server.respond(body).await);
    // function-call-roundtrip
    let asked = server
        .respond(json!({
            "model": MODEL, "tools": [weather()], "input": "Use the weather tool for San Francisco.",
            "tool_choice": {"type": "function", "name": "get_weather"},
        }))
        .await;
    assert_eq!(output_types(&asked), ["function_call"]);
    let call_id = &asked["output"][0]["call_id"];
    let output = output(call_id, "clear");
    let body = json!({"model": MODEL, "previous_response_id": asked["id"], "input": [output]});
    let answered = server.respond(body).await;
    is_completed("function-call-roundtrip", &answered);
    assert_eq!(text_of(&answered), "get_weather gave clear.");
}

#[tokio::test]
async fn a_conversation_is_put_in_brief_as_the_suite_wants_it() {
    let server = server().await;
    // compact-response
    let conversation = [
        said("user", "We begin on Tuesday."),
        said("assistant", "So be it."),
    ];
    let body = json!({"model": MODEL, "prompt_cache_key": "k", "input": conversation});
    let answer = server.post("/v1/responses/compact", body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let brief = answer.json();
    fits("CompactResource", &brief);
    assert_eq!(brief["object"], "response.compaction");
    assert!(output_types(&brief).contains(&"compaction"));
    // compact-missing-model
    let body = json!({"input": [said("user", "Put this in brief.")]});
    let answer = server.post("/v1/responses/compact", body).await;
    assert_eq!(answer.status, 400);
    // websocket-compact-new-chain
    let input_text = |text: &str| json!([{"type": "input_text", "text": text}]);
    let conversation = [
        said("user", input_text("I am Alice.")),
        said(
            "assistant",
            json!([{"type": "output_text", "text": "Hello Alice!"}]),
        ),
        said("user", input_text("Put this in brief.")),
    ];
    let body = json!({"model": MODEL, "input": conversation});
    let answer = server.post("/v1/responses/compact", body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let brief = answer.json();
    assert_eq!(output_types(&brief), ["message", "message", "compaction"]);
    let listening = Served::new(server.app.clone()).await;
    let mut socket = Socket::open(&listening).await;
    let mut input = brief["output"].as_array().unwrap().clone();
    input.push(said("user", "And now?"));
    let response = socket
        .respond(json!({"model": MODEL, "store": false, "input": input, "tools": []}))
        .await;
    is_completed("websocket-compact-new-chain", &response);
    assert_eq!(text_of(&response), "You said: And now?");
    listening.stop().await;
    assert_eq!(server.app.default_runtime().running(), 0);
}

/// A message of the suite's over a WebSocket, which holds its own against the schema, too.
fn create(body: &Value) -> Value {
    let mut message = json!({"type": "response.create", "model": MODEL});
    let members = body.as_object().unwrap().clone();
    message.as_object_mut().unwrap().extend(members);
    fits("WebSocketResponseCreateEvent", &message);
    message
}

fn passing(input: &str) -> Value {
    create(&json!({"store": false, "input": input}))
}

fn passing_after(response: &Value, input: impl Into<Value>) -> Value {
    let id = &response["id"];
    create(&json!({"store": false, "previous_response_id": id, "input": input.into()}))
}

#[tokio::test]
async fn every_case_over_a_websocket_is_answered_as_the_suite_wants_it() {
    let server = server().await;
    let listening = Served::new(server.app.clone()).await;
    let open = async || Socket::open(&listening).await;
    let one = async {
        let mut socket = open().await;
        let message = create(&json!({"input": [said("user", "Count from 1 to 3.")]}));
        is_completed("websocket-response", &socket.respond(message).await);
    };
    let sequential = async {
        let mut socket = open().await;
        for word in ["first", "second"] {
            let response = socket.respond(passing(word)).await;
            is_completed("websocket-sequential-responses", &response);
        }
    };
    let continuation = async {
        let mut socket = open().await;
        let first = socket.respond(passing("Remember: cobalt.")).await;
        let second = socket.respond(passing_after(&first, "Which word?")).await;
        is_completed("websocket-continuation", &second);
    };
    let reconnect = async {
        let first = open().await.respond(passing("Remember: copper.")).await;
        let mut socket = open().await;
        assert_eq!(
            socket.refused(passing_after(&first, "Go on.")).await,
            gone()
        );
        let again = create(&json!({"store": false, "input": [said("user", "Begin anew.")]}));
        let again = socket.respond(again).await;
        is_completed("websocket-reconnect-store-false-recovery", &again);
    };
    let not_found = async {
        let missing = json!({"id": "resp_missing_1"});
        let message = passing_after(&missing, "Go on.");
        assert_eq!(open().await.refused(message).await, gone());
    };
    let evicts = async {
        let mut socket = open().await;
        let first = socket.respond(passing("Remember: ember.")).await;
        let stray = output(&json!("call_missing"), "x");
        let (status, _) = socket.refused(passing_after(&first, json!([stray]))).await;
        assert_eq!(status, 400);
        let again = passing_after(&first, "Go on.");
        assert_eq!(socket.refused(again).await, gone());
    };
    tokio::join!(one, sequential, continuation, reconnect, not_found, evicts);
    assert_eq!(server.n_threads().await, 1);
    listening.stop().await;
}

#[tokio::test]
async fn members_that_only_http_has_are_refused_over_a_websocket() {
    let server = server().await;
    let listening = Served::new(server.app.clone()).await;
    let mut socket = Socket::open(&listening).await;
    for (member, value) in [
        ("stream", json!(true)),
        ("stream_options", json!({"include_obfuscation": true})),
        ("background", json!(true)),
    ] {
        let mut message = passing("hi");
        message[member] = value;
        let refused = socket.refused(message).await;
        assert_eq!(refused, (400, "invalid_value".to_owned()), "{member}");
    }
    listening.stop().await;
}
