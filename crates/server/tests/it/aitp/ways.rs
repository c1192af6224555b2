//! Every way in by which somebody says something judges it, and a refusal changes nothing.

use super::{Meeting, address, quote, seat};
use crate::harness::{Answer, Server};
use serde_json::{Value, json};

/// A capability message that no schema lets through.
fn broken() -> String {
    json!({"$schema": super::DECISIONS, "request_decision": {"id": "x"}}).to_string()
}

/// Posts a text by every way in, each to a thread of its own that is there.
async fn by_every_way(client: &Server, text: &str) -> Vec<(&'static str, Answer)> {
    let part = json!({"type": "text", "text": text});
    let a2a = json!({"message": {
        "messageId": "m", "role": "ROLE_USER", "contextId": "a2a", "parts": [{"text": text}],
    }});
    let rpc = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": {
        "messageId": "m", "role": "ROLE_USER", "contextId": "rpc", "parts": [{"text": text}],
    }}});
    let said = json!([{"role": "user", "content": text}]);
    let bodies = [
        ("/api/v1/threads/own/messages", json!({"content": text})),
        (
            "/v1/threads/threads/messages",
            json!({"role": "user", "content": text}),
        ),
        (
            "/v1/threads/runs/runs",
            json!({"assistant_id": "demo", "additional_messages": said}),
        ),
        ("/v1/threads", json!({"messages": said})),
        ("/v1/thread", json!({"messages": [text]})),
        (
            "/v1/threads/runs",
            json!({"assistant_id": "demo", "thread": {"messages": said}}),
        ),
        ("/v1/responses", json!({"model": "demo", "input": text})),
        (
            "/v1/responses#",
            json!({"model": "demo", "input": text, "store": false}),
        ),
        (
            "/v1/responses##",
            json!({"model": "demo", "input": text, "conversation": "responses"}),
        ),
        ("/v1/conversations", json!({"items": said})),
        ("/v1/conversations/items/items", json!({"items": said})),
        (
            "/api/chat",
            json!({"id": "chat", "trigger": "submit-message", "messages": [
                {"id": "m1", "role": "user", "parts": [part]},
            ]}),
        ),
        (
            "/ag-ui",
            json!({
                "threadId": "ag-ui", "runId": "r1", "state": {}, "tools": [], "context": [], "forwardedProps": {},
                "messages": [{"id": "m2", "role": "user", "content": text}],
            }),
        ),
        ("/a2a/v1/message:send", a2a),
        ("/a2a", rpc),
    ];
    let mut answers = Vec::new();
    for (path, body) in bodies {
        let plain = path.trim_end_matches('#');
        let plain = plain.replace("/v1/threads/runs/runs", "/v1/threads/beside/runs");
        let request = client
            .request("POST", &plain)
            .header("content-type", "application/json")
            .header("a2a-version", "1.0");
        let request = request.body(body.to_string().into()).unwrap();
        answers.push((path, client.send(request).await));
    }
    answers
}

/// The threads that [`by_every_way`] speaks on.
const THREADS: [&str; 9] = [
    "own",
    "threads",
    "beside",
    "responses",
    "items",
    "chat",
    "ag-ui",
    "a2a",
    "rpc",
];

async fn standing(client: &Server) -> Vec<u64> {
    let mut seqs = Vec::new();
    for key in THREADS {
        client.at_rest(key).await;
        seqs.push(client.seq(key).await);
    }
    seqs
}

#[tokio::test]
async fn every_way_in_refuses_what_does_not_fit_and_says_where() {
    let meeting = Meeting::keys("").await;
    let client = &meeting.user;
    for key in THREADS {
        client.post("/api/v1/threads", json!({ "key": key })).await;
    }
    let before = standing(client).await;
    let n_threads = client.get("/api/v1/threads").await.json()["threads"]
        .as_array()
        .unwrap()
        .len();
    for (path, answer) in by_every_way(client, &broken()).await {
        let told = answer.json();
        let place = match path {
            "/api/v1/threads/own/messages" => ("/content", &told["error"]["pointer"]),
            "/v1/threads/threads/messages" => ("content", &told["error"]["param"]),
            "/v1/threads/runs/runs" => ("additional_messages[0].content", &told["error"]["param"]),
            "/v1/threads" => ("messages[0].content", &told["error"]["param"]),
            "/v1/thread" => ("messages[0]", &told["error"]["param"]),
            "/v1/threads/runs" => ("thread.messages[0].content", &told["error"]["param"]),
            "/v1/conversations" => ("items", &told["error"]["param"]),
            "/v1/conversations/items/items" => ("items[0].content[0]", &told["error"]["param"]),
            "/api/chat" => ("/messages/0/parts/0", &told["error"]["pointer"]),
            "/ag-ui" => ("/messages/0/content", &told["error"]["pointer"]),
            "/a2a/v1/message:send" => (
                "/message/parts/0",
                &told["error"]["details"][0]["metadata"]["pointer"],
            ),
            "/a2a" => (
                "/params/message/parts/0",
                &told["error"]["data"][0]["metadata"]["pointer"],
            ),
            _ => ("input", &told["error"]["param"]),
        };
        assert_eq!(place.1, place.0, "{path}: {}", answer.text);
        assert!(
            answer.text.contains("capability message does not fit"),
            "{path}: {}",
            answer.text
        );
    }
    assert_eq!(standing(client).await, before, "nothing was written");
    let list = client.get("/api/v1/threads").await.json();
    assert_eq!(
        list["threads"].as_array().unwrap().len(),
        n_threads,
        "and no thread was made"
    );
}

#[tokio::test]
async fn every_way_in_takes_what_fits_and_the_request_is_known() {
    let meeting = Meeting::keys("").await;
    let client = &meeting.user;
    for key in THREADS {
        client.post("/api/v1/threads", json!({ "key": key })).await;
    }
    for (path, answer) in by_every_way(client, &seat(None).to_string()).await {
        assert!(answer.status.is_success(), "{path}: {}", answer.text);
    }
    standing(client).await;
    for key in THREADS {
        let path = format!("/api/v1/threads/{key}/requests");
        let list = client.get(&path).await.json();
        assert_eq!(list["requests"][0]["id"], "decision:seat", "{key}: {list}");
        assert_eq!(list["requests"][0]["by"]["kind"], "initiator", "{key}");
    }
}

#[tokio::test]
async fn a_key_that_is_an_actors_speaks_nowhere_without_saying_so() {
    let meeting = Meeting::keys("").await;
    for key in THREADS {
        meeting
            .user
            .post("/api/v1/threads", json!({ "key": key }))
            .await;
        meeting.user.say(key, "hello").await;
        let body = json!({"actor": {"id": "shop"}});
        let path = format!("/api/v1/threads/{key}/actors");
        assert_eq!(meeting.shop.post(&path, body).await.status, 201);
    }
    let before = standing(&meeting.user).await;
    for (path, answer) in by_every_way(&meeting.shop, "hello").await {
        let is_new = matches!(
            path,
            "/v1/threads"
                | "/v1/thread"
                | "/v1/threads/runs"
                | "/v1/conversations"
                | "/v1/responses"
                | "/v1/responses#"
        );
        if is_new {
            // It has begun a thread of its own.
            assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        } else {
            let says = "bound to the actor \\\"shop\\\"";
            assert!(answer.text.contains(says), "{path}: {}", answer.text);
        }
    }
    assert_eq!(standing(&meeting.user).await, before);
}

#[tokio::test]
async fn messages_of_one_request_are_judged_each_after_those_before() {
    let meeting = Meeting::new().await;
    let say = |role: &str, message: Value| json!({"role": role, "content": message.to_string()});
    // The answer is for what is asked right before it; the second payment is one too many.
    let pay = json!({"$schema": super::PAYMENTS, "payment": {
        "quote_id": "hat", "payer_id": "ada.near", "timestamp": "2026-01-05T08:00:00Z", "payer_signature": "s",
        "payment_method": {"type": "near_payment_channel", "token": "usdc", "channel_id": "c", "currency": "USD", "amount": "12.50"},
    }});
    let messages = |n: usize| {
        let mut messages = vec![say("assistant", quote())];
        messages.extend(std::iter::repeat_n(say("user", pay.clone()), n));
        json!({ "messages": messages })
    };
    let made = meeting.user.post("/v1/threads", messages(1)).await;
    assert_eq!(made.status, 200, "{}", made.text);
    let refused = meeting.user.post("/v1/threads", messages(2)).await;
    let error = &refused.json()["error"];
    assert_eq!(
        (refused.status.as_u16(), &error["code"], &error["param"]),
        (
            409,
            &json!("request_refused"),
            &json!("messages[2].content")
        )
    );
    let body = json!({"assistant_id": "demo", "additional_messages": messages(2)["messages"]});
    let other = meeting.user.post("/v1/threads", json!({})).await.json();
    let path = format!("/v1/threads/{}/runs", other["id"].as_str().unwrap());
    let refused = meeting.user.post(&path, body).await;
    let error = &refused.json()["error"];
    assert_eq!(error["param"], "additional_messages[2].content", "{error}");
}

#[tokio::test]
async fn a_message_that_is_repeated_is_not_judged_again() {
    let meeting = Meeting::new().await;
    meeting.ask(&address()).await;
    let text = json!({"$schema": super::DATA, "data": {"request_data_id": "address", "fields": [{"id": "city", "value": "Bonn"}]}});
    let run = |run: &str| {
        let body = json!({
            "threadId": "t", "runId": run, "state": {}, "tools": [], "context": [], "forwardedProps": {},
            "messages": [{"id": "once", "role": "user", "content": text.to_string()}],
        });
        meeting.user.post("/ag-ui", body)
    };
    assert_eq!(run("r1").await.status, 200);
    meeting.user.at_rest("t").await;
    let cancel = json!({"$schema": interop::aitp::REQUESTS, "cancel": {"request_id": "address"}});
    let refused = meeting
        .record(
            &meeting.shop,
            "assistant",
            Some("shop"),
            &cancel.to_string(),
        )
        .await;
    assert_eq!(refused.status, 409, "it was answered: {}", refused.text);
    // The client sends its last message again to have the agent go on.
    let again = run("r2").await;
    assert_eq!(again.status, 200, "{}", again.text);
    meeting.user.at_rest("t").await;
    assert_eq!(meeting.request("data:address").await["nAnswers"], 1);
}

#[tokio::test]
async fn in_a_thread_without_actors_an_id_is_its_clients_note() {
    let meeting = Meeting::keys("").await;
    meeting.user.say("t", "hello").await;
    let said = meeting
        .record(&meeting.user, "user", Some("ada"), "it's me")
        .await;
    assert_eq!(said.json()["metadata"]["actor"], "ada");
    // Who asks something takes part.
    let refused = meeting
        .record(
            &meeting.user,
            "assistant",
            Some("ada"),
            &seat(None).to_string(),
        )
        .await;
    assert_eq!(
        refused.json()["error"]["code"],
        "invalid_actor",
        "{}",
        refused.text
    );
    let said = meeting
        .record(&meeting.user, "assistant", None, &seat(None).to_string())
        .await;
    assert_eq!(said.status, 200, "{}", said.text);
}
