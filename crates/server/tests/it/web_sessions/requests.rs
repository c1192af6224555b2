//! Which requests a session's cookie counts for.

use super::{Browser, config, form_body, location};
use crate::harness::Server;
use crate::tenants::all_guarded_routes;
use axum::body::Body;
use http::header;

#[tokio::test]
async fn a_cookie_opens_no_route_of_a_protocol() {
    let server = Server::new(&config("")).await;
    let browser = Browser::with(&server, "llk_all").await;
    let routes = all_guarded_routes();
    assert!(routes.len() > 100, "{}", routes.len());
    for (method, path) in routes {
        let path = path.replace(['{', '}'], "");
        let request = browser.request(&method, &path);
        let request = request.header(header::CONTENT_TYPE, "application/json");
        let answer = server.send(request.body(Body::from("{}")).unwrap()).await;
        assert_eq!(answer.status, 401, "{method} {path}: {}", answer.text);
    }
}

#[tokio::test]
async fn a_key_in_a_header_counts_before_the_cookie() {
    let server = Server::new(&config("scopes = [\"read\"]")).await;
    let browser = Browser::with(&server, "llk_all").await;
    let request = |key: &str| {
        let request = browser.request("GET", "/chat");
        let request = request.header(header::AUTHORIZATION, format!("Bearer {key}"));
        request.body(Body::empty()).unwrap()
    };
    let page = server.send(request("llk_some")).await;
    assert!(page.text.contains("This key may only read."));
    assert!(!page.text.contains("action=\"/logout\""));
    assert_eq!(server.send(request("llk_wrong")).await.status, 401);
}

#[tokio::test]
async fn a_request_without_a_session_is_told_in_its_own_form() {
    let server = Server::new(&config("")).await;
    let browser = Browser::new(&server);
    let page = browser.get("/chat/a%2Fb?at=3").await;
    assert_eq!(location(&page), "/login?to=%2Fchat%2Fa%252Fb%3Fat%3D3");
    let sent = browser.post("/ui/send", "text=hello").await;
    assert_eq!(sent.status, 401);
    assert!(sent.text.contains("not_logged_in") && sent.text.contains("<h1>"));
    let of = |accept: &str, path: &str| {
        let request = server.request("GET", path).header(header::ACCEPT, accept);
        request.body(Body::empty()).unwrap()
    };
    let script = server.send(of("application/json", "/chat")).await;
    assert_eq!(script.error(), (401, "not_logged_in".into(), None));
    let fragment = server.send(of("*/*", "/ui/older?thread=t&before=1")).await;
    assert_eq!(fragment.status, 401);
    let stream = of("text/event-stream", "/ui/live?thread=t&after=1");
    let stream = server.send(stream).await;
    assert_eq!(stream.headers[header::CONTENT_TYPE], "text/event-stream");
    assert!(stream.text.starts_with("event: refused\n"));
}

#[tokio::test]
async fn a_link_of_another_site_leads_to_the_page() {
    let server = Server::new(&config("")).await;
    let browser = Browser::new(&server);
    let request = browser.request("GET", "/chat/t");
    let request = request.header("sec-fetch-site", "cross-site");
    let page = server.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(page.status, 200);
    assert!(
        page.text
            .contains("content=\"0; url=/login?to=%2Fchat%2Ft\"")
    );
}

#[tokio::test]
async fn a_form_of_another_origin_is_refused() {
    let text = format!("[server]\ncors_origins = [\"*\"]\n{}", config(""));
    let server = Server::new(&text).await;
    let browser = Browser::with(&server, "llk_all").await;
    let send = |path: &str, headers: &[(&str, &str)]| {
        let mut request = browser.request("POST", path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        form_body(request, "thread=t&text=hello&key=llk_all")
    };
    for foreign in [
        &[("sec-fetch-site", "cross-site")][..],
        &[("sec-fetch-site", "same-site")],
        &[("origin", "https://evil.example")],
        &[("origin", "http://localhost:3000")],
        &[("origin", "null")],
        &[
            ("sec-fetch-site", "cross-site"),
            ("origin", "http://localhost"),
        ],
    ] {
        for path in ["/ui/send", "/login", "/logout"] {
            let refused = server.send(send(path, foreign)).await;
            assert_eq!(refused.status, 403, "{path} {foreign:?}");
            assert!(refused.text.contains("foreign_origin"));
            assert!(!refused.headers.contains_key(header::SET_COOKIE));
        }
    }
    for own in [
        &[("sec-fetch-site", "same-origin")][..],
        &[("origin", "http://localhost")],
        &[],
    ] {
        let answer = server.send(send("/ui/send", own)).await;
        assert_eq!(answer.status, 303, "{own:?}: {}", answer.text);
    }
    assert_eq!(browser.get("/chat").await.status, 200);
}

#[tokio::test]
async fn a_log_in_returns_to_this_server_only() {
    let server = Server::new(&config("")).await;
    let mut browser = Browser::new(&server);
    for (to, expected) in [
        ("%2Fchat%2Ft%3Fat%3D3", "/chat/t?at=3"),
        ("%2F%2Fevil.example", "/"),
        ("https%3A%2F%2Fevil.example", "/"),
        ("%2F%5Cevil.example", "/"),
        ("%2F%09%2Fevil.example", "/"),
        ("%2Flogin%3Fto%3D%2Flogin", "/"),
        ("", "/"),
    ] {
        let form = format!("key=llk_all&to={to}");
        assert_eq!(location(&browser.post("/login", &form).await), expected);
    }
    browser.log_in("llk_all").await;
    let page = browser.get("/login?to=%2F%2Fevil.example").await;
    assert_eq!(location(&page), "/");
}
