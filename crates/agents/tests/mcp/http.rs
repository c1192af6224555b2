//! Streamable HTTP.

use crate::support::{Site, call, connected, context, failed, said, tool};
use loomline_agents::mcp::{McpClient, McpLifecycle, McpTransport};
use serde_json::json;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const BOTH: [McpLifecycle; 2] = [McpLifecycle::Auto, McpLifecycle::Initialize];

#[tokio::test]
async fn tools_are_listed_and_called() {
    for lifecycle in BOTH {
        let site = Site::start().await;
        let client = connected(site.server(lifecycle)).await;
        let sum = call(&client, "add", json!({"a": 1, "b": 2})).await;
        assert_eq!(sum.unwrap(), json!({"sum": 3.0}));
        assert_eq!(failed(&client, "fail", json!({})).await, "no such file");
        client.close().await;
    }
}

#[tokio::test]
async fn the_signal_stops_the_call_on_the_server() {
    for lifecycle in BOTH {
        let site = Site::start().await;
        let client = connected(site.server(lifecycle)).await;
        let signal = CancellationToken::new();
        let slow = tool(&client, "slow").run.run(json!({}), context(&signal));
        let stop = async {
            said(&client, "pid").await;
            signal.cancel();
        };
        let (failure, ()) = tokio::join!(slow, stop);
        assert!(failure.unwrap_err().message.contains("cancelled"));
        let told = said(&client, "await_cancellation").await;
        assert_eq!(told, "the call was cancelled");
    }
}

#[tokio::test]
async fn a_change_of_the_tools_is_noticed() {
    for lifecycle in BOTH {
        let site = Site::start().await;
        let client = connected(site.server(lifecycle)).await;
        let mut changes = client.changes();
        let growing = async {
            loop {
                said(&client, "grow").await;
            }
        };
        tokio::select! {
            noticed = changes.changed() => noticed.unwrap(),
            () = growing => {}
        }
        assert!(client.refresh().await.unwrap());
    }
}

#[tokio::test]
async fn a_server_that_comes_back_without_the_session_is_used_again() {
    for lifecycle in BOTH {
        let site = Site::start().await;
        let mut server = site.server(lifecycle);
        server.limits.first_backoff = Duration::ZERO;
        let client = connected(server).await;
        let killing = async {
            said(&client, "pid").await;
            site.kill().await
        };
        let (lost, address) = tokio::join!(failed(&client, "steps", json!({})), killing);
        assert!(lost.contains("its outcome is unknown"), "{lost}");
        let away = failed(&client, "pid", json!({})).await;
        assert!(away.contains("was not run"), "{away}");
        assert!(away.contains("'site'"), "{away}");
        let _site = Site::at(address).await;
        assert!(!said(&client, "pid").await.is_empty());
    }
}

#[tokio::test]
async fn secrets_go_to_the_server_and_nowhere_else() {
    let site = Site::start().await;
    let mut server = site.server(McpLifecycle::Auto);
    if let McpTransport::Http(http) = &mut server.transport {
        http.bearer = Some("hidden-token".into());
        http.headers.insert("X-Key".to_owned(), "hidden-key".into());
        http.url.push_str("?key=hidden-query");
    }
    let shown = format!("{server:?}");
    let client = connected(server.clone()).await;
    said(&client, "pid").await;
    let heard = site.heard.lock().unwrap().clone();
    assert!(!heard.is_empty());
    for line in heard {
        assert_eq!(line, "Bearer hidden-token hidden-key");
    }
    if let McpTransport::Http(http) = &mut server.transport {
        http.headers.insert("x-key".to_owned(), "wrong".into());
        http.headers.remove("X-Key");
    }
    let refused = McpClient::connect(server.clone(), CancellationToken::new()).await;
    let refused = refused.unwrap_err().to_string();
    site.kill().await;
    let away = McpClient::connect(server, CancellationToken::new()).await;
    let away = away.unwrap_err().to_string();
    assert!(away.ends_with("it can't be reached"), "{away}");
    for text in [shown, refused, away, format!("{client:?}")] {
        assert!(!text.contains("hidden"), "{text}");
    }
}

#[tokio::test]
async fn an_address_or_header_that_makes_no_sense_is_said_so() {
    let site = Site::start().await;
    for (url, header, what) in [
        ("nonsense", "x-a", "the URL is none"),
        (
            "ftp://a/",
            "x-a",
            "the URL begins neither with http: nor with https:",
        ),
        ("http://a/", "x a", "\"x a\" is no name of a header"),
        (
            "http://a/",
            "Mcp-Session-Id",
            "the header \"Mcp-Session-Id\" is set by the client",
        ),
        (
            "http://a/",
            "Accept",
            "the header \"Accept\" is set by the client",
        ),
    ] {
        let mut server = site.server(McpLifecycle::Auto);
        if let McpTransport::Http(http) = &mut server.transport {
            http.url = url.to_owned();
            http.headers.insert(header.to_owned(), "v".into());
        }
        let error = McpClient::connect(server, CancellationToken::new()).await;
        let expected = format!("the configuration of the MCP server 'site' is wrong: {what}");
        assert_eq!(error.unwrap_err().to_string(), expected);
    }
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_lost_and_the_server_stays_usable() {
    for lifecycle in BOTH {
        let site = Site::start().await;
        let mut server = site.server(lifecycle);
        server.limits.max_message_bytes = 100_000;
        let client = connected(server).await;
        let failure = failed(&client, "big", json!({"bytes": 200_000})).await;
        assert!(failure.contains("its outcome is unknown"), "{failure}");
        assert!(!said(&client, "pid").await.is_empty());
    }
}
