//! Starting, health, figures, and who may call at all.

use crate::harness::{Served, Server, two_tenants};
use axum::body::Body;
use http::{Request, header};
use loomline_server::{App, Config, OpenError, OpenMode, ServeError, serve};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn a_server_without_tenants_is_not_exposed() {
    let server = Server::new("").await;
    let listener = tokio::net::TcpListener::bind("0.0.0.0:0").await.unwrap();
    let refused = serve(server.app.clone(), listener, CancellationToken::new()).await;
    assert!(matches!(refused, Err(ServeError::Exposed { .. })));
}

#[tokio::test]
async fn a_server_with_tenants_may_be_exposed() {
    let server = Server::new(&two_tenants()).await;
    let listener = tokio::net::TcpListener::bind("0.0.0.0:0").await.unwrap();
    let shutdown = CancellationToken::new();
    shutdown.cancel();
    serve(server.app.clone(), listener, shutdown).await.unwrap();
}

#[tokio::test]
async fn development_mode_serves_this_machine_and_no_foreign_page() {
    let server = Server::new("").await;
    let ask = |name: &'static str, value: &'static str| {
        let mut request = Request::builder()
            .uri("/api/v1/threads")
            .header(header::HOST, "localhost:1")
            .body(Body::empty())
            .unwrap();
        request.headers_mut().insert(name, value.parse().unwrap());
        server.send(request)
    };
    assert_eq!(ask("host", "127.0.0.1:8080").await.status, 200);
    assert_eq!(
        ask("host", "rebound.evil.example").await.error(),
        (403, "foreign_host".into(), None)
    );
    assert_eq!(ask("origin", "http://localhost:3000").await.status, 200);
    assert_eq!(
        ask("origin", "https://evil.example").await.error(),
        (403, "foreign_origin".into(), None)
    );
    assert_eq!(
        ask("origin", "null").await.error(),
        (403, "foreign_origin".into(), None)
    );
}

#[tokio::test]
async fn a_page_of_a_listed_origin_may_call() {
    let server = Server::new("[server]\ncors_origins = [\"https://app.example\"]").await;
    let preflight = |origin: &'static str| {
        let request = server
            .request("OPTIONS", "/api/v1/threads")
            .header(header::ORIGIN, origin);
        server.send(
            request
                .header("access-control-request-method", "POST")
                .body(Body::empty())
                .unwrap(),
        )
    };
    let allowed = preflight("https://app.example").await;
    assert_eq!(
        allowed.headers["access-control-allow-origin"],
        "https://app.example"
    );
    assert!(
        !preflight("https://evil.example")
            .await
            .headers
            .contains_key("access-control-allow-origin")
    );
    let get = server
        .request("GET", "/api/v1/threads")
        .header(header::ORIGIN, "https://app.example");
    assert_eq!(
        server.send(get.body(Body::empty()).unwrap()).await.status,
        200
    );
}

#[tokio::test]
async fn health_needs_no_key_and_figures_do() {
    let server = Server::new(&two_tenants()).await;
    for path in ["/healthz", "/readyz", "/openapi.json"] {
        assert_eq!(server.get(path).await.status, 200, "{path}");
    }
    let refused = server.get("/metrics").await;
    assert_eq!(refused.error(), (401, "unauthorized".into(), None));
    assert_eq!(
        refused.headers["www-authenticate"],
        "Bearer realm=\"loomline\""
    );
    let figures = server.with_key("llk_a").get("/metrics").await.text;
    assert!(
        figures.contains(
            "loomline_http_requests_total{method=\"GET\",route=\"/healthz\",status=\"200\"} 1"
        ),
        "{figures}"
    );
    assert!(
        figures.contains("loomline_running_executions 0")
            && figures.contains("loomline_open_streams 0")
    );
    assert!(figures.contains("loomline_build_info{version="));
}

#[tokio::test]
async fn an_answer_has_the_request_s_id_and_is_not_to_be_guessed_at() {
    let server = Server::new("").await;
    let request = server
        .request("GET", "/api/v1/threads/none")
        .header("x-request-id", "r-1")
        .body(Body::empty())
        .unwrap();
    let answer = server.send(request).await;
    assert_eq!(
        (
            &answer.json()["error"]["requestId"],
            answer.headers["x-request-id"].to_str().unwrap()
        ),
        (&json!("r-1"), "r-1")
    );
    assert_eq!(answer.headers["x-content-type-options"], "nosniff");
    assert_eq!(answer.headers["content-type"], "application/json");
}

#[tokio::test]
async fn a_body_that_is_announced_too_long_is_refused_before_it_is_sent() {
    let server = Server::new("").await;
    let host = Served::new(server.app.clone()).await;
    let mut socket = tokio::net::TcpStream::connect(host.addr).await.unwrap();
    let head = "POST /api/v1/threads HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 104857600\r\n\r\n";
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).await.unwrap();
    assert!(
        text.starts_with("HTTP/1.1 413") && text.contains("body_too_large"),
        "{text}"
    );
    host.stop().await;
}

#[tokio::test]
async fn agents_are_listed() {
    let server = Server::new("").await;
    let expected = json!({ "agents": [{ "name": "demo", "provider": "scripted", "model": "scripted-1",
        "tools": ["read_file", "compute"], "isDefault": true }] });
    assert_eq!(server.get("/api/v1/agents").await.json(), expected);
}

#[tokio::test]
async fn after_a_shutdown_requests_are_told_so() {
    let server = Server::new("").await;
    server.say("t", "hello").await;
    server.app.shutdown().await.unwrap();
    let answer = server
        .post("/api/v1/threads/t/messages", json!({ "content": "a" }))
        .await;
    assert_eq!(answer.error(), (503, "shutting_down".into(), None));
    assert_eq!(
        server.get("/api/v1/threads/t").await.error(),
        (503, "shutting_down".into(), None)
    );
    assert_eq!(server.get("/readyz").await.status, 503);
    assert_eq!(server.get("/healthz").await.status, 200);
}

#[tokio::test]
async fn a_store_that_is_served_can_be_looked_at_but_not_written() {
    let server = Server::new("").await;
    server.say("t", "hello").await;
    let open = |mode| App::open(Config::default(), server.directory.path(), mode);
    assert!(matches!(
        open(OpenMode::ReadWrite),
        Err(OpenError::Store { .. })
    ));
    let app = open(OpenMode::ReadOnly).unwrap();
    let tenant = loomline_server::DEV_TENANT.into();
    assert!(
        app.export(&tenant, "t")
            .await
            .unwrap()
            .encode()
            .contains("hello")
    );
    assert!(app.runtime().close(&tenant, "t").await.is_err());
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(
        App::open(Config::default(), empty.path(), OpenMode::ReadOnly),
        Err(OpenError::NoStore { .. })
    ));
}

#[tokio::test]
async fn the_ledger_s_tool_is_there_only_where_it_is_configured() {
    let agent =
        "[models.m]\nprovider = \"scripted\"\n[agents.a]\nmodel = \"m\"\ntools = [\"record\"]\n";
    let refused = Config::parse(agent, &|_| None).unwrap_err();
    assert_eq!((refused.line, refused.column), (5, 10));
    let directory = tempfile::tempdir().unwrap();
    let ledger = directory.path().join("ledger");
    let config = format!("{agent}[tools]\nledger = {ledger:?}\nledger_effect = \"effect\"\n");
    let server = Server::new(&config).await;
    server.say("t", "use record line=paid").await;
    let written = std::fs::read_to_string(ledger).unwrap();
    let lines: Vec<&str> = written.lines().collect();
    assert_eq!(lines.len(), 1);
    assert!(lines[0].ends_with("\"line\":\"paid\"}"), "{written}");
    let events = server.at_rest("t").await;
    let started = events
        .iter()
        .any(|(_, event)| event["chunkType"] == "data-tool-started");
    assert!(started, "an effect is announced before it happens");
}
