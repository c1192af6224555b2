//! The list of tools.

use crate::support::{connected, said, stdio, tool};
use loomline_agents::mcp::{McpClient, McpError, McpLifecycle, all_tools};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use upp::Effect;

fn names(client: &McpClient) -> Vec<String> {
    client.tools().into_iter().map(|tool| tool.name).collect()
}

#[tokio::test]
async fn tools_keep_their_schema_description_and_title() {
    let client = connected(stdio("toys")).await;
    let echo = tool(&client, "echo");
    assert_eq!(echo.description, "Says it again.");
    let schema = json!({
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    });
    assert_eq!(*echo.parameters, schema);
    let metadata = json!({
        "server": "toys", "tool": "echo", "title": "Echo", "annotations": {"readOnlyHint": true},
    });
    assert_eq!(echo.metadata["mcp"], metadata);
    assert!(names(&client).len() > 3, "the second page was read");
}

#[tokio::test]
async fn a_tool_is_an_effect_unless_the_configuration_says_otherwise() {
    let client = connected(stdio("toys")).await;
    assert_eq!(tool(&client, "echo").effect, Effect::Effect);

    let mut server = stdio("toys");
    server.trust_annotations = true;
    server.effects.insert("pid".to_owned(), Effect::Pure);
    let client = connected(server).await;
    assert_eq!(tool(&client, "echo").effect, Effect::Pure);
    assert_eq!(tool(&client, "add").effect, Effect::Idempotent);
    assert_eq!(tool(&client, "pid").effect, Effect::Pure);
    assert_eq!(tool(&client, "fail").effect, Effect::Effect);

    let mut server = stdio("toys");
    server.trust_annotations = true;
    server.effects.insert("echo".to_owned(), Effect::Effect);
    let client = connected(server).await;
    assert_eq!(tool(&client, "echo").effect, Effect::Effect);
}

#[tokio::test]
async fn only_allowed_tools_are_taken_under_their_prefix() {
    let mut server = stdio("toys");
    server.allow = Some(["pid", "echo", "die"].map(String::from).into());
    server.deny = ["die".to_owned()].into();
    server.prefix = "toys_".to_owned();
    let client = connected(server).await;
    assert_eq!(names(&client), ["toys_echo", "toys_pid"]);
    assert!(!said(&client, "toys_pid").await.is_empty());
}

#[tokio::test]
async fn an_allowed_tool_must_exist() {
    let mut server = stdio("toys");
    server.allow = Some(["ehco".to_owned()].into());
    let error = McpClient::connect(server, CancellationToken::new()).await;
    assert_eq!(
        error.unwrap_err().to_string(),
        "the MCP server 'toys' is to offer the tool 'ehco', but it does not list it"
    );
}

#[tokio::test]
async fn tools_of_one_name_name_both_servers() {
    let mut server = stdio("toys");
    server.allow = Some(["echo".to_owned()].into());
    let first = connected(server.clone()).await;
    server.name = "others".into();
    let second = connected(server.clone()).await;
    let collision = McpError::Collision {
        tool: "echo".to_owned(),
        first: "toys".into(),
        second: "others".into(),
    };
    assert_eq!(all_tools(&[first.clone(), second]).unwrap_err(), collision);
    server.prefix = "others_".to_owned();
    let second = connected(server).await;
    let tools = all_tools(&[first, second]).unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["echo", "others_echo"]);
}

#[tokio::test]
async fn a_change_of_the_tools_is_noticed_and_taken_when_asked_for() {
    for lifecycle in [McpLifecycle::Auto, McpLifecycle::Initialize] {
        let mut server = stdio("toys");
        server.lifecycle = lifecycle;
        let client = connected(server).await;
        let before = names(&client);
        let mut changes = client.changes();
        assert!(!client.refresh().await.unwrap(), "nothing changed yet");
        // The subscription of the newest version may not stand yet; the tools then grow once more.
        let noticed = async { changes.changed().await.unwrap() };
        let growing = async {
            loop {
                said(&client, "grow").await;
            }
        };
        tokio::select! {
            () = noticed => {}
            () = growing => {}
        }
        assert_eq!(names(&client), before, "the list is frozen");
        assert!(client.refresh().await.unwrap());
        assert_eq!(names(&client)[before.len()], "grown_0");
        assert_eq!(said(&client, "grown_0").await, "new");
    }
}

#[tokio::test]
async fn a_stored_listing_makes_tools_before_the_server_is_there() {
    let marker = tempfile::tempdir().unwrap();
    let program = marker.path().join("server");
    let listing = connected(stdio("toys")).await.listing();

    let mut server = stdio("toys");
    if let loomline_agents::mcp::McpTransport::Stdio(stdio) = &mut server.transport {
        stdio.command = program.to_str().unwrap().to_owned();
    }
    server.limits.first_backoff = std::time::Duration::ZERO;
    let client = McpClient::connect_lazy(server, &listing, &CancellationToken::new()).unwrap();
    let failure = crate::support::failed(&client, "pid", json!({})).await;
    assert!(failure.contains("'toys' can't be used"), "{failure}");
    assert!(failure.contains("can't be started"), "{failure}");

    std::os::unix::fs::symlink(crate::support::program(), program).unwrap();
    assert!(!said(&client, "pid").await.is_empty());
    assert_eq!(client.listing(), listing);
}

#[tokio::test]
async fn a_stored_listing_is_checked() {
    let made = McpClient::connect_lazy(stdio("toys"), &json!({}), &CancellationToken::new());
    assert!(matches!(made.unwrap_err(), McpError::List { .. }));
    let listing = json!([{"name": "a"}, {"name": "b", "inputSchema": {}}]);
    let made = McpClient::connect_lazy(stdio("toys"), &listing, &CancellationToken::new()).unwrap();
    assert_eq!(names(&made), ["b"]);
    assert_eq!(made.rejected()[0].name, "a");
}
