//! Models, tools and journals for tests.

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use loomline_agents::{
    Agent, AgentOptions, AgentState, AgentStreamEvent, GenerateResult, Journal, StepContext,
    Stopped, SubagentExecutionTrace,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Arc, Mutex};
use upp::{
    Arguments, AssistantContent, AssistantMessage, Capabilities, CycleUsage, Message,
    MessageOptions, Model, ModelEvent, ModelStream, Request, Response, Script, ScriptTurn,
    Scripted, StopReason, Tool, ToolCall, ToolExecution, ToolFailure, ToolOutput, ToolResult,
    ToolRun,
};

/// A list that tests write to from anywhere.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn add(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

type Answer = Box<dyn Fn(&Request) -> Option<AssistantMessage> + Send + Sync>;

/// A model that answers by a function and remembers what it was asked; `None` never answers.
/// It is for what a script can't say: `after`, repeated ids, silence.
pub(crate) struct Canned {
    answer: Answer,
    pub(crate) capabilities: Capabilities,
    pub(crate) seen: Mutex<Vec<Request>>,
}

impl Canned {
    pub(crate) fn new(
        answer: impl Fn(&Request) -> Option<AssistantMessage> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            answer: Box::new(answer),
            capabilities: Capabilities {
                tools: true,
                structured_output: true,
                ..Capabilities::default()
            },
            seen: Mutex::default(),
        })
    }

    /// These calls first, then `done`.
    pub(crate) fn calls(calls: Vec<ToolCall>) -> Arc<Self> {
        Self::new(move |request| {
            Some(match request.messages.last() {
                Some(Message::ToolResult(_)) => said("done"),
                Some(Message::User(_) | Message::Assistant(_)) | None => {
                    AssistantMessage::new(Vec::new(), calls.clone(), MessageOptions::default())
                }
            })
        })
    }
}

impl Model for Canned {
    fn model_id(&self) -> &'static str {
        "canned"
    }

    fn provider(&self) -> &'static str {
        "canned"
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn stream(&self, request: Request) -> ModelStream {
        let answer = (self.answer)(&request);
        self.seen.lock().unwrap().push(request);
        let Some(message) = answer else {
            return futures_util::stream::pending().boxed();
        };
        let done = ModelEvent::Done(Box::new(Response {
            message,
            usage: CycleUsage {
                input_tokens: 2,
                output_tokens: 1,
                ..CycleUsage::default()
            },
            stop_reason: StopReason::EndTurn,
            data: None,
            model_id: "canned".into(),
            provider: "canned".into(),
            response_id: None,
            request: None,
        }));
        futures_util::stream::iter([Ok(done)]).boxed()
    }
}

pub(crate) fn said(text: &str) -> AssistantMessage {
    let block = AssistantContent::Text {
        text: text.to_owned(),
    };
    AssistantMessage::new(vec![block], Vec::new(), MessageOptions::default())
}

pub(crate) fn asked(calls: Vec<ToolCall>) -> AssistantMessage {
    AssistantMessage::new(Vec::new(), calls, MessageOptions::default())
}

pub(crate) fn call(id: &str, name: &str, after: &[&str]) -> ToolCall {
    ToolCall {
        tool_call_id: id.into(),
        tool_name: name.into(),
        arguments: Arguments::from_text("{}"),
        after: after.iter().map(|id| (*id).into()).collect(),
    }
}

pub(crate) fn result(id: &str, value: impl Into<Value>) -> ToolResult {
    ToolResult {
        tool_call_id: id.into(),
        result: value.into().into(),
        is_error: false,
    }
}

/// A tool from a closure.
pub(crate) fn tool(name: &str, run: impl ToolRun + 'static) -> Tool {
    Tool::new(name, "A tool.", json!({"type": "object"}), run)
}

/// A tool that does at once what the function says.
pub(crate) fn quick(
    name: &str,
    run: impl Fn(&Value) -> ToolOutput + Send + Sync + 'static,
) -> Tool {
    tool(name, move |arguments: Value, _: upp::ToolContext| {
        ready(run(&arguments)).boxed() as BoxFuture<'static, ToolOutput>
    })
}

/// A tool that notes its start and end, and lets others go first so many times in between.
pub(crate) fn noted(name: &str, n_yields: u32, log: &Log) -> Tool {
    let (own, log) = (name.to_owned(), log.clone());
    tool(name, move |_: Value, context: upp::ToolContext| {
        let (own, log) = (own.clone(), log.clone());
        async move {
            log.add(format!("+{}", context.tool_call_id));
            for _ in 0..n_yields {
                tokio::task::yield_now().await;
            }
            log.add(format!("-{}", context.tool_call_id));
            Ok(json!(own))
        }
        .boxed() as BoxFuture<'static, ToolOutput>
    })
}

pub(crate) fn add() -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["a", "b"],
    });
    Tool::new(
        "add",
        "Adds.",
        schema,
        |arguments: Value, _: upp::ToolContext| {
            let sum = arguments["a"].as_f64().zip(arguments["b"].as_f64());
            let sum = sum.map(|(a, b)| json!(a + b));
            ready(sum.ok_or_else(|| ToolFailure::new("no numbers"))).boxed()
                as BoxFuture<'static, ToolOutput>
        },
    )
}

pub(crate) fn options(model: Arc<dyn Model>) -> AgentOptions {
    AgentOptions::new("tester", model)
}

pub(crate) fn scripted(turns: Vec<ScriptTurn>) -> AgentOptions {
    options(Arc::new(Scripted::with_script(Script::new(turns))))
}

/// Three rounds of `add`, then a text.
pub(crate) fn adding() -> AgentOptions {
    let round = |a: u32| ScriptTurn::call("add", json!({"a": a, "b": 1}));
    let mut options = scripted(vec![round(1), round(2), round(3), ScriptTurn::text("done")]);
    options.tools = vec![add()];
    options
}

pub(crate) fn agent(options: AgentOptions) -> Agent {
    Agent::new(options).unwrap()
}

pub(crate) async fn generate(options: AgentOptions) -> GenerateResult {
    let agent = agent(options);
    agent.generate("go", AgentState::initial()).await.unwrap()
}

/// The results of all rounds, in order.
pub(crate) fn results(state: &AgentState) -> Vec<ToolResult> {
    let messages = state.messages().iter();
    messages
        .filter_map(|message| match message {
            Message::ToolResult(message) => Some(message.results.clone()),
            Message::User(_) | Message::Assistant(_) => None,
        })
        .flatten()
        .collect()
}

/// What there is apart from ids, instants and durations, which differ from run to run.
pub(crate) fn content(value: &impl serde::Serialize) -> Value {
    let mut names = BTreeMap::new();
    let mut value = serde_json::to_value(value).unwrap();
    rename(&mut value, &mut names);
    value
}

fn rename(value: &mut Value, names: &mut BTreeMap<String, usize>) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, names)),
        Value::Object(fields) => {
            for (key, field) in fields.iter_mut() {
                if matches!(key.as_str(), "timestamp" | "duration") {
                    *field = Value::Null;
                } else if matches!(key.as_str(), "id" | "agentId") {
                    let next = names.len();
                    *field = (*names.entry(field.to_string()).or_insert(next)).into();
                } else {
                    rename(field, names);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A keeper that writes down what it hears, and may refuse from one entry on.
#[derive(Default)]
pub(crate) struct Keeper {
    pub(crate) log: Log,
    pub(crate) refuses: Option<&'static str>,
}

impl Keeper {
    fn note(&self, line: String) -> BoxFuture<'_, Result<(), Stopped>> {
        let refused = self.refuses.is_some_and(|start| line.starts_with(start));
        self.log.add(line);
        ready(if refused { Err(Stopped) } else { Ok(()) }).boxed()
    }

    pub(crate) fn context<'a>(
        &'a self,
        agent: &'a Agent,
        answered: &'a [ToolResult],
    ) -> StepContext<'a> {
        StepContext {
            agent,
            journal: self,
            signal: upp::Signal::new(),
            answered,
            scope: "thread",
            answers: None,
            n_calls_left: None,
            host: None,
            call_record: None,
        }
    }
}

/// An event in a word or two.
pub(crate) fn brief(event: &AgentStreamEvent) -> String {
    let value = serde_json::to_value(event).unwrap();
    let source = value["source"].as_str().unwrap();
    let inner = &value[source];
    let kind = inner["type"].as_str().unwrap();
    match inner["delta"]["toolCallId"].as_str() {
        Some(id) => format!("{kind} {id}"),
        None => kind.to_owned(),
    }
}

impl Journal for Keeper {
    fn emit(&self, event: AgentStreamEvent) -> BoxFuture<'_, Result<(), Stopped>> {
        self.note(brief(&event))
    }

    fn responded<'a>(&'a self, _: &'a Response) -> BoxFuture<'a, Result<(), Stopped>> {
        self.note("responded".to_owned())
    }

    fn returned<'a>(
        &'a self,
        _position: usize,
        execution: &'a ToolExecution,
    ) -> BoxFuture<'a, Result<(), Stopped>> {
        self.note(format!("returned {}", execution.tool_call_id))
    }

    fn traced<'a>(
        &'a self,
        trace: &'a SubagentExecutionTrace,
    ) -> BoxFuture<'a, Result<(), Stopped>> {
        self.note(format!("traced {}", trace.parent_tool_call_id))
    }
}

/// Writes down what is logged on this thread while the guard lives.
pub(crate) fn traced() -> (Log, tracing::subscriber::DefaultGuard) {
    let log = Log::default();
    let lines = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .without_time()
        .with_writer(move || Lines(lines.clone()))
        .finish();
    (log, tracing::subscriber::set_default(subscriber))
}

struct Lines(Log);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.add(String::from_utf8_lossy(bytes).trim());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
