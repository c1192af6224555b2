//! Shared by the benches: an agent of three tool rounds, a runtime over a store, percentiles.
#![allow(
    clippy::unwrap_used,
    reason = "a bench that can't set itself up has nothing to measure"
)]

use agents::{Agent, AgentOptions};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use runtime::{
    AgentReactor, Append, NewRecord, Ownership, ReactRequest, Runtime, RuntimeOptions, Store, Until,
};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stores::{SqliteOptions, SqliteStore};
use timeline::{Event, NewItem, ThreadId};
use tokio::sync::Semaphore;
use upp::{Effect, Scripted, Tool, ToolContext, ToolFailure};

/// That of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A prompt that makes the scripted model run three rounds of tools, then answer.
pub const THREE_ROUNDS: &str = "lookup a then lookup b then lookup c";

/// The agent of the benches: one pure tool that gives about 1 KB.
///
/// # Panics
///
/// If the agent can't be made, which is a defect of the bench.
pub fn agent() -> Agent {
    let parameters =
        json!({"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]});
    let text = "0123456789abcdef".repeat(64);
    let run =
        move |arguments: Value, _: ToolContext| -> BoxFuture<'static, Result<Value, ToolFailure>> {
            let text = text.clone();
            async move { Ok(json!({"key": arguments["key"], "text": text})) }.boxed()
        };
    let tool = Tool::new("lookup", "Looks a key up.", parameters, run).with_effect(Effect::Pure);
    let mut options = AgentOptions::new("bench", Arc::new(Scripted::new()));
    options.tools = vec![tool];
    Agent::new(options).unwrap()
}

/// A runtime of that agent over a store.
pub fn runtime_over(store: Arc<dyn Store>) -> Runtime {
    Runtime::new(
        store,
        Arc::new(Arc::new(AgentReactor::new(agent()))),
        RuntimeOptions::default(),
    )
}

/// A new SQLite store in a directory.
///
/// # Panics
///
/// If it can't be opened.
pub fn sqlite(directory: &Path) -> Arc<dyn Store> {
    Arc::new(SqliteStore::open(&directory.join("loomline.db"), &SqliteOptions::default()).unwrap())
}

/// A trigger with a text.
pub fn post_request(runtime: &Runtime, key: &str, text: &str) -> ReactRequest {
    let content = json!([{"type": "input_text", "text": text}]).into();
    ReactRequest::new("bench".into(), key, NewItem::user(runtime.mint(), content))
}

/// Runs the agent with a text, and follows the run to its end.
///
/// # Panics
///
/// If the run fails or has hardly any event.
pub async fn durable(runtime: &Runtime, key: &str, text: &str) {
    let tenant = "bench".into();
    let accepted = runtime.react(post_request(runtime, key, text)).await;
    let accepted = accepted.unwrap();
    let until = Until::Execution(accepted.execution_id.unwrap());
    let follow = runtime.follow(&tenant, key, accepted.after, until).await;
    let n_events = follow.unwrap().count().await;
    assert!(n_events > 10);
}

/// The value at a share of the sorted samples, in microseconds.
pub fn percentile(samples: &mut [Duration], share: f64) -> f64 {
    samples.sort_unstable();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index into a list of samples"
    )]
    let index = ((samples.len() as f64 - 1.0) * share) as usize;
    samples.get(index).map_or(0.0, Duration::as_secs_f64) * 1e6
}

/// An event of about 1 KB: a piece of a streamed text.
pub fn text_chunk() -> Event {
    let data = json!({"id": "t0-0", "delta": "word ".repeat(190)});
    Event::ChunkEmitted {
        chunk_type: "text-delta".into(),
        context_id: "context".into(),
        execution_id: None,
        step_id: None,
        data: Some(data.into()),
    }
}

/// Appends 1 KB at a time to a thread until an instant, each with one of the places. Returns how long each took with the
/// wait for its place.
///
/// # Panics
///
/// If an append fails.
pub async fn append_until(
    store: Arc<dyn Store>,
    thread: ThreadId,
    places: Arc<Semaphore>,
    end: Instant,
) -> Vec<Duration> {
    let head = store.head(&thread).await.unwrap();
    let record = NewRecord::new(jiff::Timestamp::UNIX_EPOCH, text_chunk()).unwrap();
    let (mut tail, mut samples) = (head.tail, Vec::new());
    while Instant::now() < end {
        let append = Append {
            thread: thread.clone(),
            epoch: head.epoch,
            tail,
            records: vec![record.clone()],
            token: None,
            is_limited: false,
            ownership: Ownership::Keep,
            unmoved: Vec::new(),
        };
        let begun = Instant::now();
        let _place = places.acquire().await.unwrap();
        tail = store.append(append).await.unwrap().tail;
        samples.push(begun.elapsed());
    }
    samples
}
