//! What is known of a thread is the same in memory, from a snapshot, and from the log.

#![expect(
    clippy::disallowed_methods,
    reason = "what was written before, or by another process, passed no gate"
)]

use super::{Meeting, seat};
use crate::harness::polled;
use loomline_server::{App, Config, OpenMode, router};
use runtime::TenantId;
use runtime::objects::{NewObject, ObjectPage};
use serde_json::{Value, json};
use std::pin::pin;
use timeline::NewItem;
use tokio_util::sync::CancellationToken;

/// The objects that snapshots are.
async fn snapshots(app: &App) -> Vec<runtime::objects::SidecarObject> {
    let page = ObjectPage {
        limit: 10,
        ..ObjectPage::default()
    };
    let objects = app.default_runtime().objects();
    objects
        .list(&TenantId::from("a"), "aitp.desk", page)
        .await
        .unwrap()
}

/// Restarts the server on its data.
async fn again(meeting: Meeting) -> Meeting {
    let Meeting { user, .. } = meeting;
    let directory = user.directory;
    user.app.shutdown().await.unwrap();
    drop((user.app, user.router));
    let keys = super::keys(&[
        ("user", "llk_user", ""),
        ("shop", "llk_shop", ""),
        ("helper", "llk_helper", ""),
        ("only", "llk_only", ""),
    ]);
    let config = Config::parse(&keys, &|_| None).unwrap();
    let app = App::open(config, directory.path(), OpenMode::ReadWrite)
        .await
        .unwrap();
    app.recover().await.unwrap();
    let router = router(app.clone(), CancellationToken::new());
    let user = crate::harness::Server {
        app,
        router,
        directory,
        key: Some("llk_user"),
    };
    Meeting {
        shop: user.with_key("llk_shop"),
        helper: user.with_key("llk_helper"),
        only: user.with_key("llk_only"),
        user,
    }
}

async fn known(meeting: &Meeting) -> (Value, Value) {
    let requests = meeting
        .user
        .get("/api/v1/threads/t/requests?state=all")
        .await;
    let actors = meeting.user.get("/api/v1/threads/t/actors").await;
    (requests.json(), actors.json())
}

#[tokio::test]
async fn a_server_that_begins_anew_knows_what_the_log_has() {
    let meeting = Meeting::new().await;
    meeting.ask(&seat(None)).await;
    let before = known(&meeting).await;
    assert!(snapshots(&meeting.user.app).await.is_empty(), "it is short");
    let meeting = again(meeting).await;
    assert_eq!(known(&meeting).await, before);
    let body = json!({"value": {"option": "aisle"}});
    let said = meeting
        .about(&meeting.user, "decision:seat", "answer", body)
        .await;
    assert_eq!(said.status, 200, "{}", said.text);
}

#[tokio::test]
async fn a_long_thread_has_a_snapshot_that_the_next_server_goes_on_from() {
    let meeting = Meeting::new().await;
    meeting.ask(&seat(None)).await;
    let item = |n| NewItem::user(format!("n{n}"), json!([]).into());
    let items = (0..1_100).map(item).collect();
    let runtime = meeting.user.app.default_runtime();
    runtime
        .record_all(&TenantId::from("a"), "t", items)
        .await
        .unwrap();
    // Who speaks next looks at the thread, and notes what is known of it.
    meeting.user.say("t", "thank you").await;
    let kept = snapshots(&meeting.user.app).await;
    assert_eq!(kept.len(), 1);
    let before = known(&meeting).await;
    let meeting = again(meeting).await;
    assert_eq!(known(&meeting).await, before);
    // It is the snapshot that was read: without the request in it nothing is known of that.
    let object = kept.into_iter().next().unwrap();
    let mut snapshot: Value = serde_json::from_str(&object.json).unwrap();
    snapshot[1]["ledger"]["requests"] = json!({});
    let forged = |json: String| NewObject {
        kind: "aitp.desk".to_owned(),
        id: object.id.clone(),
        created_at: object.created_at,
        json,
        content: None,
        thread: None,
        is_limited: true,
    };
    let tenant = TenantId::from("a");
    let objects = meeting.user.app.default_runtime().objects();
    objects
        .put(&tenant, forged(snapshot.to_string()))
        .await
        .unwrap();
    let meeting = again(meeting).await;
    assert_eq!(known(&meeting).await.0["requests"], json!([]));
    // One that can't be read is none: the log has it all.
    let objects = meeting.user.app.default_runtime().objects();
    objects
        .put(&tenant, forged("[1, 2]".to_owned()))
        .await
        .unwrap();
    let meeting = again(meeting).await;
    assert_eq!(known(&meeting).await, before);
    // It goes with its thread.
    assert_eq!(meeting.user.delete("/api/v1/threads/t").await.status, 204);
    assert!(snapshots(&meeting.user.app).await.is_empty());
}

#[tokio::test]
async fn a_fork_keeps_what_its_parent_had() {
    let meeting = Meeting::new().await;
    meeting.ask(&seat(None)).await;
    meeting
        .user
        .post("/api/v1/threads/t/fork", json!({"key": "f"}))
        .await;
    let list = meeting.user.get("/api/v1/threads/f/requests").await.json();
    assert_eq!(list["requests"].as_array().unwrap().len(), 1);
    assert_eq!(
        snapshots(&meeting.user.app).await.len(),
        1,
        "the parent is not read again"
    );
    let meeting = again(meeting).await;
    let after = meeting.user.get("/api/v1/threads/f/requests").await.json();
    assert_eq!(after, list);
}

#[tokio::test]
async fn a_thread_deleted_over_langgraph_leaves_no_snapshot() {
    let meeting = Meeting::new().await;
    meeting.ask(&seat(None)).await;
    let fork = json!({"key": "f"});
    let fork = meeting.user.post("/api/v1/threads/t/fork", fork).await;
    // A fork has one as soon as it is read.
    meeting.user.get("/api/v1/threads/f/requests").await;
    assert_eq!(snapshots(&meeting.user.app).await.len(), 1);
    let path = format!("/threads/{}", fork.json()["id"].as_str().unwrap());
    assert_eq!(meeting.user.delete(&path).await.status, 204);
    assert!(snapshots(&meeting.user.app).await.is_empty());
}

/// How often it is tried to come between at one place: a store that is fast leaves no gap now and then.
const N_TRIES: usize = 20;

#[tokio::test]
async fn a_thread_that_is_deleted_meanwhile_gets_no_snapshot() {
    let meeting = Meeting::new().await;
    meeting.ask(&seat(None)).await;
    let (runtime, tenant) = (meeting.user.app.default_runtime(), TenantId::from("a"));
    for after in 1.. {
        let mut n_between = 0;
        for _ in 0..N_TRIES {
            let fork = json!({"key": "f"});
            meeting.user.post("/api/v1/threads/t/fork", fork).await;
            // A fork has a snapshot as soon as it is read.
            let mut request = pin!(meeting.user.get("/api/v1/threads/f/requests"));
            let answer = polled(request.as_mut(), after).await;
            runtime.delete(&tenant, "f").await.unwrap();
            if answer.is_none() {
                n_between += 1;
                let status = request.await.status.as_u16();
                assert!(matches!(status, 200 | 404), "{status}");
            }
            let left = snapshots(&meeting.user.app).await;
            assert!(left.is_empty(), "after {after} polls");
        }
        if n_between == 0 {
            assert!(after > 1, "nobody came between");
            return;
        }
    }
}
