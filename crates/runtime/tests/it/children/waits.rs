//! Children that wait for somebody: their parents wait, too, and go on with them.

use crate::children::rig::{
    agent, at_rest, call, calls, children, document, endings, fresh, messages, over, parameters,
    process, results, say, sub, tenant, text, tool,
};
use crate::durable::rig::{answer_item, approve, bring, deny};
use agents::{Agent, Spawn};
use futures_util::FutureExt;
use loomline_runtime as runtime;
use runtime::{Accepted, Addressed, AnswerRequest, Pending, Runtime, RuntimeError};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use store::MemoryStore;
use timeline::{ExecutionStatus, OpenKind, Rejected};
use upp::{Tool, ToolContext};

pub(crate) type Ran = Arc<Mutex<Vec<Value>>>;

/// A tool that needs an approval, and keeps the arguments that it ran with.
pub(crate) fn guarded(name: &str, ran: &Ran) -> Tool {
    let ran = Arc::clone(ran);
    let run = move |arguments: Value, _: ToolContext| {
        ran.lock().unwrap().push(arguments);
        async { Ok(json!("touched")) }.boxed()
    };
    Tool::new(name, "Does it.", parameters(), run).with_requires_approval()
}

fn external(name: &str) -> Tool {
    let mut tool = tool(name, |_| std::future::pending().boxed());
    tool.external = true;
    tool
}

/// Three levels, the last of which asks.
pub(crate) fn three(ran: &Ran) -> Vec<Agent> {
    let leaf = agent(
        "leaf",
        vec![call("touch"), text("Leaf.")],
        vec![guarded("touch", ran)],
    );
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

pub(crate) async fn pending(runtime: &Runtime, key: &str) -> Vec<Pending> {
    runtime.pending(&tenant(), key).await.unwrap().0
}

/// What somebody can answer, on a thread and beneath it.
pub(crate) async fn asked(runtime: &Runtime, key: &str) -> Vec<Pending> {
    let mut pending = pending(runtime, key).await;
    pending.retain(|it| it.call.kind != OpenKind::Child && it.call.kind != OpenKind::Others);
    pending
}

pub(crate) async fn answer(
    runtime: &Runtime,
    key: &str,
    parts: &Value,
) -> Result<Accepted, RuntimeError> {
    let item = answer_item(runtime.mint(), parts);
    let request = AnswerRequest {
        run: None,
        tenant: tenant(),
        key: key.into(),
        item,
        token: Some(format!("{key} {parts}").into()),
    };
    runtime.answer(request).await
}

async fn all_complete(runtime: &Runtime) {
    for key in children(runtime).await {
        let records = at_rest(runtime, &key).await;
        let endings = endings(&records);
        assert!(
            endings
                .iter()
                .all(|end| end.0 == ExecutionStatus::Completed)
        );
    }
}

#[tokio::test]
async fn a_parent_whose_child_waits_is_at_rest_and_goes_on_when_the_child_is_answered() {
    let ran = Ran::default();
    let runtime = fresh(three(&ran));
    say(&runtime, "go").await;
    for key in ["k".to_owned()].into_iter().chain(children(&runtime).await) {
        at_rest(&runtime, &key).await;
    }
    at_rest(&runtime, "k").await;
    assert_eq!(runtime.running(), 0);
    let parent = document(&runtime, "k").await;
    assert_eq!(results(&parent), Vec::<String>::new());
    let asked = asked(&runtime, "k").await;
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].call.kind, OpenKind::Approval);
    let keys = children(&runtime).await;
    let above: Vec<&str> = asked[0].path.iter().map(|it| it.key.as_str()).collect();
    assert_eq!(above, ["k", keys[0].as_str()]);
    assert_eq!(asked[0].address.key, keys[1]);
    let n_all = pending(&runtime, "k").await.len();
    assert_eq!(n_all, 3, "the calls above are open as well");

    let question = asked[0].address.clone();
    answer(&runtime, &question.key, &approve(&question.tool_call_id))
        .await
        .unwrap();
    at_rest(&runtime, "k").await;
    let parent = document(&runtime, "k").await;
    assert_eq!(results(&parent), ["Middle."]);
    assert_eq!(ran.lock().unwrap().len(), 1);
    assert!(pending(&runtime, "k").await.is_empty());
    all_complete(&runtime).await;
    let last = messages(&parent).pop().unwrap();
    assert_eq!(last["parts"][0]["content"], "Done.");
    // Each child was started once and has ended once, in the log of each parent.
    for key in ["k", &keys[0]] {
        let events = crate::children::rig::events(&document(&runtime, key).await);
        assert_eq!(events, ["data-tp-thread_spawn", "data-tp-thread_end"]);
    }
}

#[tokio::test]
async fn an_answer_may_be_given_to_any_thread_above_and_is_found_by_its_call() {
    let ran = Ran::default();
    let runtime = fresh(three(&ran));
    say(&runtime, "go").await;
    at_rest(&runtime, "k").await;
    let question = asked(&runtime, "k").await.remove(0).address;
    let keys = children(&runtime).await;
    let to = Addressed::To(question.key.clone());
    for key in ["k", &keys[0], &keys[1]] {
        for named in [None, Some(question.key.as_str())] {
            let call = &question.tool_call_id;
            let found = runtime.addressed(&tenant(), key, call, named, None).await;
            assert_eq!(found.unwrap(), to);
        }
    }
    let other = runtime
        .addressed(&tenant(), &keys[1], "x", Some("k"), None)
        .await;
    assert_eq!(other.unwrap(), Addressed::OtherThread);
}

/// An agent whose children ask, and that asks itself, all at once.
fn crowd(ran: &Ran) -> Vec<Agent> {
    let one = agent(
        "one",
        vec![call("touch"), text("One.")],
        vec![guarded("touch", ran)],
    );
    let two = agent(
        "two",
        vec![calls(&["touch", "fetch"]), text("Two.")],
        vec![guarded("touch", ran), external("fetch")],
    );
    let tools = vec![sub(one.clone()), sub(two.clone()), guarded("own", ran)];
    let top = agent(
        "lead",
        vec![calls(&["one", "own", "two", "one"]), text("Done.")],
        tools,
    );
    vec![top, one, two]
}

#[tokio::test]
async fn answers_to_several_children_come_in_any_order_and_to_other_processes() {
    for seed in 0..12_usize {
        let ran = Ran::default();
        let store = Arc::new(MemoryStore::new());
        let mut runtime = process(&store, crowd(&ran));
        say(&runtime, "go").await;
        at_rest(&runtime, "k").await;
        let mut n_left = 5;
        loop {
            let mut open = asked(&runtime, "k").await;
            assert_eq!(open.len(), n_left, "seed {seed}");
            if open.is_empty() {
                break;
            }
            let pick = open.swap_remove(seed * 7 % open.len());
            let id = &pick.address.tool_call_id;
            let parts = match pick.call.kind {
                OpenKind::External => bring(id, &json!("fetched")),
                OpenKind::Approval if n_left % 2 == seed % 2 => deny(id),
                _ => approve(id),
            };
            if seed % 3 == 0 {
                runtime.shutdown().await.unwrap();
                runtime = process(&store, crowd(&ran));
                runtime.recover().await.unwrap();
            }
            answer(&runtime, &pick.address.key, &parts).await.unwrap();
            at_rest(&runtime, "k").await;
            n_left -= 1;
        }
        let parent = document(&runtime, "k").await;
        let mut said = results(&parent);
        said.sort();
        said.retain(|it| it.ends_with('.') && !it.contains(' '));
        assert_eq!(said, ["One.", "One.", "Two."], "seed {seed}");
        let last = messages(&parent).pop().unwrap();
        assert_eq!(last["parts"][0]["content"], "Done.");
        assert_eq!(children(&runtime).await.len(), 3);
        all_complete(&runtime).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_sibling_that_runs_is_not_stopped_for_a_child_that_waits() {
    let ran = Ran::default();
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
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
    let runtime = fresh(vec![top, leaf]);
    say(&runtime, "go").await;
    // The question is listed while the parent still runs.
    let question = loop {
        if let Some(question) = asked(&runtime, "k").await.pop() {
            break question.address;
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    };
    answer(&runtime, &question.key, &approve(&question.tool_call_id))
        .await
        .unwrap();
    at_rest(&runtime, &question.key).await;
    gate.add_permits(1);
    let records = at_rest(&runtime, "k").await;
    assert_eq!(endings(&records).len(), 1, "it never had to wait");
    let mut said = results(&document(&runtime, "k").await);
    said.sort();
    assert_eq!(said, ["Leaf.", "slow"]);
}

#[tokio::test]
async fn edited_arguments_of_the_call_and_of_the_childs_are_kept() {
    let ran = Ran::default();
    let leaf = agent(
        "leaf",
        vec![call("touch"), text("Leaf.")],
        vec![guarded("touch", &ran)],
    );
    let helper = sub(leaf.clone()).with_requires_approval();
    let top = agent("lead", vec![call("leaf"), text("Done.")], vec![helper]);
    let runtime = fresh(vec![top, leaf]);
    say(&runtime, "go").await;
    for (n, task) in ["edited task", "edited touch"].into_iter().enumerate() {
        at_rest(&runtime, "k").await;
        let mut open = asked(&runtime, "k").await;
        assert_eq!(open.len(), 1);
        let place = open.remove(0).address;
        assert_eq!(place.key == "k", n == 0);
        let edited = json!([{"type": "loomline-answer", "toolCallId": place.tool_call_id,
            "approved": true, "arguments": {"task": task}}]);
        answer(&runtime, &place.key, &edited).await.unwrap();
    }
    at_rest(&runtime, "k").await;
    let key = &children(&runtime).await[0];
    let child = document(&runtime, key).await;
    assert_eq!(child["turns"][0]["parts"][0]["content"], "edited task");
    assert_eq!(*ran.lock().unwrap(), [json!({"task": "edited touch"})]);
    assert_eq!(results(&document(&runtime, "k").await), ["Leaf."]);
}

/// A tool that runs an agent twice, one after the other, and puts the answers together.
fn twice(helper: &Agent) -> Tool {
    let helper = helper.clone();
    let run = move |_: Value, context: ToolContext| {
        let helper = helper.clone();
        async move {
            let mut said = Vec::new();
            for task in ["one", "two"] {
                let spawn = Spawn::new(helper.clone(), task, &context);
                let turn = spawn.run(&context).await.turn.unwrap();
                said.push(turn.response.joined_text());
            }
            Ok(json!(said.join(" and ")))
        }
        .boxed()
    };
    Tool::new("twice", "Does it twice.", parameters(), run)
}

#[tokio::test]
async fn a_tool_of_ones_own_goes_on_where_its_sub_agent_waited() {
    let ran = Ran::default();
    let helper = agent(
        "helper",
        vec![call("touch"), text("Helped.")],
        vec![guarded("touch", &ran)],
    );
    let twice = twice(&helper).with_effect(upp::Effect::Idempotent);
    let top = agent("lead", vec![call("twice"), text("Done.")], vec![twice]);
    let runtime = fresh(vec![top, helper]);
    say(&runtime, "go").await;
    for n in 1..=2 {
        at_rest(&runtime, "k").await;
        assert_eq!(children(&runtime).await.len(), n);
        let question = asked(&runtime, "k").await.remove(0).address;
        answer(&runtime, &question.key, &approve(&question.tool_call_id))
            .await
            .unwrap();
    }
    at_rest(&runtime, "k").await;
    let parent = document(&runtime, "k").await;
    assert_eq!(results(&parent), ["Helped. and Helped."]);
    let events = crate::children::rig::events(&parent);
    assert_eq!(events.len(), 4, "{events:?}");
}

#[tokio::test]
async fn a_call_that_must_not_run_twice_does_not_wait_and_says_where_the_question_is() {
    let ran = Ran::default();
    let helper = agent(
        "helper",
        vec![call("touch"), text("Helped.")],
        vec![guarded("touch", &ran)],
    );
    let once = {
        let helper = helper.clone();
        let run = move |_: Value, context: ToolContext| {
            let helper = helper.clone();
            async move {
                let run = Spawn::new(helper, "help", &context).run(&context).await;
                match run.turn {
                    Ok(turn) => Ok(json!(turn.response.joined_text())),
                    Err(error) => {
                        let cause = std::error::Error::source(&error).unwrap();
                        Ok(json!(cause.to_string()))
                    }
                }
            }
            .boxed()
        };
        Tool::new("once", "Does it once.", parameters(), run).with_effect(upp::Effect::Effect)
    };
    let top = agent("lead", vec![call("once"), text("Done.")], vec![once]);
    let runtime = fresh(vec![top, helper]);
    say(&runtime, "go").await;
    at_rest(&runtime, "k").await;
    let key = &children(&runtime).await[0];
    let told = &results(&document(&runtime, "k").await)[0];
    assert!(
        told.contains(key) && told.contains("waits for answers"),
        "{told}"
    );
    let question = asked(&runtime, key).await.remove(0).address;
    answer(&runtime, key, &approve(&question.tool_call_id))
        .await
        .unwrap();
    at_rest(&runtime, key).await;
    assert_eq!(ran.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn nobody_but_the_runtime_says_that_a_child_goes_on() {
    let ran = Ran::default();
    let runtime = fresh(three(&ran));
    say(&runtime, "go").await;
    at_rest(&runtime, "k").await;
    let own = pending(&runtime, "k").await.remove(0).address;
    let said =
        json!([{"type": "loomline-answer", "toolCallId": own.tool_call_id, "resumed": true}]);
    for parts in [
        said,
        approve(&own.tool_call_id),
        bring(&own.tool_call_id, &json!(1)),
    ] {
        let refused = answer(&runtime, "k", &parts).await;
        assert!(
            matches!(
                refused,
                Err(RuntimeError::Rejected(Rejected::WrongAnswer {
                    kind: OpenKind::Child,
                    ..
                }))
            ),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn a_parent_that_waits_waits_in_another_process_as_well() {
    let ran = Ran::default();
    let store = Arc::new(MemoryStore::new());
    let first = process(&store, three(&ran));
    say(&first, "go").await;
    at_rest(&first, "k").await;
    first.shutdown().await.unwrap();
    let second = over(store, three(&ran));
    assert_eq!(second.recover().await.unwrap(), 0);
    let question = asked(&second, "k").await.remove(0).address;
    answer(&second, &question.key, &approve(&question.tool_call_id))
        .await
        .unwrap();
    at_rest(&second, "k").await;
    assert_eq!(results(&document(&second, "k").await), ["Middle."]);
}
