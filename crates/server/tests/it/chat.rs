//! The AI SDK's endpoint, with what `DefaultChatTransport` sends.

mod answers;
mod beneath;
mod history;
mod rewind;

use crate::harness::{Answer, Server};
use axum::body::Body;
use futures_util::StreamExt;
use http::header;
use serde_json::{Value, json};

fn submit(id: &str, text: &str) -> Value {
    json!({ "id": "chat-1", "trigger": "submit-message", "messages": [
        { "id": id, "role": "user", "parts": [{ "type": "text", "text": text }] }
    ] })
}

fn chunks(text: &str) -> Vec<Value> {
    let frames = text
        .split_terminator("\n\n")
        .filter_map(|frame| frame.strip_prefix("data: "));
    frames
        .map(|data| serde_json::from_str(data).unwrap_or_else(|_| data.into()))
        .collect()
}

fn kinds(chunks: &[Value]) -> Vec<&str> {
    chunks
        .iter()
        .map(|chunk| chunk["type"].as_str().or(chunk.as_str()).unwrap())
        .collect()
}

fn text_of(chunks: &[Value]) -> String {
    chunks
        .iter()
        .filter_map(|chunk| chunk["delta"].as_str())
        .collect()
}

async fn resume(server: &Server) -> Answer {
    server.get("/api/chat/chat-1/stream").await
}

#[tokio::test]
async fn a_message_is_answered_with_a_ui_message_stream() {
    let server = Server::new("").await;
    let answer = server
        .post("/api/chat", submit("m1", "use compute 6 * 7"))
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    for (name, value) in [
        ("content-type", "text/event-stream"),
        ("cache-control", "no-cache"),
        ("x-vercel-ai-ui-message-stream", "v1"),
        ("x-accel-buffering", "no"),
    ] {
        assert_eq!(answer.headers[name], value);
    }
    let chunks = chunks(&answer.text);
    let kinds = kinds(&chunks);
    assert_eq!(
        (kinds[0], kinds[kinds.len() - 2], kinds[kinds.len() - 1]),
        ("start", "finish", "[DONE]")
    );
    let output = chunks
        .iter()
        .find(|chunk| chunk["type"] == "tool-output-available")
        .unwrap();
    assert_eq!(output["output"], 42);
    let kept = server.get("/api/v1/threads/chat-1/messages").await.text;
    assert!(kept.contains("\"id\":\"m1\""));
}

#[tokio::test]
async fn the_same_message_again_gets_the_same_answer() {
    let server = Server::new("").await;
    let first = server.post("/api/chat", submit("m1", "hello")).await;
    let seq = server.seq("chat-1").await;
    let again = server.post("/api/chat", submit("m1", "hello")).await;
    assert_eq!((again.text, server.seq("chat-1").await), (first.text, seq));
}

#[tokio::test]
async fn a_stream_that_was_left_is_resumed_from_its_start() {
    let server = Server::new("").await;
    server.say("chat-1", "something before").await;
    let request = server
        .request("POST", "/api/chat")
        .header(header::CONTENT_TYPE, "application/json");
    let body = Body::from(submit("m1", "slow 10ms say 40 words").to_string());
    let (status, mut stream) = server.open(request.body(body).unwrap()).await;
    assert_eq!(status, 200);
    for _ in 0..3 {
        stream.next().await.unwrap().unwrap();
    }
    drop(stream);
    let resumed = resume(&server).await;
    assert_eq!(
        (
            resumed.status.as_u16(),
            resumed.headers["x-vercel-ai-ui-message-stream"]
                .to_str()
                .unwrap()
        ),
        (200, "v1")
    );
    let chunks = chunks(&resumed.text);
    assert_eq!(
        (kinds(&chunks)[0], kinds(&chunks).last()),
        ("start", Some(&"[DONE]"))
    );
    assert_eq!(text_of(&chunks).split_whitespace().count(), 40);
    assert_eq!(resume(&server).await.status, 204);
}

#[tokio::test]
async fn nothing_is_resumed_where_nothing_runs() {
    let server = Server::new("").await;
    assert_eq!(resume(&server).await.status, 204);
    assert_eq!(
        server.get("/api/v1/threads").await.json()["threads"],
        json!([])
    );
}

#[tokio::test]
async fn a_second_message_waits_and_is_streamed_when_its_turn_comes() {
    let server = Server::new("").await;
    let (one, two) = tokio::join!(
        server.post("/api/chat", submit("m1", "slow 10ms say 20 words")),
        server.post("/api/chat", submit("m2", "and me")),
    );
    let (one, two) = (chunks(&one.text), chunks(&two.text));
    assert_eq!(text_of(&one).split_whitespace().count(), 20);
    assert_eq!(text_of(&two), "You said: and me");
}

#[tokio::test]
async fn a_stop_ends_the_stream_as_aborted() {
    let server = Server::new("").await;
    let request = server
        .request("POST", "/api/chat")
        .header(header::CONTENT_TYPE, "application/json");
    let body = Body::from(submit("m1", "slow 20ms say 2000 words").to_string());
    let (status, mut stream) = server.open(request.body(body).unwrap()).await;
    assert_eq!(status, 200);
    let mut bytes = Vec::new();
    let mut stopped = None;
    while let Some(piece) = stream.next().await {
        bytes.extend_from_slice(&piece.unwrap());
        if stopped.is_none() && String::from_utf8_lossy(&bytes).contains("text-delta") {
            stopped = Some(server.post_text("/api/chat/chat-1/stop", "").await);
        }
    }
    assert!(stopped.unwrap().json()["executionId"].is_string());
    let chunks = chunks(&String::from_utf8(bytes).unwrap());
    assert_eq!(
        kinds(&chunks)[kinds(&chunks).len() - 2..],
        ["abort", "[DONE]"]
    );
    // What was said until then is there when the page is loaded again.
    let reloaded = server.get("/api/chat/chat-1/messages").await.json();
    let answered = &reloaded["messages"][1];
    assert_eq!(answered["role"], "assistant");
    assert!(
        answered["parts"].to_string().contains("\"text\""),
        "{answered}"
    );
}

#[tokio::test]
async fn the_messages_are_there_when_the_page_is_loaded_again() {
    let server = Server::new("").await;
    server.post("/api/chat", submit("m1", "hello")).await;
    let messages = server.get("/api/chat/chat-1/messages").await.json()["messages"].clone();
    assert_eq!(
        (&messages[0]["id"], &messages[0]["parts"][0]["text"]),
        (&json!("m1"), &json!("hello"))
    );
    assert_eq!(messages[1]["parts"][1]["text"], "You said: hello");
    assert_eq!(
        server.get("/api/chat/none/messages").await.error(),
        (404, "thread_not_found".into(), None)
    );
}

#[tokio::test]
async fn what_can_not_be_done_is_said() {
    let server = Server::new("").await;
    let mut ends = submit("m1", "hello");
    let said = json!({"id": "a", "role": "assistant", "parts": [{"type": "step-start"}]});
    ends["messages"].as_array_mut().unwrap().push(said);
    let mut empty = submit("m1", "hello");
    empty["messages"][0]["parts"] = json!([]);
    let mut forged = submit("m1", "hello");
    forged["messages"][0]["parts"][0]["type"] = "tool-compute".into();
    let mut path = submit("m1", "hello");
    path["id"] = "..".into();
    let mut changed = submit("m1~2", "hello");
    changed["messageId"] = "m1~2".into();
    for (body, code, pointer) in [
        (ends, "invalid_field", "/messages/1"),
        (empty, "invalid_field", "/messages/0/parts"),
        (forged, "invalid_field", "/messages/0/parts/0"),
        (changed, "invalid_field", "/messages/0/id"),
        (path, "invalid_field", "/id"),
        (json!({}), "invalid_field", "/id"),
    ] {
        let answer = server.post("/api/chat", body.clone()).await;
        assert_eq!(
            answer.error(),
            (422, code.to_owned(), Some(pointer.to_owned())),
            "{body}"
        );
    }
    let agent = server
        .post("/api/chat?agent=nobody", submit("m1", "hello"))
        .await;
    assert_eq!(agent.error().1, "unknown_agent");
    let version = server.post("/api/chat?ai=4", submit("m1", "hello")).await;
    assert_eq!(version.error().1, "invalid_query");
    assert_eq!(
        server.get("/api/v1/threads").await.json()["threads"],
        json!([])
    );
}

#[tokio::test]
async fn every_chat_path_takes_the_major_version_of_the_client() {
    let server = Server::new("").await;
    for major in [5, 6, 7] {
        let path = format!("/api/chat?ai={major}");
        let said = server
            .post(&path, submit(&format!("m{major}"), "hello"))
            .await;
        assert_eq!(said.status, 200, "{}", said.text);
        let messages = format!("/api/chat/chat-1/messages?ai={major}&limit=1");
        assert_eq!(server.get(&messages).await.status, 200);
        let stream = format!("/api/chat/chat-1/stream?ai={major}");
        assert_eq!(server.get(&stream).await.status, 204);
        let stop = format!("/api/chat/chat-1/stop?ai={major}");
        assert_eq!(server.post_text(&stop, "").await.status, 200);
    }
    for (method, path) in [
        ("GET", "/api/chat/chat-1/messages?ai=4"),
        ("GET", "/api/chat/chat-1/stream?ai=8"),
        ("POST", "/api/chat/chat-1/stop?ai=4"),
    ] {
        let request = server.request(method, path).body(Body::empty()).unwrap();
        assert_eq!(
            server.send(request).await.error().1,
            "invalid_query",
            "{path}"
        );
    }
}

/// The chunk types of EK §8.1.
const EK_CHUNKS: [&str; 6] = [
    "data-context-id",
    "data-thread-ping",
    "data-context-substate",
    "tool-output-available",
    "tool-output-error",
    "finish",
];

#[tokio::test]
async fn a_client_of_ekairos_receives_the_six_chunk_types() {
    let server = Server::new("").await;
    let body = submit("m1", "compute 1+1 then compute nothing");
    let live = server.post("/api/chat?ek=true", body).await;
    let sent = chunks(&live.text);
    let types = kinds(&sent);
    for name in EK_CHUNKS {
        assert!(types.contains(&name), "{name}: {types:?}");
    }
    let thread = server
        .get("/api/v1/threads/chat-1/events?until=rest")
        .await
        .text;
    let context = sent.iter().find(|it| it["type"] == "data-context-id");
    let context = context.unwrap();
    assert_eq!(context["transient"], true);
    let id = context["data"]["contextId"].as_str().unwrap();
    assert!(thread.contains(&format!("\"contextId\":\"{id}\"")), "{id}");
    // Without the option, clients of the AI SDK see the three types that it defines.
    let again = server.post("/api/chat", submit("m2", "compute 1+1")).await;
    let plain = chunks(&again.text);
    let plain = kinds(&plain);
    assert!(
        !plain.iter().any(|name| EK_CHUNKS[..3].contains(name)),
        "{plain:?}"
    );
}
