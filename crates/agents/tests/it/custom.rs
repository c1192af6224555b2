//! A strategy of the application's own (UAP §5.1, §5.5).

use crate::strategies::{Keeping, Own, Stepping, with};
use crate::support::*;
use futures_util::{FutureExt, StreamExt};
use loomline_agents::{AgentError, AgentOptions, AgentState, Next, StepContext, StepOutcome};
use std::future::ready;
use std::sync::Arc;
use upp::{Message, ScriptTurn};

/// Asks the model once, runs what it calls, and stops, whatever comes of it.
fn once<'a>(state: AgentState, context: &'a StepContext<'a>) -> Stepping<'a> {
    async move {
        assert_eq!(context.agent.name(), "tester");
        assert!(matches!(state.messages().last(), Some(Message::User(_))));
        let response = context.ask(context.request(&state)).await?;
        let state = context.act(&state.with_response(response)).await?;
        let next = Next::Done;
        Ok(StepOutcome { state, next })
    }
    .boxed()
}

fn adding_once() -> AgentOptions {
    let mut turn = ScriptTurn::call("add", serde_json::json!({"a": 1, "b": 2}));
    turn.tool_calls[0].id = Some("c".to_owned());
    let mut options = scripted(vec![turn]);
    options.tools = vec![add()];
    options.execution = Arc::new(Own("once", once));
    options
}

#[tokio::test]
async fn a_strategy_of_ones_own_asks_the_model_and_runs_tools() {
    let result = generate(adding_once()).await;
    assert_eq!(result.turn.cycles, 1);
    assert_eq!(results(&result.state)[0].result, 3.0);
    assert_eq!((result.state.step(), result.state.messages().len()), (1, 3));
    assert_eq!(result.turn.tool_executions.len(), 1);
}

#[tokio::test]
async fn a_strategy_of_ones_own_is_streamed_without_a_line_of_its_own() {
    let stream = agent(adding_once()).stream("go", AgentState::initial());
    let events: Vec<String> = stream.map(|event| brief(&event)).collect().await;
    let own = [
        "step_start",
        "action",
        "tool_execution_start c",
        "tool_execution_end c",
        "observation",
        "step_end",
    ];
    let seen: Vec<&String> = events
        .iter()
        .filter(|event| own.contains(&event.as_str()))
        .collect();
    assert_eq!(seen, own);
    assert!(events.contains(&"message_start".to_owned()));
}

/// Has a first step in which no model is asked, and a second in which one is.
fn prepared<'a>(state: AgentState, context: &'a StepContext<'a>) -> Stepping<'a> {
    async move {
        if state.step() == 1 {
            let next = Next::Continue;
            return Ok(StepOutcome { state, next });
        }
        let response = context.ask(context.request(&state)).await?;
        let state = state.with_response(response);
        let next = Next::Done;
        Ok(StepOutcome { state, next })
    }
    .boxed()
}

/// Is done before any model is asked.
fn silent<'a>(state: AgentState, _: &'a StepContext<'a>) -> Stepping<'a> {
    let next = Next::Done;
    ready(Ok(StepOutcome { state, next })).boxed()
}

#[tokio::test]
async fn a_step_without_a_model_call_ends_like_any_other_while_the_run_goes_on() {
    let mut options = scripted(vec![ScriptTurn::text("hello")]);
    options.execution = Arc::new(Own("prepared", prepared));
    let (options, hooks) = with(options, Keeping::default());
    let result = generate(options).await;
    assert_eq!(result.turn.response.joined_text(), "hello");
    let ends = ["end 1: 0 cycles, 0 messages", "end 2: 1 cycles, 1 messages"];
    let lines = hooks.log.lines();
    assert!(lines.iter().filter(|it| it.starts_with("end")).eq(&ends));
}

#[tokio::test]
async fn a_run_in_which_no_model_speaks_has_no_response() {
    let mut options = scripted(Vec::new());
    options.execution = Arc::new(Own("silent", silent));
    let run = agent(options).generate("go", AgentState::initial()).await;
    assert!(matches!(run, Err(AgentError::NoResponse)), "{run:?}");
}

/// Says that it waits, though no call does.
fn idle<'a>(state: AgentState, context: &'a StepContext<'a>) -> Stepping<'a> {
    async move {
        let response = context.ask(context.request(&state)).await?;
        let state = state.with_response(response);
        let next = Next::Wait;
        Ok(StepOutcome { state, next })
    }
    .boxed()
}

#[tokio::test]
async fn a_strategy_that_waits_for_nothing_is_told_so_and_its_run_is_not_complete() {
    let mut options = scripted(vec![ScriptTurn::text("hello")]);
    options.execution = Arc::new(Own("idle", idle));
    let (options, hooks) = with(options, Keeping::default());
    let run = agent(options).generate("go", AgentState::initial()).await;
    assert!(
        matches!(&run, Err(AgentError::NothingWaits { strategy }) if strategy == "idle"),
        "{run:?}"
    );
    let lines = hooks.log.lines();
    assert!(
        !lines.iter().any(|it| it.starts_with("complete")),
        "{lines:?}"
    );
}

/// Says something to the model over the calls that it has just made.
fn rude<'a>(state: AgentState, context: &'a StepContext<'a>) -> Stepping<'a> {
    async move {
        let response = context.ask(context.request(&state)).await?;
        let state = state.with_response(response);
        let state = context.prompt(&state, "more", "Go on.").await?;
        let next = Next::Done;
        Ok(StepOutcome { state, next })
    }
    .boxed()
}

#[tokio::test]
async fn a_prompt_over_open_calls_is_refused() {
    let mut options = adding_once();
    options.execution = Arc::new(Own("rude", rude));
    let run = agent(options).generate("go", AgentState::initial()).await;
    assert!(
        matches!(run, Err(AgentError::OpenCalls { n_calls: 1 })),
        "{run:?}"
    );
}
