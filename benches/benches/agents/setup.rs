//! The agent of these benches, with every hook set, and a reader of all its events.

use agents::{Agent, AgentError, AgentOptions, AgentState, AgentStrategy, GenerateResult};
use futures_util::future::{BoxFuture, ready};
use futures_util::{FutureExt, StreamExt};
use serde_json::{Value, json};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use upp::{
    AssistantMessage, BeforeCall, Message, Model, Tool, ToolCall, ToolResult, ToolUseStrategy,
};

/// What the tool gives: 1 KiB.
pub(crate) fn text() -> String {
    "0123456789abcdef".repeat(64)
}

/// Counts the calls of each hook.
#[derive(Default)]
struct Hooks(AtomicUsize);

impl Hooks {
    fn called(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl AgentStrategy for Hooks {
    fn on_step_start(&self, _: u64, _: &AgentState) {
        self.called();
    }

    fn on_reason(&self, _: u64, _: &str) {
        self.called();
    }

    fn on_act(&self, _: u64, _: &[ToolCall]) {
        self.called();
    }

    fn on_observe(&self, _: u64, _: &[ToolResult]) {
        self.called();
    }

    fn on_step_end(&self, _: u64, result: &GenerateResult) {
        black_box(result.turn.messages.len());
        self.called();
    }

    fn stop_condition<'a>(&'a self, _: &'a AgentState) -> BoxFuture<'a, bool> {
        self.called();
        ready(false).boxed()
    }

    fn on_complete(&self, _: &GenerateResult) {
        self.called();
    }

    fn on_error(&self, _: &AgentError, _: &AgentState) -> Option<GenerateResult> {
        self.called();
        None
    }
}

fn tool_hooks() -> ToolUseStrategy {
    ToolUseStrategy::unlimited()
        .with_on_tool_call(|_, arguments| {
            black_box(arguments);
        })
        .with_on_before_call(|_, _| ready(Ok(BeforeCall::Proceed)).boxed())
        .with_on_after_call(|_, _, _| ready(Ok(None)).boxed())
        .with_on_error(|_, _, failure| {
            black_box(failure);
        })
        .with_on_max_iterations(|limit| {
            black_box(limit);
        })
}

/// The tool: a key in, 1 KiB of text out.
pub(crate) fn tool() -> Tool {
    let parameters =
        json!({"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]});
    let text = text();
    Tool::simple(
        "lookup",
        "Looks a key up.",
        parameters,
        move |arguments: Value| {
            black_box(&arguments);
            ready(Ok(Value::from(text.as_str())))
        },
    )
}

/// What the agents of these benches are made of.
pub(crate) fn options(model: Arc<dyn Model>) -> AgentOptions {
    let mut options = AgentOptions::new("bench", model);
    options.system = Some("Look things up.".into());
    options.tools = vec![tool()];
    options
}

/// An agent with all hooks.
pub(crate) fn hooked(model: Arc<dyn Model>) -> Agent {
    let mut options = options(model);
    options.strategy = Arc::new(Hooks::default());
    options.tool_strategy = tool_hooks();
    Agent::new(options).unwrap()
}

/// A conversation of so many messages, a question and its answer in turn.
pub(crate) fn history(n: usize) -> AgentState {
    AgentState::initial().with_messages((0..n).map(|at| {
        let text = format!("Message {at}: what was said here is about fifty bytes.");
        if at % 2 == 0 {
            Message::from(text)
        } else {
            AssistantMessage::text(text).into()
        }
    }))
}

/// One run whose every event is read. Gives how many there were.
pub(crate) async fn watched(agent: &Agent, input: &str, state: AgentState) -> usize {
    let mut stream = agent.stream(input, state);
    let mut n_events = 0;
    while let Some(event) = stream.next().await {
        black_box(&event);
        n_events += 1;
    }
    let result = stream.result().await.unwrap();
    black_box(&result);
    n_events
}
