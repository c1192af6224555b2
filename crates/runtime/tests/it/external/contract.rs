//! The fields of EK §6, for both reactors.

use super::{
    KEY, Lease, Observed, Returned, agent, answer, at_rest, complete, compute, external, in_memory,
    leased, post, says, steps, tenant, text,
};
use agents::PendingKind;
use futures_util::StreamExt as _;
use loomline_runtime as runtime;
use runtime::{AgentReactor, ExternalReactor, StepDelta, Until, WorkerPolicy};
use serde_json::{Value, json};
use std::sync::Arc;
use timeline::{Event, Seq, StepRecord};
use upp::Script;

/// The assistant's content, and the metadata of the answer.
fn answered(step: &StepRecord) -> (Vec<Value>, Value) {
    let parts = step.parts.iter().map(|part| part.part.value());
    let (about, _) = step.response.as_ref().unwrap();
    (parts.collect(), about.value())
}

fn calls_compute() -> Value {
    json!([{"toolCallId": "c1", "toolName": "compute"}])
}

#[tokio::test]
async fn an_external_reactor_returns_every_field_of_section_6() {
    let returned = Arc::new(Returned::default());
    let reactor = Observed {
        reactor: ExternalReactor::new(agent(vec![compute()]), WorkerPolicy::default()),
        returned: Arc::clone(&returned),
    };
    let runtime = in_memory(Arc::new(reactor));
    post(&runtime, &tenant(), KEY, "double 21").await;
    let step = leased(&runtime).await;
    let first = answer(json!({
        "assistantEvent": {"type": "message", "role": "assistant", "content": [
            {"type": "reasoning", "text": "I need the tool."},
            {"type": "output_text", "text": "One moment."},
        ]},
        "toolCalls": [{"toolCallId": "c1", "toolName": "compute", "input": {"n": 21}}],
        "messagesForModel": [{"role": "user", "content": "double 21"}],
        "usage": {"provider": "acme-ai", "model": "loom-9", "inputTokens": 7, "outputTokens": 5, "latencyMs": 12},
    }));
    complete(&runtime, &step, &first).await;
    let second = leased(&runtime).await;
    let messages = second.request.value()["messages"].clone();
    complete(&runtime, &second, &says("It is 42.")).await;
    at_rest(&runtime).await;

    let steps = steps(&runtime).await;
    let (content, about) = answered(&steps[0]);
    assert_eq!(content[0]["type"], "reasoning");
    assert_eq!(content[1]["text"], "One moment.");
    assert_eq!(content[2]["type"], "tool-compute");
    assert_eq!(content[2]["output"], json!({"doubled": 42}));
    assert_eq!(about["provider"], "acme-ai");
    assert_eq!(about["model"], "loom-9");
    assert_eq!(about["stopReason"], "tool_use");
    let usage = &about["usage"];
    let tokens = (&usage["inputTokens"], &usage["outputTokens"]);
    assert_eq!(tokens, (&json!(7), &json!(5)));
    assert_eq!(usage["raw"]["latencyMs"], 12);
    // Without a report of the worker, the latency is the time since the lease.
    let (_, about) = answered(&steps[1]);
    assert!(about["usage"]["raw"]["latencyMs"].is_u64());

    let returned = returned.0.lock().unwrap().clone();
    assert_eq!(returned[0].calls, Some(calls_compute()));
    let reported = json!([{"role": "user", "content": "double 21"}]);
    assert_eq!(json!(returned[0].messages), reported);
    // Without a report of the worker, they are the messages that it received, after the system prompt.
    let all = returned[1].messages.as_ref().unwrap();
    assert_eq!(all[0], json!({"type": "system", "text": "You are brief."}));
    assert_eq!(json!(all[1..]), messages);
}

#[tokio::test]
async fn a_scripted_reactor_returns_every_field_of_section_6() {
    let script = json!({"turns": [
        {"reasoning": "I need the tool.", "text": "One moment.",
         "tool_calls": [{"id": "c1", "name": "compute", "arguments": {"n": 21}}],
         "usage": {"inputTokens": 7, "outputTokens": 5}},
        {"text": "It is 42."},
    ]});
    let script = Script::from_json(&script.to_string()).unwrap();
    let returned = Arc::new(Returned::default());
    let reactor = Observed {
        reactor: AgentReactor::scripted(Some(script), vec![compute()]).unwrap(),
        returned: Arc::clone(&returned),
    };
    let runtime = in_memory(Arc::new(reactor));
    post(&runtime, &tenant(), KEY, "double 21").await;
    at_rest(&runtime).await;

    let steps = steps(&runtime).await;
    let (content, about) = answered(&steps[0]);
    assert_eq!(content[0]["type"], "reasoning");
    assert_eq!(content[1]["text"], "One moment.");
    assert_eq!(content[2]["output"], json!({"doubled": 42}));
    assert_eq!(about["provider"], "scripted");
    assert_eq!(about["model"], "scripted-1");
    let usage = &about["usage"];
    let tokens = (&usage["inputTokens"], &usage["outputTokens"]);
    assert_eq!(tokens, (&json!(7), &json!(5)));
    // The log has the times of the step and of the answer.
    assert!(steps[0].latency().is_some_and(|it| !it.is_negative()));

    let returned = returned.0.lock().unwrap().clone();
    assert_eq!(returned[0].calls, Some(calls_compute()));
    let sent = returned[0].messages.as_ref().unwrap();
    assert_eq!(sent[0]["content"][0]["text"], "double 21");
    assert!(returned[1].messages.as_ref().unwrap().len() > sent.len());
}

#[tokio::test]
async fn a_worker_receives_the_messages_tools_parameters_and_ids() {
    let runtime = in_memory(external(vec![compute()], WorkerPolicy::default()));
    post(&runtime, &tenant(), KEY, "hello").await;
    let step = leased(&runtime).await;
    let (state, _) = runtime.state(&tenant(), KEY).await.unwrap();
    let active = state.active().unwrap();
    assert_eq!(step.execution, active.execution.id.as_str());
    assert_eq!(step.step, active.step.as_ref().unwrap().step.id);
    assert_eq!((step.attempt, step.iteration), (1, 0));
    assert_eq!((step.agent.as_str(), step.key.as_str()), ("desk", KEY));
    let request = step.request.value();
    assert_eq!(request["system"], "You are brief.");
    assert_eq!(request["messages"][0]["type"], "user");
    assert_eq!(request["messages"][0]["content"][0]["text"], "hello");
    assert_eq!(request["tools"][0]["name"], "compute");
    assert_eq!(request["tools"][0]["parameters"]["type"], "object");
    assert_eq!(request["toolChoice"], "auto");
    assert!(request["params"].is_object());
    complete(&runtime, &step, &says("hi")).await;
    at_rest(&runtime).await;
    assert_eq!(text(&runtime).await, "hi");
}

#[tokio::test]
async fn a_tool_call_of_a_worker_waits_for_its_approval() {
    let tool = compute().with_requires_approval();
    let runtime = in_memory(external(vec![tool], WorkerPolicy::default()));
    let acme = tenant();
    let calling = async {
        let step = leased(&runtime).await;
        let calls = answer(json!({
            "assistantEvent": {"type": "message", "content": []},
            "toolCalls": [{"toolCallId": "c1", "toolName": "compute", "input": {"n": 21}}],
        }));
        complete(&runtime, &step, &calls).await;
    };
    let (reply, ()) = tokio::join!(runtime.ask_agent(&acme, KEY, "double 21"), calling);
    assert_eq!(reply.unwrap().pending[0].kind, PendingKind::Approval);
    let answers = agents::Answers::new().approve("c1");
    let answering = async {
        let next = leased(&runtime).await;
        let messages = next.request.value()["messages"].to_string();
        assert!(messages.contains("doubled"), "{messages}");
        complete(&runtime, &next, &says("It is 42.")).await;
    };
    let (reply, ()) = tokio::join!(runtime.answer_calls(&acme, KEY, &answers), answering);
    assert_eq!(reply.unwrap().text, "It is 42.");
}

#[tokio::test]
async fn streamed_text_is_shown_before_the_answer_and_once() {
    let runtime = in_memory(external(Vec::new(), WorkerPolicy::default()));
    post(&runtime, &tenant(), KEY, "hello").await;
    let step = leased(&runtime).await;
    let lease = Lease::of(&step);
    let text = |delta: &str| StepDelta::OutputText {
        index: 0,
        delta: delta.to_owned(),
    };
    for (seq, delta) in [(0, "Good "), (1, "mor"), (1, "mor")] {
        let workers = runtime.external();
        let streamed = workers.stream(lease.at(), seq, &[text(delta)]).await;
        streamed.unwrap();
    }
    let mut follow = runtime
        .follow(&tenant(), KEY, Seq::ZERO, Until::Rest)
        .await
        .unwrap();
    let mut shown = String::new();
    while let Some(record) = follow.next().await {
        if let Event::ChunkEmitted {
            chunk_type, data, ..
        } = &record.unwrap().record.event
            && chunk_type == "text-delta"
        {
            shown.push_str(&data.as_ref().unwrap().str_field("delta").unwrap());
            if shown == "Good mor" {
                complete(&runtime, &step, &says("Good morning")).await;
            }
        }
    }
    assert_eq!(shown, "Good morning");
    assert_eq!(super::text(&runtime).await, "Good morning");
}
