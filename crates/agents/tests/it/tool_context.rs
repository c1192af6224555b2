//! What tools know of their call (UAP §8.4).

use crate::support::*;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use loomline_agents::{AgentState, OptionsError};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use upp::{Effect, Tool, ToolContext, ToolOutput};

/// A tool that keeps the contexts it gets.
fn spy(seen: &Arc<Mutex<Vec<ToolContext>>>) -> Tool {
    let seen = seen.clone();
    tool("spy", move |_: Value, context: ToolContext| {
        seen.lock().unwrap().push(context);
        std::future::ready(Ok(Value::Null)).boxed() as BoxFuture<'static, ToolOutput>
    })
}

#[tokio::test]
async fn a_run_gives_each_call_its_own_id_its_state_and_the_callers_model() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let model = Canned::calls(vec![call("first", "spy", &[]), call("second", "spy", &[])]);
    let mut options = options(model);
    options.tools = vec![spy(&seen)];
    options.params = Arc::new(json!({"seed": 7}).as_object().unwrap().clone());
    let agent = agent(options);
    agent.generate("go", AgentState::initial()).await.unwrap();
    let seen = seen.lock().unwrap();
    let ids: Vec<&str> = seen.iter().map(|it| it.tool_call_id.as_str()).collect();
    assert_eq!(ids, ["first", "second"]);
    for context in seen.iter() {
        assert_eq!(&*context.agent_id, agent.id());
        assert_eq!(
            uuid::Uuid::parse_str(&context.state_id)
                .unwrap()
                .get_version_num(),
            4
        );
        assert_eq!(context.parent_model.as_ref().unwrap().model_id(), "canned");
        assert_eq!(json!(&*context.parent_params), json!({"seed": 7}));
        assert!(!context.approved);
    }
    assert_ne!(seen[0].idempotency_key, seen[1].idempotency_key);
}

#[tokio::test]
async fn the_state_id_is_that_of_the_state_that_ends_in_the_call() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut options = options(Canned::new(|_| None));
    options.tools = vec![spy(&seen)];
    let agent = agent(options);
    let keeper = Keeper::default();
    let calls = vec![call("1", "spy", &[]), call("2", "spy", &["1"])];
    let state = AgentState::initial().with_message(asked(calls));
    let context = keeper.context(&agent, &[]);
    // The step's own state is the given one under the step's number.
    let acted = context.act(&state).await.unwrap();
    let ids: Vec<String> = seen
        .lock()
        .unwrap()
        .iter()
        .map(|it| it.state_id.to_string())
        .collect();
    assert_eq!(ids, [state.id(), state.id()]);
    assert_ne!(acted.id(), state.id());
}

#[tokio::test]
async fn a_tool_without_a_second_parameter_gets_the_arguments_alone() {
    let mut options = options(Canned::calls(vec![call("1", "simple", &[])]));
    let schema = json!({"type": "object"});
    options.tools = vec![Tool::simple("simple", "", schema, |arguments| async move {
        Ok(json!({ "got": arguments }))
    })];
    let state = generate(options).await.state;
    assert_eq!(results(&state), [result("1", json!({"got": {}}))]);
}

#[tokio::test]
async fn a_tool_hears_that_its_run_was_dropped() {
    let seen = Arc::new(Mutex::new(Vec::<ToolContext>::new()));
    let noting = seen.clone();
    let stuck = tool("stuck", move |_: Value, context: ToolContext| {
        noting.lock().unwrap().push(context);
        futures_util::future::pending::<ToolOutput>().boxed()
    });
    for aborts in [true, false] {
        let mut options = options(Canned::calls(vec![call("1", "stuck", &[])]));
        options.tools = vec![stuck.clone()];
        let mut stream = agent(options).stream("go", AgentState::initial());
        while stream.next().now_or_never().is_some() {}
        let context = seen.lock().unwrap().pop().unwrap();
        assert!(!context.signal.is_cancelled());
        if aborts {
            stream.abort();
        } else {
            drop(stream);
        }
        assert!(context.signal.is_cancelled(), "aborts: {aborts}");
    }
}

#[test]
fn a_tool_whose_word_cant_be_kept_is_refused() {
    let refused = |tool: Tool| {
        let mut options = options(Canned::new(|_| None));
        options.tools = vec![tool];
        loomline_agents::Agent::new(options).unwrap_err()
    };
    let unasked = add().with_effect(Effect::Reconcilable);
    assert!(matches!(refused(unasked), OptionsError::NoReconcile { tool } if tool == "add"));
    let both = Tool::external("both", "", json!({})).with_requires_approval();
    assert!(matches!(refused(both), OptionsError::ExternalApproval { tool } if tool == "both"));
}
