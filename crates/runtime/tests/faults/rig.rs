//! A reactor that says one word when it is let, and what tests need to run it over a rigged store.

use crate::store::Rigged;
use futures_util::future::BoxFuture;
use loomline_runtime as runtime;
use runtime::{
    BlockDelta, NewThreadRequest, Policy, ReactRequest, Reacted, Reactor, ReactorError, Runtime,
    RuntimeOptions, StepRun,
};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::{EventLog as _, Filter, Store, TenantId, ThreadRow, ThreadTable as _};
use timeline::{Event, ExecutionStatus, NewItem, Payload, Record, Seq, StepOutcome};
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// Long enough for everything here that ends at all.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3);
/// How long a client waits before it hangs up.
pub(crate) const HANG_UP: Duration = Duration::from_millis(50);

pub(crate) fn tenant() -> TenantId {
    "acme".into()
}

pub(crate) struct Gated {
    pub(crate) gate: Semaphore,
    pub(crate) began: AtomicUsize,
    pub(crate) inside: AtomicUsize,
    pub(crate) most_inside: AtomicUsize,
    /// Whether each step was given what the one before remembered.
    pub(crate) remembered: Mutex<Vec<bool>>,
}

struct Inside<'a>(&'a Gated);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Gated {
    pub(crate) fn closed() -> Arc<Self> {
        Arc::new(Self {
            gate: Semaphore::new(0),
            began: AtomicUsize::new(0),
            inside: AtomicUsize::new(0),
            most_inside: AtomicUsize::new(0),
            remembered: Mutex::default(),
        })
    }

    pub(crate) fn open() -> Arc<Self> {
        let gated = Self::closed();
        gated.gate.add_permits(1_000);
        gated
    }

    pub(crate) async fn begun(&self, n: usize) {
        while self.began.load(Ordering::SeqCst) < n {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

pub(crate) fn word() -> Vec<Payload> {
    vec![json!({"type": "output_text", "text": "word"}).into()]
}

pub(crate) fn over() -> Reacted {
    Reacted {
        outcome: StepOutcome::default(),
        wants_more: false,
        messages_for_model: None,
        memory: Some(Box::new(())),
        handoff: None,
    }
}

impl Reactor for Gated {
    fn react<'a>(&'a self, step: &'a mut StepRun) -> BoxFuture<'a, Result<Reacted, ReactorError>> {
        Box::pin(async move {
            let n = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
            let _inside = Inside(self);
            self.most_inside.fetch_max(n, Ordering::SeqCst);
            self.remembered.lock().unwrap().push(step.memory.is_some());
            if step.resumed.is_some() {
                return Ok(over());
            }
            step.writer.delta(BlockDelta::Text, "t", "half").await?;
            self.began.fetch_add(1, Ordering::SeqCst);
            self.gate.acquire().await.unwrap().forget();
            step.writer.respond(Vec::new(), word(), json!({}).into());
            Ok(over())
        })
    }
}

pub(crate) fn rigged() -> Arc<Rigged> {
    Arc::default()
}

pub(crate) fn running(store: &Arc<Rigged>, reactor: Arc<impl Reactor + 'static>) -> Runtime {
    let store: Arc<dyn Store> = store.clone();
    Runtime::new(store, Arc::new(reactor), RuntimeOptions::default())
}

pub(crate) fn say(runtime: &Runtime, key: &str, text: &str, policy: Policy) -> ReactRequest {
    let content = json!([{"type": "input_text", "text": text}]).into();
    ReactRequest {
        policy,
        ..ReactRequest::new(tenant(), key, NewItem::user(runtime.mint(), content))
    }
}

/// Says something on a thread, which is to be taken.
pub(crate) async fn said(runtime: &Runtime, key: &str, text: &str) {
    let said = runtime.react(say(runtime, key, text, Policy::Queue)).await;
    said.unwrap();
}

/// A run on the thread `k` that answers this and waits at the gate.
pub(crate) async fn speaking(text: &str) -> (Arc<Rigged>, Arc<Gated>, Runtime) {
    let store = rigged();
    let reactor = Gated::closed();
    let runtime = running(&store, reactor.clone());
    said(&runtime, "k", text).await;
    reactor.begun(1).await;
    (store, reactor, runtime)
}

pub(crate) async fn made(runtime: &Runtime, key: &str) -> ThreadRow {
    let new = NewThreadRequest {
        key: Some(key.into()),
        ..NewThreadRequest::default()
    };
    let (row, _) = runtime.get_or_create(&tenant(), new).await.unwrap();
    // In memory from here on: what is rigged next does not meet this claim.
    runtime.state(&tenant(), key).await.unwrap();
    row
}

pub(crate) async fn log(store: &Rigged, key: &str) -> Vec<Record> {
    let row = store.inner.find(&tenant(), key).await.unwrap();
    let logged = store
        .inner
        .read(&row.thread.id, Seq::ZERO, usize::MAX, Filter::All)
        .await
        .unwrap();
    logged.into_iter().map(|logged| logged.record).collect()
}

fn ends(records: &[Record]) -> Vec<ExecutionStatus> {
    records
        .iter()
        .filter_map(|record| match &record.event {
            Event::ExecutionStatusChanged { to, .. } => Some(*to),
            _ => None,
        })
        .collect()
}

/// Waits until so many executions have ended; looks at the log alone, so that it disturbs nothing.
pub(crate) async fn ended(store: &Rigged, key: &str, n: usize) -> Vec<ExecutionStatus> {
    let begun = Instant::now();
    loop {
        let ends = ends(&log(store, key).await);
        if ends.len() >= n || begun.elapsed() > PATIENCE {
            return ends;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
