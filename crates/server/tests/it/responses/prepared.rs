//! Responses of which nothing is generated (`"generate": false`): what they say is prepared for others.

use super::socket::Socket;
use super::{ASKS, invalid, kinds, last, output, output_types, refusal, text_of, weather};
use crate::harness::{Served, Server};
use serde_json::{Value, json};

/// A response that was made without a model.
fn is_empty(response: &Value) {
    assert_eq!(response["status"], "completed", "{response}");
    assert_eq!(response["output"], json!([]), "{response}");
    assert_eq!(response["usage"], Value::Null, "{response}");
}

fn conversation(response: &Value) -> String {
    format!(
        "/v1/conversations/conv_{}",
        &response["id"].as_str().unwrap()[5..37]
    )
}

#[tokio::test]
async fn what_is_prepared_over_a_connection_is_gone_on_with_there() {
    let server = Server::new("").await;
    let listening = Served::new(server.app.clone()).await;
    let mut socket = Socket::open(&listening).await;
    for store in [true, false] {
        socket
            .ask(json!({"input": "fail", "generate": false, "store": store}))
            .await;
        let events = socket.events().await;
        let expected = [
            "response.created",
            "response.in_progress",
            "response.completed",
        ];
        assert_eq!(kinds(&events), expected);
        let prepared = last(&events).clone();
        is_empty(&prepared);
        let said = socket
            .respond(json!({"input": "hi", "store": store, "previous_response_id": prepared["id"]}))
            .await;
        assert_eq!(text_of(&said), "You said: hi");
        // Later in the chain, too; and there may be no more to say.
        let more = json!({
            "input": "more", "generate": false, "store": store, "previous_response_id": said["id"],
        });
        let more = socket.respond(more).await;
        is_empty(&more);
        let said = socket
            .respond(json!({"input": [], "store": store, "previous_response_id": more["id"]}))
            .await;
        assert_eq!(text_of(&said), "You said: more");
        if store {
            let path = format!("{}/items?order=asc", conversation(&prepared));
            let items = server.get(&path).await.json();
            let texts: Vec<&Value> = items["data"]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| &item["content"][0]["text"])
                .collect();
            assert_eq!(
                texts,
                ["fail", "hi", "You said: hi", "more", "You said: more"]
            );
        }
    }
    assert_eq!(server.n_threads().await, 1);
    listening.stop().await;
}

#[tokio::test]
async fn a_conversation_is_prepared_before_anything_is_said() {
    let server = Server::new("").await;
    let listening = Served::new(server.app.clone()).await;
    let mut socket = Socket::open(&listening).await;
    for store in [true, false] {
        for nothing in [json!([]), Value::Null] {
            let ahead = json!({
                "input": nothing, "generate": false, "store": store, "tools": [weather()],
                "instructions": "Be brief.",
            });
            let prepared = socket.respond(ahead).await;
            is_empty(&prepared);
            assert_eq!(prepared["instructions"], "Be brief.");
            let asked = socket
                .respond(json!({
                    "input": ASKS, "store": store, "tools": [weather()],
                    "previous_response_id": prepared["id"],
                }))
                .await;
            assert_eq!(output_types(&asked), ["function_call"]);
        }
    }
    listening.stop().await;
}

#[tokio::test]
async fn results_are_prepared_and_answered_by_the_response_after_them() {
    let server = Server::new("").await;
    let listening = Served::new(server.app.clone()).await;
    let mut socket = Socket::open(&listening).await;
    for store in [true, false] {
        let asked = socket
            .respond(json!({"input": ASKS, "tools": [weather()], "store": store}))
            .await;
        let result = output(&asked["output"][0]["call_id"], "hail");
        let prepared = socket
            .respond(json!({
                "previous_response_id": asked["id"], "input": [result], "tools": [weather()],
                "store": store, "generate": false,
            }))
            .await;
        is_empty(&prepared);
        let said = socket
            .respond(json!({
                "previous_response_id": prepared["id"], "input": [], "tools": [weather()],
                "store": store,
            }))
            .await;
        assert_eq!(text_of(&said), "get_weather gave hail.");
        // The same, with all of it in one message.
        let call = json!({
            "type": "function_call", "call_id": "c", "name": "get_weather",
            "arguments": "{\"location\": \"Oslo\"}",
        });
        let result = output(&json!("c"), "fog");
        let said = json!({"type": "message", "role": "user", "content": ASKS});
        let prepared = socket
            .respond(json!({
                "input": [said, call, result], "tools": [weather()], "store": store,
                "generate": false,
            }))
            .await;
        is_empty(&prepared);
        let said = socket
            .respond(json!({
                "previous_response_id": prepared["id"], "input": [], "tools": [weather()],
                "store": store,
            }))
            .await;
        assert_eq!(text_of(&said), "get_weather gave fog.");
    }
    listening.stop().await;
}

#[tokio::test]
async fn what_is_prepared_over_http_is_kept_like_every_response() {
    let server = Server::new("").await;
    let body = json!({"input": "fail", "generate": false, "metadata": {"a": "b"}});
    let prepared = server.respond(body.clone()).await;
    is_empty(&prepared);
    let path = format!("/v1/responses/{}", prepared["id"].as_str().unwrap());
    assert_eq!(server.get(&path).await.json(), prepared);
    let items = server.get(&format!("{path}/input_items")).await.json();
    assert_eq!(items["data"][0]["content"][0]["text"], "fail");
    let mut streamed = server.respond_streaming(body).await;
    is_empty(last(&streamed));
    streamed = server
        .respond_streaming(json!({"input": "hi", "previous_response_id": prepared["id"]}))
        .await;
    assert_eq!(text_of(last(&streamed)), "You said: hi");
    // A branch from it that is not stored has it, too.
    let branch = json!({"input": [], "previous_response_id": prepared["id"], "store": false});
    let branch = server.post("/v1/responses", branch).await.json();
    assert_eq!(branch["status"], "failed", "{branch}");
}

#[tokio::test]
async fn leave_for_a_call_is_not_given_where_nothing_is_generated() {
    let server = Server::new("").await;
    let one = server.respond(json!({"input": "one"})).await;
    let leave = json!({"type": "loomline:approval_response", "call_id": "c", "approve": true});
    let body = json!({
        "input": [leave], "generate": false, "previous_response_id": one["id"],
        "include": ["loomline:items"],
    });
    let answer = server.post("/v1/responses", body).await;
    assert_eq!(refusal(&answer), invalid("unsupported_value", "input[0]"));
    let wrong = server
        .post("/v1/responses", json!({"input": "x", "generate": "no"}))
        .await;
    assert_eq!(refusal(&wrong), invalid("invalid_type", "generate"));
}
