//! In which run a parent hears of what its children were answered.

use crate::children::rig::{
    agent, at_rest, call, calls, document, fresh, results, say, sub, tenant, text, tool,
};
use crate::children::waits::{Ran, answer, asked, guarded, three};
use crate::durable::rig::approve;
use agents::Agent;
use futures_util::FutureExt;
use loomline_runtime as runtime;
use runtime::{Accepted, CallAddress, Runtime, ThreadContinuation};
use serde_json::json;
use std::sync::Arc;
use timeline::{Event, ExecutionId, ItemId, Record};
use tokio::sync::Semaphore;

/// A tool whose calls each wait for a permit.
fn held(gate: &Arc<Semaphore>) -> upp::Tool {
    let gate = Arc::clone(gate);
    tool("held", move |_| {
        let gate = Arc::clone(&gate);
        async move {
            gate.acquire().await.unwrap().forget();
            Ok(json!("held"))
        }
        .boxed()
    })
}

/// Two children that ask; the first one is held once it has its answer, and the second one asks twice.
fn two(ran: &Ran, gate: &Arc<Semaphore>) -> Vec<Agent> {
    let one = agent(
        "one",
        vec![call("touch"), call("held"), text("One.")],
        vec![guarded("touch", ran), held(gate)],
    );
    let other = agent(
        "other",
        vec![calls(&["touch", "touch"]), text("Other.")],
        vec![guarded("touch", ran)],
    );
    let top = agent(
        "lead",
        vec![calls(&["one", "other"]), text("Done.")],
        vec![sub(one.clone()), sub(other.clone())],
    );
    vec![top, one, other]
}

async fn approved(runtime: &Runtime, question: &CallAddress) -> Accepted {
    let said = approve(&question.tool_call_id);
    answer(runtime, &question.key, &said).await.unwrap()
}

async fn goes_on(
    runtime: &Runtime,
    question: &CallAddress,
    answer: &Accepted,
) -> ThreadContinuation {
    let tenant = tenant();
    let goes_on = runtime.has_continuation(&tenant, "k", &question.key, answer);
    goes_on.await.unwrap()
}

async fn active(runtime: &Runtime) -> ExecutionId {
    let (state, _) = runtime.state(&tenant(), "k").await.unwrap();
    state.active().unwrap().execution.id.clone()
}

/// The executions of a log, each with what it answers.
fn executions(records: &[Record]) -> Vec<(ExecutionId, ItemId)> {
    let begun = records.iter().filter_map(|record| match &record.event {
        Event::ExecutionCreated { execution } => {
            Some((execution.id.clone(), execution.trigger_item_id.clone()))
        }
        _ => None,
    });
    begun.collect()
}

#[tokio::test]
async fn an_answer_is_heard_in_the_run_that_it_waits_for_and_not_in_the_one_that_runs() {
    let (ran, gate) = (Ran::default(), Arc::new(Semaphore::new(0)));
    let runtime = fresh(two(&ran, &gate));
    say(&runtime, "go").await;
    at_rest(&runtime, "k").await;
    let questions: Vec<CallAddress> = asked(&runtime, "k")
        .await
        .into_iter()
        .map(|it| it.address)
        .collect();
    let [one, other, more] = questions.as_slice() else {
        panic!("{questions:?}")
    };
    let first = approved(&runtime, one).await;
    let first_heard = goes_on(&runtime, one, &first).await;
    let runs = active(&runtime).await;
    assert_eq!(first_heard.execution, Some(runs.clone()));
    let second = approved(&runtime, other).await;
    let second_heard = goes_on(&runtime, other, &second).await;
    let promised = second_heard.execution.clone().unwrap();
    assert_ne!(promised, runs);
    // What is said to the same child before its parent has taken that up is heard in the same run.
    let third = approved(&runtime, more).await;
    assert_eq!(goes_on(&runtime, more, &third).await, second_heard);
    gate.add_permits(1);
    let records = at_rest(&runtime, "k").await;
    let executions = executions(&records);
    let taken_up = (promised, second_heard.item.clone().unwrap());
    assert_eq!(executions.get(2), Some(&taken_up), "{executions:?}");
    let mut said = results(&document(&runtime, "k").await);
    said.sort();
    assert_eq!(said, ["One.", "Other."]);
    // The same is found when all is long over.
    say(&runtime, "again").await;
    at_rest(&runtime, "k").await;
    let before = [first_heard, second_heard.clone(), second_heard];
    let answers = [(one, first), (other, second), (more, third)];
    for (heard, (question, answer)) in before.into_iter().zip(answers) {
        assert_eq!(goes_on(&runtime, question, &answer).await, heard);
    }
}

#[tokio::test]
async fn an_answer_is_heard_in_the_run_that_runs_where_that_runs_the_child() {
    let (ran, gate) = (Ran::default(), Arc::new(Semaphore::new(0)));
    let leaf = agent(
        "leaf",
        vec![call("touch"), text("Leaf.")],
        vec![guarded("touch", &ran)],
    );
    let top = agent(
        "lead",
        vec![calls(&["leaf", "held"]), text("Done.")],
        vec![sub(leaf.clone()), held(&gate)],
    );
    let runtime = fresh(vec![top, leaf]);
    say(&runtime, "go").await;
    let question = loop {
        if let Some(question) = asked(&runtime, "k").await.pop() {
            break question.address;
        }
        tokio::task::yield_now().await;
    };
    let answer = approved(&runtime, &question).await;
    let heard = goes_on(&runtime, &question, &answer).await;
    assert_eq!(
        (heard.item.clone(), heard.execution.clone()),
        (None, Some(active(&runtime).await))
    );
    gate.add_permits(1);
    at_rest(&runtime, "k").await;
    let again = goes_on(&runtime, &question, &answer).await;
    assert_eq!(again.execution, heard.execution);
}

#[tokio::test]
async fn an_answer_far_beneath_is_heard_by_each_thread_above_in_a_run_of_its_own() {
    let ran = Ran::default();
    let runtime = fresh(three(&ran));
    say(&runtime, "go").await;
    at_rest(&runtime, "k").await;
    let question = asked(&runtime, "k").await.remove(0);
    let answer = approved(&runtime, &question.address).await;
    at_rest(&runtime, "k").await;
    for above in &question.path {
        let key = &above.key;
        let tenant = tenant();
        let heard = runtime.has_continuation(&tenant, key, &question.address.key, &answer);
        let heard = heard.await.unwrap();
        let executions = executions(&at_rest(&runtime, key).await);
        let last = executions.last().cloned().unwrap();
        assert_eq!(
            (heard.execution.unwrap(), heard.item.unwrap()),
            last,
            "{key}"
        );
    }
}
