//! Attempts to log in, and servers without a log-in or without pages.

use super::{Browser, config, location};
use crate::harness::{Served, Server};
use http::header;

#[tokio::test]
async fn all_wrong_keys_get_the_same_answer() {
    let expired = config("expires = 2020-01-01T00:00:00Z");
    let server = Server::new(&expired).await;
    let mut browser = Browser::new(&server);
    let mut pages = Vec::new();
    for key in ["", "llk_wrong", "a.b.c", "llk_some", "%FF%FE"] {
        let page = browser.log_in(key).await;
        assert_eq!(page.status, 401);
        assert!(!page.headers.contains_key(header::SET_COOKIE));
        pages.push(page.text);
    }
    assert!(pages[0].contains("The key or token is not valid."));
    assert!(pages.iter().all(|page| *page == pages[0]));
    let long = browser.log_in(&"x".repeat(40_000)).await;
    assert_eq!(long.status, 413);
}

#[tokio::test]
async fn attempts_to_log_in_are_limited_by_address() {
    let server = Server::new(&config("")).await;
    let mut browser = Browser::new(&server);
    for _ in 0..20 {
        assert_eq!(browser.log_in("llk_wrong").await.status, 401);
    }
    let refused = browser.log_in("llk_all").await;
    assert_eq!(refused.status, 429);
    assert!((1..=4).contains(&refused.retry_after()));
    assert!(refused.text.contains("too many attempts"));
}

/// The status of the 21st attempt of a client that claims another address each time.
async fn last_status(config: &str) -> u16 {
    let server = Server::new(config).await;
    let listening = Served::new(server.app.clone()).await;
    let client = crate::mcp::web();
    let mut status = 0;
    for n in 0..21 {
        let request = client
            .post(listening.url("/login"))
            .header("content-type", "application/x-www-form-urlencoded")
            .header("x-forwarded-for", format!("203.0.113.{n}"));
        let answer = request.body("key=llk_wrong").send().await.unwrap();
        status = answer.status().as_u16();
    }
    listening.stop().await;
    status
}

#[tokio::test]
async fn only_a_trusted_proxy_names_the_address_of_a_log_in() {
    assert_eq!(last_status(&config("")).await, 429);
    let proxy = "[limits]\ntrusted_proxies = [\"127.0.0.0/8\"]\n";
    assert_eq!(last_status(&format!("{proxy}{}", config(""))).await, 401);
}

#[tokio::test]
async fn a_page_without_https_says_so() {
    let server = Server::new(&config("")).await;
    let page = |host: &'static str, site: Option<&'static str>| {
        let request = http::Request::get("/login").header(header::HOST, host);
        let request = match site {
            Some(site) => request.header("sec-fetch-site", site),
            None => request,
        };
        request.body(axum::body::Body::empty()).unwrap()
    };
    let plain = server.send(page("agents.example", None)).await;
    assert!(plain.text.contains("came without HTTPS"));
    for (host, site) in [
        ("localhost:8787", None),
        ("127.0.0.1", None),
        ("agents.example", Some("none")),
    ] {
        let page = server.send(page(host, site)).await;
        assert!(!page.text.contains("HTTPS"), "{host}");
    }
}

#[tokio::test]
async fn development_mode_has_no_log_in() {
    let server = Server::new("").await;
    let mut browser = Browser::new(&server);
    let page = browser.get("/chat").await;
    assert_eq!(page.status, 200);
    assert!(!page.text.contains("/logout"));
    assert_eq!(location(&browser.get("/login?to=%2Fchat").await), "/chat");
    let answer = browser.log_in("anything").await;
    assert_eq!(location(&answer), "/");
    assert!(!answer.headers.contains_key(header::SET_COOKIE));
}

#[tokio::test]
async fn a_server_without_pages_has_none() {
    let server = Server::new(&format!("[web]\nenabled = false\n{}", config(""))).await;
    let browser = Browser::new(&server);
    for path in ["/chat", "/login", "/ui/live", "/assets/x/page.js"] {
        let answer = browser.get(path).await;
        assert_eq!(answer.error(), (404, "route_not_found".into(), None));
    }
    let index = browser.get("/").await.json();
    assert_eq!(index["name"], "loomline");
    assert!(index["links"].get("chat").is_none());
}

#[tokio::test]
async fn the_pages_have_the_name_and_the_starters_of_the_configuration() {
    let server = Server::new("[web]\nname = \"Looms\"\nstarters = [\"Weave\"]\n").await;
    let page = Browser::new(&server).get("/chat").await;
    assert!(page.text.contains("<title>New chat · Looms</title>"));
    assert!(page.text.contains("Weave") && !page.text.contains("Call a tool"));
}
