use super::*;
use crate::plan::PlanStatus;
use crate::trace::ToolExecutionTrace;
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeSet;
use upp::{
    Arguments, AssistantContent, AssistantMessage, Media, MediaSource, MessageOptions, ToolCall,
    ToolResult, ToolResultMessage, UserContent, UserMessage,
};

/// One of everything a state can hold.
fn full() -> AgentState {
    let options = |id: &str| MessageOptions {
        id: Some(id.into()),
        timestamp: Some("2026-01-02T03:04:05.123456789Z".parse().unwrap()),
        metadata: json!({"openai": {"unknown": [1, null], "n": 1.5}})
            .as_object()
            .cloned()
            .map(Into::into),
    };
    let source = MediaSource::Base64 {
        data: "AP8=".to_owned(),
    };
    let image = Media::new(source, "image/png");
    let call = ToolCall {
        tool_call_id: "call_1".into(),
        tool_name: "add".into(),
        arguments: Arguments::from_text(r#"{"b": 1e2,  "a":12345678901234567890123}"#),
        after: vec!["call_0".into()],
    };
    let said = AssistantContent::Reasoning {
        text: "so".to_owned(),
        signature: Some("s".to_owned()),
    };
    let result = ToolResult {
        tool_call_id: "call_1".into(),
        result: json!({"sum": [1, 2.5]}).into(),
        is_error: true,
    };
    AgentState::initial()
        .with_message(UserMessage::new(
            vec![UserContent::Image(image)],
            options("m1"),
        ))
        .with_message(AssistantMessage::new(vec![said], vec![call], options("m2")))
        .with_message(ToolResultMessage::new(vec![result], options("m3")))
        .with_step(7)
        .with_metadata("z", json!({"deep": [true, null]}))
        .with_metadata("a", "text")
        .with_reasoning("first")
        .with_reasoning("second")
        .with_plan([step()])
        .with_phase(Some("act".into()))
        .with_subagent_trace(trace())
}

fn step() -> PlanStep {
    PlanStep {
        id: "1".to_owned(),
        description: "look".to_owned(),
        tool: Some("add".to_owned()),
        depends_on: vec!["0".to_owned()],
        status: PlanStatus::InProgress,
    }
}

fn trace() -> SubagentExecutionTrace {
    SubagentExecutionTrace {
        subagent_id: "s".to_owned(),
        subagent_type: "explorer".to_owned(),
        parent_tool_call_id: "call_1".into(),
        prompt: "find".to_owned(),
        start_time: 1,
        end_time: 2,
        success: true,
        result: Some("found".to_owned()),
        error: None,
        tool_executions: Some(vec![ToolExecutionTrace {
            tool_name: "grep".to_owned(),
            tool_call_id: Some("inner".into()),
            arguments: Map::from_iter([("q".to_owned(), json!("x"))]),
            result: "[1]".to_owned(),
            is_error: Some(false),
            duration: Some(3),
        }]),
        usage: Some(upp::TokenUsage::default()),
    }
}

/// One of the operations, by number.
fn operate(state: &AgentState, operation: usize) -> AgentState {
    match operation {
        0 => state.with_message("one"),
        1 => state.with_messages(["two".into(), "three".into()]),
        2 => state.with_context(["fresh".into()]),
        3 => state.with_step(state.step() + 1),
        4 => state.with_metadata("k", state.step()),
        5 => state.with_reasoning("because"),
        6 => state.with_plan([step()]),
        7 => state.with_phase(Some("act".into())),
        8 => state.with_phase(None),
        _ => state.with_subagent_trace(trace()),
    }
}

#[test]
fn the_initial_state_is_empty() {
    let state = AgentState::initial();
    assert_eq!((state.messages().len(), state.step()), (0, 0));
    assert_eq!((state.metadata().len(), state.reasoning().len()), (0, 0));
    assert_eq!((state.plan(), state.subagent_traces().len()), (None, 0));
    assert_eq!(state.phase(), None);
}

#[test]
fn with_context_replaces_where_with_messages_appends() {
    let state = AgentState::initial()
        .with_message("Hello")
        .with_message("Hi");
    assert_eq!(state.with_messages(["Goodbye".into()]).messages().len(), 3);
    assert_eq!(
        state.with_context(["Fresh start".into()]).messages().len(),
        1
    );
    assert_eq!(state.with_context([]).messages().len(), 0);
}

#[test]
fn a_longer_history_shares_its_messages_with_the_shorter_one() {
    let short =
        AgentState::initial().with_messages((0..1000).map(|n| n.to_string().as_str().into()));
    let long = short.with_message("one more").with_step(1);
    assert_eq!(long.messages().len(), 1001);
    for (one, other) in short.messages().iter().zip(long.messages()) {
        let (Message::User(one), Message::User(other)) = (one, other) else {
            panic!("all are the user's");
        };
        assert!(Arc::ptr_eq(one, other));
    }
}

#[test]
fn the_json_of_a_state_is_that_of_section_12_1() {
    let json: Value = serde_json::from_str(&full().to_json().unwrap()).unwrap();
    assert_eq!(json["version"], "1.0.0");
    assert_eq!(json["messages"][0]["type"], "user");
    assert_eq!(
        json["messages"][0]["timestamp"],
        "2026-01-02T03:04:05.123456789Z"
    );
    assert_eq!(json["messages"][0]["content"][0]["source"]["data"], "AP8=");
    assert_eq!(
        json["messages"][1]["metadata"]["openai"]["unknown"],
        json!([1, null])
    );
    assert_eq!(json["plan"][0]["dependsOn"], json!(["0"]));
    assert_eq!(json["plan"][0]["status"], "in_progress");
    assert_eq!(
        json["subagentTraces"][0]["toolExecutions"][0]["toolName"],
        "grep"
    );
}

#[test]
fn a_state_is_restored_exactly() {
    let state = full();
    let json = state.to_json().unwrap();
    let restored = AgentState::from_json(&json).unwrap();
    assert_eq!(restored, state);
    assert_eq!(restored.to_json().unwrap(), json);
}

#[test]
fn arguments_keep_the_providers_text_through_json() {
    let restored = AgentState::from_json(&full().to_json().unwrap()).unwrap();
    let Some(Message::Assistant(message)) = restored.messages().get(1) else {
        panic!("the second message is the assistant's");
    };
    assert_eq!(
        message.tool_calls[0].arguments.text(),
        r#"{"b": 1e2,  "a":12345678901234567890123}"#
    );
}

#[test]
fn another_version_is_refused_by_name() {
    let json = full().to_json().unwrap().replace("\"1.0.0\"", "\"1.1.0\"");
    let error = AgentState::from_json(&json).unwrap_err();
    assert!(matches!(error, StateError::Version { found } if found == "1.1.0"));
}

#[test]
fn what_is_no_state_is_refused() {
    for json in [
        "",
        "[]",
        "{}",
        r#"{"version": 1}"#,
        r#"{"version": "1.0.0"}"#,
    ] {
        assert!(
            matches!(AgentState::from_json(json), Err(StateError::Malformed(_))),
            "{json}"
        );
    }
    let json = full()
        .to_json()
        .unwrap()
        .replace("\"tool_result\"", "\"tool\"");
    assert!(matches!(
        AgentState::from_json(&json),
        Err(StateError::Malformed(_))
    ));
}

#[test]
fn optional_parts_may_be_absent() {
    let json = r#"{"version":"1.0.0","id":"x","messages":[],"step":2,"metadata":{}}"#;
    let state = AgentState::from_json(json).unwrap();
    assert_eq!((state.id(), state.step(), state.plan()), ("x", 2, None));
}

#[test]
fn the_phase_is_written_only_within_a_step() {
    let within = AgentState::initial().with_phase(Some("act".into()));
    let json: Value = serde_json::from_str(&within.to_json().unwrap()).unwrap();
    assert_eq!(json["phase"], "act");
    let after = within.with_phase(None);
    let json: Value = serde_json::from_str(&after.to_json().unwrap()).unwrap();
    assert!(json.get("phase").is_none());
    assert_eq!(within.phase(), Some("act"), "the original stays as it was");
}

proptest! {
    #[test]
    fn no_operation_changes_the_original(operations in prop::collection::vec(0_usize..10, 1..12)) {
        let mut state = full();
        let mut ids = BTreeSet::from([state.id().to_owned()]);
        for operation in operations {
            let before = state.to_json().unwrap();
            let after = operate(&state, operation);
            prop_assert_eq!(state.to_json().unwrap(), before);
            prop_assert!(ids.insert(after.id().to_owned()), "each state has an id of its own");
            prop_assert_eq!(uuid::Uuid::parse_str(after.id()).unwrap().get_version_num(), 4);
            state = after;
        }
    }

    #[test]
    fn any_state_survives_its_json(operations in prop::collection::vec(0_usize..10, 0..12)) {
        let state = operations.into_iter().fold(AgentState::initial(), |state, n| operate(&state, n));
        prop_assert_eq!(&AgentState::from_json(&state.to_json().unwrap()).unwrap(), &state);
    }
    #[test]
    fn any_state_is_restored_on_top_of_any_other(
        operations in prop::collection::vec(0_usize..10, 0..12),
        shared in 0_usize..12,
        others in prop::collection::vec(0_usize..10, 0..6),
    ) {
        let of = |state: AgentState, operations: &[usize]| {
            operations.iter().fold(state, |state, n| operate(&state, *n))
        };
        let common = of(AgentState::initial(), &operations[..shared.min(operations.len())]);
        let state = of(common.clone(), &operations[shared.min(operations.len())..]);
        for earlier in [common.clone(), of(common, &others), AgentState::initial()] {
            let json = state.to_json_since(&earlier).unwrap();
            let restored = AgentState::from_json_since(&json, &earlier).unwrap();
            prop_assert_eq!(&restored, &state);
        }
    }
}

#[test]
fn a_state_on_top_of_another_is_written_without_what_that_has() {
    let earlier = full().with_message("one more").with_reasoning("so");
    let state = earlier.with_message("news").with_step(5);
    let json = state.to_json_since(&earlier).unwrap();
    assert!(json.contains("news") && !json.contains("one more") && !json.contains("arguments"));
    assert_eq!(AgentState::from_json_since(&json, &earlier).unwrap(), state);
    for other in [AgentState::initial(), full()] {
        let refused = AgentState::from_json_since(&json, &other);
        assert!(matches!(refused, Err(StateError::Earlier)), "{refused:?}");
    }
    let refused = AgentState::from_json(&json);
    assert!(matches!(refused, Err(StateError::Earlier)), "{refused:?}");
}

#[test]
fn with_suspended_gives_a_new_id_though_nothing_changes() {
    let state = full();
    for calls in [BTreeSet::new(), BTreeSet::from(["call_1".into()])] {
        let next = state.with_suspended(calls.clone());
        assert_ne!(next.id(), state.id());
        assert_ne!(next.with_suspended(calls).id(), next.id());
    }
}
