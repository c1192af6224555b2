//! The spans of runs, as a subscriber sees them.

#[path = "../support/recorder.rs"]
mod recorder;

use crate::support::{Canned, Log, agent, call, noted, options, quick, said, scripted, tool};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use loomline_agents::checkpoint::{Checkpoints, MemoryCheckpoints};
use loomline_agents::{Agent, AgentOptions, AgentState};
use recorder::Recorder;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use upp::{
    Capabilities, Code, Error, Model, ModelStream, Request, ScriptTurn, ToolFailure, ToolOutput,
};

const CANARY: &str = "canary-7f3a";

async fn go(agent: &Agent) -> Result<AgentState, loomline_agents::AgentError> {
    let result = agent.generate("go", AgentState::initial()).await?;
    Ok(result.state)
}

/// Fails, or says that nothing was asked of it but to stream.
struct Failing {
    n_asked: AtomicU32,
}

impl Model for Failing {
    fn model_id(&self) -> &'static str {
        "failing"
    }

    fn provider(&self) -> &'static str {
        "google"
    }

    fn capabilities(&self) -> Capabilities {
        self.n_asked.fetch_add(1, Ordering::Relaxed);
        Capabilities::default()
    }

    fn stream(&self, _: Request) -> ModelStream {
        let error = Error::new(Code::RateLimited, "google", CANARY);
        futures_util::stream::iter([Err(error)]).boxed()
    }
}

fn failing() -> Arc<Failing> {
    Arc::new(Failing {
        n_asked: AtomicU32::new(0),
    })
}

#[tokio::test]
async fn model_calls_and_tools_are_spans_within_the_span_of_the_run() {
    let recorder = Recorder::new();
    let log = Log::default();
    let mut options = options(Canned::calls(vec![
        call("1", "slow", &[]),
        call("2", "fast", &[]),
    ]));
    options.tools = vec![noted("slow", 3, &log), noted("fast", 0, &log)];
    go(&agent(options)).await.unwrap();
    let tree = [
        "invoke_agent tester",
        "  chat canned",
        "  execute_tool slow",
        "  execute_tool fast",
        "  chat canned",
    ];
    assert_eq!(recorder.tree(), tree);
    assert!(recorder.spans().iter().all(|span| span.is_closed));
    assert!(
        recorder
            .spans()
            .iter()
            .all(|span| span.get("error.type").is_none())
    );
}

#[tokio::test]
async fn the_conversation_of_a_span_is_the_session_that_the_state_goes_on() {
    let checkpoints = Checkpoints::from(MemoryCheckpoints::new());
    let mut first = scripted(vec![ScriptTurn::text("hi")]);
    first.checkpoints = Some(checkpoints);
    let first = agent(first);
    let other = Agent::new(first.options().clone()).unwrap();
    let state = go(&first).await.unwrap();
    let recorder = Recorder::new();
    other.ask("on", state).await.unwrap();
    let run = recorder.named("invoke_agent tester");
    let session = first.session_id().unwrap();
    assert_eq!(run.get("gen_ai.conversation.id").unwrap(), session);
    assert_ne!(other.session_id(), Some(session));
}

#[tokio::test]
async fn the_span_of_a_run_names_agent_model_conversation_and_usage() {
    let recorder = Recorder::new();
    let mut options = scripted(vec![ScriptTurn::text("one two")]);
    options.id = Some("agent-1".into());
    options.session_id = Some("session-1".into());
    go(&agent(options)).await.unwrap();
    let run = recorder.named("invoke_agent tester");
    let expected = json!({
        "otel.name": "invoke_agent tester",
        "otel.kind": "internal",
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "scripted-1",
        "gen_ai.agent.id": "agent-1",
        "gen_ai.agent.name": "tester",
        "gen_ai.conversation.id": "session-1",
        "gen_ai.usage.input_tokens": run.get("gen_ai.usage.input_tokens").unwrap(),
        "gen_ai.usage.output_tokens": run.get("gen_ai.usage.output_tokens").unwrap(),
    });
    assert_eq!(serde_json::to_value(&run.fields).unwrap(), expected);
    let call = recorder.named("chat scripted-1");
    for count in ["gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"] {
        assert_eq!(run.get(count), call.get(count));
    }
}

#[tokio::test]
async fn the_span_of_a_model_call_tells_model_response_and_usage() {
    let recorder = Recorder::new();
    let mut options = options(Canned::new(|_| Some(said("hello"))));
    options.structure = Some(Arc::new(json!({"type": "object"})));
    go(&agent(options)).await.unwrap();
    let expected = json!({
        "otel.name": "chat canned",
        "otel.kind": "client",
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "canned",
        "gen_ai.request.model": "canned",
        "gen_ai.request.stream": "false",
        "gen_ai.output.type": "json",
        "gen_ai.response.model": "canned",
        "gen_ai.response.finish_reasons": "stop",
        "gen_ai.usage.input_tokens": "2",
        "gen_ai.usage.output_tokens": "1",
    });
    let fields = recorder.named("chat canned").fields;
    assert_eq!(serde_json::to_value(fields).unwrap(), expected);
}

#[tokio::test]
async fn a_model_called_by_itself_has_a_span_of_its_own() {
    let recorder = Recorder::new();
    let model = Canned::new(|_| Some(said("hello")));
    let response = upp::telemetry::complete(&*model, Request::default()).await;
    assert_eq!(response.unwrap().message.joined_text(), "hello");
    assert_eq!(recorder.tree(), ["chat canned"]);
    assert!(recorder.spans()[0].is_closed);
    assert_eq!(recorder.spans()[0].get("error.type"), None);
}

#[tokio::test]
async fn the_turn_of_a_model_with_tools_has_a_span_for_each_call() {
    let recorder = Recorder::new();
    let mut options = upp::LlmOptions::new(Arc::new(upp::Scripted::with_script(upp::Script::new(
        vec![
            ScriptTurn::call("look", json!({})),
            ScriptTurn::text("done"),
        ],
    ))));
    options.tools = vec![quick("look", |_| Ok(json!("seen")))];
    let llm = upp::Llm::new(options).unwrap();
    llm.generate(upp::Messages::new(), ["go"]).await.unwrap();
    let tree = ["chat scripted-1", "execute_tool look", "chat scripted-1"];
    assert_eq!(recorder.tree(), tree);
}

#[tokio::test]
async fn the_span_of_a_tool_names_tool_and_call() {
    let recorder = Recorder::new();
    let mut options = options(Canned::calls(vec![call("call-1", "look", &[])]));
    options.tools = vec![quick("look", |_| Ok(json!("seen")))];
    go(&agent(options)).await.unwrap();
    let expected = json!({
        "otel.name": "execute_tool look",
        "otel.kind": "internal",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "look",
        "gen_ai.tool.call.id": "call-1",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.description": "A tool.",
    });
    let fields = recorder.named("execute_tool look").fields;
    assert_eq!(serde_json::to_value(fields).unwrap(), expected);
}

#[tokio::test]
async fn what_was_said_is_in_no_span() {
    let recorder = Recorder::new();
    let mut script = scripted(vec![
        ScriptTurn::call("echo", json!({"text": CANARY})),
        ScriptTurn::call("fails", json!({"text": CANARY})),
        ScriptTurn::text(CANARY),
    ]);
    script.system = Some(CANARY.into());
    script.tools = vec![
        quick("echo", |arguments| Ok(arguments.clone())),
        quick("fails", |_| Err(ToolFailure::new(CANARY))),
    ];
    let result = agent(script).generate(CANARY, AgentState::initial()).await;
    assert_eq!(result.unwrap().turn.response.joined_text(), CANARY);
    let failed = agent(options(failing())).query(CANARY).await;
    assert!(format!("{:?}", failed.unwrap_err()).contains(CANARY));
    assert_eq!(recorder.spans().len(), 8);
    for span in recorder.spans() {
        assert!(!format!("{:?}", span.fields).contains(CANARY), "{span:?}");
    }
}

#[tokio::test]
async fn a_failed_model_call_is_named_by_its_code_and_so_is_the_run() {
    let recorder = Recorder::new();
    go(&agent(options(failing()))).await.unwrap_err();
    assert_eq!(recorder.tree(), ["invoke_agent tester", "  chat failing"]);
    for span in recorder.spans() {
        assert_eq!(span.get("error.type"), Some("RATE_LIMITED"));
        assert_eq!(span.get("otel.status_code"), Some("ERROR"));
        assert_eq!(span.get("gen_ai.provider.name"), Some("gcp.gemini"));
        assert!(span.is_closed);
    }
}

#[tokio::test]
async fn a_failed_tool_is_named_by_its_kind_of_failure_and_the_run_is_none() {
    let recorder = Recorder::new();
    let mut strict = quick("strict", |_| Ok(Value::Null));
    strict.parameters = Arc::new(json!({"type": "object", "required": ["a"]}));
    let mut options = options(Canned::calls(vec![
        call("1", "fails", &[]),
        call("2", "missing", &[]),
        call("3", "strict", &[]),
        call("4", "panics", &[]),
    ]));
    options.tools = vec![
        quick("fails", |_| Err(ToolFailure::new("no luck"))),
        strict,
        quick("panics", |_| panic!("on purpose")),
    ];
    go(&agent(options)).await.unwrap();
    let error = |name| recorder.named(name).get("error.type").map(str::to_owned);
    assert_eq!(error("execute_tool fails").as_deref(), Some("tool_error"));
    assert_eq!(
        error("execute_tool missing").as_deref(),
        Some("tool_not_found")
    );
    assert_eq!(
        error("execute_tool strict").as_deref(),
        Some("tool_not_run")
    );
    assert_eq!(error("execute_tool panics").as_deref(), Some("tool_error"));
    assert_eq!(error("invoke_agent tester"), None);
}

#[tokio::test]
async fn the_run_of_a_sub_agent_is_within_the_tool_that_spawned_it() {
    let recorder = Recorder::new();
    let inner = agent(AgentOptions::new(
        "helper",
        Canned::new(|_| Some(said("hi"))),
    ));
    let ask = tool("ask", move |_: Value, _: upp::ToolContext| {
        let inner = inner.clone();
        async move {
            let turn = inner.query("task").await;
            Ok(json!(turn.unwrap().response.joined_text()))
        }
        .boxed() as BoxFuture<'static, ToolOutput>
    });
    let mut options = options(Canned::calls(vec![call("1", "ask", &[])]));
    options.tools = vec![ask];
    go(&agent(options)).await.unwrap();
    let tree = [
        "invoke_agent tester",
        "  chat canned",
        "  execute_tool ask",
        "    invoke_agent helper",
        "      chat canned",
        "  chat canned",
    ];
    assert_eq!(recorder.tree(), tree);
}

#[tokio::test]
async fn a_run_aborted_in_a_model_call_ends_both_spans_as_cancelled() {
    let recorder = Recorder::new();
    let agent = agent(options(Canned::new(|_| None)));
    let stream = agent.stream("go", AgentState::initial());
    let signal = stream.signal();
    let (outcome, ()) = tokio::join!(stream.result(), async {
        tokio::task::yield_now().await;
        signal.cancel();
    });
    outcome.unwrap_err();
    assert_eq!(recorder.tree(), ["invoke_agent tester", "  chat canned"]);
    assert_cancelled(&recorder);
}

#[tokio::test]
async fn a_run_dropped_in_a_tool_ends_all_open_spans_as_cancelled() {
    let recorder = Recorder::new();
    let stuck = tool("stuck", |_: Value, _: upp::ToolContext| {
        std::future::pending().boxed() as BoxFuture<'static, ToolOutput>
    });
    let mut options = options(Canned::calls(vec![call("1", "stuck", &[])]));
    options.tools = vec![stuck];
    let agent = agent(options);
    let mut run = Box::pin(go(&agent));
    assert!(futures_util::poll!(&mut run).is_pending());
    drop(run);
    let spans = recorder.spans();
    assert!(spans.iter().all(|span| span.is_closed));
    let errors: Vec<_> = spans.iter().map(|span| span.get("error.type")).collect();
    assert_eq!(errors, [Some("CANCELLED"), None, Some("CANCELLED")]);
}

fn assert_cancelled(recorder: &Recorder) {
    for span in recorder.spans() {
        assert_eq!(span.get("error.type"), Some("CANCELLED"));
        assert!(span.is_closed);
    }
}

#[tokio::test]
async fn nothing_is_computed_for_spans_that_nobody_wants() {
    let model = failing();
    let agent = agent(options(Arc::<Failing>::clone(&model)));
    // What the run itself asks of the model it asks either way.
    let n_asked = || model.n_asked.swap(0, Ordering::Relaxed);
    n_asked();
    go(&agent).await.unwrap_err();
    let n_of_the_run = n_asked();
    let recorder = Recorder::new();
    go(&agent).await.unwrap_err();
    assert_eq!(n_asked(), n_of_the_run + 1);
    assert_eq!(recorder.spans().len(), 2);
}
