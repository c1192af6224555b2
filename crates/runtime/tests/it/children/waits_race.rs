//! Parents that fall asleep, or are not woken, while something happens to their children.

use crate::children::rig::{
    agent, at_rest, call, calls, children, document, over, process, results, say, sub, tenant,
    text, tool,
};
use crate::children::waits::{Ran, answer, asked, guarded, three};
use crate::durable::rig::{answer_item, approve};
use crate::gate::{Gate, write};
use agents::{Agent, AgentError, AgentState, AgentStrategy, GenerateResult};
use futures_util::FutureExt;
use loomline_runtime as runtime;
use runtime::Runtime;
use serde_json::json;
use std::sync::Arc;
use store::{EventLog as _, MemoryStore};
use timeline::{Command, ExecutionId, ItemId, StepId, Trigger};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

async fn until_it_waits(runtime: &Runtime, key: &str) {
    while runtime
        .state(&tenant(), key)
        .await
        .unwrap()
        .0
        .open()
        .is_none()
    {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_parent_that_falls_asleep_while_its_child_is_cancelled_is_woken() {
    let ran = Ran::default();
    let gate = Arc::new(Semaphore::new(0));
    let wait = Arc::clone(&gate);
    let slow = tool("slow", move |_| {
        let wait = Arc::clone(&wait);
        async move {
            wait.acquire().await.unwrap().forget();
            Ok(json!("slow"))
        }
        .boxed()
    });
    let leaf = agent(
        "leaf",
        vec![call("touch"), text("Leaf.")],
        vec![guarded("touch", &ran)],
    );
    let top = agent(
        "lead",
        vec![calls(&["leaf", "slow"]), text("Done.")],
        vec![sub(leaf.clone()), slow],
    );
    let store = Gate::new();
    let runtime = over(store.clone(), vec![top, leaf]);
    say(&runtime, "go").await;
    let question = loop {
        if let Some(question) = asked(&runtime, "k").await.pop() {
            break question.address;
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    };
    at_rest(&runtime, &question.key).await;
    // The cancel has looked whether the parent sleeps, and has not written yet.
    store.shut(&question.thread_id);
    let mut cancel = JoinSet::new();
    cancel.spawn({
        let (runtime, key) = (runtime.clone(), question.key.clone());
        async move {
            let cancelled = runtime
                .cancel(&tenant(), &key, None, "user_cancelled")
                .await;
            cancelled.map(|_| ())
        }
    });
    store.until_one_waits().await;
    gate.add_permits(1);
    until_it_waits(&runtime, "k").await;
    store.open();
    cancel.join_next().await.unwrap().unwrap().unwrap();
    at_rest(&runtime, "k").await;
    let told = results(&document(&runtime, "k").await);
    assert!(
        told.iter().any(|it| it.contains("user_cancelled")),
        "{told:?}"
    );
}

/// Takes the last answer in place of a failure.
struct Takes;

impl AgentStrategy for Takes {
    fn on_error(&self, _: &AgentError, state: &AgentState) -> Option<GenerateResult> {
        let turn = upp::Turn {
            messages: Vec::new(),
            response: Arc::clone(state.last_response()?),
            tool_executions: Vec::new(),
            usage: upp::TokenUsage::default(),
            cycles: 1,
            data: None,
            stop_reason: upp::StopReason::EndTurn,
            requests: Vec::new(),
        };
        Some(GenerateResult {
            turn,
            state: state.clone(),
            pending: Vec::new(),
        })
    }
}

/// A leaf whose run ends with calls that nobody can answer.
fn stubborn(ran: &Ran) -> Vec<Agent> {
    let leaf = agent("leaf", vec![call("touch")], vec![guarded("touch", ran)]);
    let mut options = leaf.options().clone();
    options.id = Some("leaf".into());
    options.tool_strategy.max_iterations = Some(1);
    options.strategy = Arc::new(Takes);
    let leaf = Agent::new(options).unwrap();
    let top = agent(
        "lead",
        vec![call("leaf"), text("Done.")],
        vec![sub(leaf.clone())],
    );
    vec![top, leaf]
}

#[tokio::test]
async fn a_child_that_ends_with_calls_nobody_can_answer_wakes_its_parent() {
    let ran = Ran::default();
    let store = Arc::new(MemoryStore::new());
    let first = process(&store, stubborn(&ran));
    say(&first, "go").await;
    at_rest(&first, "k").await;
    let question = asked(&first, "k").await.remove(0).address;
    first.shutdown().await.unwrap();
    // An answer that was kept before the process died, and the parent knows nothing of it.
    let head = store.head(&question.thread_id).await.unwrap();
    let run = head.state.open().unwrap().execution.run.clone();
    let item = answer_item("answer".into(), &approve(&question.tool_call_id));
    let start = Command::Start {
        trigger: Trigger::New(item),
        run,
        execution_id: ExecutionId::from("by-hand"),
        reaction_item_id: ItemId::from("by-hand-reaction"),
        step_id: StepId::from("by-hand-step"),
        workflow_run_id: None,
    };
    write(store.as_ref(), &question.thread_id, start).await;
    let second = over(store, stubborn(&ran));
    second.recover().await.unwrap();
    at_rest(&second, &question.key).await;
    at_rest(&second, "k").await;
    assert_eq!(results(&document(&second, "k").await).len(), 1);
}

#[tokio::test]
async fn a_child_that_goes_on_is_read_by_its_facts() {
    let ran = Ran::default();
    let store = Gate::new();
    let first = over(store.clone(), three(&ran));
    say(&first, "go").await;
    at_rest(&first, "k").await;
    let question = asked(&first, "k").await.remove(0).address;
    let middle = children(&first).await.remove(0);
    let middle = first.find(&tenant(), &middle).await.unwrap();
    first.shutdown().await.unwrap();
    // Nothing is in this one's memory.
    let second = over(store.clone(), three(&ran));
    let n_before = store.whole_reads(&middle.thread.id).len();
    answer(&second, &question.key, &approve(&question.tool_call_id))
        .await
        .unwrap();
    at_rest(&second, "k").await;
    let reads = store.whole_reads(&middle.thread.id).split_off(n_before);
    assert!(
        reads.iter().all(|after| *after >= middle.tail),
        "{reads:?}, and it was known to {}",
        middle.tail
    );
    assert_eq!(results(&document(&second, "k").await), ["Middle."]);
}
