//! What spans hold where content is captured. A program of its own: the switch is the process's.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

#[path = "support/recorder.rs"]
mod recorder;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use loomline_agents::{Agent, AgentOptions};
use recorder::Recorder;
use serde_json::{Value, json};
use std::sync::Arc;
use upp::{Script, ScriptTurn, Scripted, Tool, ToolContext, ToolOutput};

#[tokio::test]
async fn content_is_in_the_spans_once_it_is_asked_for() {
    upp::telemetry::capture_content(true);
    let recorder = Recorder::new();
    let script = Script::new(vec![
        ScriptTurn::call("echo", json!({"text": "one"})),
        ScriptTurn::text("two"),
    ]);
    let mut options = AgentOptions::new("tester", Arc::new(Scripted::with_script(script)));
    options.system = Some("Be brief.".into());
    let run = |arguments: Value, _: ToolContext| {
        std::future::ready(Ok(arguments)).boxed() as BoxFuture<'static, ToolOutput>
    };
    options.tools = vec![Tool::new("echo", "Echoes.", json!({"type": "object"}), run)];
    Agent::new(options).unwrap().query("zero").await.unwrap();

    let tree = [
        "invoke_agent tester",
        "  chat scripted-1",
        "  execute_tool echo",
        "  chat scripted-1",
    ];
    assert_eq!(recorder.tree(), tree);
    let spans = recorder.spans();
    assert!(spans.iter().all(|span| span.is_closed));
    let json = |at: usize, field: &str| -> Value {
        serde_json::from_str(spans[at].get(field).unwrap()).unwrap()
    };
    let run = recorder.named("invoke_agent tester");
    assert_eq!(run.get("gen_ai.input.messages"), None);
    let text = |text: &str| json!({"type": "text", "content": text});
    assert_eq!(
        json(1, "gen_ai.system_instructions"),
        json!([text("Be brief.")])
    );
    let input = json!([{"role": "user", "parts": [text("zero")]}]);
    assert_eq!(json(1, "gen_ai.input.messages"), input);
    let output = json(1, "gen_ai.output.messages");
    assert_eq!(output[0]["role"], "assistant");
    assert_eq!(output[0]["finish_reason"], "tool_call");
    let call = &output[0]["parts"][0];
    assert_eq!(call["type"], "tool_call");
    assert_eq!(call["name"], "echo");
    assert_eq!(call["arguments"], json!({"text": "one"}));
    assert_eq!(
        json(2, "gen_ai.tool.call.arguments"),
        json!({"text": "one"})
    );
    assert_eq!(json(2, "gen_ai.tool.call.result"), json!({"text": "one"}));
    let last = json(3, "gen_ai.input.messages");
    let roles: Vec<&Value> = last
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["role"])
        .collect();
    assert_eq!(roles, ["user", "assistant", "tool"]);
    assert_eq!(last[2]["parts"][0]["type"], "tool_call_response");
    assert_eq!(last[2]["parts"][0]["id"], call["id"]);
    assert_eq!(
        json(3, "gen_ai.output.messages")[0]["parts"],
        json!([text("two")])
    );
}
