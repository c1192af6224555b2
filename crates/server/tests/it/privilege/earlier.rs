//! What a key that may only write is answered: its own request's, and nothing from before.

use super::with_rights;
use crate::harness::{Answer, Server};
use serde_json::{Value, json};

const ONLY_WRITE: &str = "scopes = [\"write\"]";
const SECRET: &str = "swordfish";
const THREAD: &str = "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5060";

/// Things of another key that have the secret in them, by their ids.
struct Kept {
    response: String,
    task: String,
    run: String,
    message: String,
    assistant: String,
}

fn text_of(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value}"))
        .to_owned()
}

async fn ok(client: &Server, path: &str, body: Value) -> Value {
    let answer = send(client, "POST", path, &body).await;
    assert!(answer.status.is_success(), "{path}: {}", answer.text);
    answer.json()
}

async fn send(client: &Server, method: &str, path: &str, body: &Value) -> Answer {
    let request = client
        .request(method, path)
        .header("content-type", "application/json")
        .header("a2a-version", "1.0");
    let request = request.body(body.to_string().into()).unwrap();
    client.send(request).await
}

async fn kept(all: &Server) -> Kept {
    let noted = json!({"note": SECRET});
    let thread = json!({"key": "own", "title": SECRET, "metadata": noted});
    ok(all, "/api/v1/threads", thread).await;
    all.say("own", SECRET).await;
    let thread = json!({"thread_id": THREAD, "metadata": noted});
    ok(all, "/threads", thread).await;
    all.say(THREAD, SECRET).await;
    let response = ok(
        all,
        "/v1/responses",
        json!({"model": "demo", "input": SECRET}),
    )
    .await;
    let task =
        json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": SECRET}]}});
    let task = ok(all, "/a2a/v1/message:send", task).await;
    let run = json!({"assistant_id": "demo", "instructions": SECRET, "metadata": noted});
    let run = ok(all, &format!("/v1/threads/{THREAD}/runs"), run).await;
    all.at_rest(THREAD).await;
    let messages = all
        .get(&format!("/v1/threads/{THREAD}/messages?order=asc"))
        .await
        .json();
    let assistant = json!({"model": "demo", "instructions": SECRET});
    let assistant = ok(all, "/v1/assistants", assistant).await;
    Kept {
        response: text_of(&response["id"]),
        task: text_of(&task["task"]["id"]),
        run: text_of(&run["id"]),
        message: text_of(&messages["data"][0]["id"]),
        assistant: text_of(&assistant["id"]),
    }
}

/// Requests whose answers have what was there before.
fn showing(kept: &Kept) -> Vec<(&'static str, String, Value)> {
    let Kept {
        response,
        task,
        run,
        message,
        assistant,
    } = kept;
    let run_of = json!({"assistant_id": "demo", "input": {"messages": "hi"}});
    let named = json!({"agent_id": "demo", "thread_id": THREAD, "messages": [{"role": "user", "content": "hi"}]});
    let parent = json!({"metadata": {"parent_id": THREAD}});
    let answer = json!({"message": {"messageId": "m2", "taskId": task, "role": "ROLE_USER", "parts": [{"text": "hi"}]}});
    let post = |path: String, body: Value| ("POST", path, body);
    let threads = format!("/v1/threads/{THREAD}");
    vec![
        post("/v1/thread".to_owned(), parent.clone()),
        post("/v1/threads".to_owned(), parent),
        post(threads.clone(), json!({})),
        post(threads.clone(), json!({"metadata": {}})),
        post(
            format!("{threads}/messages/{message}"),
            json!({"metadata": {}}),
        ),
        post(format!("{threads}/runs/{run}"), json!({"metadata": {}})),
        post(format!("{threads}/runs/{run}/cancel"), json!({})),
        post(
            format!("{threads}/runs/{run}/submit_tool_outputs"),
            json!({"tool_outputs": []}),
        ),
        post(format!("/v1/assistants/{assistant}"), json!({"name": "n"})),
        post(format!("/v1/responses/{response}/cancel"), json!({})),
        post(
            "/v1/responses/compact".to_owned(),
            json!({"model": "demo", "previous_response_id": response}),
        ),
        post("/a2a/v1/message:send".to_owned(), answer),
        (
            "PATCH",
            format!("/threads/{THREAD}"),
            json!({"metadata": {"b": "c"}}),
        ),
        post(format!("/threads/{THREAD}/copy"), json!({})),
        post(format!("/threads/{THREAD}/runs/wait"), run_of.clone()),
        post(format!("/threads/{THREAD}/runs/stream"), run_of),
        post("/runs/wait".to_owned(), named),
    ]
}

#[tokio::test]
async fn an_answer_with_earlier_content_needs_the_scope_read() {
    let (all, some) = with_rights(ONLY_WRITE).await;
    let kept = kept(&all).await;
    for (method, path, body) in showing(&kept) {
        let refused = send(&some, method, &path, &body).await;
        let what = format!("{method} {path}: {} {}", refused.status, refused.text);
        assert_eq!(refused.status, 403, "{what}");
        assert!(
            refused.text.contains("missing_scope") || refused.text.contains("read"),
            "{what}"
        );
        assert!(!refused.text.contains(SECRET), "{what}");
    }
    let n_threads = all.get("/api/v1/threads").await.json();
    assert_eq!(
        n_threads["threads"].as_array().unwrap().len(),
        4,
        "nothing was made"
    );
}

/// Requests that a key needs to take part, and whose answers are cut to what they ask.
fn taking_part() -> Vec<(&'static str, String, Value)> {
    let said = json!([{"role": "user", "content": "hi"}]);
    let post = |path: String, body: Value| ("POST", path, body);
    let lang = json!({"assistant_id": "demo", "input": {"messages": "hi"}, "stream_mode": ["updates", "messages-tuple"]});
    let ag_ui = json!({"threadId": "own", "runId": "r", "state": {}, "tools": [], "context": [], "forwardedProps": {},
        "messages": [{"id": "m9", "role": "user", "content": "hi"}]});
    let chat = json!({"id": "own", "trigger": "submit-message", "messages": [
        {"id": "m8", "role": "user", "parts": [{"type": "text", "text": "hi"}]}]});
    let a2a = json!({"message": {"messageId": "m7", "contextId": "own", "role": "ROLE_USER", "parts": [{"text": "hi"}]}});
    let rpc = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": {
        "messageId": "m6", "contextId": "own", "role": "ROLE_USER", "parts": [{"text": "hi"}]}}});
    vec![
        post("/api/v1/threads".into(), json!({"key": "own"})),
        post(
            "/api/v1/threads/own/messages".into(),
            json!({"content": "hi"}),
        ),
        post(
            "/api/v1/threads/own/messages".into(),
            json!({"content": "hi", "stream": true}),
        ),
        post("/api/v1/threads/own/fork".into(), json!({"key": "forked"})),
        post(
            "/v1/responses".into(),
            json!({"model": "demo", "input": "hi", "conversation": "own"}),
        ),
        post(
            "/v1/responses".into(),
            json!({"model": "demo", "input": "hi", "conversation": "own", "stream": true}),
        ),
        post("/v1/conversations/own/items".into(), json!({"items": said})),
        post(format!("/v1/threads/{THREAD}/messages"), said[0].clone()),
        post(
            format!("/v1/threads/{THREAD}/runs"),
            json!({"assistant_id": "demo", "stream": true, "additional_messages": said}),
        ),
        post("/api/chat".into(), chat),
        post("/ag-ui".into(), ag_ui),
        post("/a2a/v1/message:send".into(), a2a.clone()),
        post("/a2a".into(), rpc),
        post(
            "/threads".into(),
            json!({"thread_id": THREAD, "if_exists": "do_nothing"}),
        ),
        post(
            format!("/threads/{THREAD}/state"),
            json!({"values": {"messages": "hi"}}),
        ),
        post(format!("/threads/{THREAD}/runs"), lang.clone()),
        post(format!("/threads/{THREAD}/runs/stream"), lang),
        post(
            "/runs/wait".into(),
            json!({"agent_id": "demo", "messages": said}),
        ),
        post("/api/v1/threads/own/close".into(), json!({})),
    ]
}

#[tokio::test]
async fn a_key_that_only_writes_is_told_nothing_from_before() {
    let (all, some) = with_rights(ONLY_WRITE).await;
    kept(&all).await;
    for (method, path, body) in taking_part() {
        let answer = send(&some, method, &path, &body).await;
        let what = format!("{method} {path}: {} {}", answer.status, answer.text);
        assert!(answer.status.is_success(), "{what}");
        assert!(!answer.text.contains("missing_scope"), "{what}");
        assert!(!answer.text.contains(SECRET), "{what}");
        all.at_rest("own").await;
        all.at_rest(THREAD).await;
    }
}

#[tokio::test]
async fn a_thread_that_is_there_is_shown_whole_to_a_key_that_reads() {
    let (all, _) = with_rights(ONLY_WRITE).await;
    kept(&all).await;
    let found = ok(&all, "/api/v1/threads", json!({"key": "own"})).await;
    assert_eq!(found["title"], SECRET);
    let found = json!({"thread_id": THREAD, "if_exists": "do_nothing"});
    assert!(ok(&all, "/threads", found).await["values"]["messages"].is_array());
}

#[tokio::test]
async fn an_answer_to_a_request_of_aitp_shows_it_only_to_a_key_that_reads() {
    let (all, some) = with_rights(ONLY_WRITE).await;
    all.say("t", "hello").await;
    let decisions = "https://aitp.dev/v1/decisions/schema.json";
    let asked = json!({"$schema": decisions, "request_decision": {
        "id": "seat", "title": SECRET, "options": [{"id": "window"}]}});
    let asked = json!({"role": "assistant", "content": asked.to_string()});
    ok(&all, "/v1/threads/t/messages", asked).await;
    let body = json!({"value": {"option": "window"}});
    let path = "/api/v1/threads/t/requests/decision:seat/answer";
    let said = ok(&some, path, body).await;
    assert!(
        said["itemId"].is_string() && said.get("request").is_none(),
        "{said}"
    );
}
