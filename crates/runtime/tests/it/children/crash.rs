//! A parent and its child in processes that die after each write of either.

use crate::children::rig::{
    KEY, agent, at_rest, call, calls, children, endings, everything, message, over, sub, survive,
    text, tool,
};
use crate::mortal::Mortal;
use agents::Agent;
use futures_util::FutureExt;
use loomline_runtime as runtime;
use runtime::{Runtime, RuntimeError};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use store::{MemoryStore, StoreError};
use timeline::ExecutionStatus;
use upp::{Effect, ToolContext};

/// How often the tool ran, by the key under which it may take effect once.
type Ran = Arc<Mutex<BTreeMap<String, usize>>>;

fn agents(effect: Effect, ran: &Ran) -> Vec<Agent> {
    let ran = Arc::clone(ran);
    let touch = tool("touch", move |context: ToolContext| {
        let mut ran = ran.lock().unwrap();
        *ran.entry(context.idempotency_key.to_string()).or_default() += 1;
        async { Ok(json!("touched")) }.boxed()
    })
    .with_effect(effect);
    let leaf = agent("leaf", vec![call("touch"), text("Leaf.")], vec![touch]);
    let middle = agent(
        "middle",
        vec![call("leaf"), text("Middle.")],
        vec![sub(leaf.clone())],
    );
    let tools = vec![sub(middle.clone()), sub(leaf.clone())];
    let top = agent(
        "lead",
        vec![calls(&["middle", "leaf"]), text("Done.")],
        tools,
    );
    vec![top, middle, leaf]
}

async fn check_one_run_each(runtime: &Runtime, n_children: usize) {
    let keys = children(runtime).await;
    assert_eq!(keys.len(), n_children);
    for key in keys {
        let records = at_rest(runtime, &key).await;
        assert_eq!(endings(&records), [(ExecutionStatus::Completed, None)]);
    }
}

/// The contents of all threads, whatever the order in which parallel ones were made.
fn unordered(all: BTreeMap<String, Vec<String>>) -> BTreeSet<Vec<String>> {
    // Parallel events of one step may come in another order.
    let sorted = |mut content: Vec<String>| {
        content.sort();
        content
    };
    all.into_values().map(sorted).collect()
}

async fn crashes(effect: Effect) -> usize {
    let undisturbed = {
        let ran = Ran::default();
        let store = Arc::new(MemoryStore::new());
        let (runtime, _) = survive(&store, &[], || agents(effect, &ran)).await;
        unordered(everything(&runtime).await)
    };
    let mut n_lives = 0;
    for writes in 0.. {
        let mut any = false;
        for keeps_last in [false, true] {
            let ran = Ran::default();
            let store = Arc::new(MemoryStore::new());
            let reversed = writes % 2 == 0;
            // The second process dies soon after the first, wherever that was.
            let lives = [
                (writes, keeps_last, reversed),
                (1 + writes * 7 % 5, !keeps_last, !reversed),
            ];
            let (runtime, died) = survive(&store, &lives, || agents(effect, &ran)).await;
            any |= died;
            n_lives += 1;
            check_one_run_each(&runtime, 3).await;
            let all = everything(&runtime).await;
            let cut = all
                .values()
                .flatten()
                .any(|said| said.contains("interrupted"));
            assert!(!cut || effect == Effect::Effect, "after {writes} writes");
            if !cut {
                assert_eq!(unordered(all), undisturbed, "after {writes} writes");
            }
            let ran = ran.lock().unwrap();
            assert!(ran.len() <= 2);
            if effect == Effect::Effect {
                assert!(
                    ran.values().all(|n| *n == 1),
                    "after {writes} writes: {ran:?}"
                );
            }
        }
        if !any {
            break;
        }
    }
    n_lives
}

#[tokio::test]
async fn a_crash_after_any_write_starts_no_child_twice_and_changes_nothing_that_is_said() {
    // So many that every write of the three threads was the last one once.
    assert!(crashes(Effect::Idempotent).await > 20);
}

#[tokio::test]
async fn a_crash_after_any_write_runs_an_effect_of_a_child_at_most_once() {
    assert!(crashes(Effect::Effect).await > 20);
}

#[tokio::test]
async fn a_child_whose_parent_is_recovered_later_needs_nothing_of_it() {
    let ran = Ran::default();
    let store = Arc::new(MemoryStore::new());
    let lives = [(14, true, true)];
    let (runtime, died) = survive(&store, &lives, || agents(Effect::Pure, &ran)).await;
    assert!(died);
    drop(runtime);
    let runtime = over(store, agents(Effect::Pure, &ran));
    assert_eq!(runtime.recover().await.unwrap(), 0);
    check_one_run_each(&runtime, 3).await;
}

#[tokio::test]
async fn a_write_that_fails_once_is_made_again_and_changes_nothing_that_is_said() {
    let run = |stumble: usize| async move {
        let ran = Ran::default();
        let store = Arc::new(MemoryStore::new());
        let mortal = Mortal::stumbling(&store, stumble);
        let runtime = over(Arc::clone(&mortal) as _, agents(Effect::Idempotent, &ran));
        // The first writes are the client's, who is told and asks again.
        while let Err(error) = runtime.react(message(&runtime, "go")).await {
            assert!(
                matches!(error, RuntimeError::Store(StoreError::Failed(_))),
                "{error}"
            );
        }
        at_rest(&runtime, KEY).await;
        check_one_run_each(&runtime, 3).await;
        let last = stumble > 0 && !mortal.has_stumbled();
        (unordered(everything(&runtime).await), last)
    };
    let (undisturbed, _) = run(0).await;
    for stumble in 1.. {
        let (all, last) = run(stumble).await;
        assert_eq!(all, undisturbed, "the write {stumble}");
        if last {
            assert!(stumble > 15);
            break;
        }
    }
}
