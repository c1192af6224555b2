//! Servers that mean no good.

use crate::support::{connected, failed, said, stdio};
use loomline_agents::mcp::{McpClient, McpError};
use serde_json::json;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn a_result_that_is_too_long_is_refused_with_both_numbers() {
    let mut server = stdio("toys");
    server.limits.max_result_bytes = 1000;
    let client = connected(server).await;
    let failure = failed(&client, "big", json!({"bytes": 2000})).await;
    assert!(
        failure.starts_with("The result of the tool 'big' is 2002 bytes long; at most 1000"),
        "{failure}"
    );
    assert!(!said(&client, "pid").await.is_empty());
}

#[tokio::test]
async fn a_message_that_is_too_long_ends_the_connection_and_says_so() {
    let mut server = stdio("toys");
    server.limits.max_message_bytes = 100_000;
    let client = connected(server).await;
    let failure = failed(&client, "big", json!({"bytes": 200_000})).await;
    assert!(
        failure.contains("it sent a message of more than 100000 bytes"),
        "{failure}"
    );
    assert!(!said(&client, "pid").await.is_empty());
}

#[tokio::test]
async fn a_line_without_an_end_is_not_read_for_ever() {
    let mut server = stdio("flood");
    server.limits.max_message_bytes = 100_000;
    let error = McpClient::connect(server, CancellationToken::new()).await;
    assert_eq!(
        error.unwrap_err().to_string(),
        "the MCP server 'toys' can't be used: it sent a message of more than 100000 bytes and was \
         disconnected"
    );
}

#[tokio::test]
async fn what_is_no_message_is_skipped() {
    let client = connected(stdio("garbage")).await;
    assert!(!said(&client, "pid").await.is_empty());
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    let mut server = stdio("silent");
    server.limits.connect = Duration::from_millis(200);
    let error = McpClient::connect(server, CancellationToken::new()).await;
    let timeout = McpError::Timeout {
        server: "toys".into(),
        after: Duration::from_millis(200),
    };
    assert_eq!(error.unwrap_err(), timeout);
}

#[tokio::test]
async fn ten_thousand_tools_are_too_many() {
    let error = McpClient::connect(stdio("many"), CancellationToken::new()).await;
    let many = McpError::TooManyTools {
        server: "toys".into(),
        limit: 128,
    };
    assert_eq!(error.unwrap_err(), many);

    let mut server = stdio("many");
    server.allow = Some(["tool_9999".to_owned()].into());
    assert_eq!(connected(server).await.tools().len(), 1);
}

#[tokio::test]
async fn a_list_without_an_end_is_given_up() {
    let error = McpClient::connect(stdio("pages"), CancellationToken::new()).await;
    assert_eq!(
        error.unwrap_err().to_string(),
        "the MCP server 'toys' gives no list of tools: its list has more than 1000 pages"
    );
}

#[tokio::test]
async fn a_tool_with_a_bad_schema_is_rejected_by_name_and_the_others_stay() {
    let client = connected(stdio("bad")).await;
    let tools = client.tools();
    assert_eq!(tools.len(), 1);
    assert_eq!(tools[0].name, "good");
    let rejected = client.rejected();
    let names: Vec<_> = rejected.iter().map(|tool| tool.name.as_str()).collect();
    let expected = [
        "no_schema",
        "bad_type",
        "elsewhere",
        "no_object",
        "bad\nname",
        "good",
        "#7",
        "long",
        "bad_output",
    ];
    assert_eq!(names, expected);
    for tool in &rejected {
        assert!(!tool.cause.is_empty(), "{tool:?}");
    }
    let mut server = stdio("bad");
    server.allow = Some(["bad_type".to_owned()].into());
    let error = McpClient::connect(server, CancellationToken::new()).await;
    let text = error.unwrap_err().to_string();
    assert!(text.contains("'bad_type', but its input schema"), "{text}");
}

#[tokio::test]
async fn what_a_server_asks_for_is_refused_except_a_ping() {
    let client = connected(stdio("asks")).await;
    let answers = said(&client, "ask").await;
    let mut answers: Vec<(String, Option<i32>)> = serde_json::from_str(&answers).unwrap();
    answers.sort();
    let refused = Some(-32601);
    let expected = [
        ("elicitation/create", refused),
        ("ping", None),
        ("roots/list", refused),
        ("sampling/createMessage", refused),
    ];
    let expected = expected.map(|(method, code)| (method.to_owned(), code));
    assert_eq!(answers, expected);
}

#[tokio::test]
async fn a_tool_that_asks_for_input_gets_none_and_the_model_is_told() {
    let client = connected(stdio("toys")).await;
    let failure = failed(&client, "curious", json!({})).await;
    assert_eq!(
        failure,
        "The MCP server 'toys' refused the call of 'curious': it asks for input of a user or a \
         model, which this client does not give."
    );
}
