//! The external reactor and the scripted reactor (EK §6): workers, leases and answers.

mod contract;
mod leases;
mod limits;
mod nodes;
mod outage;

use futures_util::future::BoxFuture;
use loomline_runtime as runtime;
use runtime::{
    AgentReactor, ExternalAnswer, ExternalReactor, ExternalSteps, LeaseRef, LeaseRequest,
    LeasedStep, ReactRequest, Reacted, Reactor, ReactorError, Runtime, RuntimeOptions, StepRun,
    WorkerPolicy,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::objects::ObjectPage;
use store::{Filter, MemoryStore, Store, TenantId};
use timeline::{Entry, ItemType, NewItem, StepRecord};
use upp::{Effect, Tool};

const KEY: &str = "k";
const PATIENCE: Duration = Duration::from_secs(20);

fn tenant() -> TenantId {
    "acme".into()
}

fn compute() -> Tool {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let run = |it: Value| async move { Ok(json!({"doubled": it["n"].as_i64().unwrap_or(0) * 2})) };
    Tool::simple("compute", "Doubles.", schema, run).with_effect(Effect::Pure)
}

fn agent(tools: Vec<Tool>) -> AgentReactor {
    let mut options = agents::AgentOptions::new("desk", ExternalReactor::model("desk"));
    options.id = Some("desk".into());
    options.system = Some("You are brief.".into());
    options.tools = tools;
    AgentReactor::new(agents::Agent::new(options).unwrap())
}

fn external(tools: Vec<Tool>, policy: WorkerPolicy) -> Arc<ExternalReactor> {
    Arc::new(ExternalReactor::new(agent(tools), policy))
}

/// Leases that end after this many milliseconds.
fn short(lease: u64) -> WorkerPolicy {
    WorkerPolicy {
        lease: Duration::from_millis(lease),
        ..WorkerPolicy::default()
    }
}

fn over(store: Arc<dyn Store>, reactor: Arc<impl Reactor + 'static>) -> Runtime {
    let options = RuntimeOptions {
        restart_pause: Duration::ZERO,
        ..RuntimeOptions::default()
    };
    Runtime::new(store, Arc::new(reactor), options)
}

fn in_memory(reactor: Arc<impl Reactor + 'static>) -> Runtime {
    over(Arc::new(MemoryStore::new()), reactor)
}

async fn post(runtime: &Runtime, tenant: &TenantId, key: &str, text: &str) {
    let content = json!([{"type": "input_text", "text": text}]).into();
    let item = NewItem::user(runtime.mint(), content);
    let request = ReactRequest::new(tenant.clone(), key, item);
    runtime.react(request).await.unwrap();
}

async fn lease_now(steps: &ExternalSteps, tenant: &TenantId, agent: &str) -> Option<LeasedStep> {
    let request = LeaseRequest {
        agents: &BTreeSet::from([agent.to_owned()]),
        covers: &|_| true,
        worker: Some("worker-1".to_owned()),
        reserve: &|_| Ok(()),
    };
    steps.lease(tenant, request).await.unwrap()
}

/// The next step of the agent `desk`.
async fn leased(runtime: &Runtime) -> LeasedStep {
    let waited = async {
        loop {
            if let Some(step) = lease_now(runtime.external(), &tenant(), "desk").await {
                return step;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waited).await.unwrap()
}

/// Names a lease of the tenant `acme`.
struct Lease(TenantId, LeasedStep);

impl Lease {
    fn of(step: &LeasedStep) -> Self {
        Self(tenant(), step.clone())
    }

    fn at(&self) -> LeaseRef<'_> {
        LeaseRef {
            tenant: &self.0,
            step: self.1.step.as_str(),
            lease: &self.1.lease,
            covers: &|_| true,
        }
    }
}

fn answer(value: Value) -> ExternalAnswer {
    serde_json::from_value(value).unwrap()
}

fn says(text: &str) -> ExternalAnswer {
    let content = json!([{"type": "output_text", "text": text}]);
    answer(json!({"assistantEvent": {"type": "message", "content": content}}))
}

async fn complete(runtime: &Runtime, step: &LeasedStep, answer: &ExternalAnswer) {
    let lease = Lease::of(step);
    let completed = runtime.external().complete(lease.at(), answer).await;
    completed.unwrap();
}

async fn at_rest(runtime: &Runtime) {
    let waited = async {
        while runtime
            .state(&tenant(), KEY)
            .await
            .unwrap()
            .0
            .active()
            .is_some()
        {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waited).await.unwrap();
}

/// The steps of the last execution.
async fn steps(runtime: &Runtime) -> Vec<StepRecord> {
    let read = runtime.transcript(&tenant(), KEY, Filter::All).await;
    let entries = read.unwrap().entries.into_iter().rev();
    let mut reactions = entries.filter_map(|entry| match entry {
        Entry::Reaction(reaction) => Some(reaction),
        Entry::Item(item) => {
            assert_ne!(item.item_type, ItemType::ItemReference);
            None
        }
    });
    reactions.next().unwrap().steps
}

/// The text of the last answer.
async fn text(runtime: &Runtime) -> String {
    let steps = steps(runtime).await;
    let parts = steps.last().unwrap().parts.iter();
    let texts = parts.filter_map(|part| part.part.str_field("text"));
    texts.collect()
}

/// How the last execution was interrupted: the reason and the detail.
async fn interrupted(runtime: &Runtime) -> (String, String) {
    let read = runtime.transcript(&tenant(), KEY, Filter::All).await;
    let last = read.unwrap().entries.pop();
    let Some(Entry::Reaction(reaction)) = last else {
        panic!("no reaction");
    };
    let why = reaction.execution.interruption.unwrap();
    (why.reason, why.detail.unwrap_or_default())
}

async fn cancel(runtime: &Runtime) {
    let cancelled = runtime.cancel(&tenant(), KEY, None, "enough").await;
    cancelled.unwrap();
}

/// Whether the store has a step for workers.
async fn has_steps(runtime: &Runtime) -> bool {
    let page = ObjectPage {
        limit: 1,
        ..ObjectPage::default()
    };
    let found = runtime
        .objects()
        .list(&tenant(), "external.step", page)
        .await;
    !found.unwrap().is_empty()
}

/// Whether the store has no step, no request and no pieces.
async fn is_clean(store: &dyn Store, step: &LeasedStep) -> bool {
    let page = ObjectPage {
        limit: 10,
        ..ObjectPage::default()
    };
    let chunks = format!("external.chunks:{}:{}", step.step, step.attempt);
    for kind in ["external.step", "external.request", &chunks] {
        let found = store.objects().list(&tenant(), kind, page.clone()).await;
        if !found.unwrap().is_empty() {
            return false;
        }
    }
    true
}

/// Waits until this is true.
async fn until<F: Future<Output = bool>>(what: impl Fn() -> F) {
    let waited = async {
        while !what().await {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waited).await.unwrap();
}

/// The tool calls and the messages for the model that a reactor has returned of one step.
#[derive(Clone)]
struct ReturnedStep {
    calls: Option<Value>,
    messages: Option<Vec<Value>>,
}

/// What a reactor has returned, step by step.
#[derive(Default)]
struct Returned(Mutex<Vec<ReturnedStep>>);

/// Notes what another reactor returns.
struct Observed<R> {
    reactor: R,
    returned: Arc<Returned>,
}

impl<R: Reactor> Reactor for Observed<R> {
    fn react<'a>(&'a self, step: &'a mut StepRun) -> BoxFuture<'a, Result<Reacted, ReactorError>> {
        Box::pin(async move {
            let reacted = self.reactor.react(step).await?;
            let calls = reacted.outcome.tool_calls.as_ref();
            let messages = reacted.messages_for_model.as_ref();
            self.returned.0.lock().unwrap().push(ReturnedStep {
                calls: calls.map(timeline::Payload::value),
                messages: messages
                    .map(|it| it.read().iter().map(timeline::Payload::value).collect()),
            });
            Ok(reacted)
        })
    }
}
