//! A strategy of the application's own (UAP §5.1, §5.5).

use crate::support::*;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use loomline_agents::{
    AgentError, AgentOptions, AgentState, ExecutionStrategy, Next, StepContext, StepOutcome,
};
use std::sync::Arc;
use upp::{Message, ScriptTurn};

/// Asks the model once, runs what it calls, and stops, whatever comes of it.
struct Once;

impl ExecutionStrategy for Once {
    fn name(&self) -> &'static str {
        "once"
    }

    fn step<'a>(
        &'a self,
        state: AgentState,
        context: &'a StepContext<'a>,
    ) -> BoxFuture<'a, Result<StepOutcome, AgentError>> {
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
}

fn once() -> AgentOptions {
    let mut turn = ScriptTurn::call("add", serde_json::json!({"a": 1, "b": 2}));
    turn.tool_calls[0].id = Some("c".to_owned());
    let mut options = scripted(vec![turn]);
    options.tools = vec![add()];
    options.execution = Arc::new(Once);
    options
}

#[tokio::test]
async fn a_strategy_of_ones_own_asks_the_model_and_runs_tools() {
    let result = generate(once()).await;
    assert_eq!(result.turn.cycles, 1);
    assert_eq!(results(&result.state)[0].result, 3.0);
    assert_eq!((result.state.step(), result.state.messages().len()), (1, 3));
    assert_eq!(result.turn.tool_executions.len(), 1);
}

#[tokio::test]
async fn a_strategy_of_ones_own_is_streamed_without_a_line_of_its_own() {
    let stream = agent(once()).stream("go", AgentState::initial());
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
