//! Responses that are kept.

use super::{check_events, events, kinds, last, not_found, refusal, text_of};
use crate::harness::Server;
use axum::body::Body;
use futures_util::StreamExt;
use http::header;
use interop::ids::THREAD;
use loomline_server::DEV_TENANT;
use runtime::objects::ObjectPage;
use serde_json::{Value, json};

async fn read(server: &Server, response: &Value) -> crate::harness::Answer {
    let id = response["id"].as_str().unwrap();
    server.get(&format!("/v1/responses/{id}")).await
}

#[tokio::test]
async fn a_response_is_read_as_it_was_made() {
    let server = Server::new("").await;
    let one = server
        .respond(json!({"input": "compute 1+1", "instructions": "Be brief."}))
        .await;
    let two = server
        .respond(json!({"input": "more", "previous_response_id": one["id"]}))
        .await;
    for response in [&one, &two] {
        assert_eq!(&read(&server, response).await.json(), response);
    }
    for id in [
        "resp_1",
        &one["id"].as_str().unwrap().replace("resp_", "resp_f"),
        "x",
    ] {
        let answer = server.get(&format!("/v1/responses/{id}")).await;
        assert_eq!(refusal(&answer), not_found("response_not_found"));
    }
}

#[tokio::test]
async fn a_stream_is_resumed_after_any_event_with_the_same_numbers() {
    let server = Server::new("").await;
    server.respond(json!({"input": "before"})).await;
    let all = server
        .respond_streaming(json!({"input": "compute 2*3"}))
        .await;
    let id = last(&all)["id"].as_str().unwrap();
    let resume = async |query: &str| {
        let answer = server
            .get(&format!("/v1/responses/{id}?stream=true{query}"))
            .await;
        assert_eq!(answer.headers[header::CONTENT_TYPE], "text/event-stream");
        events(&answer.text)
    };
    assert_eq!(resume("").await, all);
    for after in [0, 5, all.len() - 2] {
        assert_eq!(
            resume(&format!("&starting_after={after}")).await,
            all[after + 1..]
        );
    }
    let wrong = server
        .get(&format!("/v1/responses/{id}?stream=true&starting_after=x"))
        .await;
    assert_eq!(
        refusal(&wrong),
        super::invalid("invalid_value", "starting_after")
    );
}

#[tokio::test]
async fn a_stream_that_broke_off_goes_on_where_it_was_left() {
    let server = Server::new("").await;
    let body = json!({"input": "slow 5ms say 40 words", "stream": true, "background": true});
    let request = server
        .request("POST", "/v1/responses")
        .header(header::CONTENT_TYPE, "application/json");
    let (_, mut stream) = server
        .open(request.body(Body::from(body.to_string())).unwrap())
        .await;
    let mut seen = String::new();
    while !seen.contains("output_text.delta") || !seen.ends_with("\n\n") {
        seen.push_str(std::str::from_utf8(&stream.next().await.unwrap().unwrap()).unwrap());
    }
    drop(stream);
    let mut all = events(&format!("{seen}data: [DONE]\n\n"));
    assert_eq!(kinds(&all)[..2], ["response.created", "response.queued"]);
    let (id, number) = (
        all[0]["response"]["id"].clone(),
        all.last().unwrap()["sequence_number"].clone(),
    );
    let path = format!(
        "/v1/responses/{}?stream=true&starting_after={number}",
        id.as_str().unwrap()
    );
    all.extend(events(&server.get(&path).await.text));
    check_events(&all);
    assert_eq!(last(&all)["status"], "completed");
    let deltas = all.iter().filter_map(|event| event["delta"].as_str());
    assert_eq!(deltas.collect::<String>(), text_of(last(&all)));
}

#[tokio::test]
async fn a_response_that_is_deleted_is_gone_with_its_thread() {
    let server = Server::new("").await;
    let past = json!([
        {"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hi."},
        {"role": "user", "content": "go on"},
    ]);
    let response = server.respond(json!({"input": past})).await;
    let path = format!("/v1/responses/{}", response["id"].as_str().unwrap());
    let deleted = server.delete(&path).await;
    assert_eq!(
        deleted.json(),
        json!({"id": response["id"], "object": "response", "deleted": true})
    );
    for answer in [server.get(&path).await, server.delete(&path).await] {
        assert_eq!(refusal(&answer), not_found("response_not_found"));
    }
    assert_eq!(server.n_threads().await, 0);
}

#[tokio::test]
async fn what_lies_beside_a_thread_goes_with_its_only_response() {
    let server = Server::new("").await;
    let response = server.respond(json!({"input": "hi"})).await;
    let thread = format!("thread_{}", &response["id"].as_str().unwrap()[5..37]);
    let messages = format!("/v1/threads/{thread}/messages");
    let list = server.get(&messages).await.json();
    let noted = format!("{messages}/{}", list["data"][0]["id"].as_str().unwrap());
    let noted = server.post(&noted, json!({"metadata": {"a": "b"}})).await;
    assert_eq!(noted.status, 200, "{}", noted.text);
    let n_notes = async || {
        let kind = format!("threads.notes:{}", THREAD.read(&thread));
        let objects = server.app.default_runtime().objects();
        let page = ObjectPage {
            limit: 10,
            ..ObjectPage::default()
        };
        let kept = objects.list(&DEV_TENANT.into(), &kind, page).await;
        kept.unwrap().len()
    };
    assert_eq!(n_notes().await, 1);
    let path = format!("/v1/responses/{}", response["id"].as_str().unwrap());
    assert_eq!(server.delete(&path).await.status, 200);
    assert_eq!(server.n_threads().await, 0);
    assert_eq!(n_notes().await, 0);
}

#[tokio::test]
async fn the_mark_of_a_deleted_response_goes_with_its_conversation() {
    let server = Server::new("").await;
    let made = server.post("/v1/conversations", json!({})).await.json();
    let body = json!({"input": "hi", "conversation": made["id"]});
    let [first, _] = [
        server.respond(body.clone()).await,
        server.respond(body).await,
    ];
    let path = format!("/v1/responses/{}", first["id"].as_str().unwrap());
    assert_eq!(server.delete(&path).await.status, 200);
    let n_marks = async || {
        let page = ObjectPage {
            limit: 10,
            ..ObjectPage::default()
        };
        let objects = server.app.default_runtime().objects();
        let tenant = DEV_TENANT.into();
        let kept = objects.list(&tenant, "responses.deleted", page).await;
        kept.unwrap().len()
    };
    assert_eq!(n_marks().await, 1);
    let path = format!("/v1/conversations/{}", made["id"].as_str().unwrap());
    assert_eq!(server.delete(&path).await.status, 200);
    assert_eq!(n_marks().await, 0);
}

#[tokio::test]
async fn a_response_that_is_being_made_is_stopped_and_deleted() {
    let server = Server::new("").await;
    let slow = |more: Value| {
        let mut body = json!({"input": "slow 50ms say 4000 words", "background": true});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        body
    };
    let alone = server.respond(slow(json!({}))).await;
    let made = server.post("/v1/conversations", json!({})).await.json();
    let within = server
        .respond(slow(json!({"conversation": made["id"]})))
        .await;
    for response in [&alone, &within] {
        assert_eq!(response["status"], "in_progress");
        let path = format!("/v1/responses/{}", response["id"].as_str().unwrap());
        let deleted = server.delete(&path).await;
        assert_eq!(
            (deleted.status.as_u16(), &deleted.json()["deleted"]),
            (200, &json!(true))
        );
        assert_eq!(
            refusal(&server.get(&path).await),
            not_found("response_not_found")
        );
    }
    // The conversation is free for another one.
    let next = server
        .respond(json!({"input": "hi", "conversation": made["id"]}))
        .await;
    assert_eq!(text_of(&next), "You said: hi");
    assert_eq!(server.n_threads().await, 1);
}

#[tokio::test]
async fn what_goes_on_keeps_what_it_goes_on_with() {
    let server = Server::new("").await;
    let one = server.respond(json!({"input": "one"})).await;
    let two = server
        .respond(json!({"input": "two", "previous_response_id": one["id"]}))
        .await;
    let path = format!("/v1/responses/{}", one["id"].as_str().unwrap());
    assert_eq!(server.delete(&path).await.status, 200);
    assert_eq!(
        refusal(&server.get(&path).await),
        not_found("response_not_found")
    );
    let three = server
        .respond(json!({"input": "three", "previous_response_id": two["id"]}))
        .await;
    assert_eq!(three["status"], "completed");
    let id = format!("conv_{}", &one["id"].as_str().unwrap()[5..37]);
    let items = server
        .get(&format!("/v1/conversations/{id}/items"))
        .await
        .json();
    assert_eq!(items["data"].as_array().unwrap().len(), 6);
}

#[tokio::test]
async fn a_conversation_outlives_its_only_response() {
    let server = Server::new("").await;
    let made = server.post("/v1/conversations", json!({})).await.json();
    let response = server
        .respond(json!({"input": "hi", "conversation": made["id"]}))
        .await;
    let path = format!("/v1/responses/{}", response["id"].as_str().unwrap());
    assert_eq!(server.delete(&path).await.status, 200);
    let path = format!("/v1/conversations/{}", made["id"].as_str().unwrap());
    assert_eq!(server.get(&path).await.json(), made);
}

#[tokio::test]
async fn a_response_is_read_with_what_its_reader_wants_to_see() {
    let server = Server::new("").await;
    let made = server.respond(json!({"input": "think hard"})).await;
    let path = format!("/v1/responses/{}", made["id"].as_str().unwrap());
    let sealed = |response: &Value| response["output"][0]["encrypted_content"].is_string();
    assert!(!sealed(&server.get(&path).await.json()));
    let include = "include[]=reasoning.encrypted_content";
    let read = server.get(&format!("{path}?{include}")).await.json();
    let asked = server
        .respond(json!({"input": "think hard", "include": ["reasoning.encrypted_content"]}))
        .await;
    assert!(sealed(&read), "{read}");
    assert!(sealed(&asked), "{asked}");
    let streamed = server.get(&format!("{path}?stream=true&{include}")).await;
    assert_eq!(last(&events(&streamed.text)), &read);
    // Events have the numbers that they had when they were first told.
    let resumed = format!("{path}?stream=true&starting_after=7&{include}");
    let resumed = events(&server.get(&resumed).await.text);
    let told = events(&server.get(&format!("{path}?stream=true")).await.text);
    assert_eq!(kinds(&resumed), kinds(&told[8..]));
    for path in [path.clone(), format!("{path}/input_items")] {
        let wrong = server.get(&format!("{path}?include[]=nonsense")).await;
        assert_eq!(refusal(&wrong), super::invalid("invalid_value", "include"));
    }
}

#[tokio::test]
async fn the_input_of_a_response_is_the_past_it_was_sent_with_however_long() {
    let server = Server::new("").await;
    let mut past: Vec<Value> = (0..30)
        .flat_map(|n| {
            [
                json!({"role": "user", "content": format!("u{n}")}),
                json!({"role": "assistant", "content": format!("a{n}")}),
            ]
        })
        .collect();
    past.insert(0, json!({"role": "assistant", "content": "Welcome."}));
    past.push(json!({"role": "user", "content": "now"}));
    let one = server.respond(json!({"input": past})).await;
    let two = server
        .respond(json!({"input": "next", "previous_response_id": one["id"]}))
        .await;
    let texts = async |response: &Value| -> Vec<String> {
        let id = response["id"].as_str().unwrap();
        let path = format!("/v1/responses/{id}/input_items?order=asc&limit=100");
        let list = server.get(&path).await.json();
        let items = list["data"].as_array().unwrap().iter();
        items
            .map(|item| item["content"][0]["text"].as_str().unwrap().to_owned())
            .collect()
    };
    let all: Vec<&str> = past
        .iter()
        .map(|it| it["content"].as_str().unwrap())
        .collect();
    assert_eq!(texts(&one).await, all);
    assert_eq!(texts(&two).await, ["next"]);
}

#[tokio::test]
async fn the_input_of_a_response_is_listed_in_pages() {
    let server = Server::new("").await;
    let one = server.respond(json!({"input": "before"})).await;
    let input: Vec<Value> = (0..5)
        .map(|n| json!({"role": "user", "content": format!("m{n}")}))
        .collect();
    let two = server
        .respond(json!({"input": input, "previous_response_id": one["id"]}))
        .await;
    let path = format!("/v1/responses/{}/input_items", two["id"].as_str().unwrap());
    let list = server.get(&path).await.json();
    let texts = |list: &Value| -> Vec<String> {
        let items = list["data"].as_array().unwrap().iter();
        items
            .map(|item| item["content"][0]["text"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(texts(&list), ["m4", "m3", "m2", "m1", "m0"]);
    let first = server
        .get(&format!("{path}?order=asc&limit=2"))
        .await
        .json();
    assert_eq!(
        (texts(&first), first["has_more"].as_bool()),
        (vec!["m0".into(), "m1".into()], Some(true))
    );
    let after = first["last_id"].as_str().unwrap();
    let rest = server
        .get(&format!("{path}?order=asc&limit=10&after={after}"))
        .await
        .json();
    assert_eq!(
        (texts(&rest).len(), rest["has_more"].as_bool()),
        (3, Some(false))
    );
}
