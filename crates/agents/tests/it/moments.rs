//! Hooks and events of strategies whose steps have phases (UAP §10, §11.2).

use crate::strategies::*;
use crate::support::*;
use futures_util::StreamExt;
use loomline_agents::{AgentError, AgentState, Plan, React};
use serde_json::{Value, json};
use std::sync::Arc;

#[tokio::test]
async fn react_calls_hooks_at_their_moments_in_generate_and_stream_alike() {
    let expected = [
        "start 1",
        "reason 1 I need a sum",
        "act 1 add",
        "observe 1 3.0",
        "end 1: 2 cycles, 5 messages",
        "stop?",
        "start 2",
        "reason 2 it is known",
        "end 2: 2 cycles, 4 messages",
        "stop?",
        "complete 4",
    ];
    for streams in [false, true] {
        let (mut options, _) = on_script(React::default(), two_react_steps());
        let hooks = Keeping::default();
        let log = hooks.log.clone();
        options.strategy = Arc::new(hooks);
        let mut stream = agent(options).stream("go", AgentState::initial());
        if streams {
            while stream.next().await.is_some() {}
        }
        stream.result().await.unwrap();
        assert_eq!(log.lines(), expected);
    }
}

#[tokio::test]
async fn the_stop_condition_is_asked_after_a_whole_step() {
    let (mut options, model) = on_script(React::default(), two_react_steps());
    options.strategy = Arc::new(Keeping {
        stops_at: Some(1),
        ..Keeping::default()
    });
    let result = generate(options).await;
    assert_eq!((result.state.step(), model.n_seen()), (1, 2));
    assert_eq!(results(&result.state)[0].result, 3.0, "the action was done");
}

#[tokio::test]
async fn a_failure_in_an_action_leaves_a_state_to_go_on_from() {
    let (mut options, _) = on_script(React::default(), vec![says("hm")]);
    let hooks = Keeping::default();
    let log = hooks.log.clone();
    options.strategy = Arc::new(hooks);
    let error = agent(options).query("go").await.unwrap_err();
    assert!(matches!(error, AgentError::Model(_)));
    assert_eq!(
        log.lines(),
        [
            "start 1",
            "reason 1 hm",
            "error at 1: the model call failed"
        ]
    );
}

#[tokio::test]
async fn events_show_the_phases_of_a_step() {
    let (options, _) = on_script(React::default(), two_react_steps());
    let stream = agent(options).stream("go", AgentState::initial());
    let events: Vec<Value> = stream
        .map(|event| serde_json::to_value(event).unwrap())
        .collect()
        .await;
    let own: Vec<String> = events
        .iter()
        .filter(|event| event["source"] == "uap")
        .map(|event| {
            format!(
                "{} {}",
                event["uap"]["type"].as_str().unwrap(),
                event["uap"]["step"]
            )
        })
        .collect();
    assert_eq!(
        own,
        [
            "step_start 1",
            "reasoning 1",
            "action 1",
            "observation 1",
            "step_end 1",
            "step_start 2",
            "reasoning 2",
            "step_end 2",
        ]
    );
    let reasoning = events
        .iter()
        .find(|it| it["uap"]["type"] == "reasoning")
        .unwrap();
    assert_eq!(
        reasoning["uap"]["data"],
        json!({"reasoning": "I need a sum"})
    );
}

#[tokio::test]
async fn plan_calls_hooks_at_their_moments_in_generate_and_stream_alike() {
    let expected = [
        "start 1",
        "end 1: 1 cycles, 2 messages",
        "stop?",
        "start 2",
        "act 2 add",
        "observe 2 3.0",
        "end 2: 2 cycles, 4 messages",
        "stop?",
        "start 3",
        "end 3: 1 cycles, 2 messages",
        "stop?",
        "complete 4",
    ];
    for streams in [false, true] {
        let (options, _) = on_script(Plan::default(), two_plan_steps());
        let (options, hooks) = with(options, Keeping::default());
        let mut stream = agent(options).stream("go", AgentState::initial());
        if streams {
            while stream.next().await.is_some() {}
        }
        stream.result().await.unwrap();
        assert_eq!(hooks.log.lines(), expected);
    }
}

#[tokio::test]
async fn events_show_the_plan_and_each_of_its_steps() {
    let (options, _) = on_script(Plan::default(), two_plan_steps());
    let stream = agent(options).stream("go", AgentState::initial());
    let events: Vec<Value> = stream
        .map(|event| serde_json::to_value(event).unwrap())
        .collect()
        .await;
    let own: Vec<&Value> = events
        .iter()
        .filter(|event| event["source"] == "uap")
        .map(|event| &event["uap"])
        .collect();
    let types: Vec<&str> = own
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        types,
        [
            "step_start",
            "step_end",
            "step_start",
            "action",
            "observation",
            "step_end",
            "step_start",
            "step_end",
        ],
        "no type that section 11.2 does not name"
    );
    assert_eq!(own[0]["data"], json!({"phase": "planning"}));
    assert_eq!(own[1]["data"]["plan"][0]["status"], "pending");
    let planned = |status| {
        json!({
            "phase": "executing",
            "planStep": {"id": "a", "description": "do a", "tool": "add", "dependsOn": [], "status": status},
        })
    };
    assert_eq!(own[2]["data"], planned("in_progress"));
    assert_eq!(own[5]["data"], planned("completed"));
    assert_eq!(own[6]["data"]["planStep"]["id"], "b");
}
