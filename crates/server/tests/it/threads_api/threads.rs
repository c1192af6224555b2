//! Threads.

use super::{Client, object, refused};
use serde_json::{Value, json};

#[tokio::test]
async fn a_thread_is_made_read_and_deleted() {
    let client = Client::new().await;
    let body = json!({"metadata": {"topic": "travel"}, "tool_resources": {}});
    let made = client.post("/threads", body, "ThreadObject").await;
    assert_eq!(made["metadata"], json!({"topic": "travel"}));
    let path = format!("/threads/{}", made["id"].as_str().unwrap());
    assert_eq!(client.get(&path, "ThreadObject").await, made);
    let deleted = object(&client.delete(&path).await, "DeleteThreadResponse");
    assert_eq!(
        deleted,
        json!({"id": made["id"], "object": "thread.deleted", "deleted": true})
    );
    let gone = refused(&client.0.get(&format!("/v1{path}")).await);
    let message = format!(
        "No thread found with id '{}'.",
        made["id"].as_str().unwrap()
    );
    assert_eq!(gone, (404, message, None));
}

#[tokio::test]
async fn a_thread_is_made_of_nothing_and_without_a_body() {
    let client = Client::new().await;
    let made = object(&client.0.post_text("/v1/threads", "").await, "ThreadObject");
    assert_eq!(made["metadata"], json!({}));
}

#[tokio::test]
async fn a_thread_begins_with_its_messages_in_their_order() {
    let client = Client::new().await;
    let body = json!({"messages": [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": [{"type": "text", "text": "two"}]},
        {"role": "user", "content": "three", "metadata": {"n": "3"}},
    ]});
    let made = client.post("/threads", body, "ThreadObject").await;
    let thread = made["id"].as_str().unwrap();
    let said = client.said(thread).await;
    let said: Vec<(&str, &str)> = said
        .iter()
        .map(|(role, text)| (role.as_str(), text.as_str()))
        .collect();
    let expected = [("user", "one"), ("assistant", "two"), ("user", "three")];
    assert_eq!(said, expected);
}

#[tokio::test]
async fn a_thread_with_a_wrong_message_is_not_made() {
    let client = Client::new().await;
    let body =
        json!({"messages": [{"role": "user", "content": "one"}, {"role": "user", "content": ""}]});
    let (status, message, param) = refused(&client.ask("/threads", body).await);
    assert_eq!(
        (status, param.as_deref()),
        (400, Some("messages[1].content"))
    );
    assert_eq!(message, "Message content must be non-empty.");
    let threads = client.0.get("/api/v1/threads").await.json();
    assert_eq!(threads["threads"], json!([]));
}

#[tokio::test]
async fn a_request_that_is_repeated_makes_one_thread() {
    let client = Client::new().await;
    let body = || json!({"messages": [{"role": "user", "content": "one"}]});
    let first = client.ask_once("/threads", body(), "t-1").await.json();
    let again = client.ask_once("/threads", body(), "t-1").await.json();
    let other = client.ask_once("/threads", body(), "t-2").await.json();
    assert_eq!(first, again);
    assert_ne!(first["id"], other["id"]);
    assert_eq!(client.said(first["id"].as_str().unwrap()).await.len(), 1);
}

#[tokio::test]
async fn aitps_shape_of_a_thread_has_its_messages_and_its_actors() {
    let client = Client::new().await;
    let actors = json!([{"id": "user.near", "capabilities": [
        {"schema": "https://aitp.dev/capabilities/aitp-01-payments/v1.0.0/schema.json"},
    ]}]);
    let body = json!({
        "messages": ["I need to book a flight"],
        "metadata": {"parent_id": null, "actors": actors},
    });
    // The published schemas allow strings only as what is noted.
    let made: Value = client.ask("/thread", body).await.json();
    assert_eq!(made["metadata"]["actors"], actors);
    assert_eq!(made["metadata"]["parent_id"], Value::Null);
    let said = &made["messages"][0];
    assert_eq!(
        said["content"][0]["text"]["value"],
        "I need to book a flight"
    );
    assert_eq!(said["role"], "user");
    // The specification retrieves a thread with POST.
    let path = format!("/threads/{}", made["id"].as_str().unwrap());
    let read = client.0.post_text(&format!("/v1{path}"), "").await.json();
    assert_eq!(read, made);
    // What clients of the other dialect get has no such member.
    let plain = client.0.get(&format!("/v1{path}")).await.json();
    assert!(plain["id"].is_string() && plain.get("messages").is_none());
}

#[tokio::test]
async fn notes_are_cleared_with_null_and_stay_where_nothing_is_said() {
    let client = Client::new().await;
    let thread = client.thread(&[]).await;
    let path = format!("/threads/{thread}");
    let note = json!({"metadata": {"n": "1"}});
    let noted = client.post(&path, note.clone(), "ThreadObject").await;
    assert_eq!(noted["metadata"], note["metadata"]);
    let resources = json!({"tool_resources": {"code_interpreter": {"file_ids": []}}});
    let kept = client.post(&path, resources, "ThreadObject").await;
    assert_eq!(kept["metadata"], note["metadata"]);
    let body = json!({"metadata": null});
    let cleared = client.post(&path, body, "ThreadObject").await;
    assert_eq!(cleared["metadata"], json!({}));
}

#[tokio::test]
async fn a_thread_that_others_are_forked_from_is_not_deleted() {
    let client = Client::new().await;
    let thread = client.thread(&["hello"]).await;
    let fork = json!({"metadata": {"parent_id": thread}});
    let fork: Value = client.ask("/threads", fork).await.json();
    let path = format!("/threads/{thread}");
    let (status, message, _) = refused(&client.delete(&path).await);
    let expected =
        format!("Can't delete {thread}: other threads are forked from it. Delete them first.");
    assert_eq!((status, message), (400, expected));
    let fork = format!("/threads/{}", fork["id"].as_str().unwrap());
    client.delete(&fork).await;
    assert_eq!(client.delete(&path).await.status, 200);
}

#[tokio::test]
async fn a_thread_with_an_active_run_is_not_deleted() {
    let client = Client::new().await;
    let thread = client.thread(&["slow 50ms say 200 words"]).await;
    let run = client.begin(&thread, json!({})).await;
    let (status, message, _) = refused(&client.delete(&format!("/threads/{thread}")).await);
    let run = run["id"].as_str().unwrap();
    let expected = format!("Can't delete {thread} while a run {run} is active.");
    assert_eq!((status, message), (400, expected));
    // One that waits for its client is active, too.
    let thread = client.thread(&["use get_weather on Oslo"]).await;
    let run = client
        .ran(&thread, json!({"tools": [super::weather()]}))
        .await;
    assert_eq!(run["status"], "requires_action");
    let run = run["id"].as_str().unwrap();
    let path = format!("/threads/{thread}");
    let (status, message, _) = refused(&client.delete(&path).await);
    let expected = format!("Can't delete {thread} while a run {run} is active.");
    assert_eq!((status, message), (400, expected));
    let cancel = format!("{path}/runs/{run}/cancel");
    client.post(&cancel, json!({}), "RunObject").await;
    assert_eq!(client.delete(&path).await.status, 200);
}

#[tokio::test]
async fn a_thread_of_another_protocol_is_a_thread_here() {
    let client = Client::new().await;
    client.0.say("chat-7", "Good morning").await;
    let said = client.said("chat-7").await;
    let expected = [
        ("user".to_owned(), "Good morning".to_owned()),
        ("assistant".to_owned(), "You said: Good morning".to_owned()),
    ];
    assert_eq!(said, expected);
    let runs = client.get("/threads/chat-7/runs", "ListRunsResponse").await;
    assert_eq!(runs["data"][0]["status"], "completed");
    // And what is said here is heard there.
    let id = client.get("/threads/chat-7", "ThreadObject").await["id"].clone();
    let id = id.as_str().unwrap();
    let path = format!("/threads/{id}/messages");
    client
        .post(
            &path,
            json!({"role": "user", "content": "Good night"}),
            "MessageObject",
        )
        .await;
    client.begin(id, json!({})).await;
    client.0.at_rest("chat-7").await;
    let there = client.0.get("/api/v1/threads/chat-7/messages").await;
    assert!(
        there.text.contains("You said: Good night"),
        "{}",
        there.text
    );
}

#[tokio::test]
async fn what_is_noted_on_a_thread_can_be_changed() {
    let client = Client::new().await;
    let actors = json!([{"id": "a.near", "capabilities": []}]);
    let body = json!({"metadata": {"a": "1", "b": "2", "actors": actors}});
    let made = client.ask("/threads", body).await.json();
    let path = format!("/threads/{}", made["id"].as_str().unwrap());
    let changed = client
        .ask(&path, json!({"metadata": {"a": "3"}}))
        .await
        .json();
    assert_eq!(changed["metadata"], json!({"a": "3", "actors": actors}));
    assert_eq!(client.0.get(&format!("/v1{path}")).await.json(), changed);
    let (status, _, param) = refused(&client.ask(&path, json!({"metadata": {"a": 1}})).await);
    assert_eq!((status, param.as_deref()), (400, Some("metadata.a")));
    // Also while a run is active.
    let path = format!(
        "/threads/{}",
        client.thread(&["slow 50ms say 200 words"]).await
    );
    client
        .begin(path.trim_start_matches("/threads/"), json!({}))
        .await;
    let changed = client
        .post(&path, json!({"metadata": {"a": "b"}}), "ThreadObject")
        .await;
    assert_eq!(changed["metadata"], json!({"a": "b"}));
}
