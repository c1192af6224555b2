//! The cases of the Open Responses compliance suite (2026-04-24), with what each of them asserts.

use super::socket::Socket;
use super::{fits, last, output_types, text_of, weather};
use crate::harness::{Served, Server};
use serde_json::{Value, json};

/// The suite's model as an agent: one for all cases.
async fn server() -> Server {
    let config = "default_agent = \"gpt-4o-mini\"\n[models.plain]\nprovider = \"scripted\"\n[agents.gpt-4o-mini]\nmodel = \"plain\"\n";
    Server::new(config).await
}

fn said(role: &str, content: impl Into<Value>) -> Value {
    json!({"type": "message", "role": role, "content": content.into()})
}

#[tokio::test]
async fn every_case_over_http_is_answered_as_the_suite_wants_it() {
    let server = server().await;
    let png = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII=";
    let phase = |text: &str, phase: &str| {
        let mut message = said("assistant", text);
        message["phase"] = phase.into();
        message
    };
    let cases = [
        (
            "basic-response",
            json!([said("user", "Say hello in exactly 3 words.")]),
        ),
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
        (
            "image-input",
            json!([said(
                "user",
                json!([{"type": "input_text", "text": "What is it?"}, {"type": "input_image", "image_url": png}])
            )]),
        ),
        (
            "multi-turn",
            json!([
                said("user", "I am Alice."),
                said("assistant", "Hello Alice!"),
                said("user", "Who am I?")
            ]),
        ),
    ];
    for (case, input) in cases {
        let body = json!({"model": "gpt-4o-mini", "input": input});
        let response = server.respond(body.clone()).await;
        assert_eq!(response["status"], "completed", "{case}");
        assert!(!output_types(&response).is_empty(), "{case}");
        // streaming-response, for each of them.
        let events = server.respond_streaming(body).await;
        fits("ResponseResource", last(&events));
        assert_eq!(last(&events)["status"], "completed", "{case}");
    }
    let response = server
        .respond(json!({
            "model": "gpt-4o-mini", "tools": [weather()],
            "input": [said("user", "What's the weather like in San Francisco?")],
        }))
        .await;
    assert!(
        output_types(&response).contains(&"function_call"),
        "tool-calling"
    );
}

#[tokio::test]
async fn a_conversation_is_put_in_brief_as_the_suite_wants_it() {
    let server = server().await;
    let body = json!({
        "model": "gpt-4o-mini", "prompt_cache_key": "k",
        "input": [said("user", "I am Alice."), said("assistant", "Hello Alice!"), said("user", "Go on")],
    });
    let answer = server.post("/v1/responses/compact", body.clone()).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let brief = answer.json();
    fits("CompactResource", &brief);
    assert_eq!(brief["object"], "response.compaction");
    assert_eq!(output_types(&brief), ["message", "message", "compaction"]);
    let mut nameless = body;
    nameless.as_object_mut().unwrap().remove("model");
    let answer = server.post("/v1/responses/compact", nameless).await;
    assert_eq!(answer.status, 400);
    // websocket-compact-new-chain
    let listening = Served::new(server.app.clone()).await;
    let mut socket = Socket::open(&listening).await;
    let mut input = brief["output"].as_array().unwrap().clone();
    input.push(said("user", "And now?"));
    let response = socket
        .respond(json!({"model": "gpt-4o-mini", "input": input, "tools": []}))
        .await;
    assert_eq!(
        (response["status"].as_str(), text_of(&response)),
        (Some("completed"), "You said: And now?".to_owned())
    );
    listening.stop().await;
    assert_eq!(server.app.runtime().running(), 0);
}
