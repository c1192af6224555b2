//! Messages and answers that are replaced, and their versions.

use crate::harness::{Answer, Server, TEAM};
use serde_json::{Value, json};

const MESSAGES: &str = "/api/v1/threads/t/messages";

async fn messages(server: &Server, query: &str) -> Vec<Value> {
    let list = server.get(&format!("{MESSAGES}{query}")).await.json();
    list["messages"].as_array().unwrap().clone()
}

fn text_of(message: &Value) -> String {
    let parts = message["content"].as_array().unwrap().iter();
    parts.filter_map(|part| part["text"].as_str()).collect()
}

/// The texts of the conversation, without references to messages that are answered again.
async fn texts(server: &Server, query: &str) -> Vec<String> {
    let messages = messages(server, query).await;
    let shown = messages.iter().filter(|it| it["type"] == "message");
    shown.map(text_of).collect()
}

async fn id_of(server: &Server, place: usize) -> String {
    let messages = messages(server, "").await;
    messages[place]["id"].as_str().unwrap().to_owned()
}

async fn change(server: &Server, id: &str, action: &str, body: Value) -> Answer {
    let answer = server
        .post(&format!("{MESSAGES}/{id}/{action}"), body)
        .await;
    server.at_rest("t").await;
    answer
}

async fn versions(server: &Server, id: &str) -> Value {
    server
        .get(&format!("{MESSAGES}/{id}/versions"))
        .await
        .json()
}

fn replacing(answer: &Answer) -> (u16, String) {
    let (status, code, _) = answer.error();
    (status, code)
}

#[tokio::test]
async fn a_replaced_message_removes_what_followed_and_is_answered() {
    let server = Server::new("").await;
    for text in ["one", "two", "three"] {
        server.say("t", text).await;
    }
    let second = id_of(&server, 2).await;
    let body = json!({"content": "other", "stream": true});
    let replaced = change(&server, &second, "replace", body).await;
    assert_eq!(replaced.status, 200, "{}", replaced.text);
    let expected = ["one", "You said: one", "other", "You said: other"];
    assert_eq!(texts(&server, "").await, expected);
    assert_eq!(id_of(&server, 2).await, format!("{second}~2"));
}

#[tokio::test]
async fn a_message_is_replaced_by_the_id_of_its_current_version() {
    let server = Server::new("").await;
    server.say("t", "one").await;
    let first = id_of(&server, 0).await;
    for n in 2..=4 {
        let current = id_of(&server, 0).await;
        let body = json!({"content": format!("version {n}")});
        let replaced = change(&server, &current, "replace", body).await;
        assert_eq!(replaced.json()["itemId"], format!("{first}~{n}"));
    }
    let list = versions(&server, &first).await;
    let list = list["versions"].as_array().unwrap();
    let current: Vec<bool> = list.iter().map(|it| it["current"] == true).collect();
    assert_eq!(current, [false, false, false, true]);
    assert_eq!(text_of(&list[1]), "version 2");
    assert_eq!(list[1]["role"], "user");
}

#[tokio::test]
async fn a_stale_edit_is_refused_and_changes_nothing() {
    let server = Server::new("").await;
    server.say("t", "one").await;
    let (message, answer) = (id_of(&server, 0).await, id_of(&server, 1).await);
    change(&server, &message, "replace", json!({"content": "two"})).await;
    let seq = server.seq("t").await;
    for (id, action, body) in [
        (&message, "replace", json!({"content": "three"})),
        (&message, "regenerate", json!({})),
        (&answer, "regenerate", json!({})),
    ] {
        let refused = change(&server, id, action, body).await;
        let expected = (409, "history_differs".to_owned());
        assert_eq!(replacing(&refused), expected, "{id} {action}");
    }
    assert_eq!(server.seq("t").await, seq);
}

#[tokio::test]
async fn only_a_posted_message_can_be_replaced() {
    let server = Server::new("").await;
    server.say("t", "one").await;
    let answer = id_of(&server, 1).await;
    let refused = change(&server, &answer, "replace", json!({"content": "two"})).await;
    assert_eq!(replacing(&refused), (400, "invalid_path".into()));
    for action in ["replace", "regenerate"] {
        let refused = change(&server, "none", action, json!({"content": "two"})).await;
        let expected = if action == "replace" { 404 } else { 422 };
        assert_eq!(refused.status, expected, "{}", refused.text);
    }
    let none = server.get(&format!("{MESSAGES}/none/versions")).await;
    assert_eq!(replacing(&none), (404, "item_not_found".into()));
}

#[tokio::test]
async fn a_queued_message_can_not_be_replaced() {
    let server = Server::new("").await;
    server.begin("t", "slow 50ms say 100 words").await;
    let queued = server.begin("t", "two").await;
    let path = format!("{MESSAGES}/{}/replace", queued["itemId"].as_str().unwrap());
    let refused = server.post(&path, json!({"content": "three"})).await;
    assert!(refused.status.is_client_error(), "{}", refused.text);
    server.post_text("/api/v1/threads/t/cancel", "").await;
    server.at_rest("t").await;
}

#[tokio::test]
async fn a_repeated_replacement_gets_the_first_answer() {
    let server = Server::new("").await;
    server.say("t", "one").await;
    let path = format!("{MESSAGES}/{}/replace", id_of(&server, 0).await);
    let ask = || {
        let request = server
            .request("POST", &path)
            .header("content-type", "application/json")
            .header("idempotency-key", "k");
        server.send(request.body("{\"content\":\"two\"}".into()).unwrap())
    };
    let first = ask().await;
    server.at_rest("t").await;
    let again = ask().await;
    assert_eq!(again.json(), first.json());
    assert_eq!(again.headers["idempotent-replayed"], "true");
    assert_eq!(texts(&server, "").await, ["two", "You said: two"]);
}

#[tokio::test]
async fn an_answer_is_regenerated_by_its_id_and_by_its_message() {
    let server = Server::new("").await;
    server.say("t", "one").await;
    server.say("t", "two").await;
    let (message, answer) = (id_of(&server, 0).await, id_of(&server, 1).await);
    let anew = change(&server, &answer, "regenerate", json!({})).await;
    assert_eq!(anew.status, 202, "{}", anew.text);
    assert_eq!(texts(&server, "").await, ["one", "You said: one"]);
    let anew = change(&server, &message, "regenerate", json!({"stream": true})).await;
    assert_eq!(anew.status, 200, "{}", anew.text);
    assert_eq!(texts(&server, "").await, ["one", "You said: one"]);
    let list = versions(&server, &answer).await;
    assert_eq!(list["messageId"], message.as_str());
    let list = list["versions"].as_array().unwrap();
    let current: Vec<bool> = list.iter().map(|it| it["current"] == true).collect();
    assert_eq!(current, [false, false, true]);
    assert_eq!(list[0]["id"], answer.as_str());
    assert_eq!(list[2]["role"], "assistant");
}

#[tokio::test]
async fn a_regenerated_answer_has_the_agent_of_the_last_one() {
    let server = Server::new(TEAM).await;
    let body = json!({"content": "one", "agent": "closer", "stream": true});
    server.post(MESSAGES, body).await;
    let (message, answer) = (id_of(&server, 0).await, id_of(&server, 1).await);
    change(&server, &answer, "regenerate", json!({"agent": "lead"})).await;
    change(&server, &message, "regenerate", json!({})).await;
    let list = versions(&server, &answer).await;
    let agents: Vec<&str> = list["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["agent"].as_str().unwrap())
        .collect();
    assert_eq!(agents, ["closer", "lead", "lead"]);
    let unknown = change(&server, &message, "regenerate", json!({"agent": "none"})).await;
    assert_eq!(replacing(&unknown), (422, "unknown_agent".into()));
}

#[tokio::test]
async fn regenerating_a_handed_over_answer_replaces_all_of_it() {
    let server = Server::new(TEAM).await;
    server.say("t", "use transfer_to_closer {}").await;
    let runs = server.get("/api/v1/threads/t/runs").await.json();
    let closing = runs["runs"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(closing["agent"], "closer", "{runs}");
    let id = closing["reactionItemId"].as_str().unwrap();
    change(&server, id, "regenerate", json!({})).await;
    let list = versions(&server, id).await;
    let list = list["versions"].as_array().unwrap();
    assert_eq!(list.len(), 2, "{list:?}");
    assert_eq!(
        (&list[0]["agent"], &list[1]["agent"]),
        (&json!("lead"), &json!("lead"))
    );
}

#[tokio::test]
async fn versions_of_an_inherited_message_have_no_seq_of_the_fork() {
    let server = Server::new("").await;
    server.say("t", "one").await;
    let message = id_of(&server, 0).await;
    server
        .post("/api/v1/threads/t/fork", json!({"key": "f"}))
        .await;
    let path = format!("/api/v1/threads/f/messages/{message}");
    let replaced = server
        .post(&format!("{path}/replace"), json!({"content": "two"}))
        .await;
    assert_eq!(replaced.status, 202, "{}", replaced.text);
    server.at_rest("f").await;
    let list = server.get(&format!("{path}/versions")).await.json();
    let list = list["versions"].as_array().unwrap();
    assert_eq!(list[0].get("seq"), None);
    assert!(list[0]["lastSeq"].is_u64() && list[1]["seq"].is_u64());
    assert_eq!(texts(&server, "").await, ["one", "You said: one"]);
}

#[tokio::test]
async fn the_conversation_is_read_as_it_was_after_an_event() {
    let server = Server::new("").await;
    server.say("t", "one").await;
    let first = server.seq("t").await;
    server.say("t", "two").await;
    let second = server.seq("t").await;
    let message = id_of(&server, 0).await;
    change(&server, &message, "replace", json!({"content": "other"})).await;
    let one = ["one", "You said: one"];
    let two = ["one", "You said: one", "two", "You said: two"];
    assert_eq!(texts(&server, &format!("?at={first}")).await, one);
    assert_eq!(texts(&server, &format!("?at={second}")).await, two);
    assert_eq!(
        texts(&server, &format!("?at={second}&limit=1")).await,
        two[2..]
    );
    assert_eq!(texts(&server, "?at=0").await, [] as [&str; 0]);
    let list = versions(&server, &message).await;
    let until = list["versions"][0]["lastSeq"].as_u64().unwrap();
    assert_eq!(texts(&server, &format!("?at={until}")).await, two);
    let list = server.get(&format!("{MESSAGES}?at={first}")).await.json();
    assert_eq!(list["seq"], first);
    let beyond = server.get(&format!("{MESSAGES}?at=9999")).await;
    assert_eq!(replacing(&beyond), (400, "invalid_query".into()));
}

#[tokio::test]
async fn every_earlier_event_shows_a_prefix_of_the_conversation() {
    let server = Server::new("").await;
    let first = server.begin("t", "slow 2ms say 8 words").await;
    server.begin("t", "two").await;
    assert!(first["executionId"].is_string());
    server.at_rest("t").await;
    let whole = messages(&server, "").await;
    let mut most_text = 0;
    for at in 0..=server.seq("t").await {
        let then = messages(&server, &format!("?at={at}")).await;
        assert!(then.len() <= whole.len(), "{at}");
        for (then, now) in then.iter().zip(&whole) {
            if then["waiting"] != true {
                assert_eq!(then["id"], now["id"], "{at}");
                let (text, all) = (text_of(then), text_of(now));
                assert!(all.starts_with(&text), "{at}: {text:?} {all:?}");
            }
            if then["status"] == "pending" {
                most_text = most_text.max(text_of(then).len());
            }
        }
        let page = messages(&server, &format!("?at={at}&limit=100")).await;
        assert_eq!(page, then, "{at}");
    }
    assert!(most_text > 0, "a running answer shows the text so far");
}

#[tokio::test]
async fn pending_calls_are_read_as_they_were_after_an_event() {
    let server = Server::new(TEAM).await;
    server
        .say("t", r#"use find {"query": "use compute 6 * 7"}"#)
        .await;
    server.at_rest("t").await;
    let pending = async |query: &str| {
        let path = format!("/api/v1/threads/t/pending{query}");
        server.get(&path).await.json()["calls"].clone()
    };
    let open = pending("").await;
    assert_eq!(open.as_array().unwrap().len(), 2, "{open}");
    let seq = server.seq("t").await;
    let answers: Vec<Value> = open
        .as_array()
        .unwrap()
        .iter()
        .filter(|call| call["kind"] == "approval")
        .map(|call| {
            json!({"toolCallId": call["toolCallId"], "threadKey": call["threadKey"], "approved": true})
        })
        .collect();
    let body = json!({"answers": answers, "stream": true});
    server.post("/api/v1/threads/t/answers", body).await;
    server.at_rest("t").await;
    assert_eq!(pending("").await, json!([]));
    assert_eq!(pending(&format!("?at={seq}")).await, open);
    assert_eq!(pending("?at=3").await, json!([]));
    let now = server.seq("t").await;
    assert_eq!(pending(&format!("?at={now}")).await, json!([]));
}
