//! Pages of other origins: what browsers ask before they send, for each protocol.

use crate::harness::{Server, two_tenants};
use axum::body::Body;
use http::header;

const ORIGIN: &str = "https://app.example";

async fn server() -> Server {
    let config = format!("[server]\ncors_origins = [\"{ORIGIN}\"]\n{}", two_tenants());
    Server::new(&config).await
}

async fn preflight(
    server: &Server,
    origin: &str,
    method: &str,
    path: &str,
    headers: &str,
) -> http::HeaderMap {
    let request = server
        .request("OPTIONS", path)
        .header(header::ORIGIN, origin)
        .header("access-control-request-method", method)
        .header("access-control-request-headers", headers);
    let answer = server.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(answer.status, 200, "{path}");
    answer.headers
}

/// What the clients of each protocol send from a browser.
const PREFLIGHTS: [(&str, &str, &str); 14] = [
    (
        "POST",
        "/api/v1/threads/t/messages",
        "authorization,content-type,idempotency-key",
    ),
    (
        "GET",
        "/api/v1/threads/t/events",
        "authorization,last-event-id,x-request-id",
    ),
    ("DELETE", "/api/v1/threads/t", "authorization"),
    ("POST", "/api/chat", "authorization,content-type,user-agent"),
    ("POST", "/ag-ui", "accept,authorization,content-type"),
    (
        "POST",
        "/ag-ui/agents/demo",
        "accept,authorization,content-type",
    ),
    (
        "POST",
        "/v1/responses",
        "authorization,content-type,idempotency-key,openai-beta,openai-organization,openai-project,x-stainless-arch,\
         x-stainless-lang,x-stainless-os,x-stainless-package-version,x-stainless-retry-count,x-stainless-runtime,\
         x-stainless-runtime-version,x-stainless-timeout",
    ),
    (
        "POST",
        "/v1/threads/runs",
        "authorization,content-type,openai-beta,x-stainless-helper-method",
    ),
    (
        "GET",
        "/v1/threads/t/messages",
        "authorization,openai-beta,x-stainless-lang",
    ),
    ("DELETE", "/v1/files/f", "authorization,x-stainless-lang"),
    (
        "POST",
        "/a2a",
        "a2a-extensions,a2a-version,authorization,content-type",
    ),
    (
        "GET",
        "/a2a/v1/tasks",
        "a2a-version,authorization,x-api-key",
    ),
    (
        "POST",
        "/mcp",
        "authorization,content-type,last-event-id,mcp-method,mcp-name,mcp-param-key,mcp-protocol-version,mcp-session-id",
    ),
    (
        "GET",
        "/mcp",
        "authorization,last-event-id,mcp-protocol-version,mcp-session-id",
    ),
];

#[tokio::test]
async fn what_the_clients_of_each_protocol_send_is_allowed_to_pages_of_listed_origins() {
    let server = server().await;
    for (method, path, headers) in PREFLIGHTS {
        let allowed = preflight(&server, ORIGIN, method, path, headers).await;
        assert_eq!(allowed["access-control-allow-origin"], ORIGIN, "{path}");
        let methods = allowed["access-control-allow-methods"].to_str().unwrap();
        assert!(
            methods.split(',').any(|it| it == method),
            "{path}: {methods}"
        );
        let listed = allowed["access-control-allow-headers"].to_str().unwrap();
        for header in headers.split(',') {
            assert!(
                listed.split(',').any(|it| it == header),
                "{path}: {header} in {listed}"
            );
        }
        // No cookies: a key is sent by who has it.
        assert!(!allowed.contains_key("access-control-allow-credentials"));
    }
}

#[tokio::test]
async fn pages_of_other_origins_are_allowed_nothing() {
    let server = server().await;
    for (method, path, headers) in PREFLIGHTS {
        for origin in ["https://evil.example", "https://app.example.evil", "null"] {
            let refused = preflight(&server, origin, method, path, headers).await;
            assert!(
                !refused.contains_key("access-control-allow-origin"),
                "{origin} {path}"
            );
        }
    }
}

#[tokio::test]
async fn pages_may_read_the_headers_that_clients_read_also_of_refusals() {
    let server = server().await;
    for (key, path) in [
        (Some("llk_a"), "/api/v1/threads"),
        (None, "/api/v1/threads"),
        (None, "/none"),
    ] {
        let client = Server {
            key,
            ..server.with_key("")
        };
        let request = client.request("GET", path).header(header::ORIGIN, ORIGIN);
        let answer = client.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(
            answer.headers["access-control-allow-origin"], ORIGIN,
            "{path}"
        );
        let exposed = answer.headers["access-control-expose-headers"]
            .to_str()
            .unwrap();
        for name in [
            "x-request-id",
            "mcp-session-id",
            "content-location",
            "location",
            "x-pagination-total",
            "x-pagination-next",
            "retry-after",
            "openai-processing-ms",
            "www-authenticate",
            "idempotent-replayed",
            "loomline-content-hash",
            "x-vercel-ai-ui-message-stream",
        ] {
            assert!(
                exposed.split(',').any(|it| it == name),
                "{path}: {name} in {exposed}"
            );
        }
        assert!(answer.headers.contains_key("x-request-id"));
    }
}

/// Pages of other ports of this machine.
const LOCAL: [&str; 3] = [
    "http://localhost:5173",
    "http://127.0.0.1:3000",
    "https://[::1]:8080",
];

#[tokio::test]
async fn loopback_pages_call_every_protocol_in_development_mode() {
    let server = Server::new("").await;
    for origin in LOCAL {
        for (method, path, headers) in PREFLIGHTS {
            let allowed = preflight(&server, origin, method, path, headers).await;
            assert_eq!(allowed["access-control-allow-origin"], origin, "{path}");
        }
        let body = r#"{"id":"c","messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"hi"}]}]}"#;
        let request = server
            .request("POST", "/api/chat")
            .header(header::ORIGIN, origin)
            .header(header::CONTENT_TYPE, "application/json");
        let answer = server.send(request.body(Body::from(body)).unwrap()).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert_eq!(answer.headers["access-control-allow-origin"], origin);
        let vary = answer.headers.get_all("vary").iter();
        let mut vary = vary.filter_map(|it| it.to_str().ok());
        assert!(vary.any(|it| it.contains("origin")));
    }
    let foreign = [
        "https://evil.example",
        "http://localhost.evil.example",
        "null",
    ];
    for origin in foreign {
        let refused = preflight(&server, origin, "POST", "/api/chat", "content-type").await;
        assert!(
            !refused.contains_key("access-control-allow-origin"),
            "{origin}"
        );
    }
}

#[tokio::test]
async fn loopback_pages_call_nothing_but_protocols() {
    let server = Server::new("").await;
    for path in ["/", "/healthz", "/metrics", "/ui/page.js", "/apis", "/none"] {
        let refused = preflight(&server, LOCAL[0], "GET", path, "x-page").await;
        assert!(
            !refused.contains_key("access-control-allow-origin"),
            "{path}"
        );
    }
}

#[tokio::test]
async fn loopback_pages_must_be_listed_where_keys_are_needed() {
    let server = server().await;
    for (method, path, headers) in PREFLIGHTS {
        let refused = preflight(&server, LOCAL[0], method, path, headers).await;
        assert!(
            !refused.contains_key("access-control-allow-origin"),
            "{path}"
        );
    }
}
