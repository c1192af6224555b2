//! Starting, health, figures, and who may call at all.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests look at the threads of the runtime itself"
)]

use crate::harness::{Served, Server, two_tenants};
use axum::body::Body;
use http::{Request, header};
use interop::archive::Format;
use interop::convert::SourceForm;
use loomline_server::{App, Config, OpenError, OpenMode, ServeError, Sockets, serve};
use serde_json::json;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn a_server_without_tenants_is_not_exposed() {
    let server = Server::new("").await;
    let listener = tokio::net::TcpListener::bind("0.0.0.0:0").await.unwrap();
    let refused = serve(server.app.clone(), listener, CancellationToken::new()).await;
    assert!(matches!(refused, Err(ServeError::Exposed { .. })));
    let anywhere = SocketAddr::from(([0, 0, 0, 0], 0));
    let refused = Sockets::bind(server.app.config(), anywhere);
    assert!(matches!(refused, Err(ServeError::Exposed { .. })));
}

#[tokio::test]
async fn a_server_with_tenants_answers_on_every_address_whoever_has_a_key() {
    let server = Server::new(&two_tenants()).await;
    let anywhere = SocketAddr::from(([0, 0, 0, 0], 0));
    let sockets = Sockets::bind(server.app.config(), anywhere).unwrap();
    let host = Served::on(server.app.clone(), sockets);
    assert!(host.addr.ip().is_unspecified());
    let here = SocketAddr::from(([127, 0, 0, 1], host.addr.port()));
    for (key, status) in [("", 401), ("authorization: Bearer llk_a\r\n", 200)] {
        let mut socket = tokio::net::TcpStream::connect(here).await.unwrap();
        let head = format!(
            "GET /api/v1/threads HTTP/1.1\r\nhost: example.org\r\n{key}connection: close\r\n\r\n"
        );
        socket.write_all(head.as_bytes()).await.unwrap();
        let mut text = String::new();
        socket.read_to_string(&mut text).await.unwrap();
        assert!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{text}");
    }
    host.stop().await;
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

/// The value of a figure, without which there is none.
fn figure(figures: &str, name: &str) -> f64 {
    let line = figures.lines().find_map(|line| line.strip_prefix(name));
    let line = line.unwrap_or_else(|| panic!("no {name} in {figures}"));
    line.trim().parse().unwrap()
}

#[tokio::test]
async fn runs_and_the_calls_of_models_and_tools_are_counted_and_timed() {
    let server = Server::new("").await;
    server.say("a", "compute 1+1").await;
    server.say("b", "fail rate_limited").await;
    let figures = server.get("/metrics").await.text;
    let of_model = "provider=\"scripted\",model=\"scripted-1\"";
    for (name, n) in [
        ("loomline_run_duration_seconds_count{agent=\"demo\",outcome=\"ok\"}".to_owned(), 1.0),
        ("loomline_run_duration_seconds_count{agent=\"demo\",outcome=\"rate_limited\"}".to_owned(), 1.0),
        (format!("loomline_model_call_duration_seconds_count{{{of_model},outcome=\"ok\"}}"), 2.0),
        (format!("loomline_model_call_duration_seconds_count{{{of_model},outcome=\"RATE_LIMITED\"}}"), 1.0),
        (format!("loomline_model_time_to_first_chunk_seconds_count{{{of_model}}}"), 2.0),
        ("loomline_tool_call_duration_seconds_count{tool=\"compute\",outcome=\"ok\"}".to_owned(), 1.0),
        ("loomline_http_request_duration_seconds_count{method=\"POST\",route=\"/api/v1/threads/{key}/messages\"}".to_owned(), 2.0),
    ] {
        assert!((figure(&figures, &name) - n).abs() < 0.5, "{name}: {figures}");
    }
    for name in [
        format!("loomline_model_tokens_total{{{of_model},type=\"input\"}}"),
        format!("loomline_model_tokens_total{{{of_model},type=\"output\"}}"),
        "loomline_store_commits_total".to_owned(),
        "loomline_store_requests_total".to_owned(),
        "loomline_store_file_bytes".to_owned(),
        "loomline_store_wal_bytes".to_owned(),
    ] {
        assert!(figure(&figures, &name) > 0.0, "{name}: {figures}");
    }
}

#[tokio::test]
async fn what_nobody_waited_for_is_counted_as_cancelled() {
    let server = Server::new("").await;
    server.begin("a", "slow 5ms say 2000 words").await;
    let figures = async || server.get("/metrics").await.text;
    while !figures().await.contains("first_chunk_seconds_count{") {
        tokio::task::yield_now().await;
    }
    server.post("/api/v1/threads/a/cancel", json!({})).await;
    server.at_rest("a").await;
    server.begin("b", "slow 5ms say 2000 words").await;
    let why = json!({"reason": "a reason of my own"});
    server.post("/api/v1/threads/b/cancel", why).await;
    server.at_rest("b").await;
    let figures = figures().await;
    for name in [
        "loomline_run_duration_seconds_count{agent=\"demo\",outcome=\"user_cancelled\"}",
        "loomline_run_duration_seconds_count{agent=\"demo\",outcome=\"other\"}",
    ] {
        assert!(
            (figure(&figures, name) - 1.0).abs() < 0.5,
            "{name}: {figures}"
        );
    }
    let calls = "loomline_model_call_duration_seconds_count{provider=\"scripted\",model=\"scripted-1\",outcome=\"cancelled\"}";
    assert!(figure(&figures, calls) > 0.5, "{figures}");
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
    assert_eq!(
        answer.headers["content-security-policy"],
        "default-src 'none'; frame-ancestors 'none'"
    );
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
    let expected = json!({ "name": "demo", "provider": "scripted", "model": "scripted-1",
        "tools": ["read_file", "compute"],
        "toolDetails": [
            { "name": "read_file", "description": "Reads a UTF-8 text file below the root directory.", "effect": "pure",
              "needsApproval": false, "external": false },
            { "name": "compute", "description": "Evaluates an arithmetic expression.", "effect": "pure",
              "needsApproval": false, "external": false },
        ],
        "subAgents": [], "handoffs": [], "isDefault": true });
    let listed = server.get("/api/v1/agents").await.json();
    let names = listed["agents"].as_array().unwrap().iter();
    let names: Vec<_> = names.map(|agent| agent["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["careful", "chooser", "demo", "lead", "researcher"]);
    assert_eq!(listed["agents"][2], expected);
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
        open(OpenMode::ReadWrite).await,
        Err(OpenError::Store { .. })
    ));
    let app = open(OpenMode::ReadOnly).await.unwrap();
    let tenant = loomline_server::DEV_TENANT.into();
    assert!(
        app.export(&tenant, "t", SourceForm::Of(Format::Thread))
            .await
            .unwrap()
            .text
            .contains("hello")
    );
    assert!(app.default_runtime().close(&tenant, "t").await.is_err());
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(
        App::open(Config::default(), empty.path(), OpenMode::ReadOnly).await,
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

#[tokio::test]
async fn the_root_names_the_server_and_links_to_its_protocols() {
    let server = Server::new("").await;
    let root = server.get("/").await;
    assert_eq!(root.status, 200, "{}", root.text);
    let root = root.json();
    assert_eq!(root["name"], "loomline");
    assert_eq!(root["version"], env!("CARGO_PKG_VERSION"));
    let links = root["links"].as_object().unwrap();
    assert!(links.len() > 5, "{root}");
    for (name, path) in links {
        let found = server.get(path.as_str().unwrap()).await;
        assert_ne!(found.status, 404, "{name}: {}", found.text);
    }
    let keyed = Server::new(&crate::harness::two_tenants()).await;
    assert_eq!(keyed.get("/").await.json(), root);
}
