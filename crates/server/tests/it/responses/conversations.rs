//! `/v1/conversations`.

use super::{ASKS, invalid, not_found, output, refusal, text_of, weather};
use crate::harness::Server;
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::collections::BTreeSet;

async fn made(server: &Server, body: Value) -> (String, Value) {
    let answer = server.post("/v1/conversations", body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let made = answer.json();
    (
        format!("/v1/conversations/{}", made["id"].as_str().unwrap()),
        made,
    )
}

#[tokio::test]
async fn a_conversation_begins_with_what_it_is_given() {
    let server = Server::new("").await;
    let (path, conversation) = made(
        &server,
        json!({"metadata": {"topic": "demo"}, "items": [
            {"type": "message", "role": "user", "content": "My name is Ada."},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello."}]},
        ]}),
    )
    .await;
    assert_eq!(conversation["object"], "conversation");
    assert_eq!(conversation["metadata"], json!({"topic": "demo"}));
    assert_eq!(server.get(&path).await.json(), conversation);
    let items = server.get(&format!("{path}/items?order=asc")).await.json();
    let roles = items["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["role"].as_str().unwrap());
    assert_eq!(roles.collect::<Vec<_>>(), ["user", "assistant"]);
    let response = server
        .respond(json!({"input": "hi", "conversation": conversation["id"]}))
        .await;
    assert_eq!(text_of(&response), "You said: hi");
}

#[tokio::test]
async fn items_are_kept_and_found_again() {
    let server = Server::new("").await;
    let (path, _) = made(&server, json!({})).await;
    let items: Vec<Value> = (0..3)
        .map(|n| json!({"type": "message", "role": "user", "content": format!("m{n}")}))
        .collect();
    let kept = server
        .post(&format!("{path}/items"), json!({"items": items}))
        .await
        .json();
    assert_eq!(kept["data"].as_array().unwrap().len(), 3);
    let list = server.get(&format!("{path}/items?order=asc")).await.json();
    assert_eq!(list["data"], kept["data"]);
    let id = kept["data"][1]["id"].as_str().unwrap();
    let one = server.get(&format!("{path}/items/{id}")).await.json();
    assert_eq!(one, kept["data"][1]);
    let none = server.get(&format!("{path}/items/msg_none")).await;
    assert_eq!(refusal(&none), not_found("item_not_found"));
}

#[tokio::test]
async fn a_result_is_kept_with_its_call_alone() {
    let server = Server::new("").await;
    let (path, conversation) = made(&server, json!({})).await;
    let path = format!("{path}/items");
    let output = |call: &Value| output(call, "sun");
    let keep = async |items: Value| server.post(&path, json!({"items": items})).await;
    // No call has this id.
    let none = json!("call_none");
    let stray = keep(json!([output(&none)])).await;
    assert_eq!(refusal(&stray), invalid("invalid_value", "items[0]"));
    // The call waits: whoever answers it wants the agent to go on.
    let body = json!({"input": ASKS, "tools": [weather()], "conversation": conversation["id"]});
    let asked = server.respond(body).await;
    let waits = &asked["output"][0]["call_id"];
    let early = keep(json!([output(waits)])).await;
    assert_eq!(refusal(&early), invalid("invalid_value", "items[0]"));
    assert!(
        early.text.contains("waits for its output"),
        "{}",
        early.text
    );
    let body =
        json!({"input": [output(waits)], "tools": [weather()], "conversation": conversation["id"]});
    assert_eq!(
        text_of(&server.respond(body).await),
        "get_weather gave sun."
    );
    // One that was kept has one result, in the same request or a later one.
    let call = json!({"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"});
    assert_eq!(keep(json!([call])).await.status, 200);
    let kept = output(&json!("c"));
    assert_eq!(keep(json!([kept])).await.status, 200);
    assert_eq!(keep(json!([kept])).await.status, 400);
    assert_eq!(keep(json!([call, kept])).await.status, 200);
    assert_eq!(keep(json!([call, kept, kept])).await.status, 400);
}

#[tokio::test]
async fn a_long_conversation_is_listed_in_pages_from_either_end() {
    let server = Server::new("").await;
    // It begins with something that was said to nobody.
    let (path, conversation) = made(
        &server,
        json!({"items": [{"type": "message", "role": "assistant", "content": "Welcome."}]}),
    )
    .await;
    for n in 0..12 {
        let input = if n % 3 == 0 {
            json!("compute 6*7")
        } else {
            json!(format!("m{n}"))
        };
        let body = json!({"input": input, "conversation": conversation["id"]});
        server.respond(body).await;
    }
    let list = async |query: &str| server.get(&format!("{path}/items?{query}")).await.json();
    let ids = |list: &Value| -> Vec<String> {
        let items = list["data"].as_array().unwrap().iter();
        items
            .map(|item| item["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let all = ids(&list("order=asc&limit=100").await);
    assert_eq!(all.len(), 1 + 8 * 2 + 4 * 4);
    for order in ["asc", "desc"] {
        for limit in [1, 5, 33] {
            let mut seen = Vec::new();
            let mut after = String::new();
            loop {
                let page = list(&format!("order={order}&limit={limit}{after}")).await;
                seen.extend(ids(&page));
                after = format!("&after={}", page["last_id"].as_str().unwrap());
                if page["has_more"] == false {
                    break;
                }
            }
            if order == "desc" {
                seen.reverse();
            }
            assert_eq!(seen, all, "{order} {limit}");
        }
    }
    for id in &all {
        let one = server.get(&format!("{path}/items/{id}")).await.json();
        assert_eq!(one["id"], json!(id));
    }
    let none = server.get(&format!("{path}/items?after=msg_none")).await;
    assert_eq!(refusal(&none).2, "item_not_found");
}

#[tokio::test]
async fn every_item_is_found_by_its_id_and_can_be_named() {
    let server = Server::new("").await;
    let (path, conversation) = made(&server, json!({})).await;
    let id = &conversation["id"];
    let asked = json!({"input": ASKS, "tools": [weather()], "conversation": id});
    let asked = server.respond(asked).await;
    let call = &asked["output"][0]["call_id"];
    // What is said beside an answer has its id of the answer's.
    let input = json!([
        output(call, "sun"),
        {"role": "user", "content": "think and be brief"},
    ]);
    let body = json!({"input": input, "tools": [weather()], "conversation": id});
    server.respond(body).await;
    let pair = json!([
        {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"},
        output(&json!("c"), "seen"),
    ]);
    server
        .post(&format!("{path}/items"), json!({"items": pair}))
        .await;
    server
        .respond(json!({"input": "compute 6*7", "conversation": id}))
        .await;
    let shown = "include[]=reasoning.encrypted_content&include[]=loomline:items";
    let list = format!("{path}/items?order=asc&limit=100&{shown}");
    let list = server.get(&list).await.json();
    let items = list["data"].as_array().unwrap();
    let kinds: BTreeSet<&str> = items
        .iter()
        .map(|item| item["type"].as_str().unwrap())
        .collect();
    assert!(kinds.len() >= 4, "{kinds:?}");
    let ids: Vec<&str> = items.iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert!(!ids.iter().any(|id| id.contains(':')), "{ids:?}");
    for (place, id) in ids.iter().enumerate() {
        let one = server.get(&format!("{path}/items/{id}?{shown}")).await;
        assert_eq!(one.json(), items[place]);
        let rest = format!("{path}/items?order=asc&limit=100&after={id}&{shown}");
        let rest = server.get(&rest).await.json();
        assert_eq!(
            rest["data"].as_array().unwrap(),
            &items[place + 1..],
            "{id}"
        );
    }
    let names = |ids: &[&str]| -> Vec<Value> {
        ids.iter()
            .map(|id| json!({"type": "item_reference", "id": id}))
            .collect()
    };
    let mut input = names(&ids);
    input.extend(names(&ids));
    input.push(json!({"role": "user", "content": "all of it"}));
    let said = server
        .respond(json!({"input": input, "conversation": id}))
        .await;
    assert_eq!(text_of(&said), "You said: all of it");
    input.insert(3, json!({"type": "item_reference", "id": "fc_none_1"}));
    let body = json!({"input": input, "conversation": id});
    let answer = server.post("/v1/responses", body).await;
    assert_eq!(
        (refusal(&answer).2.as_str(), refusal(&answer).3.as_deref()),
        ("item_not_found", Some("input[3].id"))
    );
}

#[tokio::test]
async fn items_are_kept_all_or_none() {
    let server = Server::new("").await;
    let (path, _) = made(&server, json!({})).await;
    let items = json!({"items": [
        {"type": "message", "role": "user", "content": "good"},
        {"type": "item_reference", "id": "msg_none"},
    ]});
    let answer = server.post(&format!("{path}/items"), items).await;
    assert_eq!(refusal(&answer).2, "item_not_found");
    let many: Vec<Value> = (0..21)
        .map(|_| json!({"role": "user", "content": "x"}))
        .collect();
    let answer = server
        .post(&format!("{path}/items"), json!({"items": many}))
        .await;
    assert_eq!(refusal(&answer), invalid("array_above_max_length", "items"));
    assert_eq!(
        server.get(&format!("{path}/items")).await.json()["data"],
        json!([])
    );
}

#[tokio::test]
async fn a_conversation_that_is_deleted_is_gone() {
    let server = Server::new("").await;
    let (path, conversation) = made(&server, json!({})).await;
    let deleted = server.delete(&path).await.json();
    assert_eq!(
        deleted,
        json!({"id": conversation["id"], "object": "conversation.deleted", "deleted": true})
    );
    for answer in [
        server.get(&path).await,
        server.delete(&path).await,
        server.get(&format!("{path}/items")).await,
    ] {
        assert_eq!(refusal(&answer), not_found("conversation_not_found"));
    }
}

#[tokio::test]
async fn a_conversation_in_which_a_response_is_made_is_stopped_and_deleted() {
    let server = Server::new("").await;
    let (path, conversation) = made(&server, json!({})).await;
    let id = &conversation["id"];
    let slow = json!({"input": "slow 50ms say 4000 words", "background": true, "conversation": id});
    server.respond(slow).await;
    let deleted = server.delete(&path).await;
    assert_eq!(
        (deleted.status.as_u16(), &deleted.json()["deleted"]),
        (200, &json!(true))
    );
    assert_eq!(
        refusal(&server.get(&path).await),
        not_found("conversation_not_found")
    );
}

#[tokio::test]
async fn a_conversation_from_which_others_go_on_is_not_deleted() {
    let server = Server::new("").await;
    let one = server.respond(json!({"input": "one"})).await;
    for text in ["two", "another two"] {
        let body = json!({"input": text, "previous_response_id": one["id"]});
        server.respond(body).await;
    }
    let path = format!(
        "/v1/conversations/conv_{}",
        &one["id"].as_str().unwrap()[5..37]
    );
    let answer = server.delete(&path).await;
    assert_eq!(refusal(&answer), invalid("conversation_has_forks", ""));
    assert_eq!(server.get(&path).await.status, 200);
    // What runs in it goes on.
    let slow = json!({
        "input": "slow 50ms say 4000 words", "background": true,
        "conversation": path.rsplit('/').next().unwrap(),
    });
    let running = server.respond(slow).await;
    let answer = server.delete(&path).await;
    assert_eq!(refusal(&answer), invalid("conversation_has_forks", ""));
    let running = format!("/v1/responses/{}", running["id"].as_str().unwrap());
    assert_eq!(server.get(&running).await.json()["status"], "in_progress");
    let stopped = server.post_text(&format!("{running}/cancel"), "").await;
    assert_eq!(stopped.json()["status"], "cancelled");
}

#[tokio::test]
async fn a_result_that_comes_twice_at_once_is_kept_once() {
    let server = Server::new("").await;
    let (path, _) = made(&server, json!({})).await;
    let path = format!("{path}/items");
    let call = json!({"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"});
    let kept = server.post(&path, json!({"items": [call]})).await;
    assert_eq!(kept.status, 200, "{}", kept.text);
    let output = output(&json!("c"), "sun");
    let all = (0..8).map(|_| server.post(&path, json!({"items": [output]})));
    let answers = join_all(all).await;
    let n_kept = answers.iter().filter(|answer| answer.status == 200).count();
    assert_eq!(n_kept, 1);
    let items = server.get(&path).await.json();
    assert_eq!(items["data"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn metadata_is_replaced_and_what_is_not_shown_stays() {
    let server = Server::new("").await;
    let body = json!({"key": "k", "metadata": {"old": "1", "deep": {"n": 1}}});
    assert_eq!(server.post("/api/v1/threads", body).await.status, 201);
    let path = "/v1/conversations/k";
    let answer = server.post(path, json!({"metadata": {"new": "2"}})).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.json()["metadata"], json!({"new": "2"}));
    assert_eq!(server.get(path).await.json(), answer.json());
    let thread = server.get("/api/v1/threads/k").await.json();
    assert_eq!(thread["metadata"], json!({"new": "2", "deep": {"n": 1}}));
    let nothing = server.post(path, json!({})).await;
    assert_eq!(
        refusal(&nothing),
        invalid("missing_required_parameter", "metadata")
    );
}

#[tokio::test]
async fn an_item_that_is_deleted_is_listed_no_longer_and_no_model_is_shown_it() {
    let server = Server::new("").await;
    let (path, conversation) = made(
        &server,
        json!({"items": [
            {"type": "message", "role": "user", "content": "swordfish"},
        ]}),
    )
    .await;
    server
        .respond(json!({"input": "compute 6*7", "conversation": conversation["id"]}))
        .await;
    let ids = async || -> Vec<(String, String)> {
        let items = server.get(&format!("{path}/items?order=asc")).await.json();
        let items = items["data"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        items
            .map(|item| (text(&item["type"]), text(&item["id"])))
            .collect()
    };
    let before = ids().await;
    let types: Vec<&str> = before.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(
        types,
        [
            "message",
            "message",
            "function_call",
            "function_call_output",
            "message"
        ]
    );
    // What was said goes alone, a call with its result, for they are one answer.
    for gone in [0, 2] {
        let answer = server
            .delete(&format!("{path}/items/{}", before[gone].1))
            .await;
        assert_eq!(
            (answer.status.as_u16(), answer.json()),
            (200, conversation.clone()),
            "{}",
            answer.text
        );
        let again = server
            .delete(&format!("{path}/items/{}", before[gone].1))
            .await;
        assert_eq!(refusal(&again), not_found("item_not_found"));
    }
    assert_eq!(ids().await, [before[1].clone(), before[4].clone()]);
    let passing = server
        .post(
            "/v1/responses/input_tokens",
            json!({"input": "x", "conversation": conversation["id"]}),
        )
        .await;
    let left = "compute 6*7".len() + "compute gave 42.".len() + "x".len();
    assert_eq!(passing.json()["input_tokens"], left.div_ceil(4));
}

#[tokio::test]
async fn an_item_that_is_still_needed_is_told_to_be_so_in_its_own_name() {
    let server = Server::new("").await;
    let (path, conversation) = made(&server, json!({})).await;
    let asked = json!({"input": ASKS, "tools": [weather()], "conversation": conversation["id"]});
    let asked = server.respond(asked).await;
    let (busy, other) = made(&server, json!({})).await;
    let slow = json!({
        "input": "slow 50ms say 400 words", "background": true, "conversation": other["id"],
    });
    let running = server.respond(slow).await;
    let items = server.get(&format!("{busy}/items?order=asc")).await.json();
    for (path, item) in [
        (&path, &asked["output"][0]["id"]),
        (&busy, &items["data"][0]["id"]),
    ] {
        let item = item.as_str().unwrap();
        let answer = server.delete(&format!("{path}/items/{item}")).await;
        assert_eq!(refusal(&answer), invalid("not_removable", ""));
        let message = answer.json()["error"]["message"].clone();
        assert!(message.as_str().unwrap().contains(item), "{message}");
    }
    let stop = format!("/v1/responses/{}/cancel", running["id"].as_str().unwrap());
    assert_eq!(server.post_text(&stop, "").await.status, 200);
}

#[tokio::test]
async fn metadata_is_cleared_by_null() {
    let server = Server::new("").await;
    let (path, _) = made(&server, json!({"metadata": {"topic": "demo"}})).await;
    let absent = server.post(&path, json!({})).await;
    assert_eq!(
        refusal(&absent),
        invalid("missing_required_parameter", "metadata")
    );
    let cleared = server.post(&path, json!({"metadata": null})).await;
    assert_eq!(cleared.json()["metadata"], json!({}));
    assert_eq!(server.get(&path).await.json()["metadata"], json!({}));
}

#[tokio::test]
async fn a_message_beside_an_answer_is_listed_as_any_other_and_found_again() {
    let server = Server::new("").await;
    let (path, conversation) = made(&server, json!({})).await;
    let body = |input: Value| json!({"input": input, "tools": [weather()], "conversation": conversation["id"]});
    let asked = server.respond(body(json!(ASKS))).await;
    let call = &asked["output"][0]["call_id"];
    let said = json!([output(call, "sun"), {"role": "user", "content": "and be brief"}]);
    server.respond(body(said)).await;
    let list = server.get(&format!("{path}/items?order=asc")).await.json();
    let items = list["data"].as_array().unwrap();
    let brief = items
        .iter()
        .find(|item| item["content"][0]["text"] == "and be brief")
        .unwrap();
    let id = brief["id"].as_str().unwrap();
    assert!(id.starts_with("msg_"), "{id}");
    assert_eq!(
        &server.get(&format!("{path}/items/{id}")).await.json(),
        brief
    );
    let after = format!("{path}/items?order=asc&after={id}");
    let n_after = server.get(&after).await.json()["data"]
        .as_array()
        .unwrap()
        .len();
    let place = items.iter().position(|item| item == brief).unwrap();
    assert_eq!(n_after, items.len() - place - 1);
}
