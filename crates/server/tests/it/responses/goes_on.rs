//! Responses that go on with something: a response, an older one, a conversation.

use super::{ASKS, invalid, not_found, output, refusal, text_of, weather};
use crate::harness::Server;
use serde_json::{Value, json};

/// Makes a response in the background that takes its time.
async fn slow(server: &Server, mut body: Value) -> Value {
    body["background"] = true.into();
    body["input"] = "slow 50ms say 400 words".into();
    server.respond(body).await
}

async fn stop(server: &Server, response: &Value) -> Value {
    let id = response["id"].as_str().unwrap();
    let answer = server
        .post_text(&format!("/v1/responses/{id}/cancel"), "")
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()
}

#[tokio::test]
async fn after_the_last_response_its_thread_goes_on_and_after_an_older_one_a_fork() {
    let server = Server::new("").await;
    let one = server.respond(json!({"input": "one"})).await;
    let two = server
        .respond(json!({"input": "two", "previous_response_id": one["id"]}))
        .await;
    assert_eq!(server.n_threads().await, 1);
    let other = server
        .respond(json!({"input": "other", "previous_response_id": one["id"]}))
        .await;
    assert_eq!(server.n_threads().await, 2);
    let three = server
        .respond(json!({"input": "three", "previous_response_id": other["id"]}))
        .await;
    assert_eq!(server.n_threads().await, 2);
    // Each knows what came before it, and nothing else.
    for (response, items) in [
        (&two, vec!["one", "You said: one", "two", "You said: two"]),
        (
            &three,
            vec![
                "one",
                "You said: one",
                "other",
                "You said: other",
                "three",
                "You said: three",
            ],
        ),
    ] {
        let thread = &response["id"].as_str().unwrap()[5..37];
        let list = server
            .get(&format!("/v1/conversations/conv_{thread}/items?order=asc"))
            .await
            .json();
        let texts = list["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["content"][0]["text"].as_str().unwrap());
        assert_eq!(texts.collect::<Vec<_>>(), items);
    }
}

#[tokio::test]
async fn a_conversation_goes_on_by_its_id_and_by_its_key() {
    let server = Server::new("").await;
    server.say("support-1", "hello").await;
    let response = server
        .respond(json!({"input": "again", "conversation": "support-1"}))
        .await;
    let id = response["conversation"]["id"].as_str().unwrap();
    assert!(id.starts_with("conv_"), "{id}");
    let more = server
        .respond(json!({"input": "more", "conversation": {"id": id}}))
        .await;
    assert_eq!(text_of(&more), "You said: more");
    let messages = server
        .get("/api/v1/threads/support-1/messages")
        .await
        .json();
    assert_eq!(messages["messages"].as_array().unwrap().len(), 6);
    let body = json!({"input": "x", "conversation": "conv_none"});
    let answer = server.post("/v1/responses", body).await;
    assert_eq!(refusal(&answer), not_found("conversation_not_found"));
}

#[tokio::test]
async fn a_conversation_that_is_busy_is_locked() {
    let server = Server::new("").await;
    let made = server.post("/v1/conversations", json!({})).await.json();
    let running = slow(&server, json!({"conversation": made["id"]})).await;
    for store in [true, false] {
        for body in [
            json!({"input": "x", "conversation": made["id"], "store": store}),
            json!({"input": "x", "previous_response_id": running["id"], "store": store}),
        ] {
            let answer = server.post("/v1/responses", body).await;
            assert_eq!(refusal(&answer), invalid("conversation_locked", ""));
        }
    }
    stop(&server, &running).await;
    let after = server
        .respond(json!({"input": "x", "conversation": made["id"]}))
        .await;
    assert_eq!(text_of(&after), "You said: x");
}

#[tokio::test]
async fn a_response_in_the_background_is_told_at_once_and_can_be_stopped() {
    let server = Server::new("").await;
    let running = slow(&server, json!({})).await;
    assert!(matches!(
        running["status"].as_str(),
        Some("queued" | "in_progress")
    ));
    assert_eq!(running["background"], true);
    let stopped = stop(&server, &running).await;
    assert_eq!(
        (stopped["status"].as_str(), &stopped["id"]),
        (Some("cancelled"), &running["id"])
    );
    // To stop what is over changes nothing.
    assert_eq!(stop(&server, &running).await, stopped);
    let over = server.respond(json!({"input": "hi"})).await;
    assert_eq!(stop(&server, &over).await, over);
}

#[tokio::test]
async fn a_request_that_is_repeated_gets_the_same_response() {
    let server = Server::new("").await;
    let again = async |token: &str, body: Value| {
        let first = server
            .post_with_token("/v1/responses", token, body.clone())
            .await;
        let second = server.post_with_token("/v1/responses", token, body).await;
        assert_eq!((first.status.as_u16(), &first.text), (200, &second.text));
        assert_eq!(first.headers.get("idempotent-replayed"), None);
        assert_eq!(second.headers["idempotent-replayed"], "true");
        first.json()
    };
    let past = json!([
        {"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hi."},
        {"role": "user", "content": "go on"},
    ]);
    let one = again("t1", json!({"input": past})).await;
    let two = again(
        "t2",
        json!({"input": "two", "previous_response_id": one["id"]}),
    )
    .await;
    assert_eq!(server.n_threads().await, 1);
    again(
        "t3",
        json!({"input": "a fork", "previous_response_id": one["id"]}),
    )
    .await;
    assert_eq!(server.n_threads().await, 2);
    assert_ne!(one["id"], two["id"]);
}

#[tokio::test]
async fn a_past_that_is_brought_is_known() {
    let server = Server::new("").await;
    let response = server
        .respond(json!({"input": [
            {"role": "developer", "content": "Be kind."},
            {"role": "user", "content": "My name is Ada."},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello Ada."}]},
            {"role": "user", "content": "What is my name?"},
        ]}))
        .await;
    assert_eq!(text_of(&response), "You said: What is my name?");
    let items = format!(
        "/v1/responses/{}/input_items?order=asc",
        response["id"].as_str().unwrap()
    );
    let items = server.get(&items).await.json();
    let roles = items["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["role"].as_str().unwrap());
    assert_eq!(
        roles.collect::<Vec<_>>(),
        ["developer", "user", "assistant", "user"]
    );
    assert_eq!(server.n_threads().await, 1);
}

#[tokio::test]
async fn an_item_that_is_only_named_must_be_there() {
    let server = Server::new("").await;
    let one = server.respond(json!({"input": "one"})).await;
    let go_on = async |id: &Value, store: bool| {
        let input =
            json!([{"type": "item_reference", "id": id}, {"role": "user", "content": "two"}]);
        let body = json!({"input": input, "previous_response_id": one["id"], "store": store});
        server.post("/v1/responses", body).await
    };
    for store in [true, false] {
        let none = go_on(&json!("msg_none"), store).await;
        assert_eq!(refusal(&none).2, "item_not_found");
        let there = go_on(&one["output"][0]["id"], store).await;
        assert_eq!(there.status, 200, "{}", there.text);
    }
}

#[tokio::test]
async fn a_call_is_sent_again_with_its_result_or_added_with_one() {
    let server = Server::new("").await;
    let tools = json!([weather()]);
    let asked = server.respond(json!({"input": ASKS, "tools": tools})).await;
    let call = &asked["output"][0];
    let output = |id: &Value| output(id, "sun");
    // The call waits: what is new is its result.
    let body = json!({
        "previous_response_id": asked["id"], "input": [call, output(&call["call_id"])], "tools": tools,
    });
    let said = server.respond(body).await;
    assert_eq!(text_of(&said), "get_weather gave sun.");
    // One that the conversation does not have is kept with its result.
    let own = json!({"type": "function_call", "call_id": "own", "name": "get_weather", "arguments": "{}"});
    let input = json!([own, output(&json!("own")), {"role": "user", "content": "and?"}]);
    let body = json!({"previous_response_id": said["id"], "input": input});
    let next = server.respond(body).await;
    assert_eq!(text_of(&next), "You said: and?");
    let path = format!(
        "/v1/responses/{}/input_items?order=asc",
        next["id"].as_str().unwrap()
    );
    let types = server.get(&path).await.json();
    let types = types["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["type"].as_str().unwrap());
    assert_eq!(
        types.collect::<Vec<_>>(),
        ["function_call", "function_call_output", "message"]
    );
}

#[tokio::test]
async fn a_repetition_does_not_bring_back_what_was_deleted() {
    let server = Server::new("").await;
    let made = server.post("/v1/conversations", json!({})).await.json();
    let one = server.respond(json!({"input": "one"})).await;
    for (token, body) in [
        ("a", json!({"input": "two", "conversation": made["id"]})),
        (
            "b",
            json!({"input": "two", "previous_response_id": one["id"]}),
        ),
    ] {
        let ask = async || {
            server
                .post_with_token("/v1/responses", token, body.clone())
                .await
        };
        let two = ask().await.json();
        let path = format!("/v1/responses/{}", two["id"].as_str().unwrap());
        assert_eq!(server.delete(&path).await.status, 200);
        assert_eq!(refusal(&ask().await), not_found("response_not_found"));
    }
}

#[tokio::test]
async fn leave_that_is_given_in_a_copy_is_refused_for_what_it_is() {
    let server = Server::new("").await;
    let one = server.respond(json!({"input": "one"})).await;
    let leave = json!([{"type": "loomline:approval_response", "call_id": "c", "approve": true}]);
    let body = json!({"input": leave, "previous_response_id": one["id"], "store": false});
    let answer = server.post("/v1/responses", body).await;
    assert_eq!(refusal(&answer), invalid("unsupported_value", "input[0]"));
    assert!(
        answer
            .text
            .contains("leave is given to a call where it waits"),
        "{}",
        answer.text
    );
}

#[tokio::test]
async fn a_conversation_that_is_closed_is_told_to_be_so() {
    let server = Server::new("").await;
    server.say("t", "hello").await;
    let closed = server.post_text("/api/v1/threads/t/close", "").await;
    assert_eq!(closed.status, 200, "{}", closed.text);
    let expected = invalid("conversation_closed", "");
    for store in [true, false] {
        let body = json!({"input": "x", "conversation": "t", "store": store});
        let answer = server.post("/v1/responses", body).await;
        if store {
            assert_eq!(refusal(&answer), expected);
        } else {
            // A copy is open.
            assert_eq!(answer.status, 200, "{}", answer.text);
        }
    }
}
