//! Responses that several others go on with.

use super::{ASKS, invalid, output, output_types, refusal, text_of, weather};
use crate::harness::Server;
use futures_util::future::join_all;
use serde_json::{Value, json};

/// What is said in the conversation of a response.
async fn texts(server: &Server, response: &Value) -> Vec<String> {
    let thread = &response["id"].as_str().unwrap()[5..37];
    let list = format!("/v1/conversations/conv_{thread}/items?order=asc");
    let list = server.get(&list).await.json();
    let items = list["data"].as_array().unwrap().iter();
    let texts = items.filter_map(|item| item["content"][0]["text"].as_str().map(str::to_owned));
    texts.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_all_that_go_on_with_one_response_at_once_none_reads_another() {
    let server = Server::new("").await;
    let one = server.respond(json!({"input": "one"})).await;
    let branches = (0..12).map(|n| {
        let input = format!("branch {n}");
        server.respond(json!({"input": input, "previous_response_id": one["id"]}))
    });
    for (n, response) in join_all(branches).await.iter().enumerate() {
        let input = format!("branch {n}");
        let expected = [
            "one",
            "You said: one",
            &input,
            &format!("You said: {input}"),
        ];
        assert_eq!(texts(&server, response).await, expected);
    }
    assert_eq!(server.n_threads().await, 12);
}

#[tokio::test]
async fn a_response_is_gone_on_with_while_another_one_does() {
    let server = Server::new("").await;
    let one = server.respond(json!({"input": "one"})).await;
    let running = server
        .respond(json!({
            "input": "slow 50ms say 400 words", "previous_response_id": one["id"],
            "background": true,
        }))
        .await;
    let other = server
        .respond(json!({"input": "other", "previous_response_id": one["id"]}))
        .await;
    assert_eq!(text_of(&other), "You said: other");
    let stop = format!("/v1/responses/{}/cancel", running["id"].as_str().unwrap());
    assert_eq!(server.post_text(&stop, "").await.status, 200);
}

#[tokio::test]
async fn a_call_is_answered_once_in_each_branch() {
    let server = Server::new("").await;
    let asked = server
        .respond(json!({"input": ASKS, "tools": [weather()]}))
        .await;
    let call = &asked["output"][0]["call_id"];
    let answer = |said: &str, call: &Value| {
        json!({
            "previous_response_id": asked["id"], "tools": [weather()],
            "input": [output(call, said)],
        })
    };
    for (n, said) in ["rain", "snow", "fog"].iter().enumerate() {
        let response = server.respond(answer(said, call)).await;
        assert_eq!(text_of(&response), format!("get_weather gave {said}."));
        assert_eq!(server.n_threads().await, n + 1);
    }
    // What is refused leaves no branch behind.
    let refused = server
        .post("/v1/responses", answer("x", &"call_none".into()))
        .await;
    assert_eq!(refusal(&refused), invalid("invalid_value", "input"));
    assert_eq!(server.n_threads().await, 3);
    // Something else may be said in place of the answer, there as well.
    let response = server
        .respond(json!({"previous_response_id": asked["id"], "input": "Never mind"}))
        .await;
    assert_eq!(text_of(&response), "You said: Never mind");
    assert_eq!(server.n_threads().await, 4);
}

#[tokio::test]
async fn a_call_that_waits_is_not_gone_on_from_with_nothing() {
    let server = Server::new("").await;
    let asked = server
        .respond(json!({"input": ASKS, "tools": [weather()]}))
        .await;
    let call = asked["output"][0]["call_id"].as_str().unwrap();
    let bare = json!({"previous_response_id": asked["id"], "tools": [weather()]});
    let mut empty = bare.clone();
    empty["input"] = json!([]);
    let refused_each = async || {
        for body in [&bare, &empty] {
            let answer = server.post("/v1/responses", body.clone()).await;
            assert_eq!(refusal(&answer), invalid("invalid_value", "input"));
            assert_eq!(
                answer.json()["error"]["message"],
                format!("No tool output found for function call {call}.")
            );
        }
    };
    refused_each().await;
    assert_eq!(server.n_threads().await, 1);
    let output = output(&call.into(), "rain");
    let said = server
        .respond(json!({"previous_response_id": asked["id"], "input": [output]}))
        .await;
    assert_eq!(text_of(&said), "get_weather gave rain.");
    // Nor in a branch.
    refused_each().await;
    assert_eq!(server.n_threads().await, 1);
    // Where no call waits the model is asked again.
    let more = server
        .respond(json!({"previous_response_id": said["id"]}))
        .await;
    assert_eq!(output_types(&more), ["message"]);
}

#[tokio::test]
async fn what_is_kept_after_a_response_is_no_part_of_it() {
    let server = Server::new("").await;
    let one = server.respond(json!({"input": "one"})).await;
    let thread = &one["id"].as_str().unwrap()[5..37];
    let path = format!("/v1/conversations/conv_{thread}");
    // What the conversation is called is nothing that was said.
    let named = json!({"metadata": {"topic": "demo"}});
    assert_eq!(server.post(&path, named).await.status, 200);
    let two = server
        .respond(json!({"input": "two", "previous_response_id": one["id"]}))
        .await;
    assert_eq!(server.n_threads().await, 1);
    let items = json!({"items": [{"type": "message", "role": "user", "content": "aside"}]});
    let kept = server.post(&format!("{path}/items"), items).await;
    assert_eq!(kept.status, 200, "{}", kept.text);
    let three = server
        .respond(json!({"input": "three", "previous_response_id": two["id"]}))
        .await;
    assert_eq!(server.n_threads().await, 2);
    let expected = [
        "one",
        "You said: one",
        "two",
        "You said: two",
        "three",
        "You said: three",
    ];
    assert_eq!(texts(&server, &three).await, expected);
}

#[tokio::test]
async fn an_older_response_has_its_own_past_alone() {
    let server = Server::new("").await;
    let count = async |id: &Value| {
        let body = json!({"input": "and", "previous_response_id": id});
        let counted = server.post("/v1/responses/input_tokens", body).await;
        counted.json()["input_tokens"].as_u64().unwrap()
    };
    let one = server.respond(json!({"input": "one"})).await;
    let two = server
        .respond(json!({"input": "two", "previous_response_id": one["id"]}))
        .await;
    let counted = [count(&one["id"]).await, count(&two["id"]).await];
    assert!(counted[0] < counted[1]);
    let three = server
        .respond(json!({"input": "three", "previous_response_id": two["id"]}))
        .await;
    let branch = server
        .respond(json!({"input": "branch", "previous_response_id": two["id"]}))
        .await;
    assert_eq!([count(&one["id"]).await, count(&two["id"]).await], counted);
    assert!(count(&three["id"]).await > counted[1]);
    assert!(count(&branch["id"]).await > counted[1]);
    // So has one that is gone on with and not kept.
    let passing = server
        .respond(json!({"input": "x", "previous_response_id": two["id"], "store": false}))
        .await;
    assert_eq!(text_of(&passing), "You said: x");
    assert_eq!(server.n_threads().await, 2);
}

/// A call that the client has made by itself, with its result.
fn own_pair() -> [Value; 2] {
    [
        json!({"type": "function_call", "call_id": "own", "name": "look", "arguments": "{}"}),
        output(&json!("own"), "seen"),
    ]
}

#[tokio::test]
async fn a_call_with_its_own_result_is_no_answer_to_one_that_waits() {
    let server = Server::new("").await;
    let asked = server
        .respond(json!({"input": ASKS, "tools": [weather()]}))
        .await;
    let [call, output] = own_pair();
    let bare = json!({
        "previous_response_id": asked["id"], "tools": [weather()], "input": [call, output],
    });
    let refused = server.post("/v1/responses", bare.clone()).await;
    assert_eq!(refusal(&refused), invalid("invalid_value", "input"));
    let mut said = bare;
    said["input"] = json!([call, output, {"role": "user", "content": "and?"}]);
    let next = server.respond(said).await;
    assert_eq!(text_of(&next), "You said: and?");
}

#[tokio::test]
async fn a_branch_is_repeated_as_it_was_made() {
    let server = Server::new("").await;
    let two = |place: &str| format!("get_weather {{\"location\": \"{place}\"}}");
    let asks = format!("use {} and {}", two("Paris"), two("Rome"));
    let asked = server
        .respond(json!({"input": asks, "tools": [weather()]}))
        .await;
    let calls: Vec<&Value> = asked["output"].as_array().unwrap().iter().collect();
    let [a, b] = calls.as_slice() else {
        panic!("{asked}");
    };
    let output = |call: &Value| output(&call["call_id"], "sun");
    let body = json!({
        "previous_response_id": asked["id"], "tools": [weather()], "input": [a, output(a), output(b)],
    });
    // The first goes on in the thread, the second in a branch; each is answered as before.
    let mut ids = Vec::new();
    for token in ["t1", "t2"] {
        let first = server
            .post_with_token("/v1/responses", token, body.clone())
            .await;
        assert_eq!(first.status, 200, "{}", first.text);
        let again = server
            .post_with_token("/v1/responses", token, body.clone())
            .await;
        assert_eq!(again.text, first.text);
        assert_eq!(again.headers["idempotent-replayed"], "true");
        ids.push(first.json()["id"].clone());
    }
    assert_ne!(ids[0], ids[1]);
    assert_eq!(server.n_threads().await, 2);
}
