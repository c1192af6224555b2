//! What is no call, and who may not call at all.

use super::CONFIG;
use crate::harness::{Answer, Server, two_tenants};
use axum::body::Body;
use serde_json::{Value, json};

async fn post(server: &Server, headers: &[(&str, &str)], body: impl Into<String>) -> Answer {
    let mut request = server
        .request("POST", "/mcp")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    server
        .send(request.body(Body::from(body.into())).unwrap())
        .await
}

fn listed() -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string()
}

#[tokio::test]
async fn what_is_no_call_is_refused_as_json_rpc_refuses() {
    let server = Server::new(&format!(
        "{CONFIG}[server]\nmax_body_bytes = 2000\nmax_depth = 20\n"
    ))
    .await;
    let deep = format!("{}1{}", "[".repeat(30), "]".repeat(30));
    for (body, status, code, own) in [
        ("{".to_owned(), 400, -32700, "malformed_json"),
        ("[]".to_owned(), 400, -32600, "invalid_message"),
        (format!("[{}]", listed()), 400, -32600, "invalid_message"),
        (deep, 400, -32600, "too_deep"),
        (
            format!("\"{}\"", "x".repeat(3_000)),
            413,
            -32600,
            "body_too_large",
        ),
    ] {
        let answer = post(&server, &[], body.as_str()).await;
        assert_eq!(answer.status, status, "{body}");
        let told = answer.json();
        assert_eq!(told["jsonrpc"], "2.0");
        assert_eq!(told["error"]["code"], code, "{body}");
        assert_eq!(told["error"]["data"]["code"], own);
    }
    let unknown =
        json!({"jsonrpc": "2.0", "id": 7, "method": "none/such", "params": {"cursor": 5}});
    let answer = post(&server, &[], unknown.to_string()).await;
    assert!(
        answer.text.contains("-32601") && answer.text.contains("\"id\":7"),
        "{}",
        answer.text
    );
    let request = server
        .request("POST", "/mcp")
        .header("content-type", "text/plain");
    let answer = server
        .send(request.body(Body::from(listed())).unwrap())
        .await;
    assert_eq!(answer.status, 415);
    let request = server
        .request("POST", "/mcp")
        .header("content-type", "application/json")
        .header("accept", "application/json");
    let answer = server
        .send(request.body(Body::from(listed())).unwrap())
        .await;
    assert_eq!(answer.status, 406);
    assert_eq!(answer.json()["error"]["data"]["code"], "mcp_transport");
    let old = [("mcp-protocol-version", "1999-01-01")];
    assert_eq!(post(&server, &old, listed()).await.status, 400);
}

#[tokio::test]
async fn there_is_no_stream_to_be_opened_and_no_session_to_be_ended() {
    let server = Server::new(CONFIG).await;
    for method in ["GET", "DELETE", "PUT"] {
        let request = server.request(method, "/mcp").body(Body::empty()).unwrap();
        let answer = server.send(request).await;
        assert_eq!(answer.status, 405, "{method}");
        assert_eq!(answer.headers["allow"], "POST");
    }
}

#[tokio::test]
async fn nobody_calls_without_a_key() {
    let server = Server::new(&two_tenants()).await;
    for key in [None, Some("llk_c")] {
        let client = Server {
            key,
            ..server.with_key("")
        };
        let answer = post(&client, &[], listed()).await;
        assert_eq!(answer.status, 401);
        assert_eq!(answer.json()["error"]["data"]["code"], "unauthorized");
        assert!(answer.headers.contains_key("www-authenticate"));
    }
}

#[tokio::test]
async fn pages_of_other_origins_call_only_if_they_are_listed() {
    let keyed = format!(
        "[server]\ncors_origins = [\"https://app.example\"]\n{}",
        two_tenants()
    );
    let keyed = Server::new(&keyed).await.with_key("llk_a");
    let open = Server::new("[server]\ncors_origins = [\"https://app.example\"]\n").await;
    for server in [&keyed, &open] {
        for (origin, status) in [
            ("https://app.example", 200),
            ("http://localhost:6274", 200),
            ("https://evil.example", 403),
            ("null", 403),
            ("https://app.example.evil", 403),
        ] {
            let answer = post(server, &[("origin", origin)], listed()).await;
            assert_eq!(answer.status, status, "{origin}");
            if status == 403 {
                let told = answer.json();
                assert_eq!(told["error"]["data"]["code"], "foreign_origin");
            }
        }
    }
    // Names that someone else's DNS points here.
    let request = http::Request::post("/mcp").header("host", "evil.example");
    let answer = open.send(request.body(Body::from(listed())).unwrap()).await;
    assert_eq!(
        (
            answer.status.as_u16(),
            &answer.json()["error"]["data"]["code"]
        ),
        (403, &Value::from("foreign_host"))
    );
}

#[tokio::test]
async fn a_message_that_json_rpc_does_not_know_says_what_is_wrong_with_it() {
    let server = Server::new(CONFIG).await;
    let with = |field: &str, value: Value| {
        let mut message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        message[field] = value;
        message.to_string()
    };
    let method = json!({"jsonrpc": "2.0", "id": 1}).to_string();
    let version = json!({"id": 1, "method": "tools/list"}).to_string();
    for (body, what) in [
        (format!("[{}]", listed()), "batch"),
        ("7".to_owned(), "object"),
        ("null".to_owned(), "object"),
        (with("id", json!(null)), "\"id\""),
        (with("id", json!(1.5)), "\"id\""),
        (with("id", json!({})), "\"id\""),
        (with("id", json!(u64::MAX)), "\"id\""),
        (with("jsonrpc", json!("1.0")), "\"jsonrpc\""),
        (version, "\"jsonrpc\""),
        (with("method", json!(7)), "\"method\""),
        (method, "\"method\""),
        (with("params", json!([])), "\"params\""),
        (with("params", json!("x")), "\"params\""),
    ] {
        let answer = post(&server, &[], body.as_str()).await;
        assert_eq!(answer.status, 400, "{body}: {}", answer.text);
        let told = answer.json();
        assert_eq!(told["error"]["code"], -32600, "{body}: {told}");
        assert_eq!(told["error"]["data"]["code"], "invalid_message", "{body}");
        let said = told["error"]["message"].as_str().unwrap();
        assert!(said.contains(what), "{body}: {said}");
    }
}

#[tokio::test]
async fn parameters_of_another_shape_are_wrong_parameters_and_no_unknown_method() {
    let server = Server::new(CONFIG).await;
    for (method, params, pointer) in [
        (
            "tools/call",
            json!({"name": "run", "arguments": "x"}),
            "/arguments",
        ),
        (
            "tools/call",
            json!({"name": "run", "arguments": [1]}),
            "/arguments",
        ),
        ("tools/call", json!({}), ""),
        ("tools/call", json!({"name": 5}), "/name"),
        ("resources/read", json!({}), ""),
        ("resources/read", json!({"uri": 5}), "/uri"),
        ("initialize", json!({}), ""),
        ("resources/list", json!({"cursor": 5}), "/cursor"),
        ("resources/templates/list", json!({"cursor": 5}), "/cursor"),
        ("tools/list", json!({"cursor": {}}), "/cursor"),
    ] {
        let call = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let answer = post(&server, &[], call.to_string()).await;
        assert_eq!(answer.status, 200, "{call}: {}", answer.text);
        let data = answer
            .text
            .lines()
            .filter_map(|line| line.strip_prefix("data:"));
        let told: Vec<Value> = data
            .filter_map(|data| serde_json::from_str(data).ok())
            .collect();
        let [told] = told.as_slice() else {
            panic!("{call}: {}", answer.text)
        };
        assert_eq!(
            (&told["id"], &told["error"]["code"]),
            (&json!(7), &json!(-32602)),
            "{call}: {told}"
        );
        assert_eq!(told["error"]["data"]["pointer"], pointer, "{call}: {told}");
    }
}

#[tokio::test]
async fn who_accepts_anything_is_answered() {
    let server = Server::new(CONFIG).await;
    for (accept, status) in [
        ("*/*", 200),
        ("text/html, */*;q=0.1", 200),
        ("text/html", 406),
        ("application/json, */*;q=0", 406),
    ] {
        let request = server
            .request("POST", "/mcp")
            .header("content-type", "application/json")
            .header("accept", accept);
        let answer = server
            .send(request.body(Body::from(listed())).unwrap())
            .await;
        assert_eq!(answer.status, status, "{accept}");
    }
}
