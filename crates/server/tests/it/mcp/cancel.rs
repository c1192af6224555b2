//! Calls that are cancelled, and clients that leave.

use super::{CONFIG, Client, call, connect, lifecycles, served, stateless, web};
use crate::harness::{Served, Server};
use rmcp::model::{CallToolRequest, ClientRequest};
use rmcp::service::{PeerRequestOptions, RequestHandle, RoleClient};
use serde_json::{Value, json};

/// Says something that takes long, and waits until the agent speaks.
async fn begin(client: &Client, key: &str) -> RequestHandle<RoleClient> {
    let asked = call(
        "run",
        json!({"key": key, "content": "slow 20ms say 100000 words"}),
    );
    let asked = ClientRequest::CallToolRequest(CallToolRequest::new(asked));
    let begun = client.send_cancellable_request(asked, PeerRequestOptions::no_options());
    let begun = begun.await.unwrap();
    client.service().something().await;
    begun
}

/// Why the run ended, once the thread is at rest.
async fn reason(server: &Server, key: &str) -> Value {
    server.at_rest(key).await;
    let runs = server
        .get(&format!("/api/v1/threads/{key}/runs"))
        .await
        .json();
    runs["runs"][0]["interruption"]["reason"].clone()
}

#[tokio::test]
async fn a_call_that_is_cancelled_stops_the_agent() {
    let (server, socket) = served(CONFIG).await;
    for (lifecycle, key) in lifecycles().into_iter().zip(["one", "two"]) {
        let client = connect(&socket, None, lifecycle).await;
        let begun = begin(&client, key).await;
        begun.cancel(Some("enough".into())).await.unwrap();
        assert_eq!(reason(&server, key).await, "user_cancelled");
        // The connection is as good as before.
        let after = call("run", json!({"key": key, "content": "hello"}));
        assert_ne!(client.call_tool(after).await.unwrap().is_error, Some(true));
    }
}

#[tokio::test]
async fn a_message_that_waits_for_its_turn_is_stopped_when_it_comes() {
    let (server, socket) = served(CONFIG).await;
    let client = connect(&socket, None, stateless()).await;
    let first = server.begin("t", "slow 20ms say 100000 words").await;
    let asked = call(
        "run",
        json!({"key": "t", "content": "slow 20ms say 100000 words"}),
    );
    let asked = ClientRequest::CallToolRequest(CallToolRequest::new(asked));
    let waiting = client.send_cancellable_request(asked, PeerRequestOptions::no_options());
    let waiting = waiting.await.unwrap();
    loop {
        let messages = server.get("/api/v1/threads/t/messages").await.json();
        if messages["messages"]
            .as_array()
            .unwrap()
            .iter()
            .any(|it| it["waiting"] == true)
        {
            break;
        }
        tokio::task::yield_now().await;
    }
    waiting.cancel(None).await.unwrap();
    let run = first["executionId"].as_str().unwrap();
    server
        .post_text(&format!("/api/v1/threads/t/runs/{run}/cancel"), "")
        .await;
    server.at_rest("t").await;
    let runs = server.get("/api/v1/threads/t/runs").await.json();
    let reasons = runs["runs"].as_array().unwrap().iter();
    let reasons: Vec<&Value> = reasons.map(|run| &run["interruption"]["reason"]).collect();
    assert_eq!(reasons, ["user_cancelled", "user_cancelled"]);
}

/// A call of a client up to 2025-11-25, in so many words, which is streamed.
async fn raw(socket: &Served, session: Option<&str>, message: &Value) -> reqwest::Response {
    let mut request = web()
        .post(socket.url("/mcp"))
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2025-06-18")
        .json(message);
    if let Some(session) = session {
        request = request.header("mcp-session-id", session);
    }
    request.send().await.unwrap()
}

async fn session(socket: &Served) -> String {
    let begins = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
    }});
    let begun = raw(socket, None, &begins).await;
    assert_eq!(begun.status(), 200);
    begun.headers()["mcp-session-id"]
        .to_str()
        .unwrap()
        .to_owned()
}

fn long(key: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "run", "arguments": {"key": key, "content": "slow 20ms say 60 words"},
        "_meta": {"progressToken": "p"},
    }})
}

#[tokio::test]
async fn an_older_client_that_leaves_has_stopped_nothing() {
    let (server, socket) = served(CONFIG).await;
    let session = session(&socket).await;
    let mut begun = raw(&socket, Some(&session), &long("t")).await;
    begun.chunk().await.unwrap().unwrap();
    drop(begun);
    server.at_rest("t").await;
    let run = server.get("/api/v1/threads/t/runs").await.json()["runs"][0].clone();
    assert_eq!(run["status"], "completed", "{run}");
}

#[tokio::test]
async fn a_session_cancels_its_own_calls_and_no_other() {
    let (server, socket) = served(CONFIG).await;
    let (own, other) = (session(&socket).await, session(&socket).await);
    let cancels =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    let mut begun = raw(&socket, Some(&own), &long("t")).await;
    begun.chunk().await.unwrap().unwrap();
    assert_eq!(raw(&socket, Some(&other), &cancels).await.status(), 202);
    let text = begun.text().await.unwrap();
    assert!(text.contains("\"status\":\"completed\""), "{text}");

    let mut begun = raw(&socket, Some(&own), &long("u")).await;
    begun.chunk().await.unwrap().unwrap();
    assert_eq!(raw(&socket, Some(&own), &cancels).await.status(), 202);
    let text = begun.text().await.unwrap();
    // Who cancels a call wants no answer.
    assert!(!text.contains("\"result\""), "{text}");
    assert_eq!(reason(&server, "u").await, "user_cancelled");
}

#[tokio::test]
async fn a_session_is_good_after_a_restart_of_the_server() {
    let (server, socket) = served(CONFIG).await;
    let session = session(&socket).await;
    socket.stop().await;
    let server = Server::at(server.directory, CONFIG).await;
    let again = Served::new(server.app.clone()).await;
    let listed = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    assert_eq!(raw(&again, Some(&session), &listed).await.status(), 200);
}

#[tokio::test]
async fn a_run_that_is_waited_for_goes_on_after_the_server_stops() {
    let (server, socket) = served(CONFIG).await;
    let client = connect(&socket, None, stateless()).await;
    begin(&client, "t").await;
    socket.stop().await;
    let server = Server::at(server.directory, CONFIG).await;
    let run = server.get("/api/v1/threads/t/runs").await.json()["runs"][0].clone();
    assert_eq!(run["status"], "executing", "{run}");
    server.post_text("/api/v1/threads/t/cancel", "").await;
}
