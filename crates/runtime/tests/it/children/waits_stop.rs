//! Children that wait and are not wanted any more, or come to a bad end.

use crate::children::rig::{
    agent, at_rest, call, children, document, endings, exported, fresh, message, results, say, sub,
    tenant, text,
};
use crate::children::waits::{Ran, answer, asked, guarded, pending, three};
use crate::durable::rig::approve;
use agents::{Agent, AgentOptions};
use loomline_runtime as runtime;
use runtime::{Policy, RuntimeError};
use serde_json::json;
use std::sync::Arc;
use timeline::{ExecutionStatus, Rejected};
use upp::{Script, ScriptTurn, Scripted};

#[tokio::test(start_paused = true)]
async fn cancelling_a_parent_that_waits_cancels_the_children_that_wait() {
    let ran = Ran::default();
    let runtime = fresh(three(&ran));
    say(&runtime, "go").await;
    at_rest(&runtime, "k").await;
    let question = asked(&runtime, "k").await.remove(0).address;
    let cancelled = runtime.cancel(&tenant(), "k", None, "user_cancelled").await;
    assert!(cancelled.unwrap().execution_id.is_some());
    let stopped = (ExecutionStatus::Failed, Some("user_cancelled".to_owned()));
    for key in ["k".to_owned()].into_iter().chain(children(&runtime).await) {
        let records = loop {
            let records = at_rest(&runtime, &key).await;
            if endings(&records).len() == 2 {
                break records;
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        };
        assert_eq!(endings(&records)[1], stopped);
        assert!(pending(&runtime, &key).await.is_empty());
        exported(&runtime, &key).await;
    }
    let late = answer(&runtime, &question.key, &approve(&question.tool_call_id)).await;
    assert!(
        matches!(late, Err(RuntimeError::Rejected(Rejected::Superseded(_)))),
        "{late:?}"
    );
    assert!(ran.lock().unwrap().is_empty());
    // The thread is as good as new.
    say(&runtime, "go on").await;
    at_rest(&runtime, "k").await;
    assert_eq!(asked(&runtime, "k").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_message_in_place_of_an_answer_stops_the_children_that_wait() {
    for policy in [Policy::Queue, Policy::Reject, Policy::Interrupt] {
        let ran = Ran::default();
        let runtime = fresh(three(&ran));
        say(&runtime, "go").await;
        at_rest(&runtime, "k").await;
        let keys = children(&runtime).await;
        let mut request = message(&runtime, "never mind");
        request.policy = policy;
        runtime.react(request).await.unwrap();
        at_rest(&runtime, "k").await;
        for key in &keys {
            while !pending(&runtime, key).await.is_empty() {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
        }
        let parent = document(&runtime, "k").await;
        assert!(parent.to_string().contains("went on without answering"));
    }
}

#[tokio::test]
async fn a_child_that_is_cancelled_while_it_waits_gives_its_parents_call_an_error() {
    let ran = Ran::default();
    let runtime = fresh(three(&ran));
    say(&runtime, "go").await;
    at_rest(&runtime, "k").await;
    let keys = children(&runtime).await;
    let cancelled = runtime
        .cancel(&tenant(), &keys[1], None, "user_cancelled")
        .await;
    cancelled.unwrap();
    at_rest(&runtime, "k").await;
    let middle = document(&runtime, &keys[0]).await;
    let told = &results(&middle)[0];
    assert!(
        told.contains(&keys[1]) && told.contains("user_cancelled"),
        "{told}"
    );
    assert_eq!(results(&document(&runtime, "k").await), ["Middle."]);
}

#[tokio::test]
async fn a_child_that_fails_after_its_answer_gives_its_parents_call_an_error() {
    let ran = Ran::default();
    let broken = ScriptTurn {
        error: serde_json::from_value(json!({"message": "broken"})).ok(),
        ..ScriptTurn::default()
    };
    assert!(broken.error.is_some());
    let leaf = {
        let script = Script::new(vec![call("touch"), broken]);
        let model = Arc::new(Scripted::with_script(script));
        let mut options = AgentOptions::new("leaf", model);
        options.tools = vec![guarded("touch", &ran)];
        Agent::new(options).unwrap()
    };
    let top = agent(
        "lead",
        vec![call("leaf"), text("Done.")],
        vec![sub(leaf.clone())],
    );
    let runtime = fresh(vec![top, leaf]);
    say(&runtime, "go").await;
    at_rest(&runtime, "k").await;
    let question = asked(&runtime, "k").await.remove(0).address;
    answer(&runtime, &question.key, &approve(&question.tool_call_id))
        .await
        .unwrap();
    at_rest(&runtime, "k").await;
    let told = &results(&document(&runtime, "k").await)[0];
    assert!(told.contains(&question.key), "{told}");
}
