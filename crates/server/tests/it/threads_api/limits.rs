//! How much the files of a thread's messages may be.

use super::files::{id, kept};
use super::{Client, refused};
use interop::ids::THREAD;
use loomline_server::DEV_TENANT;
use runtime::objects::{NewObject, ObjectPage, SidecarObject};
use serde_json::{Value, json};

/// What was counted last of the bytes that a thread's messages bring.
pub(super) async fn counted(client: &Client, thread: &str) -> Option<SidecarObject> {
    let (objects, tenant) = (client.0.app.default_runtime().objects(), DEV_TENANT.into());
    let page = ObjectPage {
        newest_first: true,
        limit: 1,
        ..ObjectPage::default()
    };
    let kind = kind_of(thread);
    objects.list(&tenant, &kind, page).await.unwrap().pop()
}

fn kind_of(thread: &str) -> String {
    format!("threads.attached:{}", THREAD.read(thread))
}

/// Has so much be counted last.
async fn count(client: &Client, thread: &str, n_bytes: u64) {
    let last = counted(client, thread).await.unwrap();
    let object = NewObject {
        kind: kind_of(thread),
        id: last.id,
        created_at: last.created_at,
        json: n_bytes.to_string(),
        content: None,
        thread: Some(THREAD.read(thread).as_ref().into()),
        is_limited: false,
    };
    let objects = client.0.app.default_runtime().objects();
    objects.put(&DEV_TENANT.into(), object).await.unwrap();
}

/// A message with a file of six bytes.
async fn note(client: &Client) -> Value {
    let notes = kept(client, "assistants", "notes.txt", b"a note").await;
    json!({"role": "user", "content": "see", "attachments": [{"file_id": id(&notes), "tools": []}]})
}

/// The id of a thread that begins with a message.
async fn begun(client: &Client, said: &Value) -> String {
    let body = json!({"messages": [said]});
    let thread = client.post("/threads", body, "ThreadObject").await;
    id(&thread).to_owned()
}

#[tokio::test]
async fn what_is_refused_counts_for_no_thread() {
    let client = Client::new().await;
    let body = json!({"metadata": {"actors": [{"id": "ada"}]}});
    let thread = client.ask("/threads", body).await.json();
    let thread = id(&thread);
    let mut says = note(&client).await;
    says["metadata"] = json!({"actor": "nobody"});
    let run = json!({"assistant_id": "demo", "additional_messages": [says]});
    for (what, body) in [("messages", says), ("runs", run)] {
        let answer = client.ask(&format!("/threads/{thread}/{what}"), body).await;
        assert!(answer.status.is_client_error(), "{}", answer.text);
        assert!(answer.text.contains("nobody"), "{}", answer.text);
    }
    assert_eq!(counted(&client, thread).await, None);
}

#[tokio::test]
async fn the_files_of_a_threads_messages_have_an_end() {
    let client = Client::new().await;
    let says = note(&client).await;
    let thread = &begun(&client, &says).await;
    let path = format!("/threads/{thread}/messages");
    client.post(&path, says.clone(), "MessageObject").await;
    let more = json!({"additional_messages": [says]});
    assert_eq!(
        client.ran(thread, more.clone()).await["status"],
        "completed"
    );
    let last = counted(&client, thread).await.unwrap();
    assert_eq!(last.json, "18", "three times six bytes");
    count(&client, thread, (32 << 20) - 6).await;
    client.post(&path, says.clone(), "MessageObject").await;
    let (status, message, _) = refused(&client.ask(&path, says).await);
    assert_eq!(status, 400);
    assert!(message.contains("33554432 bytes"), "{message}");
    let mut run = more;
    run["assistant_id"] = "demo".into();
    let answer = client.ask(&format!("/threads/{thread}/runs"), run).await;
    assert_eq!(refused(&answer).0, 400);
    // What has no file is said as before, and the count goes with the thread.
    assert_eq!(client.ran(thread, json!({})).await["status"], "completed");
    client.delete(&format!("/threads/{thread}")).await;
    assert_eq!(counted(&client, thread).await, None);
}

#[tokio::test]
async fn a_fork_has_the_files_of_its_parent_up_to_where_it_begins() {
    let client = Client::new().await;
    let says = note(&client).await;
    let thread = &begun(&client, &says).await;
    let path = format!("/threads/{thread}/messages");
    let plain = json!({"role": "user", "content": "hello"});
    client.post(&path, plain, "MessageObject").await;
    let early = client.0.seq(&THREAD.read(thread)).await;
    client.post(&path, says.clone(), "MessageObject").await;
    count(&client, thread, 32 << 20).await;
    let fork = async |of: &str, at: Value| {
        let path = format!("/api/v1/threads/{of}/fork");
        let body = if at.is_null() {
            json!({})
        } else {
            json!({ "at": at })
        };
        let fork = client.0.post(&path, body).await;
        assert_eq!(fork.status, 201, "{}", fork.text);
        fork.json()["id"].as_str().unwrap().to_owned()
    };
    let brings = async |thread: &str| {
        let path = format!("/threads/{}/messages", THREAD.write(thread));
        client.ask(&path, says.clone()).await
    };
    let key = THREAD.read(thread).into_owned();
    // One that begins at the end can't bring anything more, and neither can a fork of it.
    let late = fork(&key, Value::Null).await;
    let later = fork(&late, Value::Null).await;
    for thread in [&late, &later] {
        let (status, message, _) = refused(&brings(thread).await);
        assert_eq!(status, 400);
        assert!(message.contains("33554432 bytes"), "{message}");
    }
    // One that begins before has what was there, and counts its own.
    let early = fork(&key, json!(early)).await;
    for expected in ["12", "18"] {
        assert_eq!(brings(&early).await.status, 200);
        let last = counted(&client, &THREAD.write(&early)).await.unwrap();
        assert_eq!(last.json, expected);
    }
    let last = counted(&client, thread).await.unwrap();
    assert_eq!(
        last.json,
        (32 << 20).to_string(),
        "what a fork brings is its own"
    );
}
