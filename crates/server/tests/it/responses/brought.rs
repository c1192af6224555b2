//! Results that a client brings, whatever tools it sends with them.

use super::{ASKS, invalid, output, output_types, refusal, text_of, weather};
use crate::harness::Server;
use serde_json::{Value, json};

/// Another tool of the client's.
fn other() -> Value {
    json!({"type": "function", "name": "look_up", "parameters": {"type": "object"}})
}

#[tokio::test]
async fn a_result_is_told_whatever_tools_are_sent_with_it() {
    // An agent with tools of its own, and a model that has none.
    for model in ["demo", "scripted"] {
        for tools in [None, Some(json!([])), Some(json!([other()]))] {
            let server = Server::new("").await;
            let asked = server
                .respond(json!({"model": model, "input": ASKS, "tools": [weather()]}))
                .await;
            let call = &asked["output"][0]["call_id"];
            let mut body = json!({
                "model": model, "previous_response_id": asked["id"], "input": [output(call, "rain")],
            });
            if let Some(tools) = &tools {
                body["tools"] = tools.clone();
            }
            let said = server.respond(body).await;
            let about = format!("{model}, {tools:?}");
            assert_eq!(text_of(&said), "get_weather gave rain.", "{about}");
        }
    }
}

#[tokio::test]
async fn a_past_with_results_needs_no_tools() {
    let call = |arguments: &str| json!({"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": arguments});
    for model in ["demo", "scripted"] {
        for (arguments, tools) in [
            (r#"{"location": "Paris"}"#, json!([])),
            (r#"{"location": "Paris"}"#, json!([other()])),
            // What was sent does not fit the schema, and was run all the same.
            (r#"{"place": 1}"#, json!([weather()])),
        ] {
            let server = Server::new("").await;
            let said = server
                .respond(json!({"model": model, "tools": tools, "input": [
                    {"role": "user", "content": "How is it there?"},
                    call(arguments), output(&"c1".into(), "rain"),
                ]}))
                .await;
            let about = format!("{model}, {arguments}, {tools}");
            assert_eq!(text_of(&said), "get_weather gave rain.", "{about}");
        }
    }
}

#[tokio::test]
async fn calls_of_the_clients_tools_are_not_limited() {
    let server = Server::new("").await;
    let asked = server
        .respond(json!({
            "input": "use get_weather {\"location\": \"Paris\"} and get_weather {\"location\": \"Oslo\"}",
            "tools": [weather()], "max_tool_calls": 1,
        }))
        .await;
    assert_eq!(output_types(&asked), ["function_call", "function_call"]);
    let results: Vec<Value> = (0..2)
        .map(|n| output(&asked["output"][n]["call_id"], &format!("rain {n}")))
        .collect();
    let said = server
        .respond(json!({
            "previous_response_id": asked["id"], "input": results, "tools": [weather()],
            "max_tool_calls": 1,
        }))
        .await;
    assert_eq!(
        text_of(&said),
        "get_weather gave rain 0. get_weather gave rain 1."
    );
}

#[tokio::test]
async fn an_answer_that_may_be_no_longer_is_incomplete() {
    let server = Server::new("").await;
    let response = server
        .respond(json!({"input": "say 40 words", "max_output_tokens": 16}))
        .await;
    assert_eq!(response["status"], "incomplete");
    assert_eq!(
        response["incomplete_details"]["reason"],
        "max_output_tokens"
    );
    assert_eq!(text_of(&response).split(' ').count(), 16);
}

#[tokio::test]
async fn the_answers_of_one_response_share_its_tokens_and_the_next_has_its_own() {
    let server = Server::new("").await;
    let mut body = json!({
        "input": "compute 1+1 then say 40 words", "tools": [weather()], "max_output_tokens": 30,
    });
    for _ in 0..2 {
        let response = server.respond(body.clone()).await;
        assert_eq!(output_types(&response)[..1], ["function_call"]);
        assert_eq!(response["status"], "incomplete", "{response}");
        assert_eq!(
            response["incomplete_details"]["reason"],
            "max_output_tokens"
        );
        assert_eq!(response["usage"]["output_tokens"], 30, "{response}");
        body["previous_response_id"] = response["id"].clone();
    }
    // One that brings results.
    body["input"] = ASKS.into();
    let asked = server.respond(body.clone()).await;
    assert_eq!(output_types(&asked), ["function_call"]);
    assert_ne!(asked["usage"]["output_tokens"], 0);
    body["input"] = json!([output(&asked["output"][0]["call_id"], &"sun ".repeat(40)),]);
    body["previous_response_id"] = asked["id"].clone();
    let said = server.respond(body).await;
    assert_eq!(said["usage"]["output_tokens"], 30, "{said}");
}

#[tokio::test]
async fn who_has_no_tokens_left_hands_nothing_over() {
    let config = "default_agent = \"lead\"\n[models.s]\nprovider = \"scripted\"\n\
                  [agents.lead]\nmodel = \"s\"\nhandoffs = [\"other\"]\n[agents.other]\nmodel = \"s\"\n";
    let server = Server::new(config).await;
    let body =
        |max: u64| json!({"input": "transfer_to_other then say 9 words", "max_output_tokens": max});
    let whole = server.respond(body(100)).await;
    assert_eq!(output_types(&whole).last(), Some(&"message"), "{whole}");
    assert_eq!(whole["status"], "completed", "{whole}");
    let cut = server.respond(body(16)).await;
    assert_eq!(cut["status"], "incomplete", "{cut}");
    assert!(!output_types(&cut).contains(&"message"), "{cut}");
}

#[tokio::test]
async fn a_call_that_is_left_waiting_needs_its_tool_again() {
    let server = Server::new("").await;
    let asked = server
        .respond(json!({
            "input": "use get_weather {\"location\": \"Paris\"} and get_weather {\"location\": \"Oslo\"}",
            "tools": [weather()],
        }))
        .await;
    let results: Vec<Value> = (0..2)
        .map(|n| output(&asked["output"][n]["call_id"], &format!("rain {n}")))
        .collect();
    let one = json!({"previous_response_id": asked["id"], "input": [results[0]]});
    let refused = server.post("/v1/responses", one.clone()).await;
    assert_eq!(refusal(&refused), invalid("invalid_value", "input"));
    let message = format!(
        "No tool output found for function call {}.",
        asked["output"][1]["call_id"].as_str().unwrap()
    );
    assert_eq!(refused.json()["error"]["message"], message);
    let mut with_tool = one;
    with_tool["tools"] = json!([weather()]);
    let half = server.respond(with_tool).await;
    assert_eq!(half["output"], json!([]), "the other one waits");
    let said = server
        .respond(json!({"previous_response_id": half["id"], "input": [results[1]]}))
        .await;
    assert_eq!(
        text_of(&said),
        "get_weather gave rain 0. get_weather gave rain 1."
    );
}
