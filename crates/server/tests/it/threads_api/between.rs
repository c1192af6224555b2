//! What happens in the middle of a request: its client hangs up, or somebody else is faster.

use super::files::{expired, upload};
use super::limits;
use super::{Client, object};
use crate::harness::polled;
use interop::ids::THREAD;
use loomline_server::DEV_TENANT;
use runtime::ThreadRows;
use runtime::objects::NewObject;
use serde_json::{Value, json};
use std::pin::pin;
use std::time::Duration;

/// How long the file is that every message brings.
const N_BYTES: u64 = 6;

/// A message that brings it.
pub(super) async fn says(client: &Client) -> Value {
    let notes = upload(client, &[("purpose", "assistants")], "notes.txt", b"a note").await;
    let notes = object(&notes, "OpenAIFile");
    json!({"role": "user", "content": "see", "attachments": [{"file_id": notes["id"], "tools": []}]})
}

/// How often every place is tried: a store that is fast leaves no gap at it now and then.
pub(super) const N_SWEEPS: u64 = 5;

/// Sends a request again and again and hangs up, each time a little later, until it is answered first;
/// and all of it so often.
async fn hang_up_everywhere(client: &Client, path: &str, body: &Value, thread: Option<&str>) {
    for _ in 0..N_SWEEPS {
        let mut after = 1;
        loop {
            let answer = polled(pin!(client.ask(path, body.clone())), after).await;
            if let Some(thread) = thread {
                client.rest(thread).await;
            }
            match answer {
                None => after += 1,
                Some(answer) if answer.status == 200 => break,
                // The run of the one before had only just begun.
                Some(answer) => assert!(answer.text.contains("active run"), "{}", answer.text),
            }
        }
        assert!(after > 1, "nobody hung up");
    }
}

/// How many messages of a thread bring the file.
async fn bringing(client: &Client, thread: &str) -> u64 {
    let (mut n_bringing, mut after) = (0, String::new());
    loop {
        let path = format!("/v1/threads/{thread}/messages?limit=100&order=asc{after}");
        let list = client.0.get(&path).await.json();
        let messages = list["data"].as_array().unwrap().iter();
        n_bringing += messages.filter(|it| it["attachments"] != json!([])).count() as u64;
        if list["has_more"] == false {
            return n_bringing;
        }
        after = format!("&after={}", list["last_id"].as_str().unwrap());
    }
}

/// How many messages of a thread bring the file; each is counted, some of them perhaps a moment later.
async fn counted(client: &Client, thread: &str) -> u64 {
    let settled = async {
        loop {
            let n_kept = bringing(client, thread).await;
            let count = limits::counted(client, &THREAD.write(thread)).await;
            let count = count.map_or_else(|| "0".to_owned(), |it| it.json);
            if count == (n_kept * N_BYTES).to_string() {
                return n_kept;
            }
            tokio::task::yield_now().await;
        }
    };
    let settled = tokio::time::timeout(Duration::from_secs(20), settled).await;
    settled.expect("what is kept is counted")
}

#[tokio::test]
async fn what_a_message_brings_is_counted_though_its_client_hung_up() {
    let client = Client::new().await;
    let (thread, says) = (client.thread(&["hello"]).await, says(&client).await);
    let path = format!("/threads/{thread}/messages");
    hang_up_everywhere(&client, &path, &says, None).await;
    assert!(counted(&client, &THREAD.read(&thread)).await >= N_SWEEPS);
}

#[tokio::test]
async fn what_the_messages_of_a_run_bring_is_counted_though_its_client_hung_up() {
    let client = Client::new().await;
    let (thread, says) = (client.thread(&["hello"]).await, says(&client).await);
    let path = format!("/threads/{thread}/runs");
    let body = json!({"assistant_id": "demo", "additional_messages": [says]});
    hang_up_everywhere(&client, &path, &body, Some(&thread)).await;
    assert!(counted(&client, &THREAD.read(&thread)).await >= N_SWEEPS);
}

#[tokio::test]
async fn what_a_new_thread_brings_is_counted_though_its_client_hung_up() {
    let client = Client::new().await;
    let body = json!({"messages": [says(&client).await]});
    hang_up_everywhere(&client, "/threads", &body, None).await;
    let page = ThreadRows {
        limit: 100,
        ..ThreadRows::default()
    };
    let threads = client
        .0
        .app
        .default_runtime()
        .list(&DEV_TENANT.into(), page)
        .await;
    let threads = threads.unwrap();
    assert!(threads.len() as u64 >= N_SWEEPS);
    for row in threads {
        assert_eq!(counted(&client, row.thread.id.as_str()).await, 1);
    }
}

/// How often it is tried to come between at one place: a store that is fast leaves no gap now and then.
pub(super) const N_TRIES: usize = 20;

/// Deletes an object in the middle of a request that looks at it and then keeps it anew: after each
/// number of polls, until the request is answered by then. It is not there afterwards.
async fn stays_deleted(client: &Client, kind: &str, path: &str, create: impl AsyncFn() -> Value) {
    let (objects, tenant) = (client.0.app.default_runtime().objects(), DEV_TENANT.into());
    for after in 1.. {
        let mut n_between = 0;
        for _ in 0..N_TRIES {
            let made = create().await;
            let id = made["id"].as_str().unwrap();
            let own = format!("{path}/{id}");
            let mut request = pin!(async {
                match kind {
                    "file" => client.0.get(&format!("/v1{own}")).await,
                    _ => client.ask(&own, json!({"name": "other"})).await,
                }
            });
            let answer = polled(request.as_mut(), after).await;
            assert!(objects.delete(&tenant, kind, id, None).await.unwrap());
            if answer.is_none() {
                n_between += 1;
                request.await;
            }
            let there = objects.get(&tenant, kind, id).await.unwrap();
            assert_eq!(there, None, "after {after} polls");
        }
        if n_between == 0 {
            assert!(after > 1, "nobody came between");
            return;
        }
    }
}

#[tokio::test]
async fn a_file_that_is_deleted_while_it_is_put_away_stays_deleted() {
    let client = Client::new().await;
    let create = async || {
        let file = upload(&client, &[("purpose", "assistants")], "a.txt", b"x").await;
        let file = object(&file, "OpenAIFile");
        expired(&client, &file, 1).await;
        file
    };
    stays_deleted(&client, "file", "/files", create).await;
}

#[tokio::test]
async fn a_file_that_is_uploaded_anew_while_it_is_swept_stays() {
    let client = Client::new().await;
    let (objects, tenant) = (client.0.app.default_runtime().objects(), DEV_TENANT.into());
    for after in 1.. {
        let mut n_between = 0;
        for _ in 0..N_TRIES {
            let file = upload(&client, &[("purpose", "assistants")], "a.txt", b"x").await;
            let file = object(&file, "OpenAIFile");
            let id = file["id"].as_str().unwrap();
            let fresh = objects.get(&tenant, "file", id).await.unwrap().unwrap();
            expired(&client, &file, 25 * 3600).await;
            let path = format!("/v1/files/{id}");
            let mut request = pin!(client.0.get(&path));
            let answer = polled(request.as_mut(), after).await;
            let anew = NewObject {
                kind: "file".to_owned(),
                id: id.to_owned(),
                created_at: fresh.created_at,
                json: fresh.json,
                content: Some(b"x".to_vec()),
                thread: None,
                is_limited: true,
            };
            objects.put(&tenant, anew).await.unwrap();
            if answer.is_none() {
                n_between += 1;
                request.await;
            }
            let there = objects.get(&tenant, "file", id).await.unwrap();
            assert!(there.is_some(), "after {after} polls");
        }
        if n_between == 0 {
            assert!(after > 1, "nobody came between");
            return;
        }
    }
}

#[tokio::test]
async fn an_assistant_that_is_deleted_while_it_is_changed_stays_deleted() {
    let client = Client::new().await;
    let body = json!({"model": "scripted"});
    let create = async || {
        client
            .post("/assistants", body.clone(), "AssistantObject")
            .await
    };
    stays_deleted(&client, "assistant", "/assistants", create).await;
}
