//! `--model`: agents on models of providers, which a local server plays in their formats.

use crate::support::cli::Home;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A request that the server received.
#[derive(Debug)]
struct Received {
    /// The method and the path.
    line: String,
    headers: String,
    body: Value,
}

/// A server that gives each request the same answer.
struct Vendor {
    address: String,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Vendor {
    fn new(status: &'static str, content_type: &'static str, body: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let received: Arc<Mutex<Vec<Received>>> = Arc::default();
        let noted = Arc::clone(&received);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (request, mut reader) = received_from(stream.unwrap());
                noted.lock().unwrap().push(request);
                answer(reader.get_mut(), status, content_type, &body);
            }
        });
        Self { address, received }
    }

    fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }
}

/// Reads a request.
fn received_from(stream: TcpStream) -> (Received, BufReader<TcpStream>) {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let mut headers = String::new();
    while !headers.ends_with("\r\n\r\n") && headers != "\r\n" {
        let n_read = reader.read_line(&mut headers).unwrap();
        assert!(n_read > 0, "the request ends in its headers: {headers}");
    }
    let headers = headers.to_ascii_lowercase();
    let length = headers
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let received = Received {
        line: line.trim().to_owned(),
        headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    };
    (received, reader)
}

/// Writes a response.
fn answer(stream: &mut TcpStream, status: &str, content_type: &str, answer: &str) {
    let length = answer.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{answer}"
    )
    .unwrap();
}

/// Server-sent events of these values, named by their `type`.
fn events(values: &[Value]) -> String {
    let frame = |value: &Value| {
        let name = value["type"].as_str();
        let name = name.map(|name| format!("event: {name}\n"));
        format!("{}data: {value}\n\n", name.unwrap_or_default())
    };
    values.iter().map(frame).collect()
}

fn responses() -> String {
    let message = json!({"type": "message", "id": "m", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "Lima.", "annotations": []}]});
    let response = |status: &str, output: Value| {
        json!({"id": "r", "object": "response", "created_at": 1, "status": status, "model": "the-model",
            "output": output, "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}})
    };
    events(&[
        json!({"type": "response.created", "sequence_number": 0, "response": response("in_progress", json!([]))}),
        json!({"type": "response.output_item.added", "sequence_number": 1, "output_index": 0,
            "item": {"type": "message", "id": "m", "role": "assistant", "status": "in_progress", "content": []}}),
        json!({"type": "response.content_part.added", "sequence_number": 2, "item_id": "m", "output_index": 0, "content_index": 0,
            "part": {"type": "output_text", "text": "", "annotations": []}}),
        json!({"type": "response.output_text.delta", "sequence_number": 3, "item_id": "m", "output_index": 0, "content_index": 0, "delta": "Lima."}),
        json!({"type": "response.output_text.done", "sequence_number": 4, "item_id": "m", "output_index": 0, "content_index": 0, "text": "Lima."}),
        json!({"type": "response.output_item.done", "sequence_number": 5, "output_index": 0, "item": message.clone()}),
        json!({"type": "response.completed", "sequence_number": 6, "response": response("completed", json!([message]))}),
    ])
}

fn messages() -> String {
    events(&[
        json!({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "model": "the-model",
            "content": [], "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 3, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Lima."}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null}, "usage": {"output_tokens": 2}}),
        json!({"type": "message_stop"}),
    ])
}

fn gemini() -> String {
    events(&[json!({"candidates": [{"index": 0, "finishReason": "STOP",
        "content": {"role": "model", "parts": [{"text": "Lima."}]}}],
        "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5}})])
}

fn ollama() -> String {
    let text = json!({"model": "the-model", "created_at": "2026-01-01T00:00:00Z", "done": false,
        "message": {"role": "assistant", "content": "Lima."}});
    let end = json!({"model": "the-model", "created_at": "2026-01-01T00:00:00Z", "done": true, "done_reason": "stop",
        "message": {"role": "assistant", "content": ""}, "prompt_eval_count": 3, "eval_count": 2});
    format!("{text}\n{end}\n")
}

fn chat_completions() -> String {
    let chunk = |delta: Value, end: Option<&str>| {
        json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "the-model",
            "choices": [{"index": 0, "delta": delta, "finish_reason": end}]})
    };
    let text = chunk(json!({"role": "assistant", "content": "Lima."}), None);
    format!(
        "{}data: [DONE]\n\n",
        events(&[text, chunk(json!({}), Some("stop"))])
    )
}

/// A home in which no provider's key is set.
fn home() -> Home {
    let mut home = Home::new();
    for name in [
        "OPENAI",
        "ANTHROPIC",
        "GOOGLE",
        "GEMINI",
        "OLLAMA",
        "OPENROUTER",
    ] {
        home.set(&format!("{name}_API_KEY"), "");
    }
    home
}

#[test]
fn each_provider_answers_with_its_usual_key() {
    let sse = "text/event-stream";
    let bearer = "authorization: bearer k3y-of-the-test";
    for (model, variable, answer, content_type, path, header) in [
        (
            "openai/the-model",
            "OPENAI_API_KEY",
            responses(),
            sse,
            "/responses",
            bearer,
        ),
        (
            "anthropic/the-model",
            "ANTHROPIC_API_KEY",
            messages(),
            sse,
            "/messages",
            "x-api-key: k3y-of-the-test",
        ),
        (
            "google/the-model",
            "GOOGLE_API_KEY",
            gemini(),
            sse,
            "/models/the-model:streamGenerateContent",
            "x-goog-api-key: k3y-of-the-test",
        ),
        (
            "google/the-model",
            "GEMINI_API_KEY",
            gemini(),
            sse,
            "/models/the-model:streamGenerateContent",
            "x-goog-api-key: k3y-of-the-test",
        ),
        (
            "ollama/the-model",
            "OLLAMA_API_KEY",
            ollama(),
            "application/x-ndjson",
            "/chat",
            bearer,
        ),
        (
            "openrouter/a/the-model",
            "OPENROUTER_API_KEY",
            chat_completions(),
            sse,
            "/chat/completions",
            bearer,
        ),
    ] {
        let vendor = Vendor::new("200 OK", content_type, answer);
        let mut home = home();
        home.set(variable, "k3y-of-the-test");
        let ran = home.run(&[
            "run",
            "Where?",
            "-q",
            "--model",
            model,
            "--base-url",
            &vendor.base_url(),
        ]);
        assert_eq!(
            (ran.code, ran.out.as_str()),
            (0, "Lima.\n"),
            "{model}: {ran:?}"
        );
        let received = vendor.received.lock().unwrap();
        assert_eq!(received.len(), 1, "{received:?}");
        assert!(received[0].line.contains(path), "{model}: {received:?}");
        assert!(
            received[0].headers.contains(header),
            "{model}: {received:?}"
        );
        let is_named = received[0].body["model"]
            .as_str()
            .is_some_and(|id| id.ends_with("the-model"));
        assert!(is_named || model.starts_with("google"), "{received:?}");
    }
}

#[test]
fn a_compatible_server_needs_no_provider_and_no_key() {
    let vendor = Vendor::new("200 OK", "text/event-stream", chat_completions());
    let home = home();
    let base = vendor.base_url();
    let ran = home.run(&[
        "run",
        "Where?",
        "-q",
        "--model",
        "qwen/the-model",
        "--base-url",
        &base,
    ]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Lima.\n"), "{ran:?}");
    let received = vendor.received.lock().unwrap();
    assert_eq!(received[0].body["model"], "qwen/the-model");
    assert!(
        !received[0].headers.contains("authorization"),
        "{received:?}"
    );
}

#[test]
fn a_server_has_the_agent_assistant_with_the_model() {
    let vendor = Vendor::new("200 OK", "text/event-stream", chat_completions());
    let home = home();
    let base = vendor.base_url();
    let mut serving = home.spawn(&[
        "serve",
        "--listen",
        "0",
        "--model",
        "m",
        "--base-url",
        &base,
    ]);
    let mut shown = serving.line();
    while !shown.contains("The agent assistant uses the model chat-completions/m.") {
        assert!(!shown.is_empty());
        shown = serving.line();
    }
    let ran = home.run(&["run", "Where?", "--agent", "assistant"]);
    assert!(ran.code == 0 && ran.out.contains("Lima."), "{ran:?}");
    let again = home.run(&["run", "Where?", "--model", "m", "--base-url", &base]);
    assert_eq!(again.code, 2, "{again:?}");
    assert!(again.err.contains("has its own models"), "{again:?}");
    drop(serving);
}

#[test]
fn a_refused_key_names_its_variable() {
    let refusal = json!({"error": {"message": "Incorrect API key provided.", "type": "invalid_request_error", "code": "invalid_api_key"}});
    let vendor = Vendor::new("401 Unauthorized", "application/json", refusal.to_string());
    let mut home = home();
    home.set("OPENAI_API_KEY", "k3y-of-the-test");
    let ran = home.run(&[
        "run",
        "x",
        "--model",
        "openai/m",
        "--base-url",
        &vendor.base_url(),
    ]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(
        ran.err
            .contains("Incorrect API key provided. Set OPENAI_API_KEY to a valid API key"),
        "{ran:?}"
    );
    assert!(!ran.err.contains("k3y-of-the-test"), "{ran:?}");
}

#[test]
fn an_unknown_model_is_named() {
    let refusal = json!({"error": {"message": "The model does not exist", "type": "invalid_request_error", "code": "model_not_found"}});
    let vendor = Vendor::new("404 Not Found", "application/json", refusal.to_string());
    let home = home();
    let ran = home.run(&[
        "run",
        "x",
        "--model",
        "openai/gpt-0",
        "--base-url",
        &vendor.base_url(),
    ]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("Check the model id \"gpt-0\""), "{ran:?}");
}

#[test]
fn an_unreachable_provider_suggests_the_network() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/v1", free.local_addr().unwrap());
    drop(free);
    let ran = home().run(&["run", "x", "--model", "openai/m", "--base-url", &base]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(
        ran.err
            .contains("Check the network, the proxy settings and the base URL"),
        "{ran:?}"
    );
}

#[test]
fn a_missing_key_ends_the_command_before_it_starts() {
    let home = home();
    for command in [&["serve"][..], &["run", "x"]] {
        let arguments = [command, &["--model", "openai/gpt-5-mini"]].concat();
        let ran = home.run(&arguments);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.err.contains("OPENAI_API_KEY is not set"), "{ran:?}");
    }
    assert!(!home.path("data").exists());
}

#[test]
fn a_wrong_model_is_exit_2() {
    let mut home = home();
    for (model, expected) in [
        ("gpt-5", "names no provider"),
        ("nobody/gpt-5", "names no provider"),
        ("openai/", "has no model id"),
        ("chat-completions/m", "needs --base-url"),
    ] {
        let ran = home.run(&["run", "x", "--model", model]);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.err.contains(expected), "{ran:?}");
    }
    home.configure("");
    let both = home.run(&["run", "x", "--model", "scripted"]);
    assert_eq!(both.code, 2, "{both:?}");
    assert!(
        both.err.contains("--model replaces a configuration"),
        "{both:?}"
    );
    let init = home.run(&["init", "--model", "scripted", "--output", "-"]);
    assert_eq!(init.code, 0, "{init:?}");
}
