//! What lies beside a thread goes with it, and nothing is put there once it is gone.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests look at the threads of the runtime itself"
)]

use super::between::{N_SWEEPS, N_TRIES, says};
use super::{Client, object};
use crate::harness::polled;
use interop::ids::{CONVERSATION, THREAD};
use loomline_server::DEV_TENANT;
use runtime::ThreadRows;
use runtime::objects::ObjectPage;
use serde_json::{Value, json};
use std::pin::pin;
use timeline::ThreadId;

/// How many objects lie beside a thread: its notes, and the count of what its messages bring.
async fn beside(client: &Client, thread: &str) -> usize {
    let (objects, tenant) = (client.0.app.default_runtime().objects(), DEV_TENANT.into());
    let mut n_beside = 0;
    for kind in ["threads.notes", "threads.attached"] {
        let page = ObjectPage {
            limit: 100,
            ..ObjectPage::default()
        };
        let kind = format!("{kind}:{thread}");
        n_beside += objects.list(&tenant, &kind, page).await.unwrap().len();
    }
    n_beside
}

/// The ways to delete a thread of this id and key.
fn deletions(thread: &str, key: &str) -> [String; 4] {
    [
        format!("/v1/threads/{}", THREAD.write(thread)),
        format!("/api/v1/threads/{key}"),
        format!("/threads/{thread}"),
        format!("/v1/conversations/{}", CONVERSATION.write(thread)),
    ]
}

/// A thread with a message that brings a file: its id for clients, our own, and its key.
async fn brings(client: &Client, says: &Value) -> (String, String, String) {
    let made = client.ask("/threads", json!({"messages": [says]})).await;
    let made = object(&made, "ThreadObject")["id"].take();
    let made = made.as_str().unwrap().to_owned();
    let (thread, runtime) = (
        THREAD.read(&made).into_owned(),
        client.0.app.default_runtime(),
    );
    let (tenant, id) = (DEV_TENANT.into(), ThreadId::from(thread.clone()));
    let found = runtime.find_by_id(&tenant, &id);
    let key = found.await.unwrap().thread.key.unwrap();
    (made, thread, key)
}

#[tokio::test]
async fn what_lies_beside_a_thread_goes_with_it_though_its_client_hung_up() {
    let client = Client::new().await;
    let says = says(&client).await;
    for n in 0..4 {
        for _ in 0..N_SWEEPS {
            let (made, thread, key) = brings(&client, &says).await;
            let (messages, _) = client
                .ids(&format!("/threads/{made}/messages"), "ListMessagesResponse")
                .await;
            let path = format!("/threads/{made}/messages/{}", messages[0]);
            let noted = client.ask(&path, json!({"metadata": {"a": "b"}})).await;
            assert_eq!(noted.status, 200, "{}", noted.text);
            assert_eq!(beside(&client, &thread).await, 2);
            let path = &deletions(&thread, &key)[n];
            let mut after = 1;
            while polled(pin!(client.0.delete(path)), after).await.is_none() {
                after += 1;
            }
            assert!(after > 1, "nobody hung up");
            let again = client.0.delete(path).await;
            assert_eq!(again.status, 404, "{path}: {}", again.text);
            assert_eq!(beside(&client, &thread).await, 0);
        }
    }
}

/// Deletes all threads; the ids of those that were there.
async fn cleared(client: &Client) -> Vec<String> {
    let (runtime, tenant) = (client.0.app.default_runtime(), DEV_TENANT.into());
    let page = ThreadRows {
        limit: 100,
        ..ThreadRows::default()
    };
    let rows = runtime.list(&tenant, page).await.unwrap();
    for row in &rows {
        let key = row.thread.key.as_deref().unwrap();
        runtime.delete(&tenant, key).await.unwrap();
    }
    rows.iter().map(|row| row.thread.id.to_string()).collect()
}

/// Deletes the thread that a request is about, or makes, in the middle of it: after each number of polls,
/// until the request is answered by then. Nothing lies beside it afterwards.
async fn deleted_meanwhile(client: &Client, request: impl AsyncFn() -> (String, Value)) {
    for after in 1.. {
        let mut n_between = 0;
        for _ in 0..N_TRIES {
            let (path, body) = request().await;
            let mut request = pin!(client.ask(&path, body));
            let answer = polled(request.as_mut(), after).await;
            let deleted = cleared(client).await;
            if answer.is_none() {
                n_between += 1;
                let answer = request.await;
                let status = answer.status.as_u16();
                assert!(matches!(status, 200 | 404), "{status}: {}", answer.text);
            }
            for thread in deleted {
                assert_eq!(beside(client, &thread).await, 0, "after {after} polls");
            }
            cleared(client).await;
        }
        if n_between == 0 {
            assert!(after > 1, "nobody came between");
            return;
        }
    }
}

#[tokio::test]
async fn nothing_is_noted_on_a_thread_that_is_deleted_meanwhile() {
    let client = Client::new().await;
    let request = async || {
        let thread = client.thread(&["hello"]).await;
        let path = format!("/threads/{thread}/messages");
        let (messages, _) = client.ids(&path, "ListMessagesResponse").await;
        let body = json!({"metadata": {"a": "b"}});
        (format!("{path}/{}", messages[0]), body)
    };
    deleted_meanwhile(&client, request).await;
}

#[tokio::test]
async fn nothing_is_counted_for_a_new_thread_that_is_deleted_meanwhile() {
    let client = Client::new().await;
    let body = json!({"messages": [says(&client).await]});
    let request = async || ("/threads".to_owned(), body.clone());
    deleted_meanwhile(&client, request).await;
}

#[tokio::test]
async fn what_lies_beside_a_thread_goes_in_the_transaction_that_deletes_it() {
    let client = Client::new().await;
    let says = says(&client).await;
    let (made, thread, _) = brings(&client, &says).await;
    let path = format!("/threads/{made}/messages");
    let (messages, _) = client.ids(&path, "ListMessagesResponse").await;
    let path = format!("{path}/{}", messages[0]);
    let noted = client.ask(&path, json!({"metadata": {"a": "b"}})).await;
    assert_eq!(noted.status, 200, "{}", noted.text);
    assert_eq!(beside(&client, &thread).await, 2);
    // As a server leaves it that goes down right after the transaction.
    let (tenant, id) = (DEV_TENANT.into(), ThreadId::from(thread.clone()));
    let store = client.0.app.default_runtime().store();
    store.delete(&tenant, &id, None).await.unwrap();
    assert_eq!(beside(&client, &thread).await, 0);
}
