//! Agent cards.

use super::CONFIG;
use crate::harness::{Server, two_tenants};
use http::header;
use serde_json::json;

const CARD: &str = "/.well-known/agent-card.json";

#[tokio::test]
async fn a_card_says_where_its_agent_is_spoken_to() {
    let server = Server::new(CONFIG).await;
    let card = server.get(CARD).await.json();
    assert_eq!(card["name"], "demo");
    assert_eq!(
        card["supportedInterfaces"],
        json!([
            {"url": "http://localhost/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": "http://localhost/a2a/v1", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
        ])
    );
    assert!(card.get("securitySchemes").is_none());
    let card = server.get(&format!("/a2a/clerk{CARD}")).await.json();
    let url = &card["supportedInterfaces"][0]["url"];
    assert_eq!(
        (&card["name"], url),
        (&json!("clerk"), &json!("http://localhost/a2a/clerk"))
    );
    let none = server.get(&format!("/a2a/nobody{CARD}")).await;
    assert_eq!(none.status, 404);
    assert_eq!(none.json()["error"]["status"], "NOT_FOUND");
}

#[tokio::test]
async fn a_card_is_open_and_tells_strangers_nothing_of_tools_or_tenants() {
    let server = Server::new(&format!("{CONFIG}{}", two_tenants())).await;
    let answer = server.get(&format!("/a2a/clerk{CARD}")).await;
    let card = answer.json();
    assert_eq!(
        card["securityRequirements"],
        json!([{"schemes": {"key": {"list": []}}}])
    );
    assert!(!answer.text.contains("compute") && !answer.text.contains("scripted"));
    let extended = "/a2a/clerk/v1/extendedAgentCard";
    assert_eq!(server.a2a("GET", extended, None).await.status, 401);
    let known = server.with_key("llk_a");
    let extended = known.a2a("GET", extended, None).await.json();
    assert_eq!(extended["skills"][1]["id"], "tool:compute");
    let called = known
        .rpc("/a2a/clerk", "GetExtendedAgentCard", json!({}))
        .await;
    assert_eq!(called["result"], extended);
}

#[tokio::test]
async fn a_card_says_the_public_url_whatever_host_was_asked() {
    let config = "[server]\npublic_url = \"https://agents.example/looms/\"";
    let server = Server::new(config).await;
    let card = server.get(CARD).await.json();
    let url = &card["supportedInterfaces"][1]["url"];
    assert_eq!(url, "https://agents.example/looms/a2a/v1");
}

#[tokio::test]
async fn a_card_is_sent_again_only_to_who_has_another() {
    let server = Server::new(CONFIG).await;
    let first = server.get(CARD).await;
    let tag = first.headers["etag"].to_str().unwrap().to_owned();
    let kept = first.headers["cache-control"].to_str().unwrap().to_owned();
    assert!(kept.contains("max-age="), "{kept}");
    let having = |path: String, tags: String| {
        let request = server
            .request("GET", &path)
            .header(header::IF_NONE_MATCH, tags);
        server.send(request.body(axum::body::Body::empty()).unwrap())
    };
    for tags in [
        tag.clone(),
        format!("W/{tag}"),
        format!("\"other\", {tag}"),
        "*".to_owned(),
    ] {
        let answer = having(CARD.to_owned(), tags.clone()).await;
        assert_eq!(
            (answer.status.as_u16(), answer.text.as_str()),
            (304, ""),
            "{tags}"
        );
        assert_eq!(answer.headers["etag"], tag.as_str());
        assert_eq!(answer.headers["cache-control"], kept.as_str());
    }
    for (path, tags) in [
        (CARD.to_owned(), "\"other\""),
        (CARD.to_owned(), tag.trim_matches('"')),
        (format!("/a2a/clerk{CARD}"), tag.as_str()),
    ] {
        let answer = having(path, tags.to_owned()).await;
        assert_eq!(answer.status, 200, "{tags}");
        assert!(answer.json()["name"].is_string());
    }
}

#[tokio::test]
async fn a_host_that_is_none_is_not_repeated() {
    let server = Server::new(&format!("{CONFIG}{}", two_tenants())).await;
    let request = http::Request::get(CARD).header(header::HOST, "a b<c>");
    let answer = server
        .send(request.body(axum::body::Body::empty()).unwrap())
        .await;
    assert_eq!(answer.error(), (400, "invalid_header".into(), None));
}

#[tokio::test]
async fn a_card_says_since_when_it_is_so() {
    let server = Server::new(CONFIG).await;
    let first = server.get(CARD).await;
    let since = first.headers["last-modified"].to_str().unwrap().to_owned();
    let having = |since: &str| {
        let request = server.request("GET", CARD);
        let request = request.header(header::IF_MODIFIED_SINCE, since);
        server.send(request.body(axum::body::Body::empty()).unwrap())
    };
    for (known, status) in [
        (since.as_str(), 304),
        ("Fri, 01 Jan 2100 00:00:00 GMT", 304),
        ("Wed, 01 Jan 2020 00:00:00 GMT", 200),
        ("yesterday", 200),
    ] {
        let answer = having(known).await;
        assert_eq!(answer.status, status, "{known}");
        assert_eq!(answer.headers["last-modified"], since.as_str());
    }
    // A tag says more than a time.
    let request = server
        .request("GET", CARD)
        .header(header::IF_MODIFIED_SINCE, &since)
        .header(header::IF_NONE_MATCH, "\"other\"");
    let answer = server.send(request.body(axum::body::Body::empty()).unwrap());
    assert_eq!(answer.await.status, 200);
}
