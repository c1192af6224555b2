//! Streaming is an observation, not another way to run (UAP §11).

use crate::support::*;
use futures_util::{FutureExt, StreamExt};
use loomline_agents::{AgentError, AgentState};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use upp::scripted::ScriptCall;
use upp::{Code, ScriptTurn, Scripted, ToolOutput};

#[tokio::test]
async fn stream_and_generate_have_the_same_content() {
    let mut options = adding();
    options.id = Some("same".into());
    let generated = generate(options.clone()).await;
    let mut stream = agent(options).stream("go", AgentState::initial());
    while stream.next().await.is_some() {}
    let streamed = stream.result().await.unwrap();
    assert_eq!(content(&streamed.state), content(&generated.state));
    assert_eq!(content(&streamed.turn), content(&generated.turn));
}

#[tokio::test]
async fn the_result_needs_no_reader() {
    let long = ScriptTurn::text("word ".repeat(1000));
    let agent = agent(scripted(vec![long]));
    let unread = agent.stream("go", AgentState::initial());
    assert!(unread.result().await.is_ok());
    let mut half_read = agent.stream("go", AgentState::initial());
    assert!(half_read.next().await.is_some());
    assert!(half_read.result().await.is_ok());
}

#[tokio::test]
async fn events_come_in_the_order_of_section_11() {
    let mut turn = ScriptTurn::call("add", json!({"a": 1, "b": 2}));
    turn.tool_calls[0].id = Some("c".to_owned());
    let mut options = scripted(vec![turn, ScriptTurn::text("done")]);
    options.tools = vec![add()];
    let events = agent(options)
        .stream("go", AgentState::initial())
        .map(|event| brief(&event));
    let events: Vec<String> = events.collect().await;
    assert_eq!(
        events,
        [
            "step_start",
            "message_start",
            "tool_call_delta c",
            "tool_call_delta c",
            "message_stop",
            "action",
            "tool_execution_start c",
            "tool_execution_end c",
            "observation",
            "step_end",
            "step_start",
            "message_start",
            "content_block_start",
            "text_delta",
            "content_block_stop",
            "message_stop",
            "step_end",
        ]
    );
}

#[tokio::test]
async fn tool_events_are_live() {
    let mut turn = ScriptTurn::default();
    for (id, name) in [("s", "stuck"), ("q", "quick")] {
        turn.tool_calls.push(ScriptCall {
            name: name.to_owned(),
            arguments: json!({}),
            id: Some(id.to_owned()),
            after: Vec::new(),
        });
    }
    let stuck = tool("stuck", |_: Value, _: upp::ToolContext| {
        futures_util::future::pending::<ToolOutput>().boxed()
    });
    let mut options = scripted(vec![turn]);
    options.tools = vec![stuck, quick("quick", |_| Ok(json!(1)))];
    let mut stream = agent(options).stream("go", AgentState::initial());
    loop {
        let event = stream.next().await.unwrap();
        if brief(&event) == "tool_execution_end q" {
            break;
        }
    }
    stream.abort();
    assert!(matches!(stream.result().await, Err(AgentError::Cancelled)));
}

#[tokio::test]
async fn abort_is_prompt_in_a_stalled_model_call() {
    let stalled = agent(options(Canned::new(|_| None)));
    let mut stream = stalled.stream("go", AgentState::initial());
    assert!(stream.next().await.is_some(), "step_start");
    assert!(
        stream.next().now_or_never().is_none(),
        "the model says nothing"
    );
    let signal = stream.signal();
    let (ended, ()) = tokio::join!(
        tokio::time::timeout(Duration::from_secs(5), stream.next()),
        async {
            tokio::task::yield_now().await;
            signal.cancel();
        }
    );
    assert!(ended.unwrap().is_none(), "the stream ends with the run");
    let error = stream.result().await.unwrap_err();
    assert_eq!(error.code(), Some(Code::Cancelled));
}

#[tokio::test]
async fn abort_reaches_the_result_before_anything_was_polled() {
    let stream = agent(adding()).stream("go", AgentState::initial());
    stream.abort();
    assert!(matches!(stream.result().await, Err(AgentError::Cancelled)));
}

#[tokio::test]
async fn abort_reaches_a_running_tool_and_starts_no_other() {
    let log = Log::default();
    let signal = Arc::new(Mutex::new(None));
    let kept = Arc::clone(&signal);
    let stuck = tool("stuck", move |_: Value, context: upp::ToolContext| {
        *kept.lock().unwrap() = Some(context.signal.clone());
        futures_util::future::pending::<ToolOutput>().boxed()
    });
    let model = Canned::calls(vec![call("1", "stuck", &[]), call("2", "later", &["1"])]);
    let mut options = options(model);
    options.tools = vec![stuck, noted("later", 0, &log)];
    let mut stream = agent(options).stream("go", AgentState::initial());
    while let Some(Some(event)) = stream.next().now_or_never() {
        assert_ne!(brief(&event), "tool_execution_start 2");
    }
    let signal = signal.lock().unwrap().take().unwrap();
    assert!(!signal.is_cancelled());
    stream.abort();
    assert!(
        signal.is_cancelled(),
        "the tool hears of the cancel at once"
    );
    assert!(matches!(stream.result().await, Err(AgentError::Cancelled)));
    assert_eq!(log.lines(), [""; 0], "the other tool has not run");
}

#[tokio::test]
async fn dropping_a_stream_cancels_the_request() {
    let model = Canned::new(|_| None);
    let mut stream = agent(options(model.clone())).stream("go", AgentState::initial());
    while stream.next().now_or_never().is_some() {}
    let signal = stream.signal();
    drop(stream);
    assert!(signal.is_cancelled());
    assert!(model.seen.lock().unwrap()[0].signal.is_cancelled());
}

#[tokio::test]
async fn a_failed_run_ends_its_stream_and_tells_the_result() {
    let agent = agent(options(Arc::new(Scripted::new())));
    let mut stream = agent.stream("fail after 2 now", AgentState::initial());
    let events: Vec<String> = stream.by_ref().map(|event| brief(&event)).collect().await;
    assert!(!events.contains(&"step_end".to_owned()));
    assert!(stream.next().await.is_none(), "an ended stream stays ended");
    assert!(matches!(stream.result().await, Err(AgentError::Model(_))));
}
