//! Sub-agents that the runtime does not know by name: they run inside the call.

use crate::children::rig::{
    agent, at_rest, call, children, document, endings, fresh, process, results, say, stalls, sub,
    text, tool,
};
use futures_util::FutureExt;
use loomline_runtime as runtime;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use store::MemoryStore;
use timeline::{Event, ExecutionStatus, Record};

fn shown(records: &[Record]) -> Vec<Value> {
    records
        .iter()
        .filter_map(|record| match &record.event {
            Event::ChunkEmitted {
                chunk_type, data, ..
            } if chunk_type == "data-uap" => data.as_ref().map(|data| data.value()["data"].clone()),
            _ => None,
        })
        .collect()
}

#[tokio::test]
async fn a_sub_agent_without_a_name_here_runs_in_memory_and_its_events_are_chunks() {
    let helper = agent("helper", vec![text("Helped.")], vec![]);
    let lead = agent(
        "lead",
        vec![call("helper"), text("Done.")],
        vec![sub(helper)],
    );
    let runtime = fresh(vec![lead]);
    say(&runtime, "go").await;
    let records = at_rest(&runtime, "k").await;
    assert_eq!(children(&runtime).await, Vec::<String>::new());
    assert_eq!(results(&document(&runtime, "k").await), ["Helped."]);
    let shown = shown(&records);
    assert_eq!(shown.first().unwrap()["type"], "subagent_start");
    assert_eq!(shown.last().unwrap()["type"], "subagent_end");
    assert_eq!(shown.last().unwrap()["data"]["result"], "Helped.");
    assert!(shown.iter().any(|event| event["type"] == "subagent_event"));
}

#[tokio::test]
async fn one_reactor_for_every_name_has_no_agent_of_the_sub_agents_name() {
    let helper = agent("helper", vec![text("Helped.")], vec![]);
    let lead = agent(
        "lead",
        vec![call("helper"), text("Done.")],
        vec![sub(helper)],
    );
    let reactor = Arc::new(runtime::AgentReactor::new(lead));
    let runtime = runtime::Runtime::new(
        Arc::new(MemoryStore::new()),
        Arc::new(reactor),
        runtime::RuntimeOptions::default(),
    );
    say(&runtime, "go").await;
    at_rest(&runtime, "k").await;
    assert_eq!(results(&document(&runtime, "k").await), ["Helped."]);
}

#[tokio::test(start_paused = true)]
async fn a_sub_agent_in_memory_that_a_crash_cut_off_is_not_run_again() {
    let store = Arc::new(MemoryStore::new());
    let ran = Arc::new(AtomicUsize::new(0));
    let first = {
        let ran = Arc::clone(&ran);
        let stall = tool("touch", move |_| {
            ran.fetch_add(1, Ordering::SeqCst);
            std::future::pending().boxed()
        });
        let helper = agent("helper", vec![call("touch"), text("Helped.")], vec![stall]);
        process(
            &store,
            vec![agent(
                "lead",
                vec![call("helper"), text("Done.")],
                vec![sub(helper)],
            )],
        )
    };
    say(&first, "go").await;
    while ran.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    first.shutdown().await.unwrap();
    let helper = agent("helper", vec![text("Helped.")], vec![stalls("touch")]);
    let lead = agent(
        "lead",
        vec![call("helper"), text("Done.")],
        vec![sub(helper)],
    );
    let second = process(&store, vec![lead]);
    second.recover().await.unwrap();
    let records = at_rest(&second, "k").await;
    assert_eq!(endings(&records), [(ExecutionStatus::Completed, None)]);
    let told = &results(&document(&second, "k").await)[0];
    assert!(told.contains("interrupted"), "{told}");
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}
