//! Who takes part: joined, declared, left, each an event of the thread.

use super::{DECISIONS, Meeting, join, patch, seat};
use serde_json::{Value, json};

async fn ids(meeting: &Meeting) -> Vec<String> {
    let list = meeting.user.get("/api/v1/threads/t/actors").await.json();
    let actors = list["actors"].as_array().unwrap().iter();
    actors
        .map(|it| it["actor"]["id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn actors_join_declare_and_leave_and_the_log_says_so() {
    let meeting = Meeting::keys("").await;
    meeting.user.say("t", "hello").await;
    let actor =
        json!({"id": "shop", "client_id": "app", "capabilities": [DECISIONS], "colour": "red"});
    let body = json!({"actor": actor});
    let joined = meeting.shop.post("/api/v1/threads/t/actors", body).await;
    assert_eq!(joined.status, 201, "{}", joined.text);
    let joined = joined.json();
    assert_eq!(
        joined["actor"]["capabilities"],
        json!([{"schema": DECISIONS}])
    );
    assert_eq!(joined["actor"]["colour"], "red");
    assert_eq!(
        [&joined["isBound"], &joined["isOwn"], &joined["isInitiator"]],
        [&json!(true), &json!(true), &json!(false)]
    );
    let path = "/api/v1/threads/t/actors/shop";
    let declared = patch(&meeting.shop, path, &json!({"capabilities": []})).await;
    assert_eq!(declared.json()["actor"]["capabilities"], json!([]));
    let list = meeting.user.get("/api/v1/threads/t/actors").await.json();
    assert_eq!(list["actors"][0]["isOwn"], false, "another key's");
    let left = meeting.shop.delete(path).await;
    assert_eq!(left.status, 200, "{}", left.text);
    assert!(ids(&meeting).await.is_empty());
    let events = meeting.user.at_rest("t").await;
    let parts = events.iter().filter_map(|(_, event)| {
        let part = &event["item"]["content"][0]["type"];
        part.as_str()
            .filter(|part| part.starts_with("data-app-actor"))
    });
    let expected = [
        "data-app-actor_join",
        "data-app-actor_declare",
        "data-app-actor_leave",
    ];
    assert_eq!(parts.collect::<Vec<_>>(), expected);
    let log = json!(events).to_string();
    assert!(!log.contains("key:shop"), "nobody is shown the credential");
}

#[tokio::test]
async fn an_id_is_somebodys_in_its_thread_and_only_there() {
    let meeting = Meeting::new().await;
    let again = json!({"actor": {"id": "shop"}});
    let refused = |client, body: Value| async move {
        let answer = Meeting::post(client, "/api/v1/threads/t/actors", body).await;
        (answer.0, answer.1)
    };
    let taken = (409, "actor_refused".to_owned());
    assert_eq!(refused(&meeting.helper, again.clone()).await, taken);
    let left = meeting.shop.delete("/api/v1/threads/t/actors/shop").await;
    assert_eq!(left.status, 200);
    assert_eq!(
        refused(&meeting.helper, again.clone()).await,
        taken,
        "somebody else's id"
    );
    join(&meeting.shop, "shop", &[]).await;
    // In another thread it is somebody else's.
    meeting.user.say("other", "hello").await;
    let other = meeting
        .helper
        .post("/api/v1/threads/other/actors", again)
        .await;
    assert_eq!(other.status, 201, "{}", other.text);
}

impl Meeting {
    async fn post(client: &crate::harness::Server, path: &str, body: Value) -> (u16, String) {
        let (status, code, _) = client.post(path, body).await.error();
        (status, code)
    }
}

#[tokio::test]
async fn nobody_changes_an_actor_of_another_key() {
    let meeting = Meeting::new().await;
    let path = "/api/v1/threads/t/actors/shop";
    let forbidden = (403, "forbidden_actor".to_owned(), None);
    let declared = patch(&meeting.helper, path, &json!({"capabilities": []})).await;
    assert_eq!(declared.error(), forbidden);
    assert_eq!(meeting.helper.delete(path).await.error(), forbidden);
    let absent = meeting.shop.delete("/api/v1/threads/t/actors/nobody").await;
    assert_eq!(absent.error(), (404, "actor_not_found".into(), None));
    assert_eq!(ids(&meeting).await, ["helper", "shop"]);
}

#[tokio::test]
async fn an_actor_that_can_not_be_read_is_refused_with_its_place() {
    let meeting = Meeting::new().await;
    for (actor, pointer) in [
        (json!({}), "/actor/id"),
        (json!({"id": ""}), "/actor/id"),
        (json!({"id": "x".repeat(257)}), "/actor/id"),
        (json!({"id": "x", "capabilities": 7}), "/actor/capabilities"),
        (
            json!({"id": "x", "capabilities": [7]}),
            "/actor/capabilities/0",
        ),
        (
            json!({"id": "x", "capabilities": vec!["https://x"; 65]}),
            "/actor/capabilities",
        ),
    ] {
        let body = json!({ "actor": actor });
        let refused = meeting.shop.post("/api/v1/threads/t/actors", body).await;
        let expected = (422, "invalid_field".into(), Some(pointer.into()));
        assert_eq!(refused.error(), expected);
    }
}

#[tokio::test]
async fn what_one_asked_who_leaves_is_taken_back() {
    let meeting = Meeting::new().await;
    meeting.ask(&seat(None)).await;
    meeting.shop.delete("/api/v1/threads/t/actors/shop").await;
    assert_eq!(meeting.request("decision:seat").await["state"], "cancelled");
    let text = seat(None).to_string();
    let refused = meeting
        .record(&meeting.shop, "assistant", Some("shop"), &text)
        .await;
    let error = &refused.json()["error"];
    assert_eq!(
        (refused.status.as_u16(), &error["code"], &error["param"]),
        (422, &json!("invalid_actor"), &json!("metadata.actor"))
    );
}

#[tokio::test]
async fn the_one_who_began_the_thread_can_be_an_actor() {
    let meeting = Meeting::keys("").await;
    meeting
        .shop
        .post("/api/v1/threads", json!({"key": "t"}))
        .await;
    let body = json!({"actor": {"id": "agent.near"}, "initiator": true});
    let joined = meeting
        .shop
        .post("/api/v1/threads/t/actors", body)
        .await
        .json();
    assert_eq!(joined["isInitiator"], true);
    let body = json!({"actor": {"id": "late"}, "initiator": true});
    let late = meeting.helper.post("/api/v1/threads/t/actors", body).await;
    assert_eq!(late.error().1, "actor_refused");
    // Its messages have the role of who began the thread, and nobody else's.
    let text = json!({"content": "hello", "metadata": {"actor": "agent.near"}});
    meeting.shop.post("/api/v1/threads/t/messages", text).await;
    let said = meeting.user.get("/api/v1/threads/t/messages").await.json();
    let said = said["messages"].as_array().unwrap();
    let hello = said
        .iter()
        .find(|it| it["metadata"]["actor"] == "agent.near");
    assert_eq!(hello.unwrap()["role"], "user");
    meeting.user.at_rest("t").await;
    let refused = meeting.record(&meeting.user, "user", None, "me too").await;
    assert_eq!(refused.status, 403, "{}", refused.text);
}

#[tokio::test]
async fn a_threads_list_of_actors_changes_who_takes_part() {
    let meeting = Meeting::keys("").await;
    let body = json!({"metadata": {"note": "1", "actors": [
        {"id": "a", "capabilities": [{"$schema": DECISIONS}]}, {"id": "b"},
    ]}});
    let made = meeting.shop.post("/v1/threads", body).await.json();
    let path = format!("/v1/threads/{}", made["id"].as_str().unwrap());
    let expected = json!([
        {"id": "a", "capabilities": [{"schema": DECISIONS}]}, {"id": "b", "capabilities": []},
    ]);
    assert_eq!(made["metadata"]["actors"], expected);
    // `b` leaves, `a` declares nothing any more, `c` joins.
    let body = json!({"metadata": {"actors": [{"id": "a"}, {"id": "c"}]}});
    let changed = meeting.shop.post(&path, body.clone()).await.json();
    let expected = json!([{"id": "a", "capabilities": []}, {"id": "c", "capabilities": []}]);
    assert_eq!(changed["metadata"]["actors"], expected);
    assert_eq!(
        meeting.user.get(&path).await.json()["metadata"]["actors"],
        expected
    );
    // The same list again changes nothing, and `c` is who has joined it.
    let again = meeting.helper.post(&path, body).await;
    assert_eq!(again.status, 200, "{}", again.text);
    let without = json!({"metadata": {"actors": [{"id": "a"}]}});
    let refused = meeting.helper.post(&path, without).await;
    let error = &refused.json()["error"];
    assert_eq!(
        (refused.status.as_u16(), &error["code"]),
        (403, &json!("forbidden_actor"))
    );
    let wrong = meeting
        .shop
        .post(&path, json!({"metadata": {"actors": [{}]}}))
        .await;
    assert_eq!(wrong.json()["error"]["param"], "metadata.actors[0].id");
}
