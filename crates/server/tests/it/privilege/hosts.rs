//! DNS rebinding: which names a server without keys answers to.

use crate::harness::{Answer, Server, two_tenants};
use crate::tenants::all_guarded_routes;
use axum::body::Body;
use http::{Request, header};

/// Asks with these `Host` headers.
async fn ask(server: &Server, method: &str, uri: &str, hosts: &[&str]) -> Answer {
    let mut request = Request::builder().method(method).uri(uri);
    for host in hosts {
        request = request.header(header::HOST, *host);
    }
    server.send(request.body(Body::empty()).unwrap()).await
}

fn assert_foreign(answer: &Answer, what: &str) {
    assert_eq!(answer.status, 403, "{what}: {}", answer.text);
    assert!(
        !answer.text.contains("loomline_"),
        "{what}: {}",
        answer.text
    );
}

#[tokio::test]
async fn dns_rebinding_reaches_no_route() {
    let server = Server::new("").await;
    let mut routes = all_guarded_routes();
    for open in [
        "/",
        "/healthz",
        "/readyz",
        "/openapi.json",
        "/ok",
        "/.well-known/agent-card.json",
        "/nowhere",
        "/v1/nowhere",
        "/threads/nowhere/at/all",
    ] {
        routes.push(("GET".to_owned(), open.to_owned()));
    }
    routes.push(("PUT".to_owned(), "/healthz".to_owned()));
    assert!(routes.len() > 100, "{}", routes.len());
    for (method, path) in routes {
        let path = path.replace(['{', '}'], "");
        let what = format!("{method} {path}");
        assert_foreign(
            &ask(&server, &method, &path, &["rebound.evil.example"]).await,
            &what,
        );
    }
}

#[tokio::test]
async fn a_host_is_compared_as_a_whole() {
    let server = Server::new("").await;
    for host in ["localhost", "localhost:8787", "127.0.0.1:80", "[::1]:80"] {
        let answer = ask(&server, "GET", "/healthz", &[host]).await;
        assert_eq!(answer.status, 200, "{host}");
    }
    let hosts: [&[&str]; 10] = [
        &["127.0.0.1:80:evil.example"],
        &["localhost:80@evil.example"],
        &["localhost:evil"],
        &["[::1]evil.example"],
        &["[::1]:80.evil.example"],
        &["localhost."],
        &["127.0.0.1."],
        &["localhost", "evil.example"],
        &["localhost", "localhost"],
        &[],
    ];
    for path in ["/healthz", "/api/v1/threads"] {
        for hosts in hosts {
            let answer = ask(&server, "GET", path, hosts).await;
            assert_foreign(&answer, &format!("{path} {hosts:?}"));
        }
    }
    let target = "http://localhost/healthz";
    assert_eq!(ask(&server, "GET", target, &[]).await.status, 200);
    assert_foreign(
        &ask(&server, "GET", target, &["evil.example"]).await,
        target,
    );
    let target = "http://evil.example/healthz";
    assert_foreign(&ask(&server, "GET", target, &["localhost"]).await, target);
}

#[tokio::test]
async fn a_server_with_keys_answers_to_any_name() {
    let server = Server::new(&two_tenants()).await;
    let answer = ask(&server, "GET", "/healthz", &["agents.example"]).await;
    assert_eq!(answer.status, 200);
}
