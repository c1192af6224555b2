//! Every way in by which somebody says something judges it, and a refusal changes nothing.

use super::every_way::{
    ANSWERING, SAYING_NOTHING, by_every_way, make_threads, method_of, threads, ways,
};
use super::{Meeting, address, quote, seat};
use crate::harness::Server;
use crate::tenants::all_guarded_routes;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A capability message that no schema lets through.
fn broken() -> String {
    json!({"$schema": super::DECISIONS, "request_decision": {"id": "x"}}).to_string()
}

async fn standing(client: &Server) -> Vec<u64> {
    let mut seqs = Vec::new();
    for key in threads() {
        client.at_rest(key).await;
        seqs.push(client.seq(key).await);
    }
    seqs
}

#[test]
fn every_route_that_takes_a_body_is_a_way_in_or_says_nothing() {
    let ways = ways("").into_iter();
    let mut listed: BTreeSet<(String, String)> = ways
        .map(|(_, route, ..)| (method_of(route).to_owned(), route.to_owned()))
        .collect();
    let quiet = SAYING_NOTHING.iter().chain(&ANSWERING);
    for (method, route) in quiet {
        let is_new = listed.insert(((*method).to_owned(), (*route).to_owned()));
        assert!(is_new, "{method} {route} is listed twice");
    }
    let there = all_guarded_routes().into_iter();
    let there: BTreeSet<_> = there
        .filter(|(method, _)| ["POST", "PUT", "PATCH"].contains(&method.as_str()))
        .collect();
    let unlisted: Vec<_> = there.difference(&listed).collect();
    assert!(unlisted.is_empty(), "is something said here? {unlisted:?}");
    let gone: Vec<_> = listed.difference(&there).collect();
    assert!(gone.is_empty(), "{gone:?} are no routes any more");
}

#[tokio::test]
async fn every_way_in_refuses_what_does_not_fit_and_says_where() {
    let meeting = Meeting::keys("").await;
    let client = &meeting.user;
    make_threads(client).await;
    let before = standing(client).await;
    let n_threads = client.get("/api/v1/threads").await.json()["threads"]
        .as_array()
        .unwrap()
        .len();
    for (name, route, answer) in by_every_way(client, &broken()).await {
        let told = answer.json();
        let own = (&told["error"]["pointer"], &told["error"]["param"]);
        let langgraph = &told["metadata"]["pointer"];
        let place = match route {
            "/api/v1/threads/{key}/messages" | "/api/v1/threads/{key}/messages/{id}/replace" => {
                ("/content", own.0)
            }
            "/api/v1/threads/{key}/import" => ("/0/parts/0/text", own.0),
            "/v1/threads/{thread_id}/messages" => ("content", own.1),
            "/v1/threads/{thread_id}/runs" => ("additional_messages[0].content", own.1),
            "/v1/threads" => ("messages[0].content", own.1),
            "/v1/thread" => ("messages[0]", own.1),
            "/v1/threads/runs" => ("thread.messages[0].content", own.1),
            "/v1/chat/completions" => ("messages", own.1),
            "/v1/conversations" => ("items", own.1),
            "/v1/conversations/{conversation_id}/items" => ("items[0].content[0]", own.1),
            "/api/chat" => ("/messages/0/parts/0", own.0),
            "/ag-ui" | "/ag-ui/agents/{agent}" => ("/messages/0/content", own.0),
            "/a2a/v1/message:send" | "/a2a/v1/message:stream" => (
                "/message/parts/0",
                &told["error"]["details"][0]["metadata"]["pointer"],
            ),
            "/a2a" => (
                "/params/message/parts/0",
                &told["error"]["data"][0]["metadata"]["pointer"],
            ),
            "/mcp" => (
                "/content",
                &told["result"]["_meta"]["loomline/error"]["pointer"],
            ),
            "/threads/{thread_id}/runs"
            | "/threads/{thread_id}/runs/wait"
            | "/threads/{thread_id}/runs/stream"
            | "/threads/{thread_id}/commands" => ("/input/messages/0/content", langgraph),
            "/threads/{thread_id}/state" => ("/values/messages/0", langgraph),
            "/threads/{thread_id}" => ("/messages/0/content/0", langgraph),
            "/runs/stream" if name.is_empty() => ("/input/messages/0/content", langgraph),
            "/runs" | "/runs/wait" | "/runs/stream" => ("/messages/0/content", langgraph),
            _ => ("input", own.1),
        };
        assert_eq!(place.1, place.0, "{route}: {}", answer.text);
        assert!(
            answer.text.contains("capability message does not fit"),
            "{route}: {}",
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
    make_threads(client).await;
    for (_, route, answer) in by_every_way(client, &seat(None).to_string()).await {
        assert!(answer.status.is_success(), "{route}: {}", answer.text);
    }
    standing(client).await;
    for key in threads() {
        let path = format!("/api/v1/threads/{key}/requests");
        let list = client.get(&path).await.json();
        assert_eq!(list["requests"][0]["id"], "decision:seat", "{key}: {list}");
        assert_eq!(list["requests"][0]["by"]["kind"], "initiator", "{key}");
    }
}

#[tokio::test]
async fn a_key_that_is_an_actors_speaks_nowhere_without_saying_so() {
    let meeting = Meeting::keys("").await;
    make_threads(&meeting.user).await;
    for key in threads() {
        meeting.user.say(key, "hello").await;
        let body = json!({"actor": {"id": "shop"}});
        let path = format!("/api/v1/threads/{key}/actors");
        assert_eq!(meeting.shop.post(&path, body).await.status, 201);
    }
    let before = standing(&meeting.user).await;
    for (name, route, answer) in by_every_way(&meeting.shop, "hello").await {
        if name.is_empty() {
            // It has begun a thread of its own.
            assert_eq!(answer.status, 200, "{route}: {}", answer.text);
        } else {
            let says = "bound to the actor \\\"shop\\\"";
            assert!(
                answer.text.contains(says),
                "{name} {route}: {}",
                answer.text
            );
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
