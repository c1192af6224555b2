//! The tool loop, with the scripted model.

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use loomline_upp::{
    Code, Llm, LlmOptions, Message, Messages, Script, ScriptTurn, Scripted, StreamEvent, Tool,
    ToolChoice, ToolFailure, ToolOutput, ToolUseStrategy, Turn, TurnEvent,
};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

fn sleeper(name: &str, sleep: Duration) -> Tool {
    let schema =
        json!({"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}});
    Tool::new(
        name,
        "Gives its text back.",
        schema,
        move |arguments: Value, _| -> BoxFuture<'static, ToolOutput> {
            Box::pin(async move {
                tokio::time::sleep(sleep).await;
                match arguments["text"].as_str() {
                    Some("bad") => Err(ToolFailure::new("no such text")),
                    _ => Ok(arguments["text"].clone()),
                }
            })
        },
    )
}

fn options() -> LlmOptions {
    let mut options = LlmOptions::new(Arc::new(Scripted::new()));
    options.tools = vec![
        sleeper("echo", Duration::from_millis(20)),
        sleeper("fast", Duration::ZERO),
    ];
    options
}

async fn generate(options: LlmOptions, text: &str) -> Result<Turn, loomline_upp::Error> {
    Llm::new(options)?.generate(Messages::new(), [text]).await
}

fn kinds(turn: &Turn) -> Vec<&'static str> {
    turn.messages
        .iter()
        .map(|message| match message {
            Message::User(_) => "user",
            Message::Assistant(_) => "assistant",
            Message::ToolResult(_) => "tool_result",
        })
        .collect()
}

#[tokio::test]
async fn a_turn_holds_everything_after_the_history() {
    let llm = Llm::new(options()).unwrap();
    let history: Messages = [Message::from("before")].into_iter().collect();
    let turn = llm.generate(history, ["echo hi"]).await.unwrap();
    assert_eq!(
        kinds(&turn),
        ["user", "assistant", "tool_result", "assistant"]
    );
    assert_eq!(turn.response.joined_text(), "echo gave hi.");
    assert_eq!((turn.cycles, turn.usage.cycles.len()), (2, 2));
    assert_eq!(turn.tool_executions.len(), 1);
    let json = serde_json::to_value(&turn).unwrap();
    assert_eq!(serde_json::from_value::<Turn>(json).unwrap(), turn);
}

#[tokio::test(start_paused = true)]
async fn tools_run_at_once_and_their_events_come_live() {
    let llm = Llm::new(options()).unwrap();
    let mut stream = llm.stream(Messages::new(), ["echo a and fast b"]);
    let start = tokio::time::Instant::now();
    let mut seen = Vec::new();
    while let Some(item) = stream.next().await {
        match item.unwrap() {
            TurnEvent::Event(StreamEvent::ToolExecutionStart { tool_name, .. }) => {
                seen.push((format!("start {tool_name}"), start.elapsed().as_millis()));
            }
            TurnEvent::Event(StreamEvent::ToolExecutionEnd { tool_name, .. }) => {
                seen.push((format!("end {tool_name}"), start.elapsed().as_millis()));
            }
            TurnEvent::Event(_) => {}
            TurnEvent::Done(turn) => {
                let Message::ToolResult(results) = &turn.messages[2] else {
                    panic!()
                };
                // Results keep the order of the calls, executions that of their ends.
                assert_eq!(results.results[0].result, json!("a"));
                assert_eq!(&*turn.tool_executions[0].tool_name, "fast");
            }
        }
    }
    let seen: Vec<(&str, u128)> = seen.iter().map(|(what, at)| (what.as_str(), *at)).collect();
    assert_eq!(
        seen,
        [
            ("start echo", 0),
            ("start fast", 0),
            ("end fast", 0),
            ("end echo", 20)
        ]
    );
}

#[tokio::test]
async fn a_limit_of_n_lets_n_rounds_run() {
    let limited = |limit, text| {
        let mut options = options();
        let heard = Arc::new(AtomicU32::new(0));
        let hook = Arc::clone(&heard);
        options.tool_strategy = ToolUseStrategy::default()
            .with_max_iterations(Some(limit))
            .with_on_max_iterations(move |limit| hook.store(limit, Ordering::Relaxed));
        async move { (generate(options, text).await, heard.load(Ordering::Relaxed)) }
    };
    let (turn, heard) = limited(2, "fast a then fast b").await;
    assert_eq!((turn.unwrap().cycles, heard), (3, 0));
    let (turn, heard) = limited(1, "fast a then fast b").await;
    assert_eq!((turn.unwrap_err().code, heard), (Code::InvalidRequest, 1));
    let (turn, heard) = limited(0, "fast a").await;
    let turn = turn.unwrap();
    assert_eq!(
        (turn.cycles, turn.response.tool_calls.len(), heard),
        (1, 1, 0)
    );
}

#[tokio::test]
async fn an_unlimited_strategy_runs_on() {
    let mut options = options();
    options.tool_strategy = ToolUseStrategy::unlimited();
    let text = vec!["fast a"; 25].join(" then ");
    assert_eq!(generate(options, &text).await.unwrap().cycles, 26);
}

#[tokio::test]
async fn unknown_tools_and_malformed_arguments_are_told_to_the_model() {
    let script = Script::from_json(
        r#"{"turns":[{"tool_calls":[{"name":"nope"},{"name":"fast","arguments":"{oops"},{"name":"fast","arguments":{"text":"bad"}}]},
           {"text":"sorry"}]}"#,
    );
    let mut options = options();
    options.model = Arc::new(Scripted::with_script(script.unwrap()));
    let turn = generate(options, "go").await.unwrap();
    let Message::ToolResult(results) = &turn.messages[2] else {
        panic!()
    };
    assert!(results.results.iter().all(|result| result.is_error));
    assert_eq!(results.results[0].result, json!("Tool 'nope' not found"));
    assert!(
        results.results[1]
            .result
            .as_str()
            .unwrap()
            .contains("not JSON")
    );
    assert_eq!(results.results[2].result, json!("no such text"));
    assert_eq!(turn.response.joined_text(), "sorry");
}

#[tokio::test]
async fn without_tools_the_calls_are_returned() {
    let script = Script::new(vec![ScriptTurn::call("x", json!({}))]);
    let options = LlmOptions::new(Arc::new(Scripted::with_script(script)));
    let turn = generate(options, "go").await.unwrap();
    assert_eq!((turn.cycles, turn.response.tool_calls.len()), (1, 1));
}

#[tokio::test]
async fn a_forced_choice_holds_for_the_first_call() {
    let mut options = options();
    options.tool_choice = ToolChoice::Required;
    let turn = generate(options, "hello").await.unwrap();
    assert_eq!(turn.response.joined_text(), "echo gave hello.");
}

#[tokio::test]
async fn a_structure_comes_after_the_tools() {
    let mut options = options();
    options.structure = Some(
        json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}),
    );
    let turn = generate(options, "fast a then n=4").await.unwrap();
    assert_eq!((turn.cycles, turn.data), (2, Some(json!({"n": 4}))));
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_the_turn_while_a_tool_runs() {
    let mut options = options();
    options.tools = vec![sleeper("echo", Duration::from_hours(1))];
    let signal = CancellationToken::new();
    let mut stream =
        Llm::new(options)
            .unwrap()
            .stream_until(Messages::new(), ["echo a"], signal.clone());
    let last = loop {
        match stream.next().await.unwrap() {
            Ok(TurnEvent::Event(StreamEvent::ToolExecutionStart { .. })) => signal.cancel(),
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert_eq!(last.code, Code::Cancelled);
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn two_tools_of_one_name_are_refused() {
    let mut options = options();
    options.tools.push(sleeper("fast", Duration::ZERO));
    assert_eq!(Llm::new(options).unwrap_err().code, Code::InvalidRequest);
}

#[tokio::test]
async fn a_tool_that_waits_for_an_answer_from_outside_is_refused_unless_no_tool_runs() {
    let schema = json!({"type": "object"});
    for tool in [
        Tool::external("far", "Elsewhere.", schema),
        sleeper("pay", Duration::ZERO).with_requires_approval(),
    ] {
        let mut options = options();
        let name = tool.name.clone();
        options.tools.push(tool);
        let error = Llm::new(options.clone()).unwrap_err();
        assert_eq!(error.code, Code::InvalidRequest);
        assert!(error.message.contains(&name), "{error}");
        options.tool_strategy = ToolUseStrategy::default().with_max_iterations(Some(0));
        let turn = generate(options, &name).await.unwrap();
        assert_eq!(turn.response.tool_calls.len(), 1);
    }
}
