//! Children that go on, fail or are taken over by others at the moment their parents look away.

use crate::children::rig::{
    KEY, agent, at_rest, call, calls, children, document, endings, over, process, results,
    running_child, say, stalls, sub, tenant, text, tool,
};
use crate::children::waits::{Ran, answer, asked, guarded};
use crate::durable::rig::{answer_item, approve};
use crate::gate::write;
use crate::mortal::Mortal;
use agents::Agent;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use loomline_runtime as runtime;
use runtime::Runtime;
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::suite::Layer;
use store::{Append, Appended, EventLog as _, Head, MemoryStore, Run, Store, StoreError};
use timeline::{
    Command, Ending, ExecutionId, ExecutionStatus, Interruption, NewItem, Payload, ThreadId,
    Trigger,
};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// A leaf that asks before it acts, under an agent that calls it.
fn asking(ran: &Ran) -> Vec<Agent> {
    let leaf = agent(
        "leaf",
        vec![call("touch"), text("Leaf.")],
        vec![guarded("touch", ran)],
    );
    let turns = vec![call("leaf"), text("Done.")];
    let top = agent("lead", turns, vec![sub(leaf.clone())]);
    vec![top, leaf]
}

fn begin(trigger: NewItem, run: Option<Payload>) -> Command {
    Command::Start {
        trigger: Trigger::New(trigger),
        run,
        execution_id: ExecutionId::from("by-hand"),
        reaction_item_id: "by-hand-reaction".into(),
        step_id: "by-hand-step".into(),
        workflow_run_id: None,
    }
}

/// What a store holds back.
#[derive(Clone, Debug, PartialEq)]
enum Held {
    /// A read of the head of this thread.
    Look(ThreadId),
    /// An append that names other threads.
    Sleep,
}

/// A store that holds back one read or append, when it is armed.
struct Slow {
    inner: Arc<MemoryStore>,
    armed: Mutex<Option<Held>>,
    waits: Semaphore,
    release: Semaphore,
}

impl Slow {
    async fn pass(&self, what: Held) {
        let is_it = self.armed.lock().unwrap().take_if(|armed| *armed == what);
        if is_it.is_some() {
            self.waits.add_permits(1);
            self.release.acquire().await.unwrap().forget();
        }
    }
}

impl Layer for Slow {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    fn head<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<Head, StoreError>> {
        async move {
            self.pass(Held::Look(thread.clone())).await;
            self.inner.head(thread).await
        }
        .boxed()
    }

    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended, StoreError>> {
        async move {
            if !append.unmoved.is_empty() {
                self.pass(Held::Sleep).await;
            }
            self.inner.append(append).await
        }
        .boxed()
    }
}

/// A parent waits for its child and for a slow tool. Then the tool ends, and the child gets its answer while the parent
/// is about to fall asleep.
async fn the_parent_stays_awake(held: impl FnOnce(&ThreadId) -> Held) {
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
    let mut agents = asking(&ran);
    let turns = vec![calls(&["leaf", "slow"]), text("Done.")];
    agents[0] = agent("lead", turns, vec![sub(agents[1].clone()), slow]);
    let store = Arc::new(Slow {
        inner: Arc::new(MemoryStore::new()),
        armed: Mutex::default(),
        waits: Semaphore::new(0),
        release: Semaphore::new(0),
    });
    let runtime = over(store.clone(), agents);
    say(&runtime, "go").await;
    let question = loop {
        if let Some(question) = asked(&runtime, KEY).await.pop() {
            break question.address;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    };
    at_rest(&runtime, &question.key).await;
    *store.armed.lock().unwrap() = Some(held(&question.thread_id));
    gate.add_permits(1);
    store.waits.acquire().await.unwrap().forget();
    let mut answering = JoinSet::new();
    let (process, place) = (runtime.clone(), question.clone());
    answering.spawn(async move {
        let said = approve(&place.tool_call_id);
        answer(&process, &place.key, &said).await.map(|_| ())
    });
    while ran.lock().unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    store.release.add_permits(1);
    answering.join_next().await.unwrap().unwrap().unwrap();
    let records = at_rest(&runtime, KEY).await;
    let completed = [(ExecutionStatus::Completed, None)];
    assert_eq!(endings(&records), completed, "it never had to wait");
    let mut said = results(&document(&runtime, KEY).await);
    said.sort();
    assert_eq!(said, ["Leaf.", "slow"]);
}

#[tokio::test(start_paused = true)]
async fn a_parent_does_not_fall_asleep_over_a_child_that_has_gone_on() {
    the_parent_stays_awake(|child| Held::Look(child.clone())).await;
}

#[tokio::test(start_paused = true)]
async fn a_parent_whose_child_goes_on_before_its_append_stays_awake() {
    the_parent_stays_awake(|_| Held::Sleep).await;
}

#[tokio::test]
async fn a_child_that_is_stopped_after_a_crash_wakes_its_parent() {
    let ran = Ran::default();
    let store = Arc::new(MemoryStore::new());
    let first = process(&store, asking(&ran));
    say(&first, "go").await;
    at_rest(&first, KEY).await;
    let question = asked(&first, KEY).await.remove(0).address;
    first.shutdown().await.unwrap();
    // The process died when the child had its answer, and the parent had not heard of it.
    let head = store.head(&question.thread_id).await.unwrap();
    let run = head.state.open().unwrap().execution.run.clone();
    let item = answer_item("answer".into(), &approve(&question.tool_call_id));
    write(store.as_ref(), &question.thread_id, begin(item, run)).await;
    let second = over(store, asking(&ran));
    let tenant = tenant();
    let cancelled = second.cancel(&tenant, &question.key, None, "user_cancelled");
    cancelled.await.unwrap();
    let records = at_rest(&second, KEY).await;
    assert_eq!(endings(&records).len(), 2, "the parent has gone on");
    let told = results(&document(&second, KEY).await);
    assert!(told[0].contains("user_cancelled"), "{told:?}");
}

async fn until_nothing_runs(runtime: &Runtime) {
    while runtime.running() > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_parents_cancel_leaves_a_run_of_someone_else_on_its_childs_thread() {
    let agents = || {
        let leaf = agent("leaf", vec![call("stall")], vec![stalls("stall")]);
        let turns = vec![call("leaf"), text("Done.")];
        let top = agent("lead", turns, vec![sub(leaf.clone())]);
        vec![top, leaf]
    };
    for is_own in [false, true] {
        let store = Arc::new(MemoryStore::new());
        let first = process(&store, agents());
        say(&first, "go").await;
        let key = running_child(&first, 1).await;
        let child = first.find(&tenant(), &key).await.unwrap().thread.id;
        first.shutdown().await.unwrap();
        until_nothing_runs(&first).await;
        let head = store.head(&child).await.unwrap();
        let run = head.state.active().unwrap().execution.run.clone();
        // Before the process died somebody had stopped the child's run and begun another there.
        let why = Interruption::new("user_cancelled", "a newer message came");
        let stop = Command::End {
            ending: Ending::Stopped(why),
        };
        write(store.as_ref(), &child, stop).await;
        let content = json!([{"type": "input_text", "text": "mine"}]).into();
        let named = Run {
            agent: Some("leaf".into()),
            ..Run::default()
        };
        let run = if is_own {
            run
        } else {
            Some(Payload::write(&named).unwrap())
        };
        let start = begin(NewItem::user("mine", content), run);
        write(store.as_ref(), &child, start).await;

        let second = process(&store, agents());
        let cancelled = second.cancel(&tenant(), KEY, None, "user_cancelled").await;
        cancelled.unwrap();
        second.shutdown().await.unwrap();
        let state = store.head(&child).await.unwrap().state;
        let runs = state.active().map(|it| it.execution.id.to_string());
        let expected = (!is_own).then(|| "by-hand".to_owned());
        assert_eq!(runs, expected, "a run of the parent's: {is_own}");
        assert_eq!(children(&over(store, agents())).await.len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn what_waits_begins_in_the_write_that_stops_what_runs() {
    let agents = || {
        let tools = vec![stalls("stall")];
        vec![agent("lead", vec![call("stall")], tools)]
    };
    let store = Arc::new(MemoryStore::new());
    let mortal = Mortal::new(&store, usize::MAX, true, false);
    let first = over(Arc::clone(&mortal) as _, agents());
    say(&first, "one").await;
    loop {
        let (state, _) = first.state(&tenant(), KEY).await.unwrap();
        let step = state.active().and_then(|active| active.step.as_ref());
        if step.is_some_and(|step| !step.started.is_empty()) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let second = say(&first, "two").await;
    assert!(second.queued);
    // The stop is the last thing that the process writes.
    mortal.dies_at_the_next_write();
    let stop = first.cancel(&tenant(), KEY, None, "user_cancelled").await;
    assert!(stop.is_err() && mortal.is_dead());
    let state = store.head(&second.thread_id).await.unwrap().state;
    assert_eq!(state.waiting().len(), 0);
    let runs = state
        .active()
        .map(|it| it.execution.trigger_item_id.clone());
    assert_eq!(runs, Some(second.item_id));
}
