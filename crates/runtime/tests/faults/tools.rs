//! Tools that are gone, stutter or end together.

use crate::rig::{ended, log, rigged, running, said};
use agents::{Agent, AgentOptions};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use loomline_runtime as runtime;
use runtime::{AgentReactor, Runtime, RuntimeOptions};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use timeline::{Event, ExecutionStatus, Record};
use tokio::time::Instant;
use upp::{
    Arguments, AssistantMessage, Capabilities, CycleUsage, Effect, MessageOptions, Model,
    ModelEvent, ModelStream, Request, Response, Scripted, StopReason, Tool, ToolCall, ToolContext,
    ToolFailure,
};

fn touch(effect: Effect, ran: &Arc<AtomicUsize>, stall: bool) -> Tool {
    let ran = Arc::clone(ran);
    let run = move |_: Value, _: ToolContext| -> BoxFuture<'static, Result<Value, ToolFailure>> {
        let ran = Arc::clone(&ran);
        async move {
            ran.fetch_add(1, Ordering::SeqCst);
            if stall {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
            Ok(json!("done"))
        }
        .boxed()
    };
    let parameters = json!({"type": "object", "properties": {}});
    Tool::new("touch", "Touches.", parameters, run).with_effect(effect)
}

fn agent(model: Arc<dyn Model>, tools: Vec<Tool>) -> Arc<AgentReactor> {
    let mut options = AgentOptions::new("demo", model);
    options.tools = tools;
    Arc::new(AgentReactor::new(Agent::new(options).unwrap()))
}

fn last_tool_parts(records: &[Record]) -> Vec<Value> {
    let mut parts: Vec<Value> = Vec::new();
    for record in records {
        match &record.event {
            Event::PartCreated { idx, part, .. } | Event::PartUpdated { idx, part, .. }
                if part.text().contains("\"toolCallId\"") =>
            {
                let idx = *idx as usize;
                if idx < parts.len() {
                    parts[idx] = part.value();
                } else {
                    parts.push(part.value());
                }
            }
            _ => {}
        }
    }
    parts
}

#[tokio::test(start_paused = true)]
async fn an_effect_that_had_started_is_unknown_also_when_its_tool_is_gone() {
    let store = rigged();
    let ran = Arc::new(AtomicUsize::new(0));
    let with = agent(
        Arc::new(Scripted::new()),
        vec![touch(Effect::Effect, &ran, true)],
    );
    let first = running(&store, with);
    said(&first, "k", "touch").await;
    while ran.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let second = running(&store, agent(Arc::new(Scripted::new()), Vec::new()));
    second.recover().await.unwrap();
    ended(&store, "k", 1).await;
    let parts = last_tool_parts(&log(&store, "k").await);
    assert_eq!(parts[0]["outcome"], "interrupted", "{parts:?}");
}

/// Calls `touch` under these ids at once, then has nothing more to say.
struct Stutters(&'static [&'static str], AtomicUsize);

impl Model for Stutters {
    fn model_id(&self) -> &'static str {
        "stutters"
    }

    fn provider(&self) -> &'static str {
        "test"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            tools: true,
            ..Capabilities::default()
        }
    }

    fn stream(&self, _: Request) -> ModelStream {
        let call = |id: &&str| ToolCall {
            tool_call_id: (*id).into(),
            tool_name: "touch".into(),
            arguments: Arguments::from_text("{}"),
            after: Vec::new(),
        };
        let calls = match self.1.fetch_add(1, Ordering::SeqCst) {
            0 => self.0.iter().map(call).collect(),
            _ => Vec::new(),
        };
        let response = Response {
            message: AssistantMessage::new(Vec::new(), calls, MessageOptions::default()),
            usage: CycleUsage::default(),
            stop_reason: StopReason::EndTurn,
            data: None,
            model_id: "stutters".into(),
            provider: "test".into(),
            response_id: None,
            request: None,
        };
        futures_util::stream::iter([Ok(ModelEvent::Done(Box::new(response)))]).boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn two_calls_under_one_id_keep_each_its_own_result() {
    let store = rigged();
    let ran = Arc::new(AtomicUsize::new(0));
    let model = Arc::new(Stutters(&["call_0", "call_0"], AtomicUsize::new(0)));
    let runtime = running(
        &store,
        agent(model, vec![touch(Effect::Effect, &ran, false)]),
    );
    said(&runtime, "k", "hello").await;
    ended(&store, "k", 1).await;
    let parts = last_tool_parts(&log(&store, "k").await);
    let states: Vec<&Value> = parts.iter().map(|part| &part["state"]).collect();
    // The first ran; the second was refused because its id was taken.
    assert_eq!(states, ["output-available", "output-error"]);
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn two_tools_may_end_at_the_same_moment() {
    let store = rigged();
    let ran = Arc::new(AtomicUsize::new(0));
    let model = Arc::new(Stutters(&["call_0", "call_1"], AtomicUsize::new(0)));
    let runtime = running(&store, agent(model, vec![touch(Effect::Pure, &ran, false)]));
    // As long as a disk takes.
    store.slow_appends.store(3, Ordering::SeqCst);
    said(&runtime, "k", "hello").await;
    assert_eq!(ended(&store, "k", 1).await, [ExecutionStatus::Completed]);
}

#[tokio::test(start_paused = true)]
async fn an_effect_waits_for_its_calls_commit_and_a_pure_tool_does_not() {
    for effect in [Effect::Pure, Effect::Idempotent, Effect::Effect] {
        let store = rigged();
        let ran = Arc::new(AtomicUsize::new(0));
        let model = Arc::new(Stutters(&["call_0"], AtomicUsize::new(0)));
        let runtime = running(&store, agent(model, vec![touch(effect, &ran, false)]));
        store.slow_appends.store(100, Ordering::SeqCst);
        said(&runtime, "k", "hello").await;
        let begun = Instant::now();
        while ran.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let waited = begun.elapsed() >= Duration::from_millis(100);
        assert_eq!(waited, effect != Effect::Pure, "{effect:?}");
        assert_eq!(ended(&store, "k", 1).await, [ExecutionStatus::Completed]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_kept_though_its_pure_tools_result_is_too_large() {
    let run = |_: Value| std::future::ready(Ok(json!("much ".repeat(1_000))));
    let much = Tool::simple("touch", "Touches.", json!({"type": "object"}), run);
    let model = Arc::new(Stutters(&["call_0"], AtomicUsize::new(0)));
    let options = RuntimeOptions {
        message_bytes: 1_000,
        ..RuntimeOptions::default()
    };
    let store = rigged();
    let reactor = agent(model, vec![much.with_effect(Effect::Pure)]);
    let runtime = Runtime::new(store.clone(), Arc::new(reactor), options);
    said(&runtime, "k", "hello").await;
    assert_eq!(ended(&store, "k", 1).await, [ExecutionStatus::Failed]);
    let parts = last_tool_parts(&log(&store, "k").await);
    assert_eq!(parts[0]["state"], "input-available");
}
