//! A fork goes on with its parent's actors and open requests.

use super::{Meeting, seat};
use serde_json::{Value, json};

#[tokio::test]
async fn a_fork_begins_with_the_actors_and_the_open_requests_of_its_parent() {
    let meeting = Meeting::new().await;
    meeting.ask(&seat(None)).await;
    let forked = meeting
        .user
        .post("/api/v1/threads/t/fork", json!({"key": "f"}))
        .await;
    assert_eq!(forked.status, 201, "{}", forked.text);
    let body = json!({"value": {"option": "aisle"}});
    let path = "/api/v1/threads/f/requests/decision:seat/answer";
    let said = meeting.user.post(path, body).await;
    assert_eq!(said.json()["request"]["state"], "answered", "{}", said.text);
    assert_eq!(
        meeting.request("decision:seat").await["state"],
        "open",
        "in the parent"
    );
    let list = meeting.user.get("/api/v1/threads/f/actors").await.json();
    assert_eq!(list["actors"].as_array().unwrap().len(), 2);
    // A fork of the fork goes on from there, and the key of an actor is the same in all of them.
    meeting
        .user
        .post("/api/v1/threads/f/fork", json!({"key": "g"}))
        .await;
    let read = meeting
        .user
        .get("/api/v1/threads/g/requests/decision:seat")
        .await
        .json();
    assert_eq!(read["state"], "answered");
    let left = meeting.helper.delete("/api/v1/threads/g/actors/shop").await;
    assert_eq!(left.error().1, "forbidden_actor");
    assert_eq!(
        meeting
            .shop
            .delete("/api/v1/threads/g/actors/shop")
            .await
            .status,
        200
    );
    let list = meeting.user.get("/api/v1/threads/f/actors").await.json();
    assert_eq!(
        list["actors"].as_array().unwrap().len(),
        2,
        "not in its parent"
    );
}

#[tokio::test]
async fn a_fork_at_an_earlier_event_has_what_was_known_then() {
    let meeting = Meeting::new().await;
    let at = meeting.user.seq("t").await;
    meeting.ask(&seat(None)).await;
    assert_eq!(meeting.listed("").await.len(), 1);
    let body = json!({"key": "f", "at": at});
    assert_eq!(
        meeting
            .user
            .post("/api/v1/threads/t/fork", body)
            .await
            .status,
        201
    );
    let list = meeting
        .user
        .get("/api/v1/threads/f/requests?state=all")
        .await
        .json();
    assert_eq!(list["requests"], json!([]));
    let list = meeting.user.get("/api/v1/threads/f/actors").await.json();
    assert_eq!(list["actors"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_parent_id_makes_a_fork_in_one_request() {
    let meeting = Meeting::new().await;
    meeting.ask(&seat(None)).await;
    let parent = meeting.user.get("/v1/threads/t").await.json()["id"].clone();
    let decision = super::window().to_string();
    let body = json!({
        "metadata": {"parent_id": parent, "note": "a second try"},
        "messages": [{"role": "user", "content": decision}],
    });
    let made = meeting.user.post("/v1/threads", body.clone()).await;
    assert_eq!(made.status, 200, "{}", made.text);
    let made = made.json();
    assert_eq!(made["metadata"]["parent_id"], parent);
    assert_eq!(made["metadata"]["note"], "a second try");
    assert_eq!(made["metadata"]["actors"].as_array().unwrap().len(), 2);
    let path = format!(
        "/v1/threads/{}/messages?order=asc",
        made["id"].as_str().unwrap()
    );
    let said = meeting.user.get(&path).await.json();
    let n_said = said["data"].as_array().unwrap().len();
    assert_eq!(
        n_said, 4,
        "hello, its answer, the request and the decision: {said}"
    );
    let row = meeting.user.get("/api/v1/threads").await.json();
    let fork = row["threads"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["key"] != "t")
        .unwrap();
    assert!(fork["fork"]["seq"].is_u64(), "{fork}");
    let path = format!(
        "/api/v1/threads/{}/requests/decision:seat",
        fork["key"].as_str().unwrap()
    );
    assert_eq!(meeting.user.get(&path).await.json()["state"], "answered");
    // What can't be said on the fork makes none.
    let list = |value: &Value| value["threads"].as_array().unwrap().len();
    let n_threads = list(&meeting.user.get("/api/v1/threads").await.json());
    let late = json!({"$schema": super::DECISIONS, "decision": {"request_decision_id": "other", "options": [{"id": "x"}]}});
    let body = json!({"metadata": {"parent_id": parent}, "messages": [{"role": "user", "content": late.to_string()}]});
    assert_eq!(meeting.user.post("/v1/threads", body).await.status, 409);
    assert_eq!(
        list(&meeting.user.get("/api/v1/threads").await.json()),
        n_threads
    );
    let body = json!({"assistant_id": "demo", "thread": {"metadata": {"parent_id": parent}, "messages": [{"role": "user", "content": decision}]}});
    let run = meeting.user.post("/v1/threads/runs", body).await;
    assert_eq!(run.status, 200, "{}", run.text);
    let path = format!("/v1/threads/{}", run.json()["thread_id"].as_str().unwrap());
    assert_eq!(
        meeting.user.get(&path).await.json()["metadata"]["parent_id"],
        parent
    );
}

#[tokio::test]
async fn a_parent_that_is_not_there_is_refused() {
    let meeting = Meeting::keys("").await;
    for (parent, status) in [
        (json!("thread_none"), 404),
        (json!(7), 422),
        (json!(""), 422),
    ] {
        let body = json!({"metadata": {"parent_id": parent}});
        let refused = meeting.user.post("/v1/threads", body).await;
        assert_eq!(refused.status, status, "{}", refused.text);
    }
    let body = json!({"metadata": {"parent_id": null}});
    assert_eq!(meeting.user.post("/v1/threads", body).await.status, 200);
}
