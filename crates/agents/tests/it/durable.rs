//! Steps as the runtime drives them: what is told when, and how a run goes on after a crash.

use crate::support::*;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use loomline_agents::{AgentError, AgentOptions, AgentState, Next};
use serde_json::{Value, json};
use std::future::ready;
use upp::{Message, ToolContext, ToolOutput};

fn two_calls(log: &Log) -> AgentOptions {
    let calls = vec![
        call("1", "tool", &[]),
        call("2", "tool", &["1"]),
        call("3", "tool", &["2"]),
    ];
    let mut options = options(Canned::calls(calls));
    options.tools = vec![noted("tool", 1, log)];
    options
}

fn open() -> AgentState {
    let calls = vec![
        call("1", "tool", &[]),
        call("2", "tool", &["1"]),
        call("3", "tool", &["2"]),
    ];
    AgentState::initial()
        .with_message("go")
        .with_message(asked(calls))
}

#[tokio::test]
async fn the_answer_is_kept_before_a_tool_starts_and_its_result_before_it_is_shown() {
    let agent = agent(two_calls(&Log::default()));
    let keeper = Keeper::default();
    let state = AgentState::initial().with_message("go");
    let outcome = agent
        .run_step(state, &keeper.context(&agent, &[]))
        .await
        .unwrap();
    assert_eq!(outcome.next, Next::Continue);
    assert_eq!(
        keeper.log.lines(),
        [
            "step_start",
            "responded",
            "action",
            "tool_execution_start 1",
            "returned 1",
            "tool_execution_end 1",
            "tool_execution_start 2",
            "returned 2",
            "tool_execution_end 2",
            "tool_execution_start 3",
            "returned 3",
            "tool_execution_end 3",
            "observation",
            "step_end",
        ]
    );
    let outcome = agent
        .run_step(outcome.state, &keeper.context(&agent, &[]))
        .await
        .unwrap();
    assert_eq!((outcome.next, outcome.state.step()), (Next::Done, 2));
}

#[tokio::test]
async fn a_state_that_ends_in_open_calls_goes_on_with_the_tools() {
    let log = Log::default();
    let agent = agent(two_calls(&log));
    let keeper = Keeper::default();
    let answered = [result("2", "before"), result("elsewhere", "ignored")];
    let outcome = agent
        .run_step(open(), &keeper.context(&agent, &answered))
        .await
        .unwrap();
    assert_eq!(
        log.lines(),
        ["+1", "-1", "+3", "-3"],
        "the second is not run again"
    );
    let answers = results(&outcome.state);
    assert_eq!(
        answers,
        [
            result("1", "tool"),
            result("2", "before"),
            result("3", "tool")
        ]
    );
    assert_eq!(
        outcome.state.messages().len(),
        3,
        "one message with all results"
    );
    assert!(
        !keeper.log.lines().contains(&"responded".to_owned()),
        "the model was not asked"
    );
}

#[tokio::test]
async fn calls_that_are_all_answered_run_nothing() {
    let log = Log::default();
    let agent = agent(two_calls(&log));
    let answered = ["3", "1", "2"].map(|id| result(id, id));
    let keeper = Keeper::default();
    let outcome = agent
        .run_step(open(), &keeper.context(&agent, &answered))
        .await
        .unwrap();
    assert!(log.lines().is_empty());
    assert_eq!(
        results(&outcome.state),
        ["1", "2", "3"].map(|id| result(id, id))
    );
    assert_eq!(outcome.next, Next::Continue);
}

#[tokio::test]
async fn a_repeated_step_has_its_number_again() {
    let agent = agent(two_calls(&Log::default()));
    let keeper = Keeper::default();
    let state = open().with_step(4);
    let first = agent
        .run_step(state.clone(), &keeper.context(&agent, &[]))
        .await
        .unwrap();
    let again = agent
        .run_step(state, &keeper.context(&agent, &[]))
        .await
        .unwrap();
    assert_eq!((first.state.step(), again.state.step()), (5, 5));
}

#[tokio::test]
async fn steps_one_by_one_make_the_run_that_generate_makes() {
    let mut options = adding();
    options.id = Some("same".into());
    let agent = agent(options);
    let whole = agent.generate("go", AgentState::initial()).await.unwrap();
    let keeper = Keeper::default();
    let mut state = AgentState::initial().with_message("go");
    loop {
        // Between steps there is nothing but the text of the state.
        let restored = AgentState::from_json(&state.to_json().unwrap()).unwrap();
        let outcome = agent
            .run_step(restored, &keeper.context(&agent, &[]))
            .await
            .unwrap();
        state = outcome.state;
        if outcome.next == Next::Done {
            break;
        }
    }
    assert_eq!(content(&state), content(&whole.state));
}

#[tokio::test]
async fn a_keepers_refusal_stops_the_run_at_once() {
    for (refuses, n_started) in [
        ("responded", 0),
        ("tool_execution_start", 0),
        ("returned", 1),
    ] {
        let log = Log::default();
        let agent = agent(two_calls(&log));
        let keeper = Keeper {
            refuses: Some(refuses),
            ..Keeper::default()
        };
        let state = AgentState::initial().with_message("go");
        let run = agent.run_step(state, &keeper.context(&agent, &[])).await;
        assert!(matches!(run, Err(AgentError::Cancelled)), "{refuses}");
        assert_eq!(log.lines().len(), n_started * 2, "{refuses}");
        assert!(keeper.log.lines().last().unwrap().starts_with(refuses));
    }
}

#[tokio::test]
async fn a_keeper_without_a_scope_has_keys_by_the_response_that_made_the_calls() {
    let log = Log::default();
    let lines = log.clone();
    let mut options = two_calls(&log);
    options.tools = vec![tool("tool", move |_: Value, context: ToolContext| {
        lines.add(&*context.idempotency_key);
        ready(Ok(Value::Null)).boxed() as BoxFuture<'static, ToolOutput>
    })];
    let agent = agent(options);
    let keeper = Keeper::default();
    let state = open();
    let response = state.last_response().unwrap().id.as_str().to_owned();
    let restored = AgentState::from_json(&state.to_json().unwrap()).unwrap();
    for state in [state, restored] {
        let mut context = keeper.context(&agent, &[]);
        context.scope = "";
        agent.run_step(state, &context).await.unwrap();
    }
    let keys = ["1", "2", "3", "1", "2", "3"].map(|id| format!("{response}:{id}"));
    assert_eq!(log.lines(), keys);
}

#[tokio::test]
async fn a_cancelled_signal_runs_nothing() {
    let log = Log::default();
    let agent = agent(two_calls(&log));
    let keeper = Keeper::default();
    let context = keeper.context(&agent, &[]);
    context.signal.cancel();
    assert!(matches!(
        agent.run_step(open(), &context).await,
        Err(AgentError::Cancelled)
    ));
    assert!(log.lines().is_empty() && keeper.log.lines().is_empty());
}

#[tokio::test]
async fn a_round_that_does_not_wait_has_one_message_of_results() {
    let agent = agent(two_calls(&Log::default()));
    let result = agent.generate("go", AgentState::initial()).await.unwrap();
    let kinds: Vec<&str> = result
        .state
        .messages()
        .iter()
        .map(|message| match message {
            Message::User(_) => "user",
            Message::Assistant(_) => "assistant",
            Message::ToolResult(_) => "results",
        })
        .collect();
    assert_eq!(
        json!(kinds),
        json!(["user", "assistant", "results", "assistant"])
    );
}
