//! Agents that follow scripts, threads at rest, and the documents of threads.

use agents::{Agent, AgentOptions, SubAgentTool, subagent_tool};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use interop::document::{from_document, to_document};
use loomline_runtime as runtime;
use runtime::{
    Accepted, AgentReactors, ReactRequest, Runtime, RuntimeError, RuntimeOptions, Until,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use store::{Filter, MemoryStore, Store, TenantId, ThreadRows};
use thread::{Profile, Severity, Violation, validate};
use timeline::{Event, ExecutionStatus, NewItem, Record, Seq, Transcript, verify};
use upp::{Script, ScriptTurn, Scripted, Tool, ToolContext, ToolFailure};

pub(crate) const KEY: &str = "k";

pub(crate) fn tenant() -> TenantId {
    "acme".into()
}

/// An agent that gives these answers to each of its users' messages, and then the last one again.
pub(crate) fn agent(name: &str, turns: Vec<ScriptTurn>, tools: Vec<Tool>) -> Agent {
    let script = Script {
        repeat_last: true,
        ..Script::new(turns)
    };
    let mut options = AgentOptions::new(name, Arc::new(Scripted::with_script(script)));
    options.id = Some(name.into());
    options.tools = tools;
    Agent::new(options).unwrap()
}

pub(crate) fn text(text: &str) -> ScriptTurn {
    ScriptTurn::text(text)
}

pub(crate) fn call(tool: &str) -> ScriptTurn {
    ScriptTurn::call(tool, json!({"task": format!("do {tool}")}))
}

/// A turn that calls several tools at once.
pub(crate) fn calls(tools: &[&str]) -> ScriptTurn {
    let mut turn = ScriptTurn::default();
    for tool in tools {
        turn.tool_calls.extend(call(tool).tool_calls);
    }
    turn
}

pub(crate) fn parameters() -> Value {
    json!({"type": "object", "properties": {"task": {"type": "string"}}})
}

/// A tool of the agent's name that runs the agent on the `task`.
pub(crate) fn sub(agent: Agent) -> Tool {
    let name = agent.name().to_owned();
    subagent_tool(SubAgentTool::new(
        name,
        "Does one task.",
        parameters(),
        agent,
        |arguments| Ok(arguments["task"].as_str().unwrap_or_default().into()),
    ))
}

pub(crate) fn tool(
    name: &str,
    run: impl Fn(ToolContext) -> BoxFuture<'static, Result<Value, ToolFailure>> + Send + Sync + 'static,
) -> Tool {
    Tool::new(name, "Does it.", parameters(), move |_: Value, context| {
        run(context)
    })
}

/// A tool whose calls never end.
pub(crate) fn stalls(name: &str) -> Tool {
    tool(name, |_| std::future::pending().boxed())
}

/// A runtime of these agents, of which the first is the default.
pub(crate) fn over(store: Arc<dyn Store>, agents: Vec<Agent>) -> Runtime {
    let default = agents[0].name().to_owned();
    let reactors = AgentReactors::new(agents, &default).unwrap();
    // Processes die here as often as it takes.
    let options = RuntimeOptions {
        max_starts: u32::MAX,
        restart_pause: Duration::ZERO,
        ..RuntimeOptions::default()
    };
    Runtime::new(store, Arc::new(reactors), options)
}

pub(crate) fn fresh(agents: Vec<Agent>) -> Runtime {
    over(Arc::new(MemoryStore::new()), agents)
}

pub(crate) fn message(runtime: &Runtime, said: &str) -> ReactRequest {
    let content = json!([{"type": "input_text", "text": said}]).into();
    ReactRequest::new(tenant(), KEY, NewItem::user(runtime.mint(), content))
}

pub(crate) async fn say(runtime: &Runtime, said: &str) -> Accepted {
    runtime.react(message(runtime, said)).await.unwrap()
}

/// The whole log of a thread, once it is at rest.
pub(crate) async fn at_rest(runtime: &Runtime, key: &str) -> Vec<Record> {
    let tenant = tenant();
    let follow = runtime.follow(&tenant, key, Seq::ZERO, Until::Rest);
    let records: Vec<Record> = follow
        .await
        .unwrap()
        .map(|logged| logged.unwrap().record.clone())
        .collect()
        .await;
    assert_eq!(verify(&records), Ok(()));
    records
}

/// How the executions in a log ended.
pub(crate) fn endings(records: &[Record]) -> Vec<(ExecutionStatus, Option<String>)> {
    records
        .iter()
        .filter_map(|record| match &record.event {
            Event::ExecutionStatusChanged {
                to, interruption, ..
            } => Some((*to, interruption.as_ref().map(|why| why.reason.clone()))),
            _ => None,
        })
        .collect()
}

/// The keys of the children of any depth, in the order in which they were made.
pub(crate) async fn children(runtime: &Runtime) -> Vec<String> {
    let page = ThreadRows {
        key: Some(runtime::KeyPattern::Prefix(format!("{KEY}/"))),
        limit: 100,
        ..ThreadRows::default()
    };
    let mut rows = runtime.list(&tenant(), page).await.unwrap();
    rows.sort_by_key(|row| (row.thread.created_at, row.thread.id.to_string()));
    rows.into_iter()
        .map(|row| row.thread.key.unwrap())
        .collect()
}

/// Waits until there is a child with a running execution, and gives its key.
pub(crate) async fn running_child(runtime: &Runtime, depth: usize) -> String {
    loop {
        for key in children(runtime).await {
            let (state, _) = runtime.state(&tenant(), &key).await.unwrap();
            if key.matches('/').count() == depth && state.active().is_some() {
                return key;
            }
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
}

pub(crate) async fn transcript(runtime: &Runtime, key: &str) -> Transcript {
    runtime
        .transcript(&tenant(), key, Filter::Facts)
        .await
        .unwrap()
}

/// The document of a thread. It is valid, loses nothing, and comes back from an import.
pub(crate) async fn document(runtime: &Runtime, key: &str) -> Value {
    let (document, losses) = exported(runtime, key).await;
    assert_eq!(losses, Vec::<String>::new());
    document
}

/// The document of a thread, and what is missing in it. It is valid and comes back.
pub(crate) async fn exported(runtime: &Runtime, key: &str) -> (Value, Vec<String>) {
    let exported = to_document(&transcript(runtime, key).await);
    let document = exported.value;
    let breaches = validate(&document, Profile::Strict);
    let is_error = |breach: &&Violation| breach.severity == Severity::Error;
    let error = breaches.iter().find(is_error);
    assert_eq!(error, None, "{}", document.encode());
    let mut n = 0;
    let mut ids = || {
        n += 1;
        format!("id-{n}")
    };
    let imported = from_document(&document, &mut ids).unwrap();
    assert_eq!(imported.losses, Vec::new());
    let losses = exported.losses.into_iter().map(|loss| loss.what);
    let losses = losses.chain(breaches.into_iter().map(|breach| breach.message));
    let document = serde_json::from_str(&document.encode()).unwrap();
    (document, losses.collect())
}

/// A process of its own over a store that outlives it.
pub(crate) fn process(store: &Arc<MemoryStore>, agents: Vec<Agent>) -> Runtime {
    over(
        crate::mortal::Mortal::new(store, usize::MAX, true, false),
        agents,
    )
}

/// The messages of all turns of a document.
pub(crate) fn messages(document: &Value) -> Vec<Value> {
    let turns = document["turns"].as_array().unwrap();
    let messages = turns
        .iter()
        .filter_map(|turn| turn["messages"].as_array())
        .flatten();
    messages.cloned().collect()
}

/// What kind of message each is, and what it says: ids, times and durations are left out.
pub(crate) fn content(document: &Value) -> Vec<String> {
    let part = |part: &Value| {
        let said = [&part["tool_name"], &part["args"], &part["content"]];
        let said = said.map(Value::to_string).join(" ");
        format!("{} {said}", part["part_kind"])
    };
    messages(document)
        .iter()
        .map(|message| {
            let parts = message["parts"].as_array();
            let parts: Vec<String> = parts.into_iter().flatten().map(part).collect();
            let [kind, event] = [&message["message_type"], &message["event_type"]];
            let reason = &message["event_data"]["reason"];
            format!("{kind} {event} {reason} {}", parts.join("; "))
        })
        .collect()
}

/// The names of the events in a document, in order.
pub(crate) fn events(document: &Value) -> Vec<String> {
    messages(document)
        .iter()
        .filter_map(|message| message["event_type"].as_str().map(str::to_owned))
        .collect()
}

/// The contents of the tool results in a document, in order.
pub(crate) fn results(document: &Value) -> Vec<String> {
    let parts: Vec<Value> = messages(document)
        .iter()
        .filter_map(|message| message["parts"].as_array().cloned())
        .flatten()
        .collect();
    parts
        .iter()
        .filter(|part| part["part_kind"] == "tool-return")
        .map(|part| part["content"].as_str().unwrap_or_default().to_owned())
        .collect()
}

/// What all threads of a runtime say, by depth and order of making.
pub(crate) async fn everything(runtime: &Runtime) -> BTreeMap<String, Vec<String>> {
    let mut all = BTreeMap::new();
    all.insert(KEY.to_owned(), content(&document(runtime, KEY).await));
    for (place, key) in children(runtime).await.into_iter().enumerate() {
        let name = format!("child {place} at depth {}", key.matches('/').count());
        all.insert(name, content(&document(runtime, &key).await));
    }
    all
}

/// Says something in processes that die after so many writes each, then in one that lives.
pub(crate) async fn survive(
    store: &Arc<MemoryStore>,
    lives: &[(usize, bool, bool)],
    agents: impl Fn() -> Vec<Agent>,
) -> (Runtime, bool) {
    let mut died = false;
    for (writes, keeps_last, reversed) in lives {
        let mortal = crate::mortal::Mortal::new(store, *writes, *keeps_last, *reversed);
        let process = over(Arc::clone(&mortal) as Arc<dyn Store>, agents());
        let _ = live(&process).await;
        loop {
            let state = process.state(&tenant(), KEY).await;
            let rests = state.is_ok_and(|(state, _)| state.active().is_none());
            if mortal.is_dead() || rests {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        died |= mortal.is_dead();
    }
    let last = over(Arc::clone(store) as Arc<dyn Store>, agents());
    live(&last).await.unwrap();
    at_rest(&last, KEY).await;
    (last, died)
}

async fn live(process: &Runtime) -> Result<(), RuntimeError> {
    process.recover().await?;
    let mut request = message(process, "go");
    request.token = Some("once".into());
    process.react(request).await.map(|_| ())
}
