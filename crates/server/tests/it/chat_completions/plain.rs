//! Completions that are not kept.

use super::{ASKS, PATH, body, refusal, text_of, user, weather, with};
use crate::harness::{Server, TEAM};
use serde_json::{Value, json};

#[tokio::test]
async fn an_agent_answers_as_a_model_and_nothing_is_kept() {
    let server = Server::new("").await;
    let completion = server.complete(body(json!([user("swordfish")]))).await;
    assert_eq!(text_of(&completion), "You said: swordfish");
    assert_eq!(completion["model"], "demo");
    assert_eq!(completion["choices"][0]["finish_reason"], "stop");
    let usage = &completion["usage"];
    assert!(usage["prompt_tokens"].as_u64() > Some(0), "{usage}");
    let threads = server.get("/api/v1/threads").await.json();
    assert_eq!(threads["threads"], json!([]));
}

#[tokio::test]
async fn a_stream_begins_with_the_role_and_ends_with_the_usage() {
    let server = Server::new("").await;
    let asked = body(json!([user("say 20 words")]));
    let whole = server.complete(asked.clone()).await;
    let usage = json!({"stream_options": {"include_usage": true}});
    let chunks = server.chunks(with(asked, usage)).await;
    let (first, last) = (&chunks[0], &chunks[chunks.len() - 1]);
    assert_eq!(first["choices"][0]["delta"]["role"], "assistant");
    assert_eq!(last["choices"], json!([]));
    assert_eq!(last["usage"], whole["usage"]);
    assert!(
        chunks
            .iter()
            .all(|it| it["object"] == "chat.completion.chunk" && it["id"] == first["id"])
    );
    let texts = chunks
        .iter()
        .filter_map(|it| it["choices"][0]["delta"]["content"].as_str());
    assert_eq!(texts.collect::<String>(), text_of(&whole));
    let end = &chunks[chunks.len() - 2]["choices"][0];
    assert_eq!(
        (&end["delta"], &end["finish_reason"]),
        (&json!({}), &json!("stop"))
    );
}

#[tokio::test]
async fn a_call_of_a_client_tool_is_answered_in_the_next_request() {
    let server = Server::new("").await;
    let tools = json!({"tools": [weather()]});
    let asked = with(body(json!([user(ASKS)])), tools.clone());
    let asking = server.complete(asked.clone()).await;
    let choice = &asking["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls");
    assert_eq!(choice["message"]["content"], Value::Null);
    let call = &choice["message"]["tool_calls"][0];
    assert_eq!(call["function"]["name"], "get_weather");
    let result = json!({"role": "tool", "tool_call_id": call["id"], "content": "18 degrees"});
    let messages = json!([user(ASKS), choice["message"], result]);
    let answer = server.complete(with(body(messages), tools)).await;
    assert!(text_of(&answer).contains("18 degrees"), "{answer}");
    let chunks = server.chunks(asked).await;
    let calls = chunks
        .iter()
        .filter_map(|it| it["choices"][0]["delta"]["tool_calls"].as_array());
    let calls: Vec<&Value> = calls.flatten().collect();
    assert_eq!((calls.len(), &calls[0]["index"]), (1, &json!(0)));
    assert_eq!(calls[0]["function"], call["function"]);
}

#[tokio::test]
async fn tools_of_the_server_run_inside_a_completion() {
    let server = Server::new("").await;
    let completion = server.complete(body(json!([user("compute 6*7")]))).await;
    assert!(text_of(&completion).contains("42"), "{completion}");
    let message = &completion["choices"][0]["message"];
    assert_eq!(message.get("tool_calls"), None);
}

#[tokio::test]
async fn an_image_and_a_schema_reach_the_model() {
    let server = Server::new("").await;
    let image = "data:image/png;base64,iVBORw0KGgo=";
    let content = json!([
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": image, "detail": "low"}},
    ]);
    let seen = body(json!([{"role": "user", "content": content}]));
    assert!(!text_of(&server.complete(seen).await).is_empty());
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let format =
        json!({"type": "json_schema", "json_schema": {"name": "number", "schema": schema}});
    let asked = with(body(json!([user("x")])), json!({"response_format": format}));
    let made: Value = serde_json::from_str(text_of(&server.complete(asked).await)).unwrap();
    assert!(made["n"].is_i64(), "{made}");
}

#[tokio::test]
async fn a_history_reaches_the_model_with_its_prompts() {
    let server = Server::new("").await;
    let messages = json!([
        {"role": "system", "content": "Be brief."}, user("one"),
        {"role": "assistant", "content": "You said: one"}, user("two"),
    ]);
    let completion = server.complete(body(messages)).await;
    assert_eq!(text_of(&completion), "You said: two");
}

#[tokio::test]
async fn a_model_that_does_not_exist_is_not_found() {
    let server = Server::new("").await;
    let asked = json!({"model": "nobody", "messages": [user("x")]});
    let missing = (404, "model_not_found".to_owned(), "model".to_owned());
    assert_eq!(refusal(&server.post(PATH, asked.clone()).await), missing);
    let durable = with(asked, json!({"metadata": {"thread": "t"}}));
    assert_eq!(refusal(&server.post(PATH, durable).await), missing);
}

#[tokio::test]
async fn an_option_that_can_not_be_met_is_refused_in_openais_form() {
    let server = Server::new("").await;
    for (more, code, place) in [
        (json!({"n": 2}), "unsupported_value", "n"),
        (json!({"top_k": 2}), "unknown_parameter", "top_k"),
        (json!({"store": true}), "unsupported_value", "store"),
    ] {
        let answer = server
            .post(PATH, with(body(json!([user("x")])), more))
            .await;
        assert_eq!(refusal(&answer), (400, code.to_owned(), place.to_owned()));
        assert_eq!(answer.json()["error"]["type"], "invalid_request_error");
    }
}

#[tokio::test]
async fn a_result_without_its_call_is_refused_with_its_place() {
    let server = Server::new("").await;
    let result = json!({"role": "tool", "tool_call_id": "c", "content": "x"});
    let answer = server.post(PATH, body(json!([user("x"), result]))).await;
    let (status, _, place) = refusal(&answer);
    assert_eq!(status, 400);
    assert!(place.starts_with("messages"), "{place}");
}

#[tokio::test]
async fn a_model_that_fails_is_an_error_with_a_status() {
    let server = Server::new("").await;
    for (said, status, code) in [
        ("fail auth", 500, "server_error"),
        ("fail quota", 429, "rate_limit_exceeded"),
    ] {
        let answer = server.post(PATH, body(json!([user(said)]))).await;
        let (got, got_code, _) = refusal(&answer);
        assert_eq!((got, got_code.as_str()), (status, code), "{}", answer.text);
    }
}

#[tokio::test]
async fn a_stream_that_fails_ends_with_an_error_object() {
    let server = Server::new("").await;
    let chunks = server
        .chunks(body(json!([user("fail auth after 3")])))
        .await;
    let last = &chunks[chunks.len() - 1];
    assert!(last["error"]["message"].is_string(), "{last}");
    assert!(chunks[0]["choices"].is_array());
}

#[tokio::test]
async fn a_limit_of_tokens_ends_a_completion_with_length() {
    let server = Server::new("").await;
    let asked = body(json!([user("say 200 words")]));
    let completion = server
        .complete(with(asked, json!({"max_tokens": 16})))
        .await;
    assert_eq!(completion["choices"][0]["finish_reason"], "length");
}

#[tokio::test]
async fn a_call_that_waits_for_approval_is_told_in_the_text() {
    let config = TEAM.replace("default_agent = \"lead\"", "default_agent = \"finder\"");
    let server = Server::new(&config).await;
    let asked = json!({"model": "finder", "messages": [user("compute 1+1")]});
    let completion = server.complete(asked).await;
    assert!(
        text_of(&completion).contains("waits for approval"),
        "{completion}"
    );
    assert_eq!(completion["choices"][0]["finish_reason"], "stop");
}
