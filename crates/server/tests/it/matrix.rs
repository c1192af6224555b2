//! X-1: a thread that was written through a protocol reads the same through each other one.
//!
//! Each writer makes the same conversation: a text, a call that waits for an approval, a sub-agent, an
//! answer that is cut off, and a text after it. Each reader gives the lines of the conversation.

mod readers;
mod writers;

use crate::harness::Server;
use readers::Reader;
use serde_json::{Value, json};
use thread::Thread;
use thread::canonical::{CanonicalOptions, hash};
use writers::{Talk, Writer};

/// An agent whose tool waits for an approval, with a sub-agent.
const CONFIG: &str = r#"
default_agent = "lead"
[models.m]
provider = "scripted"
[agents.lead]
model = "m"
tools = ["compute"]
requires_approval = ["compute"]
[[agents.lead.subagents]]
agent = "finder"
name = "find"
description = "Finds something."
parameters = { type = "object", properties = { query = { type = "string" } }, required = ["query"] }
prompt = "{query}"
[agents.finder]
model = "m"
"#;

/// The conversation, line by line.
const LINES: [&str; 17] = [
    "user: Good morning",
    "assistant: You said: Good morning",
    "user: compute 2+3",
    r#"call: compute {"expression":"2+3"}"#,
    "approved: compute",
    "result: compute 5",
    "assistant: compute gave 5.",
    r#"user: find {"query":"gold"}"#,
    r#"call: find {"query":"gold"}"#,
    "subagent: find",
    r#"result: find "You said: gold""#,
    "assistant: find gave You said: gold.",
    "user: slow 20ms say 100000 words",
    "cut: the loom weaves",
    "interrupted",
    "user: Good night",
    "assistant: You said: Good night",
];

/// The kinds of lines that a reader of a protocol does not show, and why.
const UNREADABLE: [(Reader, &str, &str); 17] = [
    (
        Reader::PydanticAi,
        "approved",
        "an approval is no part of a message history",
    ),
    (
        Reader::PydanticAi,
        "subagent",
        "a tool return names no other thread",
    ),
    (
        Reader::PydanticAi,
        "cut",
        "a history has complete responses; the export reports the loss",
    ),
    (
        Reader::PydanticAi,
        "interrupted",
        "a history has no ends of runs; the export reports the loss",
    ),
    (
        Reader::ThreadsApi,
        "approved",
        "the protocol has no approvals",
    ),
    (
        Reader::ThreadsApi,
        "subagent",
        "a step has the calls and their outputs only",
    ),
    (
        Reader::AgUi,
        "approved",
        "messages have no answers to interrupts",
    ),
    (
        Reader::AgUi,
        "subagent",
        "sub-agents are events of streams, not messages",
    ),
    (Reader::AgUi, "interrupted", "a message has no status"),
    (
        Reader::LangGraph,
        "approved",
        "an answer resumes the graph and is not a message",
    ),
    (
        Reader::LangGraph,
        "subagent",
        "a tool message names no other thread",
    ),
    (
        Reader::LangGraph,
        "cut",
        "a message that is not complete is revoked",
    ),
    (
        Reader::LangGraph,
        "interrupted",
        "a state has messages; the run has the status `interrupted`",
    ),
    (Reader::A2a, "cut", "an artifact has complete answers"),
    (Reader::A2a, "call", "a task has messages and artifacts"),
    (Reader::A2a, "result", "a task has messages and artifacts"),
    (Reader::A2a, "subagent", "a task has messages and artifacts"),
];

/// The kinds of lines that a writer can't write, and why. The native API does it for the first ones; what an
/// import lacks stays away.
const UNWRITABLE: [(Writer, &str, &str); 9] = [
    (
        Writer::ThreadsApi,
        "approved",
        "the protocol has no approvals",
    ),
    (
        Writer::ChatCompletions,
        "approved",
        "the protocol has no approvals",
    ),
    (
        Writer::ChatCompletions,
        "interrupted",
        "the protocol has no request to cancel",
    ),
    (
        Writer::AgUi,
        "interrupted",
        "the protocol has no request to cancel",
    ),
    (
        Writer::PydanticAi,
        "approved",
        "an approval is no part of a message history",
    ),
    (
        Writer::PydanticAi,
        "subagent",
        "a tool return names no other thread",
    ),
    (
        Writer::PydanticAi,
        "cut",
        "a history has complete responses",
    ),
    (
        Writer::PydanticAi,
        "interrupted",
        "a history has no ends of runs",
    ),
    (
        Writer::PydanticAi,
        "document",
        "a history has no agents and events",
    ),
];

/// Lines of a writer that a reader does not show, and why.
const UNPAIRED: [(Writer, Reader, &str, &str); 1] = [(
    Writer::PydanticAi,
    Reader::A2a,
    "user: slow 20ms say 100000 words",
    "a message that no run answers is no task",
)];

fn kind(line: &str) -> &str {
    line.split(':').next().unwrap_or(line)
}

fn can_read(reader: Reader, line: &str) -> bool {
    !UNREADABLE
        .iter()
        .any(|(of, what, _)| *of == reader && *what == kind(line))
}

fn can_write(writer: Writer, what: &str) -> bool {
    !UNWRITABLE
        .iter()
        .any(|(of, which, _)| *of == writer && *which == what)
}

/// The lines that a writer leaves in a thread.
fn written(writer: Writer) -> impl Iterator<Item = &'static str> {
    let is_import = writer == Writer::PydanticAi;
    LINES
        .into_iter()
        .filter(move |line| !is_import || can_write(writer, kind(line)))
}

async fn document(server: &Server, key: &str) -> Value {
    let answer = server.get(&format!("/api/v1/threads/{key}/document")).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()
}

/// The canonical hash of a document without what differs each time: ids, instants, durations, numbers of events,
/// the length of the cut text, and the protocol that it came through.
fn hash_of(document: &Value) -> String {
    let text = comparable(document.clone()).to_string();
    let thread = Thread::decode(&text).unwrap();
    hash(&thread, CanonicalOptions::default())
        .unwrap()
        .to_string()
}

fn comparable(value: Value) -> Value {
    match value {
        Value::Array(values) => values.into_iter().map(comparable).collect(),
        Value::Object(members) => {
            let is_same = |name: &str| {
                let differs = [
                    "id",
                    "ids",
                    "at",
                    "timestamp",
                    "seq",
                    "ms",
                    "time",
                    "usage",
                    "metadata",
                    "Id",
                    "Time",
                ];
                !differs.iter().any(|end| {
                    name == *end
                        || name.ends_with(&format!("_{end}"))
                        || (end.starts_with(char::is_uppercase) && name.ends_with(end))
                }) && !["agents", "details"].contains(&name)
            };
            let members = members.into_iter().filter(|(name, _)| is_same(name));
            members
                .map(|(name, of)| (name, comparable(of)))
                .collect::<serde_json::Map<_, _>>()
                .into()
        }
        Value::String(ref text) if text.starts_with("the loom weaves") => json!("the loom weaves"),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

#[tokio::test]
async fn each_protocol_reads_what_each_other_wrote() {
    let talk = Talk::new(CONFIG).await;
    let mut failures = Vec::new();
    let mut first = None;
    for writer in Writer::ALL {
        let key = talk.write(writer).await;
        let before = document(&talk.server, &key).await;
        for reader in Reader::ALL {
            let read = readers::read(&talk, reader, &key).await;
            let expected: Vec<&str> = written(writer)
                .filter(|line| can_read(reader, line))
                .filter(|line| {
                    let mut unpaired = UNPAIRED.iter();
                    !unpaired.any(|(of, by, what, _)| (*of, *by, *what) == (writer, reader, *line))
                })
                .collect();
            if read != expected {
                failures.push(format!("{writer:?} read through {reader:?}: {read:#?}"));
            }
        }
        let after = document(&talk.server, &key).await;
        assert_eq!(before, after, "reading changes nothing: {writer:?}");
        if can_write(writer, "document") {
            let found = (hash_of(&after), comparable(after));
            let (hash, document) = first.get_or_insert_with(|| found.clone());
            if *hash != found.0 {
                failures.push(format!(
                    "the document of {writer:?} is another: {:#} instead of {document:#}",
                    found.1
                ));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[tokio::test]
async fn the_losses_of_a_history_are_reported_by_its_export() {
    let talk = Talk::new(CONFIG).await;
    let key = talk.write(Writer::Native).await;
    let path = format!("/api/v1/threads/{key}/document?format=pydantic-ai");
    let answer = talk.server.get(&path).await;
    let losses = answer
        .headers
        .iter()
        .filter(|(name, _)| name.as_str().starts_with("loomline-loss"));
    let losses: Vec<_> = losses.map(|(_, value)| value.to_str().unwrap()).collect();
    assert!(losses.len() > 1, "{losses:?}");
}

#[tokio::test]
async fn one_execution_is_one_turn_run_response_and_task() {
    let server = Server::new("").await;
    let made = server.post("/api/v1/threads", json!({})).await.json();
    let key = made["key"].as_str().unwrap();
    for content in ["Good morning", "compute 1+1 then compute 2+2", "Good night"] {
        server.say(key, content).await;
    }
    let conversation = key.replace('-', "");
    let list = |value: Value, name: &str| -> Vec<Value> {
        let list = if name.is_empty() {
            value
        } else {
            value[name].clone()
        };
        list.as_array().unwrap().clone()
    };
    let runs = server.get(&format!("/api/v1/threads/{key}/runs")).await;
    let runs = list(runs.json(), "runs");
    let mut n_steps: Vec<u64> = runs
        .iter()
        .map(|run| run["nSteps"].as_u64().unwrap())
        .collect();
    n_steps.sort_unstable();
    assert_eq!(n_steps, [1, 1, 3]);

    let turns = list(document(&server, key).await, "turns");
    let turns = turns.iter().filter(|turn| turn["turn_type"] == "agent");
    let is_response = |message: &&Value| message["message_type"] == "response";
    let mut n_cycles: Vec<u64> = turns
        .map(|turn| {
            list(turn.clone(), "messages")
                .iter()
                .filter(is_response)
                .count() as u64
        })
        .collect();
    n_cycles.sort_unstable();
    assert_eq!(
        n_cycles, n_steps,
        "a step is a cycle of a request and a response"
    );

    let path = format!("/v1/threads/thread_{conversation}/runs");
    assert_eq!(list(server.get(&path).await.json(), "data").len(), 3);
    let path = format!("/threads/{key}/runs");
    assert_eq!(list(server.get(&path).await.json(), "").len(), 3);
    let tasks = server
        .rpc("/a2a", "ListTasks", json!({"contextId": key}))
        .await;
    assert_eq!(list(tasks["result"].clone(), "tasks").len(), 3);
    for run in &runs {
        let execution = run["id"].as_str().unwrap().replace('-', "");
        let response = server
            .get(&format!("/v1/responses/resp_{conversation}{execution}"))
            .await;
        assert_eq!(response.status, 200, "{}", response.text);
        assert_eq!(response.json()["status"], "completed");
    }
}
