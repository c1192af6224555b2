//! Messages.

use super::{Client, object, refused};
use serde_json::{Value, json};

#[tokio::test]
async fn a_message_is_made_read_and_changed() {
    let client = Client::new().await;
    let thread = client.thread(&[]).await;
    let path = format!("/threads/{thread}/messages");
    let content = json!([
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}},
    ]);
    let body =
        json!({"role": "user", "content": content, "metadata": {"n": "1", "actor": "a.near"}});
    let made = client.post(&path, body, "MessageObject").await;
    assert_eq!(
        made["content"][0],
        json!({"type": "text", "text": {"value": "look", "annotations": []}})
    );
    assert_eq!(made["content"][1]["image_url"]["detail"], "low");
    assert_eq!(
        (&made["run_id"], &made["assistant_id"]),
        (&Value::Null, &Value::Null)
    );
    let own = format!("{path}/{}", made["id"].as_str().unwrap());
    assert_eq!(client.get(&own, "MessageObject").await, made);
    // Who has said it is no note.
    let body = json!({"metadata": {"n": "2", "actor": "b.near"}});
    let changed = client.post(&own, body, "MessageObject").await;
    assert_eq!(changed["metadata"], json!({"n": "2", "actor": "a.near"}));
    assert_eq!(client.get(&own, "MessageObject").await, changed);
    let list = client.get(&path, "ListMessagesResponse").await;
    assert_eq!(list["data"], json!([changed]));
    // Null is nothing noted, and leaves who has said it.
    let body = json!({"metadata": null});
    let cleared = client.post(&own, body, "MessageObject").await;
    assert_eq!(cleared["metadata"], json!({"actor": "a.near"}));
    // The notes go with the thread.
    client.delete(&format!("/threads/{thread}")).await;
    let gone = refused(&client.0.get(&format!("/v1{own}")).await);
    assert_eq!(gone.0, 404);
}

#[tokio::test]
async fn a_message_that_is_not_there_is_said_so() {
    let client = Client::new().await;
    let thread = client.thread(&["one"]).await;
    let path = format!("/v1/threads/{thread}/messages/msg_none");
    let expected = "No message found with id 'msg_none'.".to_owned();
    assert_eq!(refused(&client.0.get(&path).await), (404, expected, None));
}

#[tokio::test]
async fn pages_of_messages_show_each_once_in_either_order() {
    let client = Client::new().await;
    let texts: Vec<String> = (0..7).map(|n| format!("message {n}")).collect();
    let said: Vec<&str> = texts.iter().map(String::as_str).collect();
    let thread = client.thread(&said).await;
    let schema = "ListMessagesResponse";
    let all = |order: &str| format!("/threads/{thread}/messages?order={order}");
    let (oldest_first, more) = client.ids(&all("asc"), schema).await;
    assert_eq!((oldest_first.len(), more), (7, false));
    for order in ["asc", "desc"] {
        let mut seen = Vec::new();
        let mut after = String::new();
        loop {
            let path = format!("{}&limit=3{after}", all(order));
            let (ids, more) = client.ids(&path, schema).await;
            after = format!("&after={}", ids.last().unwrap());
            seen.extend(ids);
            if !more {
                break;
            }
        }
        if order == "desc" {
            seen.reverse();
        }
        assert_eq!(seen, oldest_first, "{order}");
    }
    let third = &oldest_first[2];
    let before = format!("{}&before={third}&limit=1", all("asc"));
    let (ids, _) = client.ids(&before, schema).await;
    assert_eq!(ids, oldest_first[1..2]);
    let nowhere = format!("/v1{}&after=msg_none", all("asc"));
    assert_eq!(refused(&client.0.get(&nowhere).await).0, 404);
    let too_many = format!("/v1{}&limit=101", all("asc"));
    let (status, _, param) = refused(&client.0.get(&too_many).await);
    assert_eq!((status, param.as_deref()), (400, Some("limit")));
}

#[tokio::test]
async fn the_messages_of_one_run_can_be_asked_for() {
    let client = Client::new().await;
    let thread = client.thread(&["Good morning"]).await;
    let first = client.ran(&thread, json!({})).await;
    client
        .ran(
            &thread,
            json!({"additional_messages": [{"role": "user", "content": "Bye"}]}),
        )
        .await;
    let path = format!(
        "/threads/{thread}/messages?run_id={}",
        first["id"].as_str().unwrap()
    );
    let list = client.get(&path, "ListMessagesResponse").await;
    let [message] = list["data"].as_array().unwrap().as_slice() else {
        panic!("{list}");
    };
    assert_eq!(
        message["content"][0]["text"]["value"],
        "You said: Good morning"
    );
    assert_eq!(message["run_id"], first["id"]);
    assert_eq!(client.said(&thread).await.len(), 4);
}

#[tokio::test]
async fn no_message_is_added_beside_an_active_run() {
    let client = Client::new().await;
    let thread = client.thread(&["slow 50ms say 200 words"]).await;
    let run = client.begin(&thread, json!({})).await;
    let path = format!("/threads/{thread}/messages");
    let body = || json!({"role": "user", "content": "more"});
    let (status, message, param) = refused(&client.ask(&path, body()).await);
    let id = run["id"].as_str().unwrap();
    let expected = format!("Can't add messages to {thread} while a run {id} is active.");
    assert_eq!((status, message, param), (400, expected, None));
    client
        .post(
            &format!("/threads/{thread}/runs/{id}/cancel"),
            json!({}),
            "RunObject",
        )
        .await;
    client.post(&path, body(), "MessageObject").await;
}

#[tokio::test]
async fn a_message_that_is_sent_again_is_kept_once() {
    let client = Client::new().await;
    let thread = client.thread(&[]).await;
    let path = format!("/threads/{thread}/messages");
    let body = || json!({"role": "user", "content": "once"});
    let first = client.ask_once(&path, body(), "m-1").await.json();
    // Also where the run that answers it is active by then.
    client.begin(&thread, json!({})).await;
    let again = client.ask_once(&path, body(), "m-1").await.json();
    assert_eq!(first, again);
    client.rest(&thread).await;
    assert_eq!(client.said(&thread).await.len(), 2);
    // And where it was deleted meanwhile: the answer is the first one's, and nothing is written.
    let own = format!("{path}/{}", first["id"].as_str().unwrap());
    assert_eq!(client.delete(&own).await.status, 200);
    let again = client.ask_once(&path, body(), "m-1").await.json();
    assert_eq!(first, again);
    assert_eq!(client.said(&thread).await.len(), 1);
}

#[tokio::test]
async fn a_message_that_is_deleted_is_shown_to_nobody() {
    let client = Client::new().await;
    let thread = client
        .thread(&["the password is swordfish", "Good morning"])
        .await;
    let run = client.ran(&thread, json!({})).await;
    let path = format!("/threads/{thread}/messages");
    let schema = "ListMessagesResponse";
    let (all, _) = client.ids(&format!("{path}?order=asc"), schema).await;
    let steps_path = format!(
        "/threads/{thread}/runs/{}/steps",
        run["id"].as_str().unwrap()
    );
    let steps = client.get(&steps_path, "ListRunStepsResponse").await;
    for gone in [&all[0], &all[2]] {
        let own = format!("{path}/{gone}");
        let deleted = object(&client.delete(&own).await, "DeleteMessageResponse");
        let expected = json!({"id": gone, "object": "thread.message.deleted", "deleted": true});
        assert_eq!(deleted, expected);
        assert_eq!(client.0.get(&format!("/v1{own}")).await.status, 404);
        assert_eq!(client.delete(&own).await.status, 404);
    }
    assert_eq!(client.ids(&path, schema).await.0, all[1..2]);
    // What was done was done: the run has its step and what it used.
    assert_eq!(client.run(&thread, &run).await, run);
    assert_eq!(client.get(&steps_path, "ListRunStepsResponse").await, steps);
    let step = &steps["data"][0];
    let written = &step["step_details"]["message_creation"]["message_id"];
    assert_eq!(written.as_str(), Some(all[2].as_str()));
    let key = interop::ids::THREAD.read(&thread).into_owned();
    let there = client
        .0
        .get(&format!("/api/v1/threads/{key}/messages"))
        .await;
    assert!(!there.text.contains("swordfish"), "{}", there.text);
}

#[tokio::test]
async fn a_message_is_deleted_beside_a_run_that_waits() {
    let client = Client::new().await;
    let thread = client.thread(&["think and use get_weather on Oslo"]).await;
    let run = client
        .ran(&thread, json!({"tools": [super::weather()]}))
        .await;
    assert_eq!(run["status"], "requires_action");
    let said = client.said(&thread).await;
    assert_eq!(
        said.len(),
        1,
        "the model has said nothing but calls: {said:?}"
    );
    let path = format!("/threads/{thread}/messages");
    let (ids, _) = client.ids(&path, "ListMessagesResponse").await;
    assert_eq!(
        client.delete(&format!("{path}/{}", ids[0])).await.status,
        200
    );
    assert_eq!(client.run(&thread, &run).await["status"], "requires_action");
}
