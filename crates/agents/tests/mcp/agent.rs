//! An agent with tools of a server.

use crate::support::{connected, stdio};
use loomline_agents::{Agent, AgentOptions, AgentState};
use serde_json::json;
use std::sync::Arc;
use upp::{Message, Script, ScriptTurn, Scripted};

#[tokio::test]
async fn an_agent_uses_a_tool_of_a_server() {
    let client = connected(stdio("toys")).await;
    let script = Script::new(vec![
        ScriptTurn::call("add", json!({"a": 20, "b": 22})),
        ScriptTurn::call("echo", json!({"text": 5})),
        ScriptTurn::text("done"),
    ]);
    let mut options = AgentOptions::new("calculator", Arc::new(Scripted::with_script(script)));
    options.tools = client.tools();
    let agent = Agent::new(options).unwrap();
    let result = agent.generate("go", AgentState::initial()).await.unwrap();
    assert_eq!(result.turn.response.joined_text(), "done");
    let results: Vec<_> = result
        .state
        .messages()
        .iter()
        .filter_map(|message| match message {
            Message::ToolResult(message) => Some(message.results.clone()),
            Message::User(_) | Message::Assistant(_) => None,
        })
        .flatten()
        .collect();
    assert_eq!(results[0].result, json!({"sum": 42.0}));
    assert!(!results[0].is_error);
    // The schema the server gave is checked before anything is sent.
    assert!(results[1].is_error);
    let text = results[1].result.as_str().unwrap();
    assert!(text.contains("do not match its schema"), "{text}");
}
