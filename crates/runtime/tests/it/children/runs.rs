//! Children that run to their end: what the parent's log and theirs say.

use crate::children::rig::{
    agent, at_rest, call, calls, children, document, endings, events, fresh, messages, parameters,
    process, results, say, stalls, sub, text, tool,
};
use agents::{Spawn, SubagentExecutionTrace};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use loomline_runtime as runtime;
use runtime::{Reacted, Reactor, ReactorError, Reactors, Runtime, RuntimeOptions, StepRun};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use store::MemoryStore;
use timeline::{ExecutionStatus, StepOutcome};
use upp::{Tool, ToolContext};

#[tokio::test]
async fn a_sub_agent_known_by_name_runs_on_a_thread_of_its_own() {
    let helper = agent("helper", vec![text("Helped.")], vec![]);
    let top = agent(
        "lead",
        vec![call("helper"), text("Done.")],
        vec![sub(helper.clone())],
    );
    let runtime = fresh(vec![top, helper]);
    say(&runtime, "go").await;
    at_rest(&runtime, "k").await;
    let parent = document(&runtime, "k").await;
    let kinds: Vec<String> = messages(&parent)
        .iter()
        .map(|message| {
            let event = message["event_type"].as_str();
            event
                .or(message["message_type"].as_str())
                .unwrap()
                .to_owned()
        })
        .collect();
    let spawn_and_end = ["data-tp-thread_spawn", "data-tp-thread_end"];
    assert_eq!(
        kinds,
        [
            "response",
            spawn_and_end[0],
            spawn_and_end[1],
            "request",
            "response"
        ]
    );
    assert_eq!(results(&parent), ["Helped."]);
    let keys = children(&runtime).await;
    assert_eq!(keys.len(), 1);
    let child = document(&runtime, &keys[0]).await;
    let link = &child["relationships"]["links"][0];
    assert_eq!(link["relation"], "spawned_from");
    assert_eq!(link["thread_id"], parent["thread_id"]);
    let spawned = &messages(&parent)[1];
    assert_eq!(
        spawned["event_data"]["spawned_thread_id"],
        child["thread_id"]
    );
    assert_eq!(spawned["source_agent"], parent["turns"][1]["agent_id"]);
    assert_eq!(messages(&parent)[2]["event_data"]["reason"], "completed");
    assert_eq!(child["turns"][0]["parts"][0]["content"], "do helper");
}

#[tokio::test]
async fn a_client_is_shown_that_a_thread_was_started_and_has_ended() {
    let helper = agent("helper", vec![text("Helped.")], vec![]);
    let top = agent(
        "lead",
        vec![call("helper"), text("Done.")],
        vec![sub(helper.clone())],
    );
    let runtime = fresh(vec![top, helper]);
    say(&runtime, "go").await;
    at_rest(&runtime, "k").await;
    let transcript = crate::children::rig::transcript(&runtime, "k").await;
    let shown = interop::ai_sdk::to_ui_messages(&transcript);
    assert_eq!(shown.losses, Vec::new());
    let parts = shown.value[1]["parts"].as_array().unwrap();
    let kinds: Vec<&str> = parts
        .iter()
        .map(|part| part["type"].as_str().unwrap())
        .collect();
    assert!(kinds.contains(&"data-tp-thread_spawn") && kinds.contains(&"data-tp-thread_end"));
}

#[tokio::test]
async fn parallel_children_each_have_a_thread_and_their_results_keep_the_order_of_the_calls() {
    let slow = agent("slow", vec![text("one two three")], vec![]);
    let quick = agent("quick", vec![text("Quick.")], vec![]);
    let tools = vec![sub(slow.clone()), sub(quick.clone())];
    let top = agent(
        "lead",
        vec![calls(&["slow", "quick", "quick"]), text("Done.")],
        tools,
    );
    let runtime = fresh(vec![top, slow, quick]);
    say(&runtime, "go").await;
    at_rest(&runtime, "k").await;
    let parent = document(&runtime, "k").await;
    assert_eq!(results(&parent), ["one two three", "Quick.", "Quick."]);
    assert_eq!(children(&runtime).await.len(), 3);
    assert_eq!(events(&parent).len(), 6);
}

#[tokio::test]
async fn a_call_id_that_comes_again_in_another_response_is_another_child() {
    let helper = agent("helper", vec![text("Helped.")], vec![]);
    let mut again = call("helper");
    again.tool_calls[0].id = Some("same".into());
    let top = agent(
        "lead",
        vec![again.clone(), again, text("Done.")],
        vec![sub(helper.clone())],
    );
    let runtime = fresh(vec![top, helper]);
    say(&runtime, "go").await;
    at_rest(&runtime, "k").await;
    let keys = children(&runtime).await;
    assert_eq!(keys.len(), 2);
    for key in keys {
        assert_eq!(endings(&at_rest(&runtime, &key).await).len(), 1);
    }
}

/// A tool that runs an agent and keeps the traces of its run.
fn traced(agent: agents::Agent, kept: &Arc<Mutex<Vec<SubagentExecutionTrace>>>) -> Tool {
    let kept = Arc::clone(kept);
    tool("trace", move |context: ToolContext| {
        let (agent, kept) = (agent.clone(), Arc::clone(&kept));
        async move {
            let run = Spawn::new(agent, "trace it", &context).run(&context).await;
            kept.lock().unwrap().extend(run.traces);
            Ok(json!(run.turn.unwrap().response.joined_text()))
        }
        .boxed()
    })
}

#[tokio::test]
async fn children_of_children_have_traces_in_order_with_what_they_used() {
    let leaf = agent(
        "leaf",
        vec![call("touch"), text("Leaf.")],
        vec![tool("touch", |_| async { Ok(json!("touched")) }.boxed())],
    );
    let middle = agent(
        "middle",
        vec![call("leaf"), text("Middle.")],
        vec![sub(leaf.clone())],
    );
    let kept = Arc::default();
    let top = agent(
        "lead",
        vec![call("trace"), text("Done.")],
        vec![traced(middle.clone(), &kept)],
    );
    let runtime = fresh(vec![top, middle, leaf]);
    say(&runtime, "go").await;
    at_rest(&runtime, "k").await;
    for key in children(&runtime).await {
        document(&runtime, &key).await;
    }
    let traces = kept.lock().unwrap();
    let types: Vec<_> = traces
        .iter()
        .map(|trace| trace.subagent_type.as_str())
        .collect();
    assert_eq!(types, ["leaf", "middle"]);
    let [leaf, middle] = &traces[..] else {
        panic!("two traces")
    };
    assert_eq!(leaf.result.as_deref(), Some("Leaf."));
    let used = leaf.tool_executions.as_ref().unwrap();
    assert_eq!(
        (used[0].tool_name.as_str(), used[0].result.as_str()),
        ("touch", "touched")
    );
    assert_eq!(middle.usage.as_ref().unwrap().cycles.len(), 2);
    assert!(middle.success && middle.start_time <= middle.end_time);
    assert_eq!(middle.prompt, "trace it");
}

#[tokio::test]
async fn a_child_that_fails_is_an_error_result_that_names_its_thread() {
    let failing = serde_json::from_value(json!({"error": {"message": "no more"}})).unwrap();
    let helper = agent("helper", vec![failing], vec![]);
    let top = agent(
        "lead",
        vec![call("helper"), text("Done.")],
        vec![sub(helper.clone())],
    );
    let runtime = fresh(vec![top, helper]);
    say(&runtime, "go").await;
    let records = at_rest(&runtime, "k").await;
    assert_eq!(endings(&records), [(ExecutionStatus::Completed, None)]);
    let parent = document(&runtime, "k").await;
    let key = &children(&runtime).await[0];
    let told = &results(&parent)[0];
    assert!(told.contains(key) && told.contains("no more"), "{told}");
    assert_eq!(messages(&parent)[2]["event_data"]["reason"], "error");
}

/// Calls a tool that nobody here answers, and is done.
struct Asks;

impl Reactor for Asks {
    fn react<'a>(&'a self, step: &'a mut StepRun) -> BoxFuture<'a, Result<Reacted, ReactorError>> {
        async move {
            let part = interop::parts::ToolPart::call("ask", "c", "{}")
                .write()
                .unwrap();
            let said = json!({}).into();
            step.writer.respond(vec![], vec![part], said);
            let outcome = StepOutcome {
                open_calls: Some(json!([]).into()),
                ..StepOutcome::default()
            };
            Ok(Reacted {
                outcome,
                wants_more: false,
                messages_for_model: None,
                memory: None,
                handoff: None,
            })
        }
        .boxed()
    }
}

struct WithAsker(runtime::AgentReactors);

impl Reactors for WithAsker {
    fn find(&self, agent: Option<&str>) -> Option<Arc<dyn Reactor>> {
        if agent == Some("asker") {
            return Some(Arc::new(Asks));
        }
        self.0.find(agent)
    }

    fn has(&self, _: &str) -> bool {
        true
    }
}

#[tokio::test]
async fn a_child_that_waits_for_an_answer_stays_waiting_and_its_call_fails_and_names_it() {
    let asker = agent("asker", vec![text("Unused.")], vec![]);
    let top = agent("lead", vec![call("asker"), text("Done.")], vec![sub(asker)]);
    let reactors = WithAsker(runtime::AgentReactors::new([top], "lead").unwrap());
    let runtime = Runtime::new(
        Arc::new(MemoryStore::new()),
        Arc::new(reactors),
        RuntimeOptions::default(),
    );
    say(&runtime, "go").await;
    at_rest(&runtime, "k").await;
    let parent = document(&runtime, "k").await;
    let key = &children(&runtime).await[0];
    let told = &results(&parent)[0];
    assert!(
        told.contains(key) && told.contains("waits for answers"),
        "{told}"
    );
    assert_eq!(messages(&parent)[2]["event_data"]["reason"], "waiting");
    assert_eq!(
        endings(&at_rest(&runtime, key).await),
        [(ExecutionStatus::Completed, None)]
    );
}

#[tokio::test]
async fn a_tool_that_runs_an_agent_twice_has_two_children() {
    let helper = agent("helper", vec![text("Helped.")], vec![]);
    let twice = {
        let helper = helper.clone();
        let run = move |_: Value, context: ToolContext| {
            let helper = helper.clone();
            async move {
                for task in ["one", "two"] {
                    let spawn = Spawn::new(helper.clone(), task, &context);
                    spawn.run(&context).await.turn.unwrap();
                }
                Ok(json!("both"))
            }
            .boxed()
        };
        Tool::new("twice", "Does it twice.", parameters(), run)
    };
    let top = agent("lead", vec![call("twice"), text("Done.")], vec![twice]);
    let runtime = fresh(vec![top, helper]);
    say(&runtime, "go").await;
    at_rest(&runtime, "k").await;
    let mut tasks = Vec::new();
    for key in children(&runtime).await {
        let child = document(&runtime, &key).await;
        tasks.push(child["turns"][0]["parts"][0]["content"].clone());
    }
    assert_eq!(tasks, ["one", "two"]);
}

#[tokio::test]
async fn a_child_goes_on_while_its_parents_process_is_gone_and_is_found_again() {
    let store = Arc::new(MemoryStore::new());
    let agents = |slow: bool| {
        let tools = if slow {
            vec![stalls("touch")]
        } else {
            vec![tool("touch", |_| async { Ok(json!("ok")) }.boxed())]
        };
        let helper = agent("helper", vec![call("touch"), text("Helped.")], tools);
        let top = agent(
            "lead",
            vec![call("helper"), text("Done.")],
            vec![sub(helper.clone())],
        );
        vec![top, helper]
    };
    let first = process(&store, agents(true));
    say(&first, "go").await;
    let key = crate::children::rig::running_child(&first, 1).await;
    first.shutdown().await.unwrap();
    let second = process(&store, agents(false));
    second.recover().await.unwrap();
    at_rest(&second, "k").await;
    assert_eq!(children(&second).await, std::slice::from_ref(&key));
    assert_eq!(
        endings(&at_rest(&second, &key).await),
        [(ExecutionStatus::Completed, None)]
    );
    assert_eq!(events(&document(&second, "k").await).len(), 2);
}
