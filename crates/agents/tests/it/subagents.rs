//! Sub-agents: their events, their traces, their models (UAP §8).

mod models;
mod running;
mod traces;

use crate::support::*;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use loomline_agents::{
    Agent, AgentOptions, AgentState, AgentStrategy, AgentStreamEvent, GenerateResult, Spawn,
    SubAgent, SubAgentHost, SubAgentRun, SubAgentTool, SubagentEnd, SubagentEvent,
    SubagentExecutionTrace, UapEvent, subagent_tool,
};
use serde_json::{Value, json};
use std::future::ready;
use std::sync::{Arc, Mutex};
use upp::scripted::ScriptFailure;
use upp::{Code, Llm, LlmOptions, Message, Messages, ScriptTurn, Scripted, Tool, ToolFailure};

fn schema() -> Value {
    json!({"type": "object", "properties": {"task": {"type": "string"}}, "required": ["task"]})
}

fn definition(name: &str, agent: impl Into<SubAgent>) -> SubAgentTool {
    SubAgentTool::new(name, "Does a task.", schema(), agent, |arguments| {
        let task = arguments["task"].as_str();
        task.map(Message::from)
            .ok_or_else(|| ToolFailure::new("no task"))
    })
}

/// An agent that adds once and then says `added`.
fn adder() -> Agent {
    let mut turn = ScriptTurn::call("add", json!({"a": 1, "b": 2}));
    turn.tool_calls[0].id = Some("inner".to_owned());
    let mut options = scripted(vec![turn, ScriptTurn::text("added")]);
    options.tools = vec![add()];
    agent(options)
}

/// An agent that gives each of these tools a task, all at once, then says `done`.
fn lead(tools: Vec<Tool>) -> AgentOptions {
    let calls = tools.iter().map(|tool| {
        let mut call = call(&format!("call_{}", tool.name), &tool.name, &[]);
        call.arguments = upp::Arguments::from_value(&json!({"task": "go on"}));
        call
    });
    let mut options = options(Canned::calls(calls.collect()));
    options.tools = tools;
    options
}

/// A model call that fails.
fn failing(code: Code) -> ScriptTurn {
    ScriptTurn {
        error: Some(ScriptFailure {
            code,
            message: "on purpose".to_owned(),
            retry_after_ms: None,
        }),
        ..ScriptTurn::default()
    }
}

fn uap(event: &AgentStreamEvent) -> Option<UapEvent> {
    match event {
        AgentStreamEvent::Uap { uap } => Some(uap.clone()),
        AgentStreamEvent::Upp { .. } => None,
    }
}

/// What the stream of this run shows of sub-agents, and the result.
async fn watched(options: AgentOptions) -> (Vec<SubagentEvent>, GenerateResult) {
    let mut stream = agent(options).stream("go", AgentState::initial());
    let mut seen = Vec::new();
    while let Some(event) = stream.next().await {
        seen.extend(uap(&event).and_then(|event| event.subagent()));
    }
    (seen, stream.result().await.unwrap())
}

fn ends(events: &[SubagentEvent]) -> Vec<&SubagentEnd> {
    let ends = events.iter().filter_map(|event| match event {
        SubagentEvent::End(end) => Some(end),
        SubagentEvent::Start(_) | SubagentEvent::Forwarded(_) => None,
    });
    ends.collect()
}

fn traces(state: &AgentState) -> Vec<&SubagentExecutionTrace> {
    state.subagent_traces().collect()
}

#[tokio::test]
async fn the_model_sees_the_schema_that_was_declared_and_nothing_of_the_agent() {
    let tool = subagent_tool(definition("explore", adder()));
    assert_eq!(
        (tool.name.as_str(), &*tool.parameters),
        ("explore", &schema())
    );
    assert_eq!(tool.description, "Does a task.");
    let ran = generate(lead(vec![tool])).await;
    assert_eq!(results(&ran.state), [result("call_explore", "added")]);
    assert_eq!(ran.turn.response.joined_text(), "done");
}

#[tokio::test]
async fn the_parents_stream_shows_start_inner_events_and_end_under_one_id() {
    let (events, result) = watched(lead(vec![subagent_tool(definition("explore", adder()))])).await;
    let Some(SubagentEvent::Start(start)) = events.first() else {
        panic!("{events:?}");
    };
    let Some(SubagentEvent::End(end)) = events.last() else {
        panic!("{events:?}");
    };
    assert_eq!(start.prompt, "go on");
    assert_eq!(
        start.subagent_type, "explore",
        "the name unless it is given"
    );
    assert_eq!(start.parent_tool_call_id.as_str(), "call_explore");
    assert_eq!(
        uuid::Uuid::parse_str(&start.subagent_id)
            .unwrap()
            .get_version_num(),
        4
    );
    assert!(start.timestamp <= end.timestamp);
    assert!(end.success && end.error.is_none());
    assert_eq!(end.result.as_deref(), Some("added"));
    assert_eq!(end.usage.as_ref().unwrap().cycles.len(), 2);
    let tools = end.tool_executions.as_ref().unwrap();
    assert_eq!((tools.len(), tools[0].tool_name.as_str()), (1, "add"));
    assert_eq!(tools[0].tool_call_id.as_ref().unwrap().as_str(), "inner");
    assert_eq!(json!(tools[0].arguments), json!({"a": 1, "b": 2}));
    assert_eq!(
        (tools[0].result.as_str(), tools[0].is_error),
        ("3.0", Some(false))
    );
    assert!(tools[0].duration.is_some());

    let mut inner = Vec::new();
    for event in &events[1..events.len() - 1] {
        let SubagentEvent::Forwarded(event) = event else {
            panic!("{event:?}");
        };
        assert_eq!(event.subagent_id, start.subagent_id);
        assert_eq!(event.parent_tool_call_id, start.parent_tool_call_id);
        inner.push(brief(&event.inner_event));
    }
    assert_eq!(inner.first().unwrap(), "step_start");
    assert_eq!(inner.last().unwrap(), "step_end");
    for kind in [
        "action",
        "tool_execution_start inner",
        "tool_execution_end inner",
        "text_delta",
    ] {
        assert!(inner.contains(&kind.to_owned()), "{kind}: {inner:?}");
    }
    let trace = traces(&result.state)[0];
    assert_eq!(trace.subagent_id, end.subagent_id);
    assert_eq!(
        (trace.start_time, trace.end_time),
        (start.timestamp, end.timestamp)
    );
}

#[tokio::test]
async fn events_have_the_fields_of_section_8_7_and_the_parents_step_and_id() {
    let mut options = lead(vec![subagent_tool(definition("explore", adder()))]);
    options.id = Some("parent".into());
    let stream = agent(options).stream("go", AgentState::initial());
    let events: Vec<Value> = stream
        .filter_map(|event| ready(uap(&event)))
        .filter(|event| ready(event.subagent().is_some()))
        .map(|event| json!(event))
        .collect()
        .await;
    for event in &events {
        assert_eq!(
            (&event["agentId"], &event["step"]),
            (&json!("parent"), &json!(1))
        );
    }
    let keys = |event: &Value| {
        let mut keys: Vec<String> = event["data"].as_object().unwrap().keys().cloned().collect();
        keys.sort();
        keys
    };
    let ids = ["parentToolCallId", "subagentId", "subagentType"];
    let with = |more: &[&str]| {
        let mut keys: Vec<String> = ids.iter().chain(more).map(ToString::to_string).collect();
        keys.sort();
        keys
    };
    assert_eq!(events[0]["type"], "subagent_start");
    assert_eq!(keys(&events[0]), with(&["prompt", "timestamp"]));
    assert_eq!(events[1]["type"], "subagent_event");
    assert_eq!(keys(&events[1]), with(&["innerEvent"]));
    assert_eq!(events[1]["data"]["innerEvent"]["uap"]["type"], "step_start");
    let end = events.last().unwrap();
    assert_eq!(end["type"], "subagent_end");
    assert_eq!(
        keys(end),
        with(&["result", "success", "timestamp", "toolExecutions", "usage"])
    );
}

#[tokio::test]
async fn the_start_is_shown_before_the_sub_agent_begins_and_the_end_before_its_call_returns() {
    let keeper = Keeper::default();
    let log = keeper.log.clone();
    let child = agent(options(Canned::new(move |_| {
        log.add("the child's model is asked");
        Some(said("fine"))
    })));
    let parent = agent(lead(vec![subagent_tool(definition("explore", child))]));
    let outcome = parent
        .run_step(
            AgentState::initial().with_message("go"),
            &keeper.context(&parent, &[]),
        )
        .await
        .unwrap();
    let mut lines = keeper.log.lines();
    let asked = lines.iter().position(|line| line.starts_with("the child"));
    let started = lines.iter().position(|line| line == "subagent_start");
    assert!(started.unwrap() < asked.unwrap());
    lines.remove(asked.unwrap());
    assert_eq!(
        lines,
        [
            "step_start",
            "responded",
            "action",
            "tool_execution_start call_explore",
            "subagent_start",
            "subagent_event",
            "subagent_event",
            "subagent_end",
            "traced call_explore",
            "returned call_explore",
            "tool_execution_end call_explore",
            "observation",
            "step_end",
        ]
    );
    assert_eq!(traces(&outcome.state).len(), 1, "through run_step, too");
}

/// An agent whose only tool is `name`, which is this agent.
fn above(name: &str, agent: Agent) -> Agent {
    crate::support::agent(lead(vec![subagent_tool(definition(name, agent))]))
}

#[tokio::test]
async fn what_happens_inside_can_be_kept_inside() {
    let mut quiet = definition("quiet", adder());
    quiet.propagate_events = false;
    quiet.subagent_type = Some("adder".to_owned());
    let (events, result) = watched(lead(vec![subagent_tool(quiet)])).await;
    let kinds: Vec<bool> = events
        .iter()
        .map(|event| matches!(event, SubagentEvent::Forwarded(_)))
        .collect();
    assert_eq!(kinds, [false, false], "start and end");
    assert_eq!(ends(&events)[0].subagent_type, "adder");
    assert_eq!(
        traces(&result.state)[0]
            .tool_executions
            .as_ref()
            .unwrap()
            .len(),
        1
    );
}
