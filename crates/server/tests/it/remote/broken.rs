//! An agent elsewhere that is not there, or not well.

use super::PROTOCOLS;
use crate::harness::Server;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Somebody who answers one request after the other with these bytes, those after the last with the
/// last's, and then closes or never does.
struct Stub {
    url: String,
    _tasks: JoinSet<()>,
}

impl Stub {
    async fn new(answer: String, closes: bool) -> Self {
        Self::of(vec![answer], closes).await
    }

    async fn of(answers: Vec<String>, closes: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut open = Vec::new();
            let mut n_answered = 0;
            while let Ok((mut socket, _)) = listener.accept().await {
                let mut read = vec![0; 65_536];
                let _ = socket.read(&mut read).await;
                let answer = answers.get(n_answered).or(answers.last());
                let answer = answer.map(String::as_bytes).unwrap_or_default();
                let _ = socket.write_all(answer).await;
                n_answered += 1;
                if !closes {
                    open.push(socket);
                }
            }
        });
        Self { url, _tasks: tasks }
    }
}

fn config(protocol: &str, url: &str, outbound: &str) -> String {
    let agent = match protocol {
        "a2a" => "",
        _ => "agent = \"far\", ",
    };
    format!(
        "[outbound]\n{outbound}\n[agents.a]\nremote = {{ protocol = \"{protocol}\", url = \"{url}\", {agent}\
         headers_timeout_s = 1, idle_timeout_s = 1, key_env = \"KEY\", max_bytes = 100000 }}\n"
    )
}

/// Why a run with an agent there ends.
async fn ends(protocol: &str, url: &str, outbound: &str) -> (String, String) {
    let text = config(protocol, url, outbound);
    let directory = tempfile::tempdir().unwrap();
    let key = |name: &str| (name == "KEY").then(|| "sk-secret-key".to_owned());
    let server = Server::with(directory, &text, &key).await;
    server.say("t", "hello").await;
    let events = server.at_rest("t").await;
    let ended = events
        .iter()
        .filter(|(_, event)| event["type"] == "execution.status.changed");
    let ended: Vec<&Value> = ended.map(|(_, event)| &event["interruption"]).collect();
    assert_eq!(ended.len(), 1, "{protocol}");
    let text = |field: &str| ended[0][field].as_str().unwrap_or_default().to_owned();
    assert!(
        !format!("{events:?}").contains("sk-secret-key"),
        "{protocol}"
    );
    (text("reason"), text("detail"))
}

const OPEN: &str = "http = true\nallow = [\"127.0.0.0/8\"]";

fn response(status: &str, kind: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[tokio::test]
async fn a_host_that_is_not_there_is_named() {
    for protocol in PROTOCOLS {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let (reason, detail) = ends(protocol, &url, OPEN).await;
        assert_eq!(reason, "network_failure", "{protocol}: {detail}");
        assert!(
            detail.contains("127.0.0.1") && detail.contains("\"a\""),
            "{detail}"
        );
    }
}

#[tokio::test]
async fn a_refusal_says_what_was_answered_without_the_key() {
    for protocol in PROTOCOLS {
        let body = json!({"error": {"message": "no such key: sk-secret-key"}}).to_string();
        let stub = Stub::new(response("500 Oops", "application/json", &body), true).await;
        let (reason, detail) = ends(protocol, &stub.url, OPEN).await;
        assert_eq!(reason, "error", "{protocol}");
        assert!(
            detail.contains("it answered 500: no such key: ***"),
            "{protocol}: {detail}"
        );
    }
}

#[tokio::test]
async fn what_is_no_answer_in_the_protocol_is_refused() {
    for protocol in PROTOCOLS {
        for (kind, body) in [
            ("text/html", "<p>hello</p>"),
            ("application/json", "[1, 2"),
            ("text/event-stream", "data: {\"type\": \n\n"),
            ("text/event-stream", "data: [1]\n\n"),
        ] {
            let stub = Stub::new(response("200 OK", kind, body), true).await;
            let (reason, detail) = ends(protocol, &stub.url, OPEN).await;
            assert_eq!(reason, "error", "{protocol}, {body}: {detail}");
        }
    }
}

#[tokio::test]
async fn a_stream_of_threads_that_names_no_run_is_not_asked_again() {
    let thread = response("200 OK", "application/json", r#"{"id": "thread_1"}"#);
    let nothing = response("200 OK", "text/event-stream", "data: [DONE]\n\n");
    let stub = Stub::of(vec![thread, nothing], true).await;
    let (reason, detail) = ends("threads", &stub.url, OPEN).await;
    assert_eq!(reason, "error");
    assert!(detail.contains("which run it is"), "{detail}");
}

/// The events of a response, in which an attempt that dies says something first.
fn response_events(end: &Value) -> String {
    let delta = json!({"type": "response.output_text.delta", "item_id": "m1", "output_index": 0,
        "content_index": 0, "delta": "one tw"});
    let begun =
        json!({"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}});
    [&begun, &delta, end]
        .map(|event| format!("data: {event}\n\n"))
        .concat()
}

#[tokio::test]
async fn what_a_response_lists_in_the_end_is_what_it_says() {
    let item = json!({"type": "message", "id": "m2", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "one two three", "annotations": []}]});
    let end = json!({"type": "response.completed", "response": {"id": "resp_1", "status": "completed",
        "output": [item]}});
    let body = response_events(&end);
    let stub = Stub::new(response("200 OK", "text/event-stream", &body), true).await;
    let text = config("responses", &stub.url, OPEN);
    let directory = tempfile::tempdir().unwrap();
    let key = |name: &str| (name == "KEY").then(|| "sk-secret-key".to_owned());
    let server = Server::with(directory, &text, &key).await;
    server.say("t", "hello").await;
    server.at_rest("t").await;
    let messages = server.get("/api/v1/threads/t/messages").await.json();
    assert_eq!(
        super::texts(&messages["messages"]),
        ["hello", "one two three"]
    );
}

#[tokio::test]
async fn a_response_that_is_incomplete_for_a_reason_of_its_own_is_a_failure() {
    for (why, wanted) in [("timeout", "timeout"), ("tired", "error")] {
        let end = json!({"type": "response.incomplete", "response": {"id": "resp_1",
            "status": "incomplete", "incomplete_details": {"reason": why}, "output": []}});
        let body = response_events(&end);
        let stub = Stub::new(response("200 OK", "text/event-stream", &body), true).await;
        let (reason, detail) = ends("responses", &stub.url, OPEN).await;
        assert_eq!(reason, wanted, "{detail}");
        assert!(detail.contains(why), "{detail}");
    }
}

#[tokio::test]
async fn an_answer_longer_than_it_may_be_is_given_up() {
    for protocol in PROTOCOLS {
        let long = format!("data: {{\"x\": \"{}\"}}\n\n", "x".repeat(200_000));
        let stub = Stub::new(response("200 OK", "text/event-stream", &long), true).await;
        let (reason, detail) = ends(protocol, &stub.url, OPEN).await;
        assert_eq!(reason, "error", "{protocol}");
        assert!(
            detail.contains("longer than 100000 bytes"),
            "{protocol}: {detail}"
        );
    }
}

#[tokio::test]
async fn who_says_nothing_for_too_long_is_given_up() {
    for protocol in PROTOCOLS {
        let begun = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: hello\n\n";
        for answer in ["", begun] {
            let stub = Stub::new(answer.to_owned(), false).await;
            let (reason, detail) = ends(protocol, &stub.url, OPEN).await;
            assert_eq!(reason, "timeout", "{protocol}: {detail}");
        }
    }
}

#[tokio::test]
async fn a_private_address_is_asked_only_where_that_is_allowed() {
    for protocol in PROTOCOLS {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (reason, detail) = ends(protocol, &url, "http = true").await;
        assert_eq!(reason, "error", "{protocol}");
        assert!(detail.contains("[outbound] allow"), "{protocol}: {detail}");
    }
}

#[tokio::test]
async fn a_redirect_takes_the_key_nowhere_else() {
    for protocol in PROTOCOLS {
        let elsewhere = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = elsewhere.local_addr().unwrap();
        let answer = format!(
            "HTTP/1.1 307 Moved\r\nlocation: http://{to}/\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
        );
        let stub = Stub::new(answer, true).await;
        let (reason, detail) = ends(protocol, &stub.url, OPEN).await;
        assert_eq!(reason, "error", "{protocol}");
        assert!(detail.contains("redirect"), "{protocol}: {detail}");
    }
}

#[tokio::test]
async fn how_a_task_or_a_run_ends_elsewhere_is_the_reason_here() {
    let task = |state: &str| {
        let message = json!({"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "no"}]});
        let status = json!({"state": state, "message": message});
        let task = json!({"id": "task_1", "contextId": "c", "status": status});
        json!({"jsonrpc": "2.0", "id": "1", "result": { "task": task }})
    };
    let run = |status: &str, code: &str| {
        json!({"object": "thread.run", "id": "run_1", "status": status,
            "last_error": {"code": code, "message": "no"}})
    };
    for (protocol, ended, reason, detail) in [
        (
            "a2a",
            task("TASK_STATE_FAILED"),
            "error",
            "the task failed: no",
        ),
        (
            "a2a",
            task("TASK_STATE_REJECTED"),
            "safety_halt",
            "it rejects the task: no",
        ),
        ("a2a", task("TASK_STATE_CANCELED"), "error", "stopped there"),
        (
            "threads",
            run("failed", "server_error"),
            "error",
            "the run failed: no",
        ),
        (
            "threads",
            run("failed", "invalid_prompt"),
            "safety_halt",
            "the run failed: no",
        ),
        (
            "threads",
            run("failed", "rate_limit_exceeded"),
            "rate_limited",
            "the run failed: no",
        ),
        ("threads", run("expired", ""), "timeout", "expired there"),
        ("threads", run("cancelled", ""), "error", "stopped there"),
    ] {
        let thread = json!({"object": "thread", "id": "thread_1"});
        let begun = (protocol == "threads").then_some(thread);
        let answers = begun.into_iter().chain([ended]);
        let answers = answers.map(|it| response("200 OK", "application/json", &it.to_string()));
        let stub = Stub::of(answers.collect(), true).await;
        let (said, why) = ends(protocol, &stub.url, OPEN).await;
        assert_eq!(said, reason, "{protocol}: {why}");
        assert!(why.contains(detail), "{protocol}: {why}");
    }
}
