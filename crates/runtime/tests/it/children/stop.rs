//! A parent that is stopped stops its children, and each thread says so.

use crate::children::rig::{
    agent, at_rest, call, endings, exported, fresh, message, over, running_child, say, stalls, sub,
    tenant, text, tool,
};
use crate::mortal::Mortal;
use agents::{Agent, Spawn};
use futures_util::FutureExt;
use loomline_runtime as runtime;
use runtime::{Policy, Runtime};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use store::MemoryStore;
use timeline::ExecutionStatus;
use upp::ToolContext;

fn stalling() -> Vec<Agent> {
    let leaf = agent("leaf", vec![call("stall")], vec![stalls("stall")]);
    let middle = agent(
        "middle",
        vec![call("leaf"), text("Middle.")],
        vec![sub(leaf.clone())],
    );
    let top = agent(
        "lead",
        vec![call("middle"), text("Done.")],
        vec![sub(middle.clone())],
    );
    vec![top, middle, leaf]
}

fn stopped(reason: &str) -> (ExecutionStatus, Option<String>) {
    (ExecutionStatus::Failed, Some(reason.to_owned()))
}

#[tokio::test]
async fn cancelling_a_parent_cancels_its_children_of_any_depth() {
    let runtime = fresh(stalling());
    say(&runtime, "go").await;
    let leaf = running_child(&runtime, 2).await;
    let middle = running_child(&runtime, 1).await;
    let cancelled = runtime.cancel(&tenant(), "k", None, "user_cancelled").await;
    assert!(cancelled.unwrap().execution_id.is_some());
    for key in ["k", &middle, &leaf] {
        let records = at_rest(&runtime, key).await;
        assert_eq!(endings(&records), [stopped("user_cancelled")]);
        let (document, _) = exported(&runtime, key).await;
        assert_eq!(document["turns"][1]["completion_status"], "interrupted");
    }
}

#[tokio::test]
async fn a_parent_whose_time_is_up_stops_its_children_for_the_same_reason() {
    let runtime = fresh(stalling());
    let mut request = message(&runtime, "go");
    request.run.timeout_ms = Some(300);
    runtime.react(request).await.unwrap();
    let leaf = running_child(&runtime, 2).await;
    let middle = running_child(&runtime, 1).await;
    for key in ["k", &middle, &leaf] {
        assert_eq!(endings(&at_rest(&runtime, key).await), [stopped("timeout")]);
    }
}

#[tokio::test]
async fn a_message_that_interrupts_a_parent_stops_its_children() {
    let runtime = fresh(stalling());
    say(&runtime, "go").await;
    let middle = running_child(&runtime, 1).await;
    let mut request = message(&runtime, "instead");
    request.policy = Policy::Interrupt;
    runtime.react(request).await.unwrap();
    let records = at_rest(&runtime, &middle).await;
    assert_eq!(endings(&records), [stopped("user_cancelled")]);
}

#[tokio::test]
async fn a_tool_that_gives_its_sub_agent_up_stops_it_and_the_parent_goes_on() {
    let leaf = agent("leaf", vec![call("stall")], vec![stalls("stall")]);
    let given_up = {
        let leaf = leaf.clone();
        tool("impatient", move |context: ToolContext| {
            let leaf = leaf.clone();
            async move {
                let run = Spawn::new(leaf, "wait", &context);
                let run = run.run(&context);
                let waited = tokio::time::timeout(Duration::from_millis(100), run).await;
                Ok(json!(waited.is_err()))
            }
            .boxed()
        })
    };
    let top = agent(
        "lead",
        vec![call("impatient"), text("Done.")],
        vec![given_up],
    );
    let runtime = fresh(vec![top, leaf]);
    say(&runtime, "go").await;
    let key = running_child(&runtime, 1).await;
    let records = at_rest(&runtime, "k").await;
    assert_eq!(endings(&records), [(ExecutionStatus::Completed, None)]);
    let records = at_rest(&runtime, &key).await;
    assert_eq!(endings(&records), [stopped("user_cancelled")]);
}

#[tokio::test]
async fn a_child_that_a_crash_left_running_after_its_parent_was_stopped_is_stopped_at_recovery() {
    let store = Arc::new(MemoryStore::new());
    let mortal = Mortal::new(&store, usize::MAX, true, false);
    let first = over(Arc::clone(&mortal) as _, stalling());
    say(&first, "go").await;
    let leaf = stalled(&first).await;
    let middle = running_child(&first, 1).await;
    // The stop of the parent is the last thing that the process writes.
    mortal.dies_at_the_next_write();
    let stop = first.cancel(&tenant(), "k", None, "user_cancelled").await;
    assert!(stop.is_err() && mortal.is_dead());
    let second = over(store, stalling());
    second.recover().await.unwrap();
    for key in ["k", &middle, &leaf] {
        let records = at_rest(&second, key).await;
        assert_eq!(endings(&records), [stopped("user_cancelled")]);
    }
}

/// The key of the leaf's thread, once its tool stalls and nothing more is written.
async fn stalled(runtime: &Runtime) -> String {
    let leaf = running_child(runtime, 2).await;
    loop {
        let (state, _) = runtime.state(&tenant(), &leaf).await.unwrap();
        let step = state.active().and_then(|active| active.step.as_ref());
        if step.is_some_and(|step| !step.started.is_empty()) {
            return leaf;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
