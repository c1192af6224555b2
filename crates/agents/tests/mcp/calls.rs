//! Calls and their results.

use crate::support::{call, connected, context, failed, said, stdio, tool};
use crate::toys::PICTURE;
use loomline_agents::mcp::{McpLifecycle, McpProgress};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn a_text_is_the_result_and_several_are_joined() {
    let client = connected(stdio("toys")).await;
    let echoed = call(&client, "echo", json!({"text": "Grüße"})).await;
    assert_eq!(echoed.unwrap(), json!("Grüße"));
    assert_eq!(said(&client, "two_texts").await, "one\ntwo");
}

#[tokio::test]
async fn structured_content_is_the_result_as_it_is() {
    let client = connected(stdio("toys")).await;
    let sum = call(&client, "add", json!({"a": 1, "b": 2})).await;
    assert_eq!(sum.unwrap(), json!({"sum": 3.0}));
}

#[tokio::test]
async fn a_result_that_breaks_its_own_schema_is_a_failure_that_says_where() {
    let client = connected(stdio("toys")).await;
    let failure = failed(&client, "add", json!({})).await;
    assert!(failure.contains("has run"), "{failure}");
    assert!(failure.contains("at \"/sum\""), "{failure}");
}

#[tokio::test]
async fn pictures_keep_their_data_and_type() {
    let client = connected(stdio("toys")).await;
    let picture = json!({"type": "image", "data": PICTURE, "mimeType": "image/gif"});
    let shown = call(&client, "picture", json!({})).await.unwrap();
    let text = json!({"type": "text", "text": "a dot"});
    assert_eq!(shown, json!({"content": [text, picture]}));
    let mixed = call(&client, "mixed", json!({})).await.unwrap();
    let both = json!({"content": [picture], "structuredContent": {"width": 1}});
    assert_eq!(mixed, both);
}

#[tokio::test]
async fn an_error_of_the_tool_is_a_failure_with_its_text() {
    let client = connected(stdio("toys")).await;
    assert_eq!(failed(&client, "fail", json!({})).await, "no such file");
}

#[tokio::test]
async fn an_error_of_the_protocol_names_the_server() {
    let client = connected(stdio("toys")).await;
    let failure = failed(&client, "forbidden", json!({})).await;
    assert_eq!(
        failure,
        "The MCP server 'toys' refused the call of 'forbidden': there is no forbidden (-32602)."
    );
}

#[tokio::test]
async fn arguments_that_are_no_object_are_not_sent() {
    let client = connected(stdio("toys")).await;
    let failure = failed(&client, "echo", json!([1])).await;
    assert!(failure.contains("was not run"), "{failure}");
}

#[tokio::test]
async fn progress_is_heard_while_the_call_runs() {
    for lifecycle in [McpLifecycle::Auto, McpLifecycle::Initialize] {
        let (sender, mut heard) = mpsc::unbounded_channel();
        let mut server = stdio("toys");
        server.lifecycle = lifecycle;
        server.on_progress = Some(Arc::new(move |progress: &McpProgress| {
            sender.send(progress.clone()).unwrap();
        }));
        let client = connected(server).await;
        let listener = async {
            let progress = heard.recv().await.unwrap();
            assert_eq!(said(&client, "go").await, "going");
            progress
        };
        let (result, progress) = tokio::join!(said(&client, "steps"), listener);
        assert_eq!(result, "done");
        let expected = McpProgress {
            server: "toys".into(),
            tool_call_id: "call-1".into(),
            progress: 1.0,
            total: Some(2.0),
            message: Some("half".to_owned()),
        };
        assert_eq!(progress, expected);
    }
}

#[tokio::test]
async fn the_signal_stops_the_call_on_the_server() {
    for lifecycle in [McpLifecycle::Auto, McpLifecycle::Initialize] {
        let mut server = stdio("toys");
        server.lifecycle = lifecycle;
        let client = connected(server).await;
        let signal = CancellationToken::new();
        let slow = tool(&client, "slow").run.run(json!({}), context(&signal));
        let stop = async {
            // By the time this is answered the slow call has been sent, for it was first.
            said(&client, "pid").await;
            signal.cancel();
        };
        let (failure, ()) = tokio::join!(slow, stop);
        assert_eq!(
            failure.unwrap_err().message,
            "The call of 'slow' was cancelled."
        );
        let told = said(&client, "await_cancellation").await;
        assert_eq!(told, "the call was cancelled");
    }
}

#[tokio::test]
async fn dropping_a_call_stops_it_on_the_server() {
    let client = connected(stdio("toys")).await;
    let slow = call(&client, "slow", json!({}));
    tokio::select! {
        biased;
        _ = slow => unreachable!("it waits to be cancelled"),
        _ = said(&client, "pid") => {}
    }
    let told = said(&client, "await_cancellation").await;
    assert_eq!(told, "the call was cancelled");
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_stopped_on_the_server() {
    let mut server = stdio("toys");
    server.limits.call = Duration::from_millis(300);
    let client = connected(server).await;
    let failure = failed(&client, "slow", json!({})).await;
    assert_eq!(
        failure,
        "The tool 'slow' did not answer within 300ms and was told to stop; its outcome is unknown."
    );
    let told = said(&client, "await_cancellation").await;
    assert_eq!(told, "the call was cancelled");
}
