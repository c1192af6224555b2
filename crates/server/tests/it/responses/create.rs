//! `POST /v1/responses`: what is made, and what is refused.

use super::{ASKS, invalid, kinds, last, output, output_types, refusal, text_of, weather};
use crate::harness::Server;
use serde_json::{Value, json};

#[tokio::test]
async fn a_text_is_answered_with_a_response() {
    let server = Server::new("").await;
    let response = server
        .respond(json!({"model": "demo", "input": "Hello", "metadata": {"a": "b"}}))
        .await;
    assert_eq!(response["status"], "completed");
    assert_eq!(response["object"], "response");
    assert_eq!(text_of(&response), "You said: Hello");
    assert_eq!(response["metadata"], json!({"a": "b"}));
    assert_eq!(response["store"], true);
    assert!(response["id"].as_str().unwrap().starts_with("resp_"));
    assert!(response["usage"]["output_tokens"].as_u64().unwrap() > 0);
}

#[tokio::test]
async fn a_streamed_response_has_its_events_in_order() {
    let server = Server::new("").await;
    let events = server.respond_streaming(json!({"input": "Hello"})).await;
    let mut kinds = kinds(&events);
    kinds.dedup();
    assert_eq!(
        kinds,
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    let deltas = events.iter().filter_map(|event| event["delta"].as_str());
    assert_eq!(deltas.collect::<String>(), "You said: Hello");
    // What was streamed is what is read afterwards.
    let id = last(&events)["id"].as_str().unwrap();
    let read = server.get(&format!("/v1/responses/{id}")).await.json();
    assert_eq!(&read, last(&events));
}

#[tokio::test]
async fn tools_of_an_agent_are_run_and_shown_with_their_results() {
    let server = Server::new("").await;
    let response = server
        .respond(json!({"model": "demo", "input": "compute 6*7"}))
        .await;
    assert_eq!(
        output_types(&response),
        ["function_call", "function_call_output", "message"]
    );
    assert_eq!(response["output"][1]["output"], "42");
}

#[tokio::test]
async fn who_names_a_model_gets_calls_of_its_own_tools_alone() {
    let server = Server::new("").await;
    let response = server
        .respond(json!({"model": "scripted", "input": "compute 6*7"}))
        .await;
    assert_eq!(output_types(&response), ["message"]);
    // The name that was asked for, whatever its provider calls the model.
    assert_eq!(response["model"], "scripted");
}

#[tokio::test]
async fn a_call_of_the_clients_tool_is_answered_with_its_result() {
    let server = Server::new("").await;
    let asked = server
        .respond(json!({"input": ASKS, "tools": [weather()]}))
        .await;
    assert_eq!(asked["status"], "completed");
    assert_eq!(output_types(&asked), ["function_call"]);
    let call = &asked["output"][0];
    assert_eq!(
        call["arguments"]
            .as_str()
            .map(serde_json::from_str::<Value>)
            .unwrap()
            .unwrap(),
        json!({"location": "Paris"})
    );
    let output = output(&call["call_id"], "rain");
    let said = server
        .respond(json!({
            "previous_response_id": asked["id"], "input": [output.clone()], "tools": [weather()],
        }))
        .await;
    assert_eq!(text_of(&said), "get_weather gave rain.");
    assert_eq!(said["previous_response_id"], asked["id"]);
    // A client without memory of ours brings all of it.
    let again = server
        .respond(json!({
            "input": [{"role": "user", "content": ASKS}, call, output], "tools": [weather()],
        }))
        .await;
    assert_eq!(text_of(&again), "get_weather gave rain.");
}

#[tokio::test]
async fn what_is_said_beside_a_result_is_heard() {
    let server = Server::new("").await;
    let asked = server
        .respond(json!({"input": ASKS, "tools": [weather()]}))
        .await;
    let call = &asked["output"][0]["call_id"];
    let said = server
        .respond(
            json!({"previous_response_id": asked["id"], "tools": [weather()], "input": [
                output(call, "rain"),
                {"role": "user", "content": "And be brief"},
            ]}),
        )
        .await;
    assert!(text_of(&said).contains("be brief"), "{said}");
}

#[tokio::test]
async fn a_result_for_no_call_is_refused_and_nothing_is_written() {
    let server = Server::new("").await;
    let asked = server
        .respond(json!({"input": ASKS, "tools": [weather()]}))
        .await;
    let output = output(&json!("call_none"), "x");
    let body = json!({"previous_response_id": asked["id"], "input": [output]});
    let answer = server.post("/v1/responses", body).await;
    assert_eq!(refusal(&answer), invalid("invalid_value", "input"));
    assert_eq!(
        answer.json()["error"]["message"],
        "No tool call found for function call output with call_id call_none."
    );
    let items = format!(
        "/v1/responses/{}/input_items",
        asked["id"].as_str().unwrap()
    );
    assert_eq!(
        server.get(&items).await.json()["data"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(server.n_threads().await, 1);
}

#[tokio::test]
async fn a_run_that_fails_is_a_response_that_failed() {
    let server = Server::new("").await;
    let response = server.respond(json!({"input": "fail"})).await;
    assert_eq!(response["status"], "failed");
    assert_eq!(response["error"]["code"], "server_error");
    let events = server
        .respond_streaming(json!({"input": "fail after 3"}))
        .await;
    let kinds = kinds(&events);
    assert_eq!(kinds[kinds.len() - 2..], ["error", "response.failed"]);
    assert_eq!(last(&events)["status"], "failed");
}

#[tokio::test]
async fn an_answer_has_the_form_that_was_asked_for() {
    let server = Server::new("").await;
    let schema = json!({
        "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
        "additionalProperties": false,
    });
    let format = json!({"type": "json_schema", "name": "number", "schema": schema});
    let answer = server
        .post(
            "/v1/responses",
            json!({"input": "a number", "text": {"format": format}}),
        )
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let said: Value = serde_json::from_str(&text_of(&answer.json())).unwrap();
    assert!(said["n"].is_i64(), "{said}");
}

#[tokio::test]
async fn what_can_not_be_asked_for_is_refused_with_its_place() {
    let server = Server::new("").await;
    let cases = [
        (
            json!({"model": "demo"}),
            "missing_required_parameter",
            "input",
        ),
        (json!({"input": 1}), "invalid_type", "input"),
        (
            json!({"input": "x", "model": "nobody"}),
            "model_not_found",
            "model",
        ),
        (
            json!({"input": "x", "background": true, "store": false}),
            "invalid_value",
            "background",
        ),
        (
            json!({"input": "x", "previous_response_id": "resp_1"}),
            "previous_response_not_found",
            "previous_response_id",
        ),
        (
            json!({"input": "x", "temperature": 3}),
            "invalid_value",
            "temperature",
        ),
        (
            json!({"input": [{"type": "item_reference", "id": "msg_1"}]}),
            "item_not_found",
            "input[0].id",
        ),
        (
            json!({"input": "x", "tool_choice": {"type": "function", "name": "none"}}),
            "invalid_value",
            "tool_choice",
        ),
        (
            json!({"input": "x", "tools": [{"type": "web_search"}]}),
            "unsupported_value",
            "tools[0].type",
        ),
    ];
    for (body, code, param) in cases {
        let answer = server.post("/v1/responses", body.clone()).await;
        let told = refusal(&answer);
        assert_eq!(
            (told.2.as_str(), told.3.as_deref()),
            (code, Some(param)),
            "{body}: {}",
            answer.text
        );
        assert!(matches!(told.0, 400 | 404), "{body}");
    }
    assert_eq!(server.n_threads().await, 0);
}

#[tokio::test]
async fn the_models_are_the_agents_and_the_models() {
    let server = Server::new("").await;
    let list = server.get("/v1/models").await.json();
    let ids: Vec<&str> = list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["id"].as_str().unwrap())
        .collect();
    assert_eq!(
        (list["object"].as_str(), ids),
        (
            Some("list"),
            vec![
                "careful",
                "chooser",
                "demo",
                "lead",
                "researcher",
                "scripted",
                "scripted-choice"
            ]
        )
    );
    let one = server.get("/v1/models/scripted").await.json();
    assert_eq!(one, list["data"][5]);
    let none = server.get("/v1/models/none").await;
    assert_eq!(
        (none.status.as_u16(), none.json()["error"]["code"].clone()),
        (404, json!("model_not_found"))
    );
}

#[tokio::test]
async fn the_tokens_of_an_input_are_counted() {
    let server = Server::new("").await;
    let count = async |body: Value| {
        let answer = server.post("/v1/responses/input_tokens", body).await.json();
        assert_eq!(answer["object"], "response.input_tokens");
        answer["input_tokens"].as_u64().unwrap()
    };
    assert_eq!(count(json!({"input": "12345678"})).await, 2);
    let response = server.respond(json!({"input": "12345678"})).await;
    let both = count(json!({"input": "12345678", "previous_response_id": response["id"]})).await;
    assert_eq!(
        both,
        (8 + "You said: 12345678".len() as u64 + 8).div_ceil(4)
    );
    assert_eq!(server.n_threads().await, 1);
}

#[tokio::test]
async fn a_call_can_not_be_required_where_there_are_no_tools() {
    let server = Server::new("[models.plain]\nprovider = \"scripted\"\n").await;
    let body = |more: Value| {
        let mut body = json!({"model": "plain", "input": ASKS, "tool_choice": "required"});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        body
    };
    let none = server.post("/v1/responses", body(json!({}))).await;
    assert_eq!(refusal(&none), invalid("invalid_value", "tool_choice"));
    let some = server.respond(body(json!({"tools": [weather()]}))).await;
    assert_eq!(some["output"][0]["type"], "function_call");
}

#[tokio::test]
async fn a_failure_of_the_model_is_told_as_what_it_is() {
    let server = Server::new("").await;
    for (input, kind, code) in [
        (
            "fail rate_limited",
            "too_many_requests",
            "rate_limit_exceeded",
        ),
        ("fail provider", "model_error", "server_error"),
    ] {
        let events = server.respond_streaming(json!({"input": input})).await;
        let told = events.iter().find(|it| it["type"] == "error").unwrap();
        assert_eq!(
            (&told["error"]["type"], &told["error"]["code"]),
            (&json!(kind), &json!(code))
        );
        assert_eq!(last(&events)["error"]["code"], code);
    }
}

#[tokio::test]
async fn tokens_are_counted_of_whatever_is_there() {
    let server = Server::new("").await;
    let tool = json!({"type": "function", "name": "look", "description": "Looks around"});
    for (body, n_tokens) in [
        (json!({}), 0),
        (json!({"model": "demo", "instructions": "Be brief"}), 2),
        (json!({"input": null, "tools": [tool]}), 4),
        (json!({"input": "12345678"}), 2),
    ] {
        let answer = server
            .post("/v1/responses/input_tokens", body.clone())
            .await;
        assert_eq!(answer.status, 200, "{body}: {}", answer.text);
        assert_eq!(answer.json()["input_tokens"], n_tokens, "{body}");
    }
    let nothing = server.post("/v1/responses", json!({})).await;
    assert_eq!(
        refusal(&nothing),
        invalid("missing_required_parameter", "input")
    );
}
