//! How many runs execute at once, and who waits or is refused.

use crate::children::rig::{agent, at_rest, call, endings, sub, text};
use crate::mortal::Mortal;
use agents::Agent;
use futures_util::future::BoxFuture;
use loomline_runtime as runtime;
use runtime::{
    AgentReactors, Policy, ReactRequest, Reacted, Reactor, ReactorError, Reactors, RunLimits,
    RunSlots, Runtime, RuntimeError, RuntimeOptions, Sources, StepRun, TenantRunLimits, handoff,
};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use store::{LimitReached, MemoryStore};
use timeline::{ExecutionStatus, NewItem, StepOutcome};
use tokio::sync::Semaphore;

/// Counts the steps that run, and completes each when it may.
struct Counted {
    running: AtomicUsize,
    peak: AtomicUsize,
    may_end: Semaphore,
}

impl Counted {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            running: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            may_end: Semaphore::new(0),
        })
    }

    fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }
}

impl Reactor for Counted {
    fn react<'a>(&'a self, step: &'a mut StepRun) -> BoxFuture<'a, Result<Reacted, ReactorError>> {
        Box::pin(async move {
            let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
            self.peak.fetch_max(running, Ordering::SeqCst);
            let permit = self.may_end.acquire().await;
            permit.map_err(|_| ReactorError::Stopped)?.forget();
            self.running.fetch_sub(1, Ordering::SeqCst);
            let part = json!({"type": "output_text", "text": "done"}).into();
            let writer = &step.writer;
            writer.respond(Vec::new(), vec![part], json!({}).into());
            Ok(Reacted {
                outcome: StepOutcome::default(),
                wants_more: false,
                messages_for_model: None,
                memory: None,
                handoff: None,
            })
        })
    }
}

fn limits(process: usize, of_tenant: usize, queued_triggers: usize) -> RunLimits {
    RunLimits {
        concurrent_runs: process,
        tenant: TenantRunLimits {
            concurrent_runs: of_tenant,
            queued_triggers,
        },
        ..RunLimits::default()
    }
}

fn limited(store: &Arc<MemoryStore>, reactors: Arc<dyn Reactors>, limits: RunLimits) -> Runtime {
    let sources = Sources {
        runs: RunSlots::new(limits),
        ..Sources::default()
    };
    let options = RuntimeOptions {
        restart_pause: Duration::ZERO,
        ..RuntimeOptions::default()
    };
    // The store outlives its processes.
    let store = Mortal::new(store, usize::MAX, true, false);
    Runtime::with_sources(store, reactors, options, sources)
}

async fn say(runtime: &Runtime, tenant: &str, key: &str) -> Result<bool, RuntimeError> {
    let content = json!([{"type": "input_text", "text": "hello"}]).into();
    let item = NewItem::user(runtime.mint(), content);
    let accepted = runtime
        .react(ReactRequest::new(tenant.into(), key, item))
        .await?;
    Ok(accepted.queued)
}

fn refused(answer: Result<bool, RuntimeError>) -> &'static str {
    match answer {
        Err(RuntimeError::LimitReached(LimitReached { name, .. })) => name,
        other => panic!("{other:?}"),
    }
}

async fn until(what: impl Fn() -> bool) {
    let waited = async {
        while !what() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waited)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_run_beyond_the_limit_is_refused_and_nothing_is_written() {
    let store = Arc::new(MemoryStore::new());
    let reactor = Counted::new();
    let runtime = limited(&store, Arc::new(Arc::clone(&reactor)), limits(3, 2, 10));
    for key in ["one", "two"] {
        say(&runtime, "a", key).await.unwrap();
    }
    assert_eq!(
        refused(say(&runtime, "a", "three").await),
        "tenant.concurrent_runs"
    );
    assert!(runtime.find(&"a".into(), "three").await.is_err());
    say(&runtime, "b", "one").await.unwrap();
    assert_eq!(refused(say(&runtime, "b", "two").await), "concurrent_runs");
    until(|| reactor.running() == 3).await;
    reactor.may_end.add_permits(10);
    until(|| runtime.slots().running() == 0).await;
    say(&runtime, "a", "three").await.unwrap();
}

#[tokio::test]
async fn a_trigger_behind_the_run_of_its_thread_needs_no_slot() {
    let store = Arc::new(MemoryStore::new());
    let reactor = Counted::new();
    let runtime = limited(&store, Arc::new(Arc::clone(&reactor)), limits(1, 1, 10));
    assert!(!say(&runtime, "a", "k").await.unwrap());
    assert!(say(&runtime, "a", "k").await.unwrap());
    let content = json!([{"type": "input_text", "text": "at once"}]).into();
    let item = NewItem::user(runtime.mint(), content);
    let mut request = ReactRequest::new("a".into(), "k", item);
    request.policy = Policy::Interrupt;
    assert!(!runtime.react(request).await.unwrap().queued);
    reactor.may_end.add_permits(10);
    until(|| runtime.slots().running() == 0).await;
    let (state, _) = runtime.state(&"a".into(), "k").await.unwrap();
    assert!(state.active().is_none() && state.waiting().len() == 0);
}

#[tokio::test]
async fn the_triggers_in_all_queues_of_a_tenant_are_limited() {
    let store = Arc::new(MemoryStore::new());
    let reactor = Counted::new();
    let runtime = limited(&store, Arc::new(Arc::clone(&reactor)), limits(9, 9, 2));
    for key in ["one", "two"] {
        assert!(!say(&runtime, "a", key).await.unwrap());
        assert!(say(&runtime, "a", key).await.unwrap());
    }
    let before = runtime.state(&"a".into(), "one").await.unwrap();
    assert_eq!(
        refused(say(&runtime, "a", "one").await),
        "tenant.queued_triggers"
    );
    assert_eq!(runtime.state(&"a".into(), "one").await.unwrap(), before);
    assert!(!say(&runtime, "b", "one").await.unwrap());
    assert!(say(&runtime, "b", "one").await.unwrap());
    reactor.may_end.add_permits(10);
    until(|| runtime.slots().running() == 0).await;
    assert_eq!(runtime.slots().tenants(), []);
}

#[tokio::test(start_paused = true)]
async fn unfinished_threads_resume_in_half_of_the_slots_and_requests_get_theirs() {
    const N: usize = 40;
    let store = Arc::new(MemoryStore::new());
    let first = limited(&store, Arc::new(Counted::new()), RunLimits::default());
    for n in 0..N {
        say(&first, "a", &format!("k{n}")).await.unwrap();
    }
    first.shutdown().await.unwrap();
    let reactor = Counted::new();
    let second = limited(&store, Arc::new(Arc::clone(&reactor)), limits(8, 8, 99));
    assert_eq!(second.recover().await.unwrap(), N);
    until(|| reactor.running() == 4).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!((reactor.running(), second.unrecovered()), (4, N - 4));
    // A request gets a slot, and so does one for a thread that has not gone on yet.
    assert!(!say(&second, "a", "new").await.unwrap());
    assert!(say(&second, "a", "k39").await.unwrap());
    until(|| reactor.running() == 5).await;
    reactor.may_end.add_permits(2 * N);
    until(|| second.unrecovered() == 0 && second.slots().running() == 0).await;
    assert!(reactor.peak.load(Ordering::SeqCst) <= 8);
    for n in 0..N {
        let state = second.state(&"a".into(), &format!("k{n}")).await;
        let (state, _) = state.unwrap();
        assert!(state.active().is_none() && state.waiting().len() == 0);
    }
}

#[tokio::test(start_paused = true)]
async fn tenants_resume_in_turn() {
    let store = Arc::new(MemoryStore::new());
    let first = limited(&store, Arc::new(Counted::new()), RunLimits::default());
    for n in 0..20 {
        say(&first, "large", &format!("k{n}")).await.unwrap();
    }
    say(&first, "small", "only").await.unwrap();
    first.shutdown().await.unwrap();
    let reactor = Counted::new();
    let second = limited(&store, Arc::new(Arc::clone(&reactor)), limits(4, 4, 99));
    second.recover().await.unwrap();
    let of_small = || {
        let tenants = second.slots().tenants();
        tenants
            .iter()
            .any(|it| it.tenant == "small".into() && it.running == 1)
    };
    for _ in 0..2 {
        until(|| reactor.running() == 2).await;
        if of_small() {
            return;
        }
        reactor.may_end.add_permits(1);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(of_small());
}

fn of_agents(agents: Vec<Agent>, limits: RunLimits) -> Runtime {
    let default = agents[0].name().to_owned();
    let reactors = AgentReactors::new(agents, &default).unwrap();
    limited(&Arc::new(MemoryStore::new()), Arc::new(reactors), limits)
}

#[tokio::test]
async fn sub_agents_run_in_the_slot_of_the_run_that_calls_them() {
    let leaf = agent("leaf", vec![text("Leaf.")], Vec::new());
    let middle = agent(
        "middle",
        vec![call("leaf"), text("Middle.")],
        vec![sub(leaf.clone())],
    );
    let root = agent(
        "root",
        vec![call("middle"), text("Root.")],
        vec![sub(middle.clone())],
    );
    let runtime = of_agents(vec![root, middle, leaf], limits(1, 1, 1));
    say(&runtime, "acme", "k").await.unwrap();
    let log = at_rest(&runtime, "k").await;
    assert_eq!(endings(&log), [(ExecutionStatus::Completed, None)]);
    until(|| runtime.slots().running() == 0).await;
}

#[tokio::test]
async fn an_agent_that_is_handed_over_to_runs_in_the_same_slot() {
    let first = agent(
        "first",
        vec![call(&handoff::tool_name("second"))],
        vec![handoff::tool("second", "Goes on.")],
    );
    let second = agent("second", vec![text("Second.")], Vec::new());
    let runtime = of_agents(vec![first, second], limits(1, 1, 1));
    say(&runtime, "acme", "k").await.unwrap();
    let log = at_rest(&runtime, "k").await;
    let completed = (ExecutionStatus::Completed, None);
    assert_eq!(endings(&log), [completed.clone(), completed]);
    until(|| runtime.slots().running() == 0).await;
}
