//! What those who watch a parent see of its children (UAP §8.7).

use crate::children::rig::{agent, at_rest, call, fresh, say, sub, tenant, text, tool};
use crate::children::waits::{Ran, answer, asked, three};
use crate::durable::rig::approve;
use agents::{AgentStreamEvent, SubagentEvent};
use futures_util::{FutureExt, StreamExt};
use loomline_runtime as runtime;
use runtime::{Below, Cursor, Runtime, Until, Watched};
use serde_json::json;
use timeline::{Event, Record, Seq};
use upp::StreamEvent;

async fn watched(runtime: &Runtime) -> Vec<Watched> {
    let tenant = tenant();
    let watch = runtime.watch(&tenant, "k", Seq::ZERO, Until::Rest);
    let watch = watch.await.unwrap();
    watch.map(|watched| watched.unwrap()).collect().await
}

fn of_children(watched: &[Watched]) -> Vec<SubagentEvent> {
    watched
        .iter()
        .filter_map(|watched| match watched {
            Watched::Subagent(event) => Some(SubagentEvent::clone(event)),
            Watched::Record(_) => None,
        })
        .collect()
}

fn name(event: &SubagentEvent) -> String {
    match event {
        SubagentEvent::Start(start) => format!("start {}", start.subagent_type),
        SubagentEvent::End(end) => format!("end {}", end.subagent_type),
        SubagentEvent::Forwarded(inner) => match &inner.inner_event {
            AgentStreamEvent::Uap { uap } => match uap.subagent() {
                Some(event) => format!("{} > {}", inner.subagent_type, name(&event)),
                None => format!("{} {:?}", inner.subagent_type, uap.kind),
            },
            AgentStreamEvent::Upp { upp } => match upp {
                StreamEvent::TextDelta { .. } => format!("{} text", inner.subagent_type),
                StreamEvent::ToolExecutionEnd { .. } => format!("{} result", inner.subagent_type),
                _ => format!("{} other", inner.subagent_type),
            },
        },
    }
}

fn two_levels() -> Vec<agents::Agent> {
    let touch = tool("touch", |_| async { Ok(json!("touched")) }.boxed());
    let leaf = agent("leaf", vec![call("touch"), text("Leaf.")], vec![touch]);
    let middle = agent(
        "middle",
        vec![call("leaf"), text("Middle.")],
        vec![sub(leaf.clone())],
    );
    let top = agent(
        "lead",
        vec![call("middle"), text("Done.")],
        vec![sub(middle.clone())],
    );
    vec![top, middle, leaf]
}

#[tokio::test]
async fn a_follower_sees_what_happens_inside_sub_agents_of_any_depth() {
    let runtime = fresh(two_levels());
    say(&runtime, "go").await;
    let live = of_children(&watched(&runtime).await);
    let names: Vec<String> = live.iter().map(name).collect();
    let place = |wanted: &str| {
        let found = names.iter().position(|name| name == wanted);
        found.unwrap_or_else(|| panic!("{wanted} is in {names:#?}"))
    };
    let order = [
        "start middle",
        "middle > start leaf",
        "middle > leaf Action",
        "middle > leaf result",
        "middle > leaf text",
        "middle > end leaf",
        "middle result",
        "middle text",
        "end middle",
    ];
    let places: Vec<usize> = order.iter().map(|name| place(name)).collect();
    assert!(places.is_sorted(), "{names:#?}");
    assert_eq!(places[8], names.len() - 1);
    // Whoever looks later sees the same.
    let facts = |events: &[SubagentEvent]| -> Vec<String> {
        let names = events.iter().map(name);
        names
            .filter(|name| !name.ends_with("text") && !name.ends_with("other"))
            .collect()
    };
    assert_eq!(facts(&of_children(&watched(&runtime).await)), facts(&live));
}

#[tokio::test]
async fn every_event_of_a_child_names_its_run_and_the_call() {
    let runtime = fresh(two_levels());
    say(&runtime, "go").await;
    let events = of_children(&watched(&runtime).await);
    let mut runs = events.iter().map(|event| match event {
        SubagentEvent::Start(it) => (&it.subagent_id, &it.parent_tool_call_id),
        SubagentEvent::Forwarded(it) => (&it.subagent_id, &it.parent_tool_call_id),
        SubagentEvent::End(it) => (&it.subagent_id, &it.parent_tool_call_id),
    });
    let first = runs.next().unwrap();
    assert!(runs.all(|run| run == first));
    let Some(SubagentEvent::End(end)) = events.last() else {
        panic!("the end comes last")
    };
    assert!(end.success);
    assert_eq!(end.result.as_deref(), Some("Middle."));
    assert_eq!(end.tool_executions.as_ref().unwrap().len(), 1);
}

#[tokio::test]
async fn the_parents_log_has_nothing_of_what_happens_inside() {
    let runtime = fresh(two_levels());
    say(&runtime, "go").await;
    let watched = watched(&runtime).await;
    let own: Vec<Record> = watched
        .iter()
        .filter_map(|watched| match watched {
            Watched::Record(followed) => Some(followed.record.clone()),
            Watched::Subagent(_) => None,
        })
        .collect();
    assert_eq!(own, at_rest(&runtime, "k").await);
    let said = |record: &Record| match &record.event {
        Event::ChunkEmitted { data, .. } => data.as_ref().map(|data| data.text().to_owned()),
        _ => None,
    };
    let chunks: Vec<String> = own.iter().filter_map(said).collect();
    assert!(!chunks.is_empty());
    assert!(
        !chunks
            .iter()
            .any(|chunk| chunk.contains("Middle") || chunk.contains("Leaf"))
    );
}

#[tokio::test]
async fn what_was_seen_of_a_child_comes_again_as_facts_alone() {
    let ran = Ran::default();
    let runtime = fresh(three(&ran));
    say(&runtime, "go").await;
    at_rest(&runtime, "k").await;
    let question = asked(&runtime, "k").await.remove(0).address;
    let child = question.key.rsplit_once('/').unwrap().0.to_owned();
    let child = runtime.find(&tenant(), &child).await.unwrap();
    let seen = Cursor {
        own: runtime.find(&tenant(), "k").await.unwrap().tail.into(),
        below: [(child.thread.id.clone(), child.tail.into())].into(),
    };
    answer(&runtime, &question.key, &approve(&question.tool_call_id))
        .await
        .unwrap();
    at_rest(&runtime, "k").await;
    let tree = runtime.tree(&tenant(), "k", seen, Until::Rest).await;
    let all: Vec<Below> = tree.unwrap().map(|it| it.unwrap()).collect().await;
    let of_child = all.iter().filter(|it| it.thread_id == child.thread.id);
    let (past, new): (Vec<&Below>, Vec<&Below>) = of_child.partition(|it| it.is_past);
    let shows = |below: &Below| match &below.followed.record.event {
        Event::ChunkEmitted { chunk_type, .. } => chunk_type.ends_with("-delta"),
        _ => false,
    };
    assert!(past.iter().any(|it| it.followed.record.seq == child.tail));
    assert_eq!(past.iter().filter(|it| shows(it)).count(), 0);
    assert!(new.iter().any(|it| shows(it)));
}
