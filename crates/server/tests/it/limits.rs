//! The budgets of tenants and of the process.

use crate::harness::{Answer, Served, Server, TEAM};
use axum::body::Body;
use http::header;
use loomline_server::auth::hash_text;
use loomline_server::{App, Config, OpenMode};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::task::JoinSet;

/// The tenant `a` with the keys `llk_a` and `llk_a2` and these limits, and the tenant `b` with `llk_b`.
fn tenants(limits: &str) -> String {
    let [a, a2, b] = ["llk_a", "llk_a2", "llk_b"].map(hash_text);
    format!(
        "[tenants.a]\nkey_hashes = [\"{a}\", \"{a2}\"]\n[tenants.a.limits]\n{limits}\n\
         [tenants.b]\nkey_hashes = [\"{b}\"]\n"
    )
}

/// A server, spoken to with the keys `llk_a`, `llk_a2` and `llk_b`.
async fn with_limits(limits: &str) -> [Server; 3] {
    let server = Server::new(&tenants(limits)).await;
    ["llk_a", "llk_a2", "llk_b"].map(|key| server.with_key(key))
}

/// The status, the code and the limit of a refusal.
fn refusal(answer: &Answer) -> (u16, String, String) {
    let (status, code, _) = answer.error();
    assert!(answer.retry_after() >= 1);
    let limit = answer.json()["error"]["details"]["limit"].clone();
    (status, code, limit.as_str().unwrap().to_owned())
}

fn concurrency(limit: &str) -> (u16, String, String) {
    (429, "limit_reached".to_owned(), limit.to_owned())
}

fn storage(limit: &str) -> (u16, String, String) {
    (507, "storage_limit_reached".to_owned(), limit.to_owned())
}

/// The value of a figure with a tenant and a limit.
async fn figure(server: &Server, name: &str, limit: &str) -> Option<u64> {
    let figures = server.get("/metrics").await.text;
    let line = format!("loomline_{name}{{tenant=\"a\",limit=\"{limit}\"}} ");
    let value = figures.lines().find_map(|it| it.strip_prefix(&line));
    value.map(|it| it.parse().unwrap())
}

/// Waits until a figure has this value.
async fn becomes(server: &Server, name: &str, limit: &str, value: u64) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    while figure(server, name, limit).await != Some(value) {
        assert!(tokio::time::Instant::now() < deadline, "{name} {limit}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Asks a server on a socket, without a key.
async fn get(url: String) -> reqwest::Result<reqwest::Response> {
    let client = upp::http_client_builder("test").unwrap().build().unwrap();
    client.get(url).send().await
}

fn follow(server: &Server, thread: &str) -> http::Request<Body> {
    let path = format!("/api/v1/threads/{thread}/events");
    server.request("GET", &path).body(Body::empty()).unwrap()
}

fn respond(input: &str, store: bool) -> Value {
    json!({ "model": "demo", "input": input, "store": store })
}

#[tokio::test]
async fn all_keys_of_a_tenant_share_one_rate() {
    let [one, other, theirs] = with_limits("requests_per_minute = 3").await;
    // Wrong keys are nobody's.
    for _ in 0..20 {
        let unknown = one.with_key("llk_wrong").get("/api/v1/threads").await;
        assert_eq!(unknown.status, 401);
    }
    for server in [&one, &other, &one] {
        assert_eq!(server.get("/api/v1/threads").await.status, 200);
    }
    for server in [&one, &other] {
        let refused = server.get("/api/v1/threads").await;
        assert_eq!(refusal(&refused), concurrency("tenant.requests_per_minute"));
        assert_eq!(refused.json()["error"]["details"]["max"], 3);
        assert!((1..=21).contains(&refused.retry_after()));
    }
    assert_eq!(theirs.get("/api/v1/threads").await.status, 200);
    assert_eq!(one.get("/healthz").await.status, 200);
    let refusals = theirs.get("/metrics").await.text;
    let line = "loomline_limit_refusals_total{tenant=\"a\",limit=\"tenant.requests_per_minute\"} 2";
    assert!(refusals.contains(line), "{refusals}");
}

#[tokio::test]
async fn development_mode_has_a_rate_only_if_it_is_configured() {
    let limited = Server::new("[limits.tenant]\nrequests_per_minute = 1").await;
    assert_eq!(limited.get("/api/v1/threads").await.status, 200);
    let refused = limited.get("/api/v1/threads").await;
    assert_eq!(refusal(&refused), concurrency("tenant.requests_per_minute"));
    let config = Config::parse("", &|_| None).unwrap();
    assert_eq!(config.limits.tenant.rate(config.is_development()), None);
}

#[tokio::test]
async fn streams_are_limited_by_key_and_by_tenant() {
    let [one, other, theirs] = with_limits("streams = 3\nstreams_per_key = 2").await;
    one.say("t", "hello").await;
    theirs.say("t", "hello").await;
    let mut open = Vec::new();
    for server in [&one, &one, &other] {
        let (status, stream) = server.open(follow(server, "t")).await;
        assert_eq!(status, 200);
        open.push(stream);
    }
    let refused = one.send(follow(&one, "t")).await;
    assert_eq!(refusal(&refused), concurrency("tenant.streams_per_key"));
    let refused = other.send(follow(&other, "t")).await;
    assert_eq!(refusal(&refused), concurrency("tenant.streams"));
    assert_eq!(
        figure(&one, "tenant_usage", "tenant.streams").await,
        Some(3)
    );
    assert_eq!(
        figure(&one, "tenant_limit", "tenant.streams").await,
        Some(3)
    );
    let (status, _theirs) = theirs.open(follow(&theirs, "t")).await;
    assert_eq!(status, 200);
    open.clear();
    assert_eq!(
        figure(&one, "tenant_usage", "tenant.streams").await,
        Some(0)
    );
    assert_eq!(one.open(follow(&one, "t")).await.0, 200);
}

#[tokio::test]
async fn one_tenant_can_not_take_the_streams_of_another() {
    let config = format!("[limits]\nstreams = 8\n{}", tenants(""));
    let server = Server::new(&config).await;
    let [one, theirs] = ["llk_a", "llk_b"].map(|key| server.with_key(key));
    one.say("t", "hello").await;
    theirs.say("t", "hello").await;
    let mut open = Vec::new();
    let refused = loop {
        let answer = one.open(follow(&one, "t")).await;
        if answer.0 != 200 {
            break one.send(follow(&one, "t")).await;
        }
        open.push(answer.1);
    };
    assert_eq!((open.len(), refusal(&refused)), (6, concurrency("streams")));
    for _ in 0..2 {
        let (status, stream) = theirs.open(follow(&theirs, "t")).await;
        assert_eq!(status, 200);
        open.push(stream);
    }
}

#[tokio::test]
async fn requests_in_flight_are_limited_and_others_are_answered() {
    let [one, other, theirs] = with_limits("requests_in_flight = 2").await;
    let mut waiting = JoinSet::new();
    for _ in 0..2 {
        let server = one.with_key("llk_a");
        waiting.spawn(async move {
            let answer = server.post("/v1/responses", respond("slow 20ms say 100 words", true));
            answer.await.status
        });
    }
    becomes(&theirs, "tenant_usage", "tenant.requests_in_flight", 2).await;
    let refused = other.get("/api/v1/threads").await;
    assert_eq!(refusal(&refused), concurrency("tenant.requests_in_flight"));
    assert_eq!(theirs.get("/api/v1/threads").await.status, 200);
    for path in ["/healthz", "/readyz"] {
        assert_eq!(one.get(path).await.status, 200);
    }
    assert_eq!(waiting.join_all().await, [200, 200]);
    assert_eq!(other.get("/api/v1/threads").await.status, 200);
}

#[tokio::test]
async fn threads_beyond_the_limit_are_refused_on_every_way_in() {
    let [one, _, theirs] = with_limits("threads = 2").await;
    one.say("t", "hello").await;
    one.say("u", "hello").await;
    let full = storage("tenant.threads");
    for (path, body) in [
        (
            "/api/v1/threads/new/messages",
            json!({ "content": "hello" }),
        ),
        ("/api/v1/threads", json!({ "key": "new" })),
        ("/api/v1/threads/t/fork", json!({ "key": "new" })),
        ("/threads", json!({})),
        ("/v1/responses", respond("hello", true)),
    ] {
        let refused = one.post(path, body).await;
        assert_eq!(refused.status, 507, "{path} {}", refused.text);
        assert!(refused.retry_after() >= 1, "{path}");
        if path.starts_with("/api/v1") {
            assert_eq!(refusal(&refused), full, "{path}");
        }
    }
    // Threads that are there go on.
    one.say("t", "more").await;
    assert_eq!(theirs.post("/api/v1/threads", json!({})).await.status, 201);
    assert_eq!(one.delete("/api/v1/threads/u").await.status, 204);
    one.say("new", "hello").await;
    assert_eq!(
        figure(&one, "tenant_usage", "tenant.threads").await,
        Some(2)
    );
}

#[tokio::test]
async fn a_run_that_uses_up_the_stored_bytes_fails_with_its_reason() {
    let [one, _, theirs] = with_limits("stored_bytes = 20000").await;
    one.say("t", "say 5000 words").await;
    let run = one.get("/api/v1/threads/t/runs").await.json()["runs"][0].clone();
    assert_eq!(run["status"], "failed", "{run}");
    assert_eq!(run["interruption"]["reason"], "quota_exceeded", "{run}");
    let detail = run["interruption"]["detail"].as_str().unwrap();
    assert!(detail.contains("tenant.stored_bytes"), "{detail}");
    let used = figure(&one, "tenant_usage", "tenant.stored_bytes")
        .await
        .unwrap();
    assert!((10_000..=40_000).contains(&used), "{used}");

    let long = "x".repeat(30_000);
    let message = json!({ "content": long });
    let full = storage("tenant.stored_bytes");
    for thread in ["t", "new"] {
        let path = format!("/api/v1/threads/{thread}/messages");
        let refused = one.post(&path, message.clone()).await;
        assert_eq!(refusal(&refused), full, "{thread}");
    }
    theirs.say("t", "say 5000 words").await;
    assert_eq!(one.delete("/api/v1/threads/t").await.status, 204);
    assert_eq!(
        figure(&one, "tenant_usage", "tenant.stored_bytes").await,
        Some(0)
    );
    one.say("t", "hello").await;
}

#[tokio::test]
async fn an_import_beyond_the_stored_bytes_is_refused() {
    let [one, _, theirs] = with_limits("stored_bytes = 100").await;
    theirs.say("t", "hello").await;
    let document = theirs.get("/api/v1/threads/t/document").await.json();
    let import = "/api/v1/import?from=threadprotocol&key=u";
    let refused = one.post(import, document.clone()).await;
    assert_eq!(refusal(&refused), storage("tenant.stored_bytes"));
    assert_eq!(one.get("/api/v1/threads/u").await.status, 404);
    let taken = theirs.post(import, document).await;
    assert_eq!(taken.status, 201, "{}", taken.text);
}

#[tokio::test]
async fn a_sub_agent_beyond_the_limit_of_threads_ends_its_call() {
    let config = format!("{TEAM}\n[limits.tenant]\nthreads = 1\n");
    let server = Server::new(&config).await;
    let call = "call find {\"query\": \"say found\"}";
    let answer = server.say("t", call).await;
    assert!(answer.text.contains("tenant.threads"), "{}", answer.text);
    let run = server.get("/api/v1/threads/t/runs").await.json()["runs"][0].clone();
    assert!(
        run["finishedAt"].is_string() || run["status"] != "executing",
        "{run}"
    );
}

/// Uploads a file, and answers with its id.
async fn upload(server: &Server, content: &str) -> Answer {
    let body = format!(
        "--x\r\ncontent-disposition: form-data; name=\"purpose\"\r\n\r\nassistants\r\n--x\r\n\
         content-disposition: form-data; name=\"file\"; filename=\"notes.txt\"\r\n\r\n{content}\r\n--x--\r\n"
    );
    let request = server
        .request("POST", "/v1/files")
        .header(header::CONTENT_TYPE, "multipart/form-data; boundary=x");
    server.send(request.body(Body::from(body)).unwrap()).await
}

#[tokio::test]
async fn files_beyond_the_limit_are_refused() {
    let [one, _, theirs] = with_limits("files = 1\nstored_bytes = 100000").await;
    let long = upload(&one, &"x".repeat(200_000)).await;
    assert_eq!(long.status, 507, "{}", long.text);
    let first = upload(&one, "one").await;
    assert_eq!(first.status, 200, "{}", first.text);
    let refused = upload(&one, "two").await;
    assert_eq!(refused.status, 507, "{}", refused.text);
    assert!(refused.retry_after() >= 1);
    assert_eq!(upload(&theirs, "two").await.status, 200);
    let id = first.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(one.delete(&format!("/v1/files/{id}")).await.status, 200);
    assert_eq!(upload(&one, "two").await.status, 200);
    assert_eq!(figure(&one, "tenant_usage", "tenant.files").await, Some(1));
    let refusals = figure(&one, "limit_refusals_total", "tenant.files").await;
    assert_eq!(refusals, Some(1));
}

#[tokio::test]
async fn ephemeral_threads_are_limited_and_go_with_their_runs() {
    let [one, _, theirs] = with_limits("ephemeral_threads = 2").await;
    let request = || {
        let body = respond("slow 20ms say 60 words", false);
        let stream = json!({ "stream": true });
        let mut body = body.as_object().unwrap().clone();
        body.extend(stream.as_object().unwrap().clone());
        let request = one
            .request("POST", "/v1/responses")
            .header(header::CONTENT_TYPE, "application/json");
        request
            .body(Body::from(Value::from(body).to_string()))
            .unwrap()
    };
    let mut open = Vec::new();
    for _ in 0..2 {
        let (status, stream) = one.open(request()).await;
        assert_eq!(status, 200);
        open.push(stream);
    }
    let refused = one.send(request()).await;
    assert_eq!(refused.status, 429, "{}", refused.text);
    let run = json!({ "assistant_id": "demo", "input": { "messages": [{ "role": "user", "content": "hello" }] } });
    let refused = one.post("/runs/wait", run.clone()).await;
    assert_eq!(refused.status, 429, "{}", refused.text);
    assert_eq!(theirs.post("/runs/wait", run.clone()).await.status, 200);
    // The clients leave before their runs end.
    open.clear();
    becomes(&one, "tenant_usage", "tenant.ephemeral_threads", 0).await;
    assert_eq!(
        figure(&one, "tenant_usage", "tenant.ephemeral_bytes").await,
        Some(0)
    );
    assert_eq!(one.post("/runs/wait", run).await.status, 200);
}

#[tokio::test]
async fn ephemeral_threads_have_a_limit_of_bytes() {
    let [one, _, theirs] = with_limits("ephemeral_bytes = 20000").await;
    let long = "x".repeat(30_000);
    let refused = one.post("/v1/responses", respond(&long, false)).await;
    assert_eq!(refused.status, 429, "{}", refused.text);
    let answer = theirs.post("/v1/responses", respond(&long, false)).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let failed = one
        .post("/v1/responses", respond("say 5000 words", false))
        .await;
    assert_eq!(failed.json()["status"], "failed", "{}", failed.text);
    becomes(&one, "tenant_usage", "tenant.ephemeral_bytes", 0).await;
    let answer = one.post("/v1/responses", respond("hello", false)).await;
    assert_eq!(answer.json()["status"], "completed", "{}", answer.text);
}

#[tokio::test]
async fn figures_need_the_scope_operator() {
    let [client, operator] = ["llk_client", "llk_operator"].map(hash_text);
    let config = format!(
        "[tenants.a.keys.client]\nhash = \"{client}\"\nscopes = [\"read\", \"write\", \"delete\"]\n\
         [tenants.a.keys.operator]\nhash = \"{operator}\"\nscopes = [\"operator\"]\n"
    );
    let server = Server::new(&config).await;
    let refused = server.with_key("llk_client").get("/metrics").await;
    assert_eq!(refused.error(), (403, "missing_scope".into(), None));
    assert_eq!(refused.json()["error"]["details"]["scope"], "operator");
    let operator = server.with_key("llk_operator");
    assert_eq!(operator.get("/metrics").await.status, 200);
    assert_eq!(
        operator.get("/api/v1/threads").await.error().1,
        "missing_scope"
    );
}

#[tokio::test]
async fn the_second_listener_serves_figures_and_health_without_a_key() {
    let port = {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        socket.local_addr().unwrap().port()
    };
    let config = format!(
        "[server]\nmetrics_listen = \"127.0.0.1:{port}\"\n{}",
        tenants("")
    );
    let directory = tempfile::tempdir().unwrap();
    let config = Config::parse(&config, &|_| None).unwrap();
    let app = App::open(config, directory.path(), OpenMode::ReadWrite)
        .await
        .unwrap();
    let served = Served::new(app).await;
    let url = |path: &str| format!("http://127.0.0.1:{port}{path}");
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    let figures = loop {
        match get(url("/metrics")).await {
            Ok(answer) => break answer,
            Err(error) => assert!(tokio::time::Instant::now() < deadline, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(figures.status(), 200);
    let figures = figures.text().await.unwrap();
    assert!(
        figures.contains("loomline_tenant_limit{tenant=\"a\",limit=\"tenant.threads\"} 1000000")
    );
    for (path, status) in [
        ("/healthz", 200),
        ("/readyz", 200),
        ("/api/v1/threads", 404),
        ("/openapi.json", 404),
    ] {
        let answer = get(url(path)).await.unwrap();
        assert_eq!(answer.status(), status, "{path}");
    }
    let answer = get(served.url("/metrics")).await.unwrap();
    assert_eq!(answer.status(), 401);
    served.stop().await;
    assert!(get(url("/healthz")).await.is_err());
}

#[tokio::test]
async fn reloaded_limits_apply_and_what_is_spent_stays_spent() {
    let [one, other, _] = with_limits("requests_per_minute = 2\nthreads = 1").await;
    one.say("t", "hello").await;
    let reload = |limits: &str| {
        let config = Config::parse(&tenants(limits), &|_| None).unwrap();
        one.app.replace_tenants(&config.tenants).unwrap();
    };
    reload("requests_per_minute = 2\nthreads = 2");
    assert_eq!(other.post("/api/v1/threads", json!({})).await.status, 201);
    let refused = other.get("/api/v1/threads").await;
    assert_eq!(refusal(&refused), concurrency("tenant.requests_per_minute"));
    reload("requests_per_minute = 100\nthreads = 2");
    let refused = other.post("/api/v1/threads", json!({})).await;
    assert_eq!(refusal(&refused), storage("tenant.threads"));
    assert_eq!(
        figure(&one, "tenant_limit", "tenant.threads").await,
        Some(2)
    );
}

#[tokio::test]
async fn a_plain_client_stays_within_the_default_limits() {
    let [one, _, _] = with_limits("").await;
    for n in 0..50 {
        one.say(&format!("t{}", n % 5), "hello").await;
        assert_eq!(one.get("/api/v1/threads").await.status, 200);
        let answer = one
            .post("/v1/responses", respond("hello", n % 2 == 0))
            .await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    let figures = one.get("/metrics").await.text;
    assert!(
        !figures.contains("loomline_limit_refusals_total{"),
        "{figures}"
    );
}
