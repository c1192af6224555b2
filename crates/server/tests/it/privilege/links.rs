//! Addresses of files in what comes in, by every protocol.

use super::with_rights;
use crate::harness::{Answer, Server};
use serde_json::{Value, json};

const PUBLIC: &str = "https://example.org/a.png";
const THREAD: &str = "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5060";

/// A request by each way in that brings a file at this address: method, path and body.
fn ways(url: &str) -> Vec<(&'static str, String, Value)> {
    let threads =
        json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]);
    let image = json!({"type": "input_image", "image_url": url});
    let said = json!([{"role": "user", "content": [image]}]);
    let brought = json!([{"role": "user", "content": [image]}, {"role": "assistant", "content": "A."}, {"role": "user", "content": "b"}]);
    let returned = json!([
        {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "x"},
        {"role": "user", "content": [{"type": "input_file", "file_url": url}]},
    ]);
    let part = json!({"type": "file", "url": url, "mediaType": "image/png"});
    let chat = |id: &str| json!({"id": id, "trigger": "submit-message", "messages": [{"id": "m", "role": "user", "parts": [part]}]});
    let ag_ui = |kind: &str| {
        let content = json!([{"type": kind, "source": {"type": "url", "value": url}}]);
        json!({"threadId": kind, "runId": kind, "state": {}, "tools": [], "context": [], "forwardedProps": {},
            "messages": [{"id": kind, "role": "user", "content": content}]})
    };
    let a2a = json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"url": url, "mediaType": "image/png"}]}});
    let rpc = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": a2a});
    let lang =
        json!([{"type": "human", "content": [{"type": "image_url", "image_url": {"url": url}}]}]);
    let run = json!({"assistant_id": "demo", "input": {"messages": lang}});
    let pydantic = json!([{"kind": "request", "parts": [{"part_kind": "user-prompt", "timestamp": "2026-01-05T08:00:00Z",
        "content": ["see", {"kind": "image-url", "url": url}]}]}]);
    let of = |path: &str| path.replace("{}", THREAD);
    let post = |path: &str, body: Value| ("POST", of(path), body);
    vec![
        post(
            "/api/v1/threads/own/messages",
            json!({"content": [{"type": "input_text", "text": "see"}, image]}),
        ),
        post(
            "/api/v1/threads/own/messages",
            json!({"content": [{"type": "input_file", "file_url": url}]}),
        ),
        post(
            "/api/v1/threads/own/messages",
            json!({"content": [{"type": "input_file", "file_data": url}]}),
        ),
        post("/api/v1/import?from=pydantic-ai", pydantic),
        post("/v1/threads", json!({"messages": threads})),
        post("/v1/threads/{}/messages", threads[0].clone()),
        post(
            "/v1/threads/runs",
            json!({"assistant_id": "demo", "thread": {"messages": threads}}),
        ),
        post(
            "/v1/threads/{}/runs",
            json!({"assistant_id": "demo", "additional_messages": threads, "stream": true}),
        ),
        post("/v1/responses", json!({"model": "demo", "input": said})),
        post(
            "/v1/responses",
            json!({"model": "demo", "input": said, "store": false}),
        ),
        post("/v1/responses", json!({"model": "demo", "input": brought})),
        post("/v1/conversations", json!({"items": said})),
        post("/v1/conversations", json!({"items": returned})),
        post("/v1/conversations/own/items", json!({"items": said})),
        post("/api/chat", chat("chat")),
        post("/ag-ui", ag_ui("image")),
        post("/ag-ui", ag_ui("document")),
        post("/a2a/v1/message:send", a2a.clone()),
        post("/a2a", rpc),
        post("/threads/{}/state", json!({"values": {"messages": lang}})),
        ("PATCH", of("/threads/{}"), json!({"messages": lang})),
        post("/threads/{}/runs/wait", run.clone()),
        post("/runs/wait", run),
    ]
}

async fn send(server: &Server, method: &str, path: &str, body: &Value) -> Answer {
    let request = server
        .request(method, path)
        .header("content-type", "application/json")
        .header("a2a-version", "1.0");
    let request = request.body(body.to_string().into()).unwrap();
    server.send(request).await
}

/// A server with a thread for each way that needs one.
async fn server(config: &str) -> Server {
    let server = Server::new(config).await;
    server.say("own", "hello").await;
    let made = server.post("/threads", json!({"thread_id": THREAD})).await;
    assert_eq!(made.status, 200, "{}", made.text);
    server
}

async fn count(server: &Server) -> usize {
    let threads = server.get("/api/v1/threads").await.json();
    threads["threads"].as_array().unwrap().len()
}

#[tokio::test]
async fn no_way_in_takes_a_file_at_a_private_address() {
    let server = server("").await;
    let before = count(&server).await;
    for (url, why) in [
        (
            "https://169.254.169.254/latest/meta-data",
            "is cloud metadata",
        ),
        ("http://localhost:9/a.png", "is loopback"),
        (
            "https://me:secret@example.org/a.png",
            "no user and no password",
        ),
    ] {
        for (method, path, body) in ways(url) {
            let answer = send(&server, method, &path, &body).await;
            let what = format!("{method} {path} {url}: {} {}", answer.status, answer.text);
            assert!(answer.text.contains(why), "{what}");
            assert!(!answer.text.contains("secret@"), "{what}");
            // JSON-RPC answers with 200 whatever it says.
            assert!(path == "/a2a" || answer.status.is_client_error(), "{what}");
        }
    }
    assert_eq!(count(&server).await, before, "no thread was made");
    let kept = server.get("/api/v1/threads/own/messages").await.text;
    assert!(!kept.contains("example.org"), "{kept}");
    for (method, path, body) in ways(PUBLIC) {
        let answer = send(&server, method, &path, &body).await;
        let is_taken = answer.status.is_success() && !answer.text.contains("\"error\":{");
        assert!(
            is_taken,
            "{method} {path}: {} {}",
            answer.status, answer.text
        );
        server.at_rest("own").await;
        server.at_rest(THREAD).await;
    }
}

#[tokio::test]
async fn a_refused_link_is_named_by_a_pointer() {
    let server = server("").await;
    let ways = ways("http://10.0.0.1/a.png");
    let (_, path, body) = &ways[0];
    let refused = server.post(path, body.clone()).await.error();
    assert_eq!(
        refused,
        (422, "invalid_field".into(), Some("/content/1".into()))
    );
    let (_, path, body) = &ways[3];
    let refused = server.post(path, body.clone()).await.error();
    let pointer = Some("/0/parts/0/content/1/url".into());
    assert_eq!(refused, (422, "invalid_field".into(), pointer));
}

#[tokio::test]
async fn outbound_allows_files_at_private_addresses() {
    let server = server("[outbound]\nallow = [\"10.0.0.0/8\"]").await;
    for (method, path, body) in ways("http://10.0.0.1/a.png") {
        let answer = send(&server, method, &path, &body).await;
        let is_taken = answer.status.is_success() && !answer.text.contains("\"error\":{");
        assert!(
            is_taken,
            "{method} {path}: {} {}",
            answer.status, answer.text
        );
        server.at_rest("own").await;
        server.at_rest(THREAD).await;
    }
}

#[tokio::test]
async fn a_document_with_a_private_link_is_not_imported() {
    let (all, _) = with_rights("").await;
    let open = Server::new("[outbound]\nallow = [\"10.0.0.0/8\"]").await;
    let content = json!([{"type": "input_image", "image_url": "http://10.0.0.1/a.png"}]);
    let said = open
        .post("/api/v1/threads/t/messages", json!({ "content": content }))
        .await;
    assert_eq!(said.status, 202, "{}", said.text);
    open.at_rest("t").await;
    let document = open.get("/api/v1/threads/t/document").await.text;
    let path = "/api/v1/import?from=threadprotocol&key=copy";
    let (status, code, pointer) = all.post_text(path, document.clone()).await.error();
    assert_eq!((status, code.as_str()), (422, "invalid_field"));
    let document: Value = serde_json::from_str(&document).unwrap();
    let found = document.pointer(&pointer.unwrap()).unwrap();
    assert_eq!(found, "http://10.0.0.1/a.png");
    assert_eq!(all.get("/api/v1/threads/copy").await.status, 404);
}
