//! What is nested deeply: refused where it comes in, so that no state is unreadable (UAP §12.3).

use crate::strategies::gate;
use crate::support::*;
use loomline_agents::checkpoint::{Checkpoints, MemoryCheckpoints};
use loomline_agents::{
    AgentError, AgentState, AnswerError, Answers, MAX_DEPTH, StateError, SubAgentTool, ThreadTree,
    TreeError, subagent_tool,
};
use serde_json::{Value, json};
use upp::{Arguments, Tool, ToolCall};

fn nested(n: usize) -> Value {
    (0..n).fold(json!(1), |inner, _| Value::Array(vec![inner]))
}

/// A call with arguments of this depth.
fn deep_call(id: &str, name: &str, depth: usize) -> ToolCall {
    let inner = depth - 1;
    let text = format!("{{\"a\":{}{}}}", "[".repeat(inner), "]".repeat(inner));
    ToolCall {
        arguments: Arguments::from_text(&text),
        ..call(id, name, &[])
    }
}

fn is_readable(state: &AgentState) -> bool {
    AgentState::from_json(&state.to_json().unwrap()).is_ok_and(|read| read == *state)
}

#[tokio::test]
async fn a_result_that_is_nested_too_deeply_is_an_error_result() {
    for (depth, is_taken) in [(MAX_DEPTH, true), (MAX_DEPTH + 1, false), (500, false)] {
        let mut options = options(Canned::calls(vec![call("1", "deep", &[])]));
        options.tools = vec![quick("deep", move |_| Ok(nested(depth)))];
        let checkpoints = Checkpoints::from(MemoryCheckpoints::new());
        options.checkpoints = Some(checkpoints.clone());
        options.session_id = Some("s".to_owned());
        let done = generate(options).await;
        let answer = &results(&done.state)[0];
        assert_eq!(answer.is_error, !is_taken, "{depth}");
        if !is_taken {
            let text = answer.result.as_str().unwrap();
            assert!(
                text.starts_with("The result is nested too deeply"),
                "{text}"
            );
        }
        assert!(is_readable(&done.state));
        checkpoints.flush().await;
        let saved = checkpoints.store().load("s").await.unwrap().unwrap();
        assert_eq!(AgentState::from_json(&saved).unwrap(), done.state);
    }
}

#[tokio::test]
async fn arguments_that_are_nested_too_deeply_run_nothing_and_can_be_read_again() {
    let depths = [MAX_DEPTH, MAX_DEPTH + 1, 127, 300, 20_000];
    let calls = depths.map(|depth| deep_call(&depth.to_string(), "tool", depth));
    let log = Log::default();
    let mut options = options(Canned::calls(calls.to_vec()));
    options.tools = vec![noted("tool", 0, &log)];
    let done = generate(options).await;
    assert_eq!(log.lines(), ["+100", "-100"]);
    let errors: Vec<bool> = results(&done.state).iter().map(|it| it.is_error).collect();
    assert_eq!(errors, [false, true, true, true, true]);
    assert!(is_readable(&done.state));
}

#[tokio::test]
async fn the_trace_of_a_sub_agent_can_be_read_again_whatever_its_tools_took_and_gave() {
    let calls = [MAX_DEPTH, MAX_DEPTH + 1, 127].map(|n| deep_call(&n.to_string(), "deep", n));
    let mut inner = options(Canned::calls(calls.to_vec()));
    inner.tools = vec![quick("deep", |_| Ok(nested(500)))];
    let schema = json!({"type": "object"});
    let tool = SubAgentTool::new(
        "helper",
        "Helps.",
        schema,
        agent(inner),
        |_| Ok("go".into()),
    );
    let mut options = options(Canned::calls(vec![call("1", "helper", &[])]));
    options.tools = vec![subagent_tool(tool)];
    let done = generate(options).await;
    let trace = done.state.subagent_traces().next().unwrap();
    let executions = trace.tool_executions.as_ref().unwrap();
    assert_eq!(executions.len(), 3);
    assert!(executions[2].arguments["arguments"].is_string());
    assert!(is_readable(&done.state));
}

#[tokio::test]
async fn answers_that_are_nested_too_deeply_are_refused() {
    let mut options = options(Canned::calls(vec![
        call("g", "gate", &[]),
        call("f", "far", &[]),
    ]));
    let far = Tool::external("far", "", json!({"type": "object"}));
    options.tools = vec![gate(), far];
    let agent = agent(options);
    let waiting = agent.generate("go", AgentState::initial()).await.unwrap();
    let answers = |depth| {
        let arguments = json!({"a": nested(depth - 1)});
        [
            Answers::new().approve_with("g", arguments),
            Answers::new().result("f", nested(depth)),
        ]
    };
    for deep in answers(MAX_DEPTH + 1) {
        let refused = agent.resume(deep, waiting.state.clone()).await;
        let Err(AgentError::Answers(AnswerError::TooDeep { call })) = refused else {
            panic!("{refused:?}");
        };
        assert!(["g", "f"].contains(&call.as_str()));
    }
    for taken in answers(MAX_DEPTH) {
        let result = agent.resume(taken, waiting.state.clone()).await.unwrap();
        assert!(is_readable(&result.state));
    }
}

#[test]
fn a_state_that_could_not_be_read_again_is_not_written() {
    for n in [MAX_DEPTH, 110, 120, 124, 125, 126, 127, 500] {
        let state = AgentState::initial().with_metadata("deep", nested(n));
        match state.to_json() {
            Ok(json) => assert_eq!(AgentState::from_json(&json).unwrap(), state),
            Err(error) => {
                assert!(n > 120, "{n}");
                assert!(matches!(error, StateError::TooDeep(_)), "{error:?}");
            }
        }
        let mut tree = ThreadTree::new();
        tree.set_state(state.clone());
        for json in [tree.to_json(), tree.to_compact_json()] {
            match json {
                Ok(json) => assert!(ThreadTree::from_json(&json).is_ok()),
                Err(error) => assert!(matches!(error, TreeError::State { .. }), "{error:?}"),
            }
        }
        assert_eq!(tree.to_json().is_ok(), state.to_json().is_ok(), "{n}");
    }
}
