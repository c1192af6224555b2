//! Parents and children that wait, in processes that die after each write of any of them.

use crate::children::rig::{
    KEY, agent, at_rest, call, calls, children, endings, everything, exported, message, over, sub,
    tenant, text,
};
use crate::children::waits::{Ran, answer, asked, guarded};
use crate::durable::rig::{approve, deny};
use crate::mortal::Mortal;
use agents::Agent;
use loomline_runtime as runtime;
use runtime::{Pending, Runtime, RuntimeError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use store::{MemoryStore, Store};
use timeline::ExecutionStatus;
use upp::Effect;

/// The call that is refused.
const REFUSED: &str = "refused";

/// The lead has two children; one asks, and the child of the other does.
fn agents(ran: &Ran) -> Vec<Agent> {
    let guarded = |name| guarded(name, ran).with_effect(Effect::Idempotent);
    let mut two = calls(&["touch", "touch"]);
    two.tool_calls[1].id = Some(REFUSED.into());
    let leaf = agent("leaf", vec![two, text("Leaf.")], vec![guarded("touch")]);
    let middle = agent(
        "middle",
        vec![call("leaf"), text("Middle.")],
        vec![sub(leaf.clone())],
    );
    let other = agent(
        "other",
        vec![call("touch"), text("Other.")],
        vec![guarded("touch")],
    );
    let tools = vec![sub(middle.clone()), sub(other.clone())];
    let top = agent(
        "lead",
        vec![calls(&["middle", "other"]), text("Done.")],
        tools,
    );
    vec![top, middle, leaf, other]
}

/// Waits until nothing runs on any thread, or the process is dead.
async fn rested(process: &Runtime, mortal: &Mortal) -> Result<(), RuntimeError> {
    loop {
        if mortal.is_dead() {
            return Err(RuntimeError::ShuttingDown);
        }
        let page = store::ThreadRows {
            limit: 100,
            ..store::ThreadRows::default()
        };
        let mut rests = true;
        for row in process.list(&tenant(), page).await? {
            let (state, _) = process.state(&tenant(), &row.thread.key.unwrap()).await?;
            rests &= state.active().is_none() && state.waiting().len() == 0;
        }
        if rests {
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
}

/// What the client says to a question: one of the leaf's is refused.
fn says(question: &Pending) -> serde_json::Value {
    let id = &question.address.tool_call_id;
    if id == REFUSED { deny(id) } else { approve(id) }
}

/// Asks, and answers what is asked until nothing is: the first question, or the last one, each time.
async fn lived(process: &Runtime, mortal: &Mortal, is_last: bool) -> Result<(), RuntimeError> {
    process.recover().await?;
    let mut request = message(process, "go");
    request.token = Some("once".into());
    process.react(request).await?;
    loop {
        rested(process, mortal).await?;
        let mut questions = asked(process, KEY).await;
        if mortal.is_dead() {
            return Err(RuntimeError::ShuttingDown);
        }
        if is_last {
            questions.reverse();
        }
        let Some(question) = questions.first() else {
            return Ok(());
        };
        answer(process, &question.address.key, &says(question)).await?;
    }
}

async fn survive(
    store: &Arc<MemoryStore>,
    deaths: &[(usize, bool)],
    is_last: bool,
    ran: &Ran,
) -> (Runtime, bool) {
    let mut died = false;
    for (n, (writes, keeps_last)) in deaths.iter().enumerate() {
        let mortal = Mortal::new(store, *writes, *keeps_last, writes % 2 == 0);
        let process = over(Arc::clone(&mortal) as Arc<dyn Store>, agents(ran));
        let outcome = lived(&process, &mortal, is_last).await;
        assert!(outcome.is_ok() || mortal.is_dead(), "{outcome:?}");
        died |= n == 0 && mortal.is_dead();
        mortal.die();
        let _ = process.shutdown().await;
    }
    let mortal = Mortal::new(store, usize::MAX, true, false);
    let last = over(Arc::clone(&mortal) as Arc<dyn Store>, agents(ran));
    lived(&last, &mortal, is_last).await.unwrap();
    (last, died)
}

/// What all threads say, whatever the order in which parallel ones were made and answered.
async fn said(runtime: &Runtime) -> BTreeSet<Vec<String>> {
    let sorted = |mut content: Vec<String>| {
        content.sort();
        content
    };
    let all: BTreeMap<String, Vec<String>> = everything(runtime).await;
    all.into_values().map(sorted).collect()
}

async fn check(runtime: &Runtime, ran: &Ran, why: &str) {
    let keys = children(runtime).await;
    assert_eq!(keys.len(), 3, "{why}");
    for key in keys.iter().map(String::as_str).chain([KEY]) {
        let endings = endings(&at_rest(runtime, key).await);
        let completed = |end: &(ExecutionStatus, _)| end.0 == ExecutionStatus::Completed;
        assert!(endings.iter().all(completed), "{why}: {key}");
        exported(runtime, key).await;
    }
    assert!(asked(runtime, KEY).await.is_empty(), "{why}");
    assert!(ran.lock().unwrap().len() >= 2, "{why}");
}

#[tokio::test]
async fn a_crash_after_any_write_of_a_tree_that_waits_changes_nothing_that_is_said() {
    for is_last in [false, true] {
        let undisturbed = {
            let ran = Ran::default();
            let store = Arc::new(MemoryStore::new());
            let (runtime, _) = survive(&store, &[], is_last, &ran).await;
            check(&runtime, &ran, "undisturbed").await;
            assert_eq!(ran.lock().unwrap().len(), 2);
            said(&runtime).await
        };
        let mut n_deaths = 0;
        for writes in 0.. {
            let mut any = false;
            for keeps_last in [false, true] {
                let ran = Ran::default();
                let store = Arc::new(MemoryStore::new());
                let deaths = [
                    (writes, keeps_last),
                    (1 + writes * 7 % 5, !keeps_last),
                    (writes * 3 % 11, keeps_last),
                ];
                let why = format!("after {writes} writes, {keeps_last}, {is_last}");
                let (runtime, died) = survive(&store, &deaths, is_last, &ran).await;
                check(&runtime, &ran, &why).await;
                assert_eq!(said(&runtime).await, undisturbed, "{why}");
                // Once the first life is long enough, every write has been its last one.
                any |= died;
                n_deaths += usize::from(died);
            }
            if !any {
                break;
            }
        }
        assert!(n_deaths > 80, "{n_deaths}");
    }
}
