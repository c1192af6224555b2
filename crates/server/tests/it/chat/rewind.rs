//! Messages that are changed and answers that are made anew.

use super::{chunks, kinds, text_of};
use crate::harness::{Answer, Server};
use serde_json::{Value, json};

pub(super) fn user(id: &str, text: &str) -> Value {
    json!({"id": id, "role": "user", "parts": [{"type": "text", "text": text}]})
}

async fn post(server: &Server, trigger: &str, message: Option<&str>, messages: &Value) -> Answer {
    let body = json!({"id": "c", "trigger": trigger, "messageId": message, "messages": messages});
    server.post("/api/chat", body).await
}

async fn say(server: &Server, id: &str, text: &str) -> Answer {
    let answer = post(server, "submit-message", None, &json!([user(id, text)])).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer
}

/// What is said, as every protocol that reads threads tells it.
async fn told(server: &Server) -> Vec<String> {
    let texts = |parts: &Value| -> String {
        let parts = parts.as_array().unwrap().iter();
        parts.filter_map(|part| part["text"].as_str()).collect()
    };
    let chat = server.get("/api/chat/c/messages").await.json();
    let chat = chat["messages"].as_array().unwrap().iter();
    let chat: Vec<String> = chat.map(|it| texts(&it["parts"])).collect();
    let ag_ui = server.get("/ag-ui/threads/c/messages").await.json();
    let ag_ui = ag_ui["messages"].as_array().unwrap().iter();
    let ag_ui: Vec<&str> = ag_ui.filter_map(|it| it["content"].as_str()).collect();
    assert_eq!(ag_ui, chat);
    let native = server.get("/api/v1/threads/c/messages").await.text;
    let document = server.get("/api/v1/threads/c/document").await.text;
    for text in &chat {
        assert!(
            native.contains(text) && document.contains(text),
            "{text}: {native} {document}"
        );
    }
    let turns = document.matches("user-prompt").count();
    assert_eq!(turns, chat.len().div_ceil(2), "{document}");
    let turns = document.matches("turn_type").count();
    assert_eq!(turns, chat.len(), "{document}");
    chat
}

#[tokio::test]
async fn of_changes_of_one_message_at_once_none_is_told_that_it_is_not_there() {
    let server = Server::new("").await;
    say(&server, "m1", "one").await;
    let changes = (0..8).map(|n| {
        let changed = json!([user("m1", &format!("other {n}"))]);
        let server = &server;
        async move { post(server, "submit-message", Some("m1"), &changed).await }
    });
    let answers = futures_util::future::join_all(changes).await;
    let (taken, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|it| it.status == 200);
    assert!(!taken.is_empty());
    for answer in refused {
        let (status, code, pointer) = answer.error();
        assert_eq!((status, code.as_str()), (409, "history_differs"));
        assert_eq!(pointer.as_deref(), Some("/messages/0"));
    }
    assert_eq!(id_of(&server, 0).await, "m1");
    assert_eq!(told(&server).await.len(), 2);
}

async fn id_of(server: &Server, place: usize) -> String {
    let messages = server.get("/api/chat/c/messages").await.json();
    messages["messages"][place]["id"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[tokio::test]
async fn a_message_that_is_changed_takes_the_place_of_what_followed_it_in_every_protocol() {
    let server = Server::new("").await;
    for (id, text) in [("m1", "one"), ("m2", "two"), ("m3", "three")] {
        say(&server, id, text).await;
    }
    let changed = json!([user("m2", "other")]);
    let answer = post(&server, "submit-message", Some("m2"), &changed).await;
    assert_eq!(
        text_of(&chunks(&answer.text)),
        "You said: other",
        "{}",
        answer.text
    );
    let expected = ["one", "You said: one", "other", "You said: other"];
    assert_eq!(told(&server).await, expected);
    assert_eq!(id_of(&server, 2).await, "m2");
    // And again, also what was said first.
    let changed = json!([user("m2", "more")]);
    post(&server, "submit-message", Some("m2"), &changed).await;
    let expected = ["one", "You said: one", "more", "You said: more"];
    assert_eq!(told(&server).await, expected);
    post(
        &server,
        "submit-message",
        Some("m1"),
        &json!([user("m1", "anew")]),
    )
    .await;
    assert_eq!(told(&server).await, ["anew", "You said: anew"]);
}

#[tokio::test]
async fn a_message_that_never_arrived_is_said_when_it_is_changed_or_another_follows() {
    let server = Server::new("").await;
    let both = json!([user("m1", "one"), user("m2", "two")]);
    let answer = post(&server, "submit-message", None, &both).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let changed = json!([user("m1", "one"), user("m2", "two"), user("m3", "three")]);
    let answer = post(&server, "submit-message", Some("m3"), &changed).await;
    // The answer between was not sent, which leaves it as it is.
    assert_eq!(answer.status, 200, "{}", answer.text);
    let chat = server.get("/api/chat/c/messages").await.json();
    let ids: Vec<&str> = chat["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["id"].as_str().unwrap())
        .collect();
    assert_eq!((ids.len(), ids[0], ids[1], ids[3]), (5, "m1", "m2", "m3"));
}

#[tokio::test]
async fn an_answer_is_made_anew_however_a_client_names_it() {
    for which in 0..5 {
        let server = Server::new("").await;
        say(&server, "m1", "one").await;
        say(&server, "m2", "two").await;
        let (m1, m2) = (user("m1", "one"), user("m2", "two"));
        let messages = server.get("/api/chat/c/messages").await.json()["messages"].clone();
        let answer = messages[3]["id"].as_str().unwrap();
        let (named, sent) = match which {
            // As `regenerate()` does, with all messages.
            0 => (None, json!([m1, messages[1], m2])),
            1 => (Some(answer), json!([m1, messages[1], m2])),
            // As those do who send the last message, or none.
            2 => (None, json!([m2])),
            3 => (Some(answer), json!([])),
            _ => (Some("m2"), json!([])),
        };
        let again = post(&server, "regenerate-message", named, &sent).await;
        assert_eq!(
            text_of(&chunks(&again.text)),
            "You said: two",
            "{}",
            again.text
        );
        let expected = ["one", "You said: one", "two", "You said: two"];
        assert_eq!(told(&server).await, expected, "{which}");
        let now = id_of(&server, 3).await;
        assert_ne!(now, answer);
        assert!(
            again.text.contains(&now),
            "the stream tells the id that is shown later"
        );
        // An earlier one takes what followed it along.
        let again = post(&server, "regenerate-message", None, &json!([m1])).await;
        assert_eq!(again.status, 200, "{}", again.text);
        assert_eq!(told(&server).await, ["one", "You said: one"]);
    }
}

#[tokio::test]
async fn what_runs_and_what_waits_gives_way_to_a_message_that_is_changed() {
    let server = Server::new("").await;
    let (first, second, changed) = tokio::join!(
        say(&server, "m1", "slow 20ms say 400 words"),
        async {
            // Not before the first one has its turn.
            let path = "/api/v1/threads/c/messages";
            while !server.get(path).await.text.contains("400 words") {
                tokio::task::yield_now().await;
            }
            server.begin("c", "I wait").await
        },
        async {
            loop {
                let log = server
                    .get("/api/v1/threads/c/events?until=rest&limit=40")
                    .await;
                let _ = log;
                let messages = server.get("/api/v1/threads/c/messages").await.text;
                if messages.contains("I wait") {
                    break;
                }
            }
            let changed = json!([user("m1", "quick")]);
            post(&server, "submit-message", Some("m1"), &changed).await
        },
    );
    let first = chunks(&first.text);
    assert_eq!(
        kinds(&first)[kinds(&first).len() - 2..],
        ["abort", "[DONE]"]
    );
    assert!(second["queued"].as_bool().unwrap());
    assert_eq!(text_of(&chunks(&changed.text)), "You said: quick");
    server.at_rest("c").await;
    assert_eq!(told(&server).await, ["quick", "You said: quick"]);
}

#[tokio::test]
async fn a_question_that_waits_goes_with_the_answer_that_asked_it() {
    let config = "default_agent = \"a\"\n[models.m]\nprovider = \"scripted\"\n\
                  [agents.a]\nmodel = \"m\"\ntools = [\"compute\"]\nrequires_approval = [\"compute\"]\n";
    let server = Server::new(config).await;
    say(&server, "m1", "compute 1+1").await;
    let pending = server.get("/api/v1/threads/c/pending").await.json();
    assert_eq!(pending["calls"].as_array().unwrap().len(), 1);
    let changed = json!([user("m1", "hello")]);
    let answer = post(&server, "submit-message", Some("m1"), &changed).await;
    assert_eq!(text_of(&chunks(&answer.text)), "You said: hello");
    let pending = server.get("/api/v1/threads/c/pending").await.json();
    assert_eq!(pending["calls"], json!([]));
    assert_eq!(told(&server).await, ["hello", "You said: hello"]);
}
