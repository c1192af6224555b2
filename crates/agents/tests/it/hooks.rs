//! Hooks at their moments (UAP §10).

use crate::support::*;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use loomline_agents::{AgentError, AgentOptions, AgentState, AgentStrategy, GenerateResult};
use serde_json::json;
use std::future::ready;
use std::sync::Arc;
use upp::{BeforeCall, ScriptTurn, Scripted, ToolCall, ToolResult, ToolUseStrategy};

#[derive(Default)]
struct Noting {
    log: Log,
    stops_at: Option<u64>,
    recovers: Option<GenerateResult>,
}

impl AgentStrategy for Noting {
    fn on_step_start(&self, step: u64, state: &AgentState) {
        assert_eq!(state.step(), step);
        self.log.add(format!("start {step}"));
    }

    fn on_act(&self, step: u64, actions: &[ToolCall]) {
        self.log.add(format!("act {step} {}", actions[0].tool_name));
    }

    fn on_observe(&self, step: u64, observations: &[ToolResult]) {
        self.log
            .add(format!("observe {step} {}", observations[0].result));
    }

    fn on_step_end(&self, step: u64, result: &GenerateResult) {
        let n_messages = result.turn.messages.len();
        assert_eq!((result.turn.cycles, result.state.step()), (1, step));
        self.log.add(format!("end {step} {n_messages}"));
    }

    fn stop_condition<'a>(&'a self, state: &'a AgentState) -> BoxFuture<'a, bool> {
        self.log.add("stop?");
        ready(self.stops_at == Some(state.step())).boxed()
    }

    fn on_complete(&self, result: &GenerateResult) {
        self.log.add(format!("complete {}", result.turn.cycles));
    }

    fn on_error(&self, error: &AgentError, state: &AgentState) -> Option<GenerateResult> {
        self.log.add(format!("error at {}: {error}", state.step()));
        self.recovers.clone()
    }
}

fn one_call() -> AgentOptions {
    let turn = ScriptTurn::call("add", json!({"a": 1, "b": 2}));
    let mut options = scripted(vec![turn, ScriptTurn::text("done")]);
    options.tools = vec![add()];
    options
}

fn with(mut options: AgentOptions, hooks: Noting) -> (AgentOptions, Log) {
    let log = hooks.log.clone();
    options.strategy = Arc::new(hooks);
    (options, log)
}

#[tokio::test]
async fn hooks_are_called_at_their_moments_in_generate_and_stream_alike() {
    let expected = [
        "start 1",
        "act 1 add",
        "observe 1 3.0",
        "end 1 2",
        "stop?",
        "start 2",
        "end 2 1",
        "stop?",
        "complete 2",
    ];
    let (options, log) = with(one_call(), Noting::default());
    generate(options).await;
    assert_eq!(log.lines(), expected);

    let (options, log) = with(one_call(), Noting::default());
    let mut stream = agent(options).stream("go", AgentState::initial());
    while futures_util::StreamExt::next(&mut stream).await.is_some() {}
    stream.result().await.unwrap();
    assert_eq!(log.lines(), expected);
}

#[tokio::test]
async fn a_stop_condition_ends_the_run_with_its_results() {
    let hooks = Noting {
        stops_at: Some(2),
        ..Noting::default()
    };
    let (options, _) = with(adding(), hooks);
    let result = generate(options).await;
    assert_eq!((result.state.step(), result.turn.cycles), (2, 2));
    assert!(
        result.state.open_calls().is_empty(),
        "the conversation can go on"
    );
}

#[tokio::test]
async fn on_error_hears_of_the_last_complete_state() {
    let failing = |hooks: Noting| {
        let mut second = ScriptTurn::call("add", json!({"a": 1, "b": 2}));
        second.error = serde_json::from_value(json!({})).unwrap();
        let first = ScriptTurn::call("add", json!({"a": 1, "b": 2}));
        let mut options = scripted(vec![first, second]);
        options.tools = vec![add()];
        with(options, hooks)
    };
    let (options, log) = failing(Noting::default());
    let error = agent(options).query("go").await.unwrap_err();
    assert!(matches!(error, AgentError::Model(_)));
    assert_eq!(
        log.lines().last().unwrap(),
        "error at 1: the model call failed"
    );

    let instead = generate(one_call()).await;
    let hooks = Noting {
        recovers: Some(instead.clone()),
        ..Noting::default()
    };
    let (options, log) = failing(hooks);
    assert_eq!(
        generate(options).await,
        instead,
        "a result given by on_error is the run's"
    );
    assert!(!log.lines().iter().any(|line| line.starts_with("complete")));
}

#[tokio::test]
async fn a_cancelled_run_can_not_be_recovered() {
    let instead = generate(one_call()).await;
    let hooks = Noting {
        recovers: Some(instead),
        ..Noting::default()
    };
    let (options, log) = with(one_call(), hooks);
    let stream = agent(options).stream("go", AgentState::initial());
    stream.abort();
    assert!(matches!(stream.result().await, Err(AgentError::Cancelled)));
    assert!(
        log.lines().iter().all(|line| line.starts_with("error")),
        "{:?}",
        log.lines()
    );
}

#[tokio::test]
async fn the_tool_strategys_hooks_are_called_around_each_call() {
    let log = Log::default();
    let (called, before, after) = (log.clone(), log.clone(), log.clone());
    let mut options = one_call();
    options.tool_strategy = ToolUseStrategy::unlimited()
        .with_on_tool_call(move |tool, _| called.add(format!("call {}", tool.name)))
        .with_on_before_call(move |_, arguments| {
            before.add(format!("before {arguments}"));
            ready(Ok(BeforeCall::Transform(json!({"a": 20, "b": 2})))).boxed()
        })
        .with_on_after_call(move |_, _, result| {
            after.add(format!("after {result}"));
            ready(Ok(None)).boxed()
        });
    let result = generate(options).await;
    assert_eq!(
        log.lines(),
        ["call add", r#"before {"a":1,"b":2}"#, "after 22.0"]
    );
    assert_eq!(
        result.turn.tool_executions[0].arguments,
        json!({"a": 20, "b": 2})
    );
}

#[tokio::test]
async fn the_tool_strategy_hears_of_a_tool_that_failed() {
    let log = Log::default();
    let heard = log.clone();
    let mut options = one_call();
    options.tools = vec![quick("add", |_| Err(upp::ToolFailure::new("no luck")))];
    options.tool_strategy = ToolUseStrategy::unlimited()
        .with_on_error(move |tool, arguments, failure| {
            heard.add(format!("{} {arguments}: {failure}", tool.name));
        })
        .with_on_after_call(|_, _, _| panic!("there is no result"));
    let result = generate(options).await;
    assert_eq!(log.lines(), [r#"add {"a":1,"b":2}: no luck"#]);
    assert!(results(&result.state)[0].is_error);
    assert_eq!(result.turn.response.joined_text(), "done");
}

#[tokio::test]
async fn on_before_call_can_refuse() {
    let mut options = one_call();
    options.tool_strategy = ToolUseStrategy::unlimited()
        .with_on_before_call(|_, _| ready(Ok(BeforeCall::Skip)).boxed());
    let result = generate(options).await;
    assert_eq!(results(&result.state)[0].result, "Tool execution skipped");
    assert_eq!(result.turn.response.joined_text(), "done");
}

#[tokio::test]
async fn an_approval_that_fails_ends_the_run() {
    let mut options = options(Arc::new(Scripted::new()));
    options.tools =
        vec![add().with_approval(|_| ready(Err(upp::ToolFailure::new("nobody is there"))).boxed())];
    let error = agent(options).query("add 1 2").await.unwrap_err();
    assert!(matches!(error, AgentError::Tool(_)));
}
