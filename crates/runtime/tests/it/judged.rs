//! A gate judges what is said under the thread's lock, and what it refuses leaves no trace.

use agents::{Agent, AgentOptions};
use futures_util::future::BoxFuture;
use loomline_runtime as runtime;
use runtime::{
    Accepted, AgentReactor, Gate, GateRequest, Preconditions, ReactRequest, Runtime, RuntimeError,
    RuntimeOptions,
};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use store::{Filter, MemoryStore, TenantId};
use timeline::{Entry, NewItem, Role, Seq, Transcript};

/// Refuses a second word of those that begin with `once`, and notes what it was asked.
#[derive(Default)]
struct Once {
    asked: Mutex<Vec<(bool, Seq, usize)>>,
    taken: Mutex<Vec<String>>,
}

impl Gate for Once {
    fn check<'a>(&'a self, entering: GateRequest<'a>) -> BoxFuture<'a, Result<(), RuntimeError>> {
        Box::pin(async move {
            let is_there = entering.thread.is_some();
            let asked = (is_there, entering.tail, entering.items.len());
            self.asked.lock().unwrap().push(asked);
            for item in entering.items {
                let word = item.id.as_str().split('-').next().unwrap().to_owned();
                let mut taken = self.taken.lock().unwrap();
                if word.starts_with("once") && taken.contains(&word) {
                    return Err(RuntimeError::TurnedAway("twice".into()));
                }
                taken.push(word);
                item.role = Some(Role::Developer);
            }
            Ok(())
        })
    }
}

fn tenant() -> TenantId {
    "acme".into()
}

fn runtime() -> Runtime {
    let agent = Agent::new(AgentOptions::new("echo", Arc::new(upp::Scripted::new()))).unwrap();
    let reactor = Arc::new(AgentReactor::new(agent));
    let store = Arc::new(MemoryStore::new());
    Runtime::new(store, Arc::new(reactor), RuntimeOptions::default())
}

fn item(id: &str) -> NewItem {
    NewItem::user(id, json!([{"type": "input_text", "text": "hi"}]).into())
}

fn react(key: &str, id: &str, token: Option<&str>) -> ReactRequest {
    ReactRequest {
        token: token.map(Into::into),
        ..ReactRequest::new(tenant(), key, item(id))
    }
}

async fn said(runtime: &Runtime, key: &str) -> Vec<(String, Option<Role>)> {
    let read = runtime.transcript(&tenant(), key, Filter::Facts).await;
    let Transcript { entries, .. } = read.unwrap();
    let items = entries.into_iter().filter_map(|entry| match entry {
        Entry::Item(item) => Some((item.id.to_string(), item.role)),
        Entry::Reaction(_) => None,
    });
    items.collect()
}

fn is_turned<T: std::fmt::Debug>(found: Result<T, RuntimeError>) -> bool {
    match found {
        Err(RuntimeError::TurnedAway(why)) => why.to_string() == "twice",
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_a_gate_refuses_is_not_written_and_makes_no_thread() {
    let (runtime, gate) = (runtime(), Arc::new(Once::default()));
    let through = |request| {
        runtime.react_on(
            request,
            Preconditions::through(Arc::<Once>::clone(&gate) as _),
        )
    };
    through(react("k", "once-1", None)).await.unwrap();
    assert!(is_turned(through(react("k", "once-2", None)).await));
    assert!(is_turned(through(react("other", "once-3", None)).await));
    assert!(runtime.find(&tenant(), "other").await.is_err());
    // Before the thread is made, then on it, and before another one is made.
    let asked = gate.asked.lock().unwrap().clone();
    assert_eq!(asked.len(), 3, "each is judged once");
    assert!(!asked[0].0 && asked[1].0 && !asked[2].0);
    assert!(asked[1].1 > asked[0].1);
    let developer = Some(Role::Developer);
    assert_eq!(
        said(&runtime, "k").await,
        [("once-1".to_owned(), developer)]
    );
}

#[tokio::test]
async fn of_those_who_say_a_thing_at_once_a_gate_lets_one_through() {
    let (runtime, gate) = (runtime(), Arc::new(Once::default()));
    runtime.react(react("k", "hello", None)).await.unwrap();
    let all = (0..16).map(|n| {
        let (runtime, gate) = (runtime.clone(), Arc::<Once>::clone(&gate));
        async move {
            let items = vec![item(&format!("plain-{n}")), item(&format!("once-{n}"))];
            let terms = Preconditions::through(gate);
            runtime.record_on(&tenant(), "k", items, terms).await
        }
    });
    let done = futures_util::future::join_all(all).await;
    let (taken, refused): (Vec<_>, Vec<_>) = done.into_iter().partition(Result::is_ok);
    assert_eq!((taken.len(), refused.len()), (1, 15));
    assert!(refused.into_iter().all(is_turned));
    let n_plain = said(&runtime, "k").await.len();
    assert_eq!(n_plain, 3, "of the refused not even what was allowed");
}

#[tokio::test]
async fn a_request_that_is_repeated_is_answered_and_not_judged() {
    let (runtime, gate) = (runtime(), Arc::new(Once::default()));
    let through = |id| {
        let request = react("k", id, Some("token"));
        runtime.react_on(
            request,
            Preconditions::through(Arc::<Once>::clone(&gate) as _),
        )
    };
    let first = through("once-1").await.unwrap();
    let n_asked = gate.asked.lock().unwrap().len();
    let again = through("once-2").await.unwrap();
    assert!(again.repeated && again.item_id == first.item_id);
    assert_eq!(gate.asked.lock().unwrap().len(), n_asked);
}

/// Holds the first two back until both are there: neither has found the thread.
struct AtOnce {
    both: tokio::sync::Barrier,
    n_asked: AtomicUsize,
}

impl Gate for AtOnce {
    fn check<'a>(&'a self, _: GateRequest<'a>) -> BoxFuture<'a, Result<(), RuntimeError>> {
        Box::pin(async move {
            if self.n_asked.fetch_add(1, Ordering::SeqCst) < 2 {
                self.both.wait().await;
            }
            Ok(())
        })
    }
}

/// What two requests come to that make the same thread at once.
async fn both(tokens: [Option<&str>; 2]) -> (Runtime, [Accepted; 2]) {
    let runtime = runtime();
    let gate: Arc<dyn Gate> = Arc::new(AtOnce {
        both: tokio::sync::Barrier::new(2),
        n_asked: AtomicUsize::new(0),
    });
    let [one, two] = tokens;
    let say = |id, token| {
        runtime.react_on(
            react("k", id, token),
            Preconditions::through(Arc::clone(&gate)),
        )
    };
    let (one, two) = tokio::join!(say("one", one), say("two", two));
    let both = [one.unwrap(), two.unwrap()];
    (runtime, both)
}

#[tokio::test]
async fn of_two_who_make_a_thread_at_once_one_does_and_both_are_heard_there() {
    let (runtime, [one, two]) = both([None, None]).await;
    assert_eq!(one.thread_id, two.thread_id);
    let mut said: Vec<String> = said(&runtime, "k")
        .await
        .into_iter()
        .map(|it| it.0)
        .collect();
    said.sort();
    assert_eq!(said, ["one", "two"]);
}

#[tokio::test]
async fn of_two_who_make_a_thread_at_once_under_one_token_one_is_answered_again() {
    let (runtime, [one, two]) = both([Some("once"), Some("once")]).await;
    assert_eq!(one.item_id, two.item_id);
    assert_ne!(one.repeated, two.repeated);
    assert_eq!(said(&runtime, "k").await.len(), 1);
}
