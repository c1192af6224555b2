//! Runs with their times, agents with their tools, and changes of threads.

use crate::harness::{Answer, Server, TEAM};
use serde_json::{Value, json};

async fn run_of(server: &Server, key: &str, place: usize) -> Value {
    let runs = server.get(&format!("/api/v1/threads/{key}/runs")).await;
    let id = runs.json()["runs"][place]["id"].clone();
    let path = format!("/api/v1/threads/{key}/runs/{}", id.as_str().unwrap());
    server.get(&path).await.json()
}

async fn change(server: &Server, body: Value) -> Answer {
    let request = server
        .request("PATCH", "/api/v1/threads/t")
        .header("content-type", "application/json");
    server
        .send(request.body(body.to_string().into()).unwrap())
        .await
}

#[tokio::test]
async fn a_run_tells_the_times_of_its_attempts_and_calls() {
    let server = Server::new("").await;
    server.say("t", "use compute 6 * 7").await;
    let run = run_of(&server, "t", 0).await;
    assert_eq!(run["restarts"], json!([]));
    assert!(run["usage"]["outputTokens"].as_u64().unwrap() > 0, "{run}");
    assert!(run["queuedAt"].as_str() <= run["createdAt"].as_str());
    let step = &run["steps"][0];
    let attempts = step["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 1);
    assert_eq!(attempts[0]["reason"], "completed");
    assert_eq!(step["firstChunkAt"], attempts[0]["firstChunkAt"]);
    assert!(step["firstChunkAt"].as_str().unwrap() >= step["createdAt"].as_str().unwrap());
    let call = &step["calls"][0];
    assert_eq!(
        (&call["toolName"], &call["outcome"], &call["effect"]),
        (&json!("compute"), &json!("ok"), &json!("pure"))
    );
    assert!(call["endedAt"].as_str() >= call["startedAt"].as_str());
    assert_eq!(run["steps"][1]["calls"], json!([]));
}

#[tokio::test]
async fn a_queued_run_tells_when_its_message_was_posted() {
    let server = Server::new("").await;
    server.begin("t", "slow 20ms say 20 words").await;
    server.begin("t", "two").await;
    server.at_rest("t").await;
    let first = run_of(&server, "t", 0).await;
    let second = run_of(&server, "t", 1).await;
    assert!(second["queuedAt"].as_str() < first["endedAt"].as_str());
    assert!(second["createdAt"].as_str() >= first["endedAt"].as_str());
}

#[tokio::test]
async fn a_call_that_needs_an_approval_says_so() {
    let config = "[models.m]\nprovider = \"scripted\"\n[agents.a]\nmodel = \"m\"\ntools = [\"compute\"]\nrequires_approval = [\"compute\"]\n";
    let server = Server::new(config).await;
    server.say("t", "use compute 6 * 7").await;
    let run = run_of(&server, "t", 0).await;
    let call = &run["steps"][0]["calls"][0];
    assert_eq!(call["needsApproval"], true, "{run}");
    assert_eq!(call.get("endedAt"), None);
}

#[tokio::test]
async fn a_stopped_run_has_a_failed_attempt() {
    let server = Server::new("").await;
    let begun = server.begin("t", "slow 50ms say 200 words").await;
    let id = begun["executionId"].as_str().unwrap();
    server
        .post_text(&format!("/api/v1/threads/t/runs/{id}/cancel"), "")
        .await;
    let run = run_of(&server, "t", 0).await;
    assert_eq!(run["steps"][0]["attempts"][0]["reason"], "failed", "{run}");
}

#[tokio::test]
async fn agents_are_listed_with_their_tools_and_relations() {
    let server = Server::new(TEAM).await;
    let list = server.get("/api/v1/agents").await.json();
    let agents = list["agents"].as_array().unwrap();
    let named = |name: &str| agents.iter().find(|it| it["name"] == name).unwrap();
    let lead = named("lead");
    assert_eq!(lead["subAgents"], json!(["finder"]));
    assert_eq!(lead["handoffs"], json!(["closer"]));
    assert_eq!(lead["toolDetails"][0]["description"], "Finds something.");
    let compute = &named("finder")["toolDetails"][0];
    assert_eq!(
        (
            &compute["effect"],
            &compute["needsApproval"],
            &compute["external"]
        ),
        (&json!("pure"), &json!(true), &json!(false))
    );
}

#[tokio::test]
async fn a_change_keeps_absent_members_and_removes_null_ones() {
    let server = Server::new("").await;
    let new = json!({"key": "t", "title": "one", "metadata": {"a": 1, "actors": [{"id": "ada"}]}});
    server.post("/api/v1/threads", new).await;
    let changed = change(&server, json!({"title": "two"})).await.json();
    assert_eq!(
        (&changed["title"], &changed["metadata"]["a"]),
        (&json!("two"), &json!(1))
    );
    let changed = change(&server, json!({"metadata": {"b": 1.50}}))
        .await
        .json();
    assert_eq!(
        changed["metadata"],
        json!({"actors": [{"id": "ada"}], "b": 1.5})
    );
    let changed = change(&server, json!({"title": null, "metadata": null}))
        .await
        .json();
    assert_eq!(changed.get("title"), None);
    assert_eq!(changed["metadata"], json!({"actors": [{"id": "ada"}]}));
    let seq = server.seq("t").await;
    assert_eq!(change(&server, json!({})).await.json()["seq"], seq);
}

#[tokio::test]
async fn a_change_of_reserved_metadata_is_refused() {
    let server = Server::new("").await;
    server.say("t", "hello").await;
    for (metadata, pointer) in [
        (json!({"uap": 1}), "/metadata/uap"),
        (json!({"actors": []}), "/metadata/actors"),
        (json!([]), "/metadata"),
    ] {
        let refused = change(&server, json!({"metadata": metadata})).await;
        let expected = (422, "invalid_field".to_owned(), Some(pointer.to_owned()));
        assert_eq!(refused.error(), expected);
    }
}
