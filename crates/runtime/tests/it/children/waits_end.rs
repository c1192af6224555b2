//! Threads that wait and are closed, deleted or written to meanwhile.

use crate::children::rig::{
    agent, at_rest, call, calls, children, document, endings, fresh, message, messages, over,
    process, results, say, sub, tenant, text, tool,
};
use crate::children::waits::{Ran, answer, asked, guarded, pending, three};
use crate::durable::rig::approve;
use crate::gate::write;
use futures_util::FutureExt;
use loomline_runtime as runtime;
use runtime::{Addressed, Runtime, RuntimeError};
use serde_json::json;
use std::sync::Arc;
use store::{MemoryStore, StoreError, ThreadTable as _};
use timeline::{Command, ExecutionStatus, NewItem, Rejected, ThreadStatus};
use tokio::sync::Semaphore;

fn user(runtime: &Runtime, said: &str) -> NewItem {
    let content = json!([{"type": "input_text", "text": said}]).into();
    NewItem::user(runtime.mint(), content)
}

/// Waits until a thread waits for nobody.
async fn until_nothing_waits(runtime: &Runtime, key: &str) {
    while !pending(runtime, key).await.is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
}

async fn last_words(runtime: &Runtime) -> String {
    let last = messages(&document(runtime, "k").await).pop().unwrap();
    last["parts"][0]["content"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn closing_a_parent_that_waits_stops_the_children_that_wait() {
    let ran = Ran::default();
    let runtime = fresh(three(&ran));
    say(&runtime, "go").await;
    at_rest(&runtime, "k").await;
    let question = asked(&runtime, "k").await.remove(0).address;
    runtime.close(&tenant(), "k").await.unwrap();
    for key in ["k".to_owned()].into_iter().chain(children(&runtime).await) {
        until_nothing_waits(&runtime, &key).await;
        let records = at_rest(&runtime, &key).await;
        let stopped = (ExecutionStatus::Failed, Some("user_cancelled".to_owned()));
        assert_eq!(endings(&records).pop(), Some(stopped), "{key}");
    }
    let late = answer(&runtime, &question.key, &approve(&question.tool_call_id)).await;
    assert!(
        matches!(late, Err(RuntimeError::Rejected(Rejected::Superseded(_)))),
        "{late:?}"
    );
    let row = runtime.find(&tenant(), "k").await.unwrap();
    assert_eq!(row.thread.status, ThreadStatus::Closed);
}

#[tokio::test]
async fn closing_a_child_that_waits_gives_its_parents_call_an_error() {
    let ran = Ran::default();
    let runtime = fresh(three(&ran));
    say(&runtime, "go").await;
    at_rest(&runtime, "k").await;
    let keys = children(&runtime).await;
    runtime.close(&tenant(), &keys[1]).await.unwrap();
    at_rest(&runtime, "k").await;
    let told = results(&document(&runtime, &keys[0]).await).remove(0);
    assert!(told.contains("the thread was closed"), "{told}");
    assert_eq!(last_words(&runtime).await, "Done.");
}

#[tokio::test]
async fn a_child_comes_to_its_end_though_its_parent_can_not_go_on() {
    let ran = Ran::default();
    let store = Arc::new(MemoryStore::new());
    let first = process(&store, three(&ran));
    say(&first, "go").await;
    at_rest(&first, "k").await;
    let question = asked(&first, "k").await.remove(0).address;
    first.shutdown().await.unwrap();
    // A thread that was closed while its calls were open.
    let middle = children(&over(store.clone(), three(&ran))).await.remove(0);
    let row = store.find(&tenant(), &middle).await.unwrap();
    write(store.as_ref(), &row.thread.id, Command::Close).await;
    let second = over(store, three(&ran));
    answer(&second, &question.key, &approve(&question.tool_call_id))
        .await
        .unwrap();
    let records = at_rest(&second, &question.key).await;
    let ends: Vec<_> = endings(&records).into_iter().map(|end| end.0).collect();
    assert_eq!(ends, [ExecutionStatus::Completed; 2]);
}

#[tokio::test]
async fn deleting_a_child_that_waits_gives_its_parents_call_an_error() {
    let ran = Ran::default();
    let runtime = fresh(three(&ran));
    say(&runtime, "go").await;
    at_rest(&runtime, "k").await;
    let keys = children(&runtime).await;
    runtime.delete(&tenant(), &keys[1]).await.unwrap();
    at_rest(&runtime, "k").await;
    let told = results(&document(&runtime, &keys[0]).await).remove(0);
    assert!(told.contains(&keys[1]), "{told}");
    assert_eq!(last_words(&runtime).await, "Done.");
    // Nobody makes it again.
    let gone = runtime.find(&tenant(), &keys[1]).await;
    assert!(
        matches!(gone, Err(RuntimeError::Store(StoreError::NotFound))),
        "{gone:?}"
    );
    assert!(ran.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_message_to_a_child_that_waits_goes_on_with_its_run() {
    let ran = Ran::default();
    let runtime = fresh(three(&ran));
    say(&runtime, "go").await;
    at_rest(&runtime, "k").await;
    let question = asked(&runtime, "k").await.remove(0).address;
    let mut said = message(&runtime, "in another way");
    said.key = question.key.clone();
    said.run.agent = Some("leaf".into());
    runtime.react(said).await.unwrap();
    at_rest(&runtime, &question.key).await;
    at_rest(&runtime, "k").await;
    let question = asked(&runtime, "k").await.remove(0).address;
    answer(&runtime, &question.key, &approve(&question.tool_call_id))
        .await
        .unwrap();
    at_rest(&runtime, "k").await;
    assert_eq!(results(&document(&runtime, "k").await), ["Middle."]);
    assert_eq!(last_words(&runtime).await, "Done.");
}

/// A leaf that asks, and does something slow beside it.
struct Slow {
    runtime: Runtime,
    gate: Arc<Semaphore>,
    /// The leaf's key.
    leaf: String,
}

impl Slow {
    /// The leaf's slow tool runs, and its parent waits for the leaf to end.
    async fn running() -> Self {
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
            vec![calls(&["touch", "slow"]), text("Leaf.")],
            vec![guarded("touch", &ran), slow],
        );
        let top = agent(
            "lead",
            vec![call("leaf"), text("Done.")],
            vec![sub(leaf.clone())],
        );
        let runtime = fresh(vec![top, leaf]);
        say(&runtime, "go").await;
        let leaf = crate::children::rig::running_child(&runtime, 1).await;
        Self {
            runtime,
            gate,
            leaf,
        }
    }
}

#[tokio::test]
async fn a_message_that_waits_behind_a_childs_question_goes_on_with_its_run() {
    let slow = Slow::running().await;
    let runtime = &slow.runtime;
    let mut said = message(runtime, "in another way");
    said.key = slow.leaf.clone();
    said.run.agent = Some("leaf".into());
    assert!(runtime.react(said).await.unwrap().queued);
    // The first run leaves its question open; the message takes its place and asks again.
    slow.gate.add_permits(2);
    at_rest(runtime, &slow.leaf).await;
    at_rest(runtime, "k").await;
    let question = asked(runtime, "k").await.remove(0).address;
    answer(runtime, &slow.leaf, &approve(&question.tool_call_id))
        .await
        .unwrap();
    at_rest(runtime, "k").await;
    assert_eq!(results(&document(runtime, "k").await), ["Leaf."]);
}

#[tokio::test]
async fn a_child_whose_question_was_passed_over_while_it_ran_gives_its_call_an_error() {
    let slow = Slow::running().await;
    let runtime = &slow.runtime;
    let item = user(runtime, "something else");
    runtime.record(&tenant(), &slow.leaf, item).await.unwrap();
    slow.gate.add_permits(1);
    at_rest(runtime, "k").await;
    let told = results(&document(runtime, "k").await).remove(0);
    assert!(told.contains("something else was said"), "{told}");
    assert_eq!(last_words(runtime).await, "Done.");
}

#[tokio::test]
async fn a_message_that_is_only_kept_stops_the_children_that_wait() {
    let ran = Ran::default();
    let runtime = fresh(three(&ran));
    say(&runtime, "go").await;
    at_rest(&runtime, "k").await;
    let item = user(&runtime, "something else");
    runtime.record(&tenant(), "k", item).await.unwrap();
    for key in children(&runtime).await {
        until_nothing_waits(&runtime, &key).await;
        let records = at_rest(&runtime, &key).await;
        assert_eq!(
            endings(&records).pop().unwrap().0,
            ExecutionStatus::Failed,
            "{key}"
        );
    }
}

#[tokio::test]
async fn a_message_that_is_only_kept_on_a_child_that_waits_ends_its_run() {
    let ran = Ran::default();
    let runtime = fresh(three(&ran));
    say(&runtime, "go").await;
    at_rest(&runtime, "k").await;
    let keys = children(&runtime).await;
    let item = user(&runtime, "something else");
    runtime.record(&tenant(), &keys[1], item).await.unwrap();
    at_rest(&runtime, "k").await;
    let told = results(&document(&runtime, &keys[0]).await).remove(0);
    assert!(told.contains("something else was said"), "{told}");
    assert_eq!(last_words(&runtime).await, "Done.");
}

#[tokio::test]
async fn a_tree_that_is_stored_stops_the_children_that_wait_and_takes_no_childs_place() {
    let ran = Ran::default();
    let runtime = fresh(three(&ran));
    say(&runtime, "go").await;
    at_rest(&runtime, "k").await;
    let keys = children(&runtime).await;
    for key in [keys[1].as_str(), "k"] {
        let mut tree = runtime.load_tree(&tenant(), key).await.unwrap();
        let state = tree.history().with_context(Vec::new());
        tree.set_state(state.with_message("something else"));
        let stored = runtime.store_tree(&tenant(), key, &tree).await;
        if key == "k" {
            stored.unwrap();
        } else {
            assert!(
                matches!(
                    stored,
                    Err(runtime::tree::StoredTreeError::Runtime(RuntimeError::Busy(
                        _
                    )))
                ),
                "{stored:?}"
            );
        }
    }
    for key in &keys {
        until_nothing_waits(&runtime, key).await;
    }
}

#[tokio::test]
async fn an_answer_that_is_repeated_is_for_the_sub_agent_that_took_it() {
    let ran = Ran::default();
    let runtime = fresh(three(&ran));
    say(&runtime, "go").await;
    at_rest(&runtime, "k").await;
    let question = asked(&runtime, "k").await.remove(0).address;
    let (call, said) = (&question.tool_call_id, approve(&question.tool_call_id));
    let token = format!("{} {said}", question.key);
    let expected = Addressed::To(question.key.clone());
    let addressed = async |key: &str, token: &str| {
        let tenant = tenant();
        let found = runtime.addressed(&tenant, key, call, None, Some(token));
        found.await.unwrap()
    };
    assert_eq!(addressed("k", &token).await, expected);
    let first = answer(&runtime, &question.key, &said).await.unwrap();
    at_rest(&runtime, "k").await;
    for key in ["k", &children(&runtime).await[0]] {
        assert_eq!(addressed(key, &token).await, expected);
    }
    assert_eq!(addressed("k", "another").await, Addressed::To("k".into()));
    let again = answer(&runtime, &question.key, &said).await.unwrap();
    assert!(again.repeated);
    assert_eq!(again.item_id, first.item_id);
    assert_eq!(ran.lock().unwrap().len(), 1);
}
