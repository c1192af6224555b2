//! How a run waits and goes on: order, hooks, events, limits, laws.

mod context;
mod elsewhere;
mod law;
mod order;
mod plans;

use crate::support::*;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use loomline_agents::{
    Agent, AgentError, AgentState, AgentStrategy, AnswerError, Answers, GenerateResult, Limit,
    Loop, Middleware, MiddlewareContext, Next,
};
use serde_json::json;
use std::future::ready;
use std::num::NonZeroU32;
use std::sync::Arc;
use upp::{Message, Tool, ToolCall, ToolResult};

/// Tools that note their calls; `gate` waits for approval.
fn tools(log: &Log) -> Vec<Tool> {
    let mut tools = vec![
        noted("gate", 1, log).with_requires_approval(),
        noted("lock", 1, log)
            .with_requires_approval()
            .with_sequential(),
        noted("free", 1, log),
        noted("last", 1, log).with_depends_on(["gate"]),
    ];
    tools.push(Tool::external("far", "", json!({"type": "object"})));
    tools
}

fn calling(log: &Log, calls: Vec<ToolCall>) -> Agent {
    let mut options = options(Canned::calls(calls));
    options.tools = tools(log);
    agent(options)
}

async fn start(agent: &Agent) -> GenerateResult {
    agent.generate("go", AgentState::initial()).await.unwrap()
}

fn ids(result: &GenerateResult) -> Vec<&str> {
    let calls = result.pending.iter();
    calls.map(|it| it.call.tool_call_id.as_str()).collect()
}

fn answered(state: &AgentState) -> Vec<String> {
    results(state)
        .iter()
        .map(|it| it.tool_call_id.to_string())
        .collect()
}

#[tokio::test]
async fn each_act_appends_one_message_of_results_and_none_if_nothing_ran() {
    let agent = calling(
        &Log::default(),
        vec![call("g", "gate", &[]), call("x", "far", &[])],
    );
    let waiting = start(&agent).await;
    assert_eq!(waiting.state.messages().len(), 2);
    let half = agent
        .resume(Answers::new().result("x", 1), waiting.state)
        .await
        .unwrap();
    assert_eq!(half.state.messages().len(), 3);
    let done = agent
        .resume(Answers::new().approve("g"), half.state)
        .await
        .unwrap();
    let kinds: Vec<&str> = done
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
        kinds,
        ["user", "assistant", "results", "results", "assistant"]
    );
}

#[tokio::test]
async fn action_and_observation_come_once_a_response() {
    let calls = vec![
        call("g", "gate", &[]),
        call("f", "free", &[]),
        call("x", "far", &[]),
    ];
    let agent = calling(&Log::default(), calls);
    let mut seen = Vec::new();
    let mut stream = agent.stream("go", AgentState::initial());
    while let Some(event) = stream.next().await {
        seen.push(brief(&event));
    }
    let mut state = stream.result().await.unwrap().state;
    assert_eq!(
        seen,
        [
            "step_start",
            "action",
            "tool_execution_start f",
            "tool_execution_end f"
        ]
    );
    let answers = [
        Answers::new().approve("g"),
        Answers::new().result("x", "here"),
    ];
    let expected: [&[&str]; 2] = [
        &[
            "step_start",
            "tool_execution_start g",
            "tool_execution_end g",
        ],
        &[
            "step_start",
            "tool_execution_end x",
            "observation",
            "step_end",
            "step_start",
            "step_end",
        ],
    ];
    for (answers, expected) in answers.into_iter().zip(expected) {
        let mut stream = agent.resume_stream(answers, state);
        let mut seen = Vec::new();
        while let Some(event) = stream.next().await {
            seen.push(brief(&event));
        }
        state = stream.result().await.unwrap().state;
        assert_eq!(seen, expected);
    }
}

#[derive(Default)]
struct Noting(Log);

impl AgentStrategy for Noting {
    fn on_step_start(&self, step: u64, _: &AgentState) {
        self.0.add(format!("start {step}"));
    }

    fn on_act(&self, _: u64, actions: &[ToolCall]) {
        self.0.add(format!("act {}", actions.len()));
    }

    fn on_observe(&self, _: u64, observations: &[ToolResult]) {
        let ids: Vec<&str> = observations
            .iter()
            .map(|it| it.tool_call_id.as_str())
            .collect();
        self.0.add(format!("observe {ids:?}"));
    }

    fn on_step_end(&self, step: u64, _: &GenerateResult) {
        self.0.add(format!("end {step}"));
    }

    fn stop_condition<'a>(&'a self, _: &'a AgentState) -> BoxFuture<'a, bool> {
        self.0.add("stop?");
        ready(false).boxed()
    }

    fn on_complete(&self, _: &GenerateResult) {
        self.0.add("complete");
    }
}

#[tokio::test]
async fn hooks_that_mean_an_end_come_when_the_step_ends() {
    let log = Log::default();
    let mut options = options(Canned::calls(vec![
        call("g", "gate", &[]),
        call("f", "free", &[]),
    ]));
    options.tools = tools(&Log::default());
    options.strategy = Arc::new(Noting(log.clone()));
    let agent = agent(options);
    let waiting = start(&agent).await;
    assert_eq!(log.lines(), ["start 1", "act 2"]);
    agent
        .resume(Answers::new().approve("g"), waiting.state)
        .await
        .unwrap();
    assert_eq!(
        log.lines()[2..],
        [
            "start 1",
            r#"observe ["g", "f"]"#,
            "end 1",
            "stop?",
            "start 2",
            "end 2",
            "stop?",
            "complete",
        ]
    );
}

#[tokio::test]
async fn a_round_that_waits_counts_once() {
    let limit = |n| {
        let mut options = options(Canned::calls(vec![
            call("g", "gate", &[]),
            call("f", "free", &[]),
            call("x", "far", &[]),
        ]));
        options.tools = tools(&Log::default());
        options.execution = Arc::new(Loop {
            max_iterations: Limit::AtMost(NonZeroU32::new(n).unwrap()),
        });
        agent(options)
    };
    let agent = limit(1);
    let waiting = start(&agent).await;
    let half = agent
        .resume(Answers::new().approve("g"), waiting.state)
        .await
        .unwrap();
    let done = agent
        .resume(Answers::new().result("x", 1), half.state)
        .await
        .unwrap();
    assert_eq!(done.turn.response.joined_text(), "done");
}

struct Layer(Log);

impl Middleware for Layer {
    fn name(&self) -> &'static str {
        "layer"
    }

    fn before<'a>(
        &'a self,
        context: &'a mut MiddlewareContext,
    ) -> BoxFuture<'a, Result<(), AgentError>> {
        let Message::User(input) = &context.input else {
            unreachable!("the input is the message of the user");
        };
        self.0.add(format!("before {}", json!(input.content)));
        context.input = "ignored on the second run".into();
        ready(Ok(())).boxed()
    }

    fn after<'a>(
        &'a self,
        _: &'a mut MiddlewareContext,
        result: GenerateResult,
    ) -> BoxFuture<'a, Result<GenerateResult, AgentError>> {
        self.0.add(format!("after {}", result.pending.len()));
        ready(Ok(result)).boxed()
    }
}

#[tokio::test]
async fn a_resumed_run_passes_the_middleware_with_the_message_it_began_with() {
    let log = Log::default();
    let mut options = options(Canned::calls(vec![call("g", "gate", &[])]));
    options.tools = tools(&Log::default());
    options.middleware = vec![Arc::new(Layer(log.clone()))];
    let agent = agent(options);
    let waiting = start(&agent).await;
    let done = agent
        .resume(Answers::new().approve("g"), waiting.state)
        .await
        .unwrap();
    let said = r#"[{"type":"text","text":"ignored on the second run"}]"#;
    assert_eq!(
        log.lines(),
        [
            r#"before [{"type":"text","text":"go"}]"#.to_owned(),
            "after 1".to_owned(),
            format!("before {said}"),
            "after 0".to_owned(),
        ]
    );
    let n_users = done
        .state
        .messages()
        .iter()
        .filter(|it| matches!(it, Message::User(_)))
        .count();
    assert_eq!(n_users, 1);
}

#[tokio::test]
async fn a_step_that_waits_says_so_to_its_keeper() {
    let log = Log::default();
    let agent = calling(&log, vec![call("g", "gate", &[]), call("x", "far", &[])]);
    let keeper = Keeper::default();
    let state = AgentState::initial().with_message("go");
    let waiting = agent
        .run_step(state, &keeper.context(&agent, &[]))
        .await
        .unwrap();
    assert_eq!((waiting.next, waiting.state.step()), (Next::Wait, 0));
    assert_eq!(keeper.log.lines(), ["step_start", "responded", "action"]);
    let answers = Answers::new().deny("g").result("x", 1);
    let mut context = keeper.context(&agent, &[]);
    context.answers = Some(&answers);
    let went_on = agent.run_step(waiting.state, &context).await.unwrap();
    assert_eq!((went_on.next, went_on.state.step()), (Next::Continue, 1));
    let lines = keeper.log.lines();
    for line in ["returned g", "returned x", "observation", "step_end"] {
        assert!(lines.contains(&line.to_owned()), "{line}: {lines:?}");
    }
    assert!(
        !lines.contains(&"tool_execution_start g".to_owned()),
        "nothing started"
    );
}

#[tokio::test]
async fn what_a_crash_left_is_taken_in_a_waiting_round_too() {
    let log = Log::default();
    let calls = vec![
        call("g", "gate", &[]),
        call("1", "free", &[]),
        call("2", "free", &[]),
    ];
    let agent = calling(&log, calls.clone());
    let state = AgentState::initial()
        .with_message("go")
        .with_message(asked(calls));
    let keeper = Keeper::default();
    let before = [result("1", "before"), result("g", "before, too")];
    let outcome = agent
        .run_step(state, &keeper.context(&agent, &before))
        .await
        .unwrap();
    assert_eq!(outcome.next, Next::Continue, "every call has its result");
    assert_eq!(log.lines(), ["+2", "-2"]);
    assert_eq!(answered(&outcome.state), ["g", "1", "2"]);
}

#[tokio::test]
async fn a_call_of_a_tool_that_there_is_not_waits_where_calls_are_foreign() {
    for foreign in [false, true] {
        let mut options = options(Canned::calls(vec![call("x", "nowhere", &[])]));
        options.tools = tools(&Log::default());
        options.foreign_calls = foreign;
        let agent = agent(options);
        let waiting = start(&agent).await;
        if !foreign {
            assert_eq!(ids(&waiting), [""; 0]);
            continue;
        }
        assert_eq!(ids(&waiting), ["x"]);
        let answers = Answers::new().result("x", 42);
        let done = agent.resume(answers, waiting.state).await.unwrap();
        assert!(done.pending.is_empty());
        assert_eq!(answered(&done.state), ["x"]);
    }
}
