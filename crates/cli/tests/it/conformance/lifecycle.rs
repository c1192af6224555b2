//! What the runtime writes into the log of a thread, event by event.

use super::cases::{Case, compare};
use super::tools;
use agents::{Agent, AgentOptions};
use futures_util::StreamExt;
use interop::ai_sdk::{ChunkJson, StreamView};
use interop::run::RunSelector;
use runtime::{
    AgentReactor, MemoryStore, Policy, ReactRequest, Run, Runtime, RuntimeError, RuntimeOptions,
    Store, Until,
};
use serde_json::json;
use std::sync::Arc;
use timeline::{Event, NewItem, Payload, Record, Seq, verify};

const KEY: &str = "case";

/// The chunk types of EK §8.1.
const EK_CHUNKS: [&str; 6] = [
    "data-context-id",
    "data-context-substate",
    "data-thread-ping",
    "tool-output-available",
    "tool-output-error",
    "finish",
];

pub(crate) fn runtime() -> Runtime {
    let model = Arc::new(upp::Scripted::new());
    let mut options = AgentOptions::new("demo", model);
    options.tools = tools::all();
    let agent = Agent::new(options).unwrap();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let reactor = Arc::new(AgentReactor::new(agent));
    Runtime::new(store, Arc::new(reactor), RuntimeOptions::default())
}

/// Says something, waits for the answer, and gives the events of both.
pub(crate) async fn say(
    runtime: &Runtime,
    content: Payload,
    max_steps: Option<u32>,
    after: Seq,
) -> Result<Vec<Record>, RuntimeError> {
    let run = Run {
        max_steps,
        ..Run::default()
    };
    let request = ReactRequest {
        run,
        policy: Policy::Reject,
        ..ReactRequest::new("acme".into(), KEY, NewItem::user(runtime.mint(), content))
    };
    runtime.react(request).await?;
    let follow = runtime
        .follow(&"acme".into(), KEY, after, Until::Rest)
        .await?;
    Ok(follow
        .map(|logged| logged.unwrap().record.clone())
        .collect()
        .await)
}

pub(crate) fn check(case: &Case) -> Result<(), String> {
    tools::wait(run(case))
}

async fn run(case: &Case) -> Result<(), String> {
    let runtime = runtime();
    let (mut log, mut last, mut n_checks) = (Vec::new(), Vec::new(), 0);
    for block in &case.blocks {
        match block.info().as_slice() {
            ["prompt", ..] => {
                let content = json!([{"type": "input_text", "text": block.text}]).into();
                let after = Seq(log.len() as u64);
                let steps = block.number("max_steps")?;
                let said = say(&runtime, content, steps, after).await;
                last = said.map_err(|error| error.to_string())?;
                log.extend(last.clone());
                verify(&log).map_err(|misfit| misfit.to_string())?;
            }
            ["events"] => {
                n_checks += 1;
                compare(&block.lines(), &events(&last))?;
            }
            ["chunks"] => {
                n_checks += 1;
                compare(&block.lines(), &chunks(&last))?;
            }
            ["stream"] => {
                n_checks += 1;
                compare(&block.lines(), &stream(&last))?;
            }
            _ => return Err(block.unknown()),
        }
    }
    if n_checks == 0 {
        return Err("the case checks nothing".into());
    }
    Ok(())
}

fn events(records: &[Record]) -> Vec<String> {
    let told = |record: &&Record| !matches!(record.event, Event::ChunkEmitted { .. });
    let name = |record: &Record| record.event.event_type().name().to_owned();
    records.iter().filter(told).map(name).collect()
}

/// The types of the chunks that a client of EK receives of a run, without those of the model's answer.
fn stream(records: &[Record]) -> Vec<String> {
    let mut view = StreamView::new(7, RunSelector::running(None)).with_ek();
    let chunks = records.iter().flat_map(|record| view.chunks(record));
    let types = chunks.filter_map(|chunk| match chunk {
        ChunkJson::Chunk(chunk) => chunk["type"].as_str().map(str::to_owned),
        ChunkJson::Done => None,
    });
    types
        .filter(|name| EK_CHUNKS.contains(&name.as_str()))
        .collect()
}

fn chunks(records: &[Record]) -> Vec<String> {
    let mut types = Vec::new();
    for record in records {
        if let Event::ChunkEmitted { chunk_type, .. } = &record.event
            && !types.contains(chunk_type)
        {
            types.push(chunk_type.clone());
        }
    }
    types
}
