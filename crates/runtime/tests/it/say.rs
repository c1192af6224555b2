//! Text in and text out, and typed answers, on durable threads.

use agents::{Agent, Answers, PendingKind};
use loomline_runtime as runtime;
use runtime::{AgentReactors, RunReply, Runtime, RuntimeError, RuntimeOptions};
use serde_json::{Value, json};
use std::sync::Arc;
use store::{MemoryStore, TenantId};
use upp::{Script, Scripted, Tool};

fn tenant() -> TenantId {
    "acme".into()
}

fn over(store: &Arc<MemoryStore>, agent: Agent) -> Runtime {
    let name = agent.name().to_owned();
    let reactors = AgentReactors::new([agent], &name).unwrap();
    let store = Arc::clone(store);
    Runtime::new(store, Arc::new(reactors), RuntimeOptions::default())
}

fn echo() -> Agent {
    let echo = Agent::builder("echo", Scripted::new());
    echo.id("echo").build().unwrap()
}

/// An agent that pays when it is allowed to, and asks a client for the time.
fn clerk() -> Agent {
    let script = json!({"turns": [
        {"text": "One moment.", "tool_calls": [
            {"id": "p", "name": "pay", "arguments": {"cents": 500}},
            {"id": "t", "name": "time", "arguments": {}},
        ]},
        {"text": "Done."},
    ]});
    let script = Script::from_json(&script.to_string()).unwrap();
    let schema = json!({"type": "object"});
    let pay = Tool::simple("pay", "Pays.", schema.clone(), |it: Value| async move {
        Ok(json!({"paid": it["cents"]}))
    });
    let clerk = Agent::builder("clerk", Scripted::with_script(script)).id("clerk");
    let clerk = clerk.tool(pay.with_requires_approval());
    let clerk = clerk.tool(Tool::external("time", "Tells the time.", schema));
    clerk.build().unwrap()
}

#[tokio::test]
async fn a_text_is_answered_with_the_answers_text() {
    let store = Arc::new(MemoryStore::new());
    let runtime = over(&store, echo());
    let reply = runtime
        .ask_agent(&tenant(), "k", "Good morning")
        .await
        .unwrap();
    let expected = RunReply {
        text: "You said: Good morning".to_owned(),
        ..RunReply::default()
    };
    assert_eq!(reply, expected);
    drop(runtime);
    let next = over(&store, echo());
    let reply = next.ask_agent(&tenant(), "k", "Me again").await.unwrap();
    assert_eq!(reply.text, "You said: Me again");
}

#[tokio::test]
async fn texts_said_at_once_each_have_their_own_answer() {
    let runtime = over(&Arc::new(MemoryStore::new()), echo());
    let tenant = tenant();
    let says = ["one", "two", "three"].map(|text| runtime.ask_agent(&tenant, "k", text));
    let replies = futures_util::future::join_all(says).await;
    let texts: Vec<String> = replies.into_iter().map(|it| it.unwrap().text).collect();
    assert_eq!(texts, ["You said: one", "You said: two", "You said: three"]);
}

#[tokio::test]
async fn a_run_that_fails_is_a_reply_that_says_why() {
    let runtime = over(&Arc::new(MemoryStore::new()), echo());
    let reply = runtime
        .ask_agent(&tenant(), "k", "fail quota")
        .await
        .unwrap();
    let why = reply.interruption.unwrap();
    assert!(!why.reason.is_empty() && why.detail.is_some(), "{why:?}");
}

#[tokio::test]
async fn calls_that_wait_are_answered_durably_with_typed_answers() {
    let store = Arc::new(MemoryStore::new());
    let first = over(&store, clerk());
    let waiting = first.ask_agent(&tenant(), "k", "Pay").await.unwrap();
    assert_eq!(waiting.text, "One moment.");
    let kinds: Vec<_> = waiting
        .pending
        .iter()
        .map(|it| (it.call.tool_call_id.as_str(), it.kind))
        .collect();
    assert_eq!(
        kinds,
        [("p", PendingKind::Approval), ("t", PendingKind::External)]
    );
    assert_eq!(waiting.pending[0].call.arguments.text(), r#"{"cents":500}"#);
    drop(first);

    let second = over(&store, clerk());
    let answers = Answers::new().approve_with("p", json!({"cents": 300}));
    let half = second.answer_calls(&tenant(), "k", &answers).await.unwrap();
    assert_eq!(half.pending.len(), 1, "{half:?}");
    let answers = Answers::new().result("t", json!({"hour": 12}));
    let done = second.answer_calls(&tenant(), "k", &answers).await.unwrap();
    assert_eq!((done.text.as_str(), done.pending.len()), ("Done.", 0));

    let refused = second.answer_calls(&tenant(), "k", &answers).await;
    assert!(
        matches!(refused, Err(RuntimeError::Rejected(_))),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_denial_and_a_failure_reach_the_model_as_in_memory() {
    let runtime = over(&Arc::new(MemoryStore::new()), clerk());
    runtime.ask_agent(&tenant(), "k", "Pay").await.unwrap();
    let answers = Answers::new()
        .deny_because("p", "Too much.")
        .failure("t", "No clock.");
    let done = runtime
        .answer_calls(&tenant(), "k", &answers)
        .await
        .unwrap();
    assert_eq!(done.text, "Done.");
    let tenant = tenant();
    let read = runtime.transcript(&tenant, "k", store::Filter::Facts);
    let told: Vec<String> = interop::model::history(&read.await.unwrap(), None)
        .iter()
        .filter_map(|message| match message {
            upp::Message::ToolResult(results) => Some(results.results.clone()),
            _ => None,
        })
        .flatten()
        .map(|result| result.result.to_string())
        .collect();
    assert!(told.iter().any(|it| it.contains("Too much.")), "{told:?}");
    assert!(told.iter().any(|it| it.contains("No clock.")), "{told:?}");
}
