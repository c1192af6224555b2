//! What tests of strategies share: a model that is watched, and what is told of a run.

use crate::support::*;
use futures_util::future::BoxFuture;
use loomline_agents::{
    AgentError, AgentOptions, AgentState, AgentStrategy, Answers, ExecutionStrategy,
    GenerateResult, PlanError, PlanStatus, PromptMark, StepContext, StepOutcome,
};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::future::ready;
use std::sync::{Arc, Mutex};
use upp::{
    Arguments, AssistantMessage, Capabilities, CycleUsage, Message, Model, ModelStream, Request,
    Script, ScriptTurn, Scripted, Tool, ToolCall, ToolResult, UserMessage,
};

/// A script that runs on through the thread, and all it was asked.
pub(crate) struct Watched {
    model: Scripted,
    pub(crate) seen: Mutex<Vec<Request>>,
    pub(crate) capabilities: Capabilities,
}

impl Watched {
    pub(crate) fn new(turns: Vec<ScriptTurn>) -> Self {
        let mut script = Script::new(turns);
        script.per_turn = false;
        let model = Scripted::with_script(script);
        Self {
            capabilities: model.capabilities(),
            model,
            seen: Mutex::default(),
        }
    }

    pub(crate) fn n_seen(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    /// Of each request, the text of its last message where that is the user's.
    pub(crate) fn prompts(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        let last = seen.iter().filter_map(|request| request.messages.last());
        last.filter_map(|message| match message {
            Message::User(message) => Some(text_of(message)),
            Message::Assistant(_) | Message::ToolResult(_) => None,
        })
        .collect()
    }
}

impl Model for Watched {
    fn model_id(&self) -> &str {
        self.model.model_id()
    }

    fn provider(&self) -> &str {
        self.model.provider()
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn stream(&self, request: Request) -> ModelStream {
        self.seen.lock().unwrap().push(request.clone());
        self.model.stream(request)
    }
}

/// A model that gives these answers in turn, whatever the conversation has become.
pub(crate) fn queued(answers: Vec<AssistantMessage>) -> Arc<Canned> {
    let answers = Mutex::new(VecDeque::from(answers));
    let model = Canned::new(move |_| {
        let next = answers.lock().unwrap().pop_front();
        Some(next.unwrap_or_else(|| said("nothing is left")))
    });
    let mut model = Arc::into_inner(model).unwrap();
    model.capabilities.structured_output = true;
    Arc::new(model)
}

/// A plan as an answer.
pub(crate) fn planned(steps: &[Value]) -> AssistantMessage {
    said(&json!({ "steps": steps }).to_string())
}

/// A call of `add` that succeeds.
pub(crate) fn sum(id: &str) -> ToolCall {
    ToolCall {
        arguments: Arguments::from_text(r#"{"a": 1, "b": 2}"#),
        ..call(id, "add", &[])
    }
}

/// `gate`, which waits for approval.
pub(crate) fn gate() -> Tool {
    quick("gate", |_| Ok(json!("opened"))).with_requires_approval()
}

/// Lets everything run that waits for an approval.
pub(crate) fn approve_all(result: &GenerateResult) -> Answers {
    let calls = result.pending.iter();
    calls.fold(Answers::new(), |answers, pending| {
        answers.approve(pending.call.tool_call_id.clone())
    })
}

fn text_of(message: &UserMessage) -> String {
    let json = serde_json::to_value(&message.content).unwrap();
    json[0]["text"].as_str().unwrap_or_default().to_owned()
}

/// An agent on a script that runs on through the thread, with `add` and a tool that fails.
pub(crate) fn on_script(
    execution: impl ExecutionStrategy + 'static,
    turns: Vec<ScriptTurn>,
) -> (AgentOptions, Arc<Watched>) {
    let model = Arc::new(Watched::new(turns));
    let mut options = options(model.clone());
    options.id = Some("same".into());
    options.execution = Arc::new(execution);
    options.tools = vec![
        add(),
        quick("broken", |_| Err(upp::ToolFailure::new("it is broken"))),
    ];
    (options, model)
}

/// A run of such an agent, and its model.
pub(crate) async fn run(
    execution: impl ExecutionStrategy + 'static,
    turns: Vec<ScriptTurn>,
) -> (GenerateResult, Arc<Watched>) {
    let (options, model) = on_script(execution, turns);
    (generate(options).await, model)
}

/// The turn of a run has all its cycles, and what they used.
pub(crate) fn assert_sums(result: &GenerateResult, n_cycles: u32) {
    let (cycles, usage) = (result.turn.cycles, &result.turn.usage);
    let summed = u32::try_from(usage.cycles.len());
    assert_eq!((cycles, summed), (n_cycles, Ok(n_cycles)));
    let sum = |of: fn(&CycleUsage) -> u64| usage.cycles.iter().map(of).sum::<u64>();
    assert_eq!(usage.input_tokens, sum(|it| it.input_tokens));
    assert_eq!(usage.output_tokens, sum(|it| it.output_tokens));
}

/// What a step of a strategy comes to.
pub(crate) type Stepping<'a> = BoxFuture<'a, Result<StepOutcome, AgentError>>;

/// A strategy of the application's own, with a name and a function for its steps.
pub(crate) struct Own(
    pub(crate) &'static str,
    pub(crate) for<'a> fn(AgentState, &'a StepContext<'a>) -> Stepping<'a>,
);

impl ExecutionStrategy for Own {
    fn name(&self) -> &'static str {
        self.0
    }

    fn step<'a>(&'a self, state: AgentState, context: &'a StepContext<'a>) -> Stepping<'a> {
        (self.1)(state, context)
    }
}

pub(crate) fn says(text: &str) -> ScriptTurn {
    ScriptTurn::text(text)
}

pub(crate) fn adds() -> ScriptTurn {
    ScriptTurn::call("add", json!({"a": 1, "b": 2}))
}

pub(crate) fn breaks() -> ScriptTurn {
    ScriptTurn::call("broken", json!({}))
}

/// One step of a plan, as the model writes it: id, tool, dependencies.
pub(crate) fn drafted(id: &str, tool: Option<&str>, depends_on: &[&str]) -> Value {
    json!({"id": id, "description": format!("do {id}"), "tool": tool, "dependsOn": depends_on})
}

pub(crate) fn plans(steps: &[Value]) -> ScriptTurn {
    ScriptTurn::text(json!({"steps": steps}).to_string())
}

/// The kinds of a conversation's messages: prompts by their kind, others by who says them.
pub(crate) fn kinds(state: &AgentState) -> Vec<String> {
    let messages = state.messages().iter();
    messages
        .map(|message| match message {
            Message::User(message) => PromptMark::of(message).map_or("user", |mark| mark.kind),
            Message::Assistant(message) if message.tool_calls.is_empty() => "says",
            Message::Assistant(_) => "calls",
            Message::ToolResult(_) => "results",
        })
        .map(str::to_owned)
        .collect()
}

/// The error of a run by plan.
pub(crate) async fn failure(options: AgentOptions) -> PlanError {
    let error = agent(options).query("go").await.unwrap_err();
    let failure = if let AgentError::Plan(error) = error {
        Ok(error)
    } else {
        Err(error)
    };
    failure.unwrap()
}

pub(crate) fn statuses(state: &AgentState) -> Vec<(&str, PlanStatus)> {
    let plan = state.plan().unwrap_or_default().iter();
    plan.map(|step| (step.id.as_str(), step.status)).collect()
}

/// Hooks that write down when they are called, and keep the states they are given.
#[derive(Default)]
pub(crate) struct Keeping {
    pub(crate) states: Mutex<Vec<AgentState>>,
    pub(crate) log: Log,
    pub(crate) stops_at: Option<u64>,
}

impl AgentStrategy for Keeping {
    fn on_step_start(&self, step: u64, state: &AgentState) {
        assert_eq!(state.step(), step);
        self.log.add(format!("start {step}"));
    }

    fn on_reason(&self, step: u64, reasoning: &str) {
        self.log.add(format!("reason {step} {reasoning}"));
    }

    fn on_act(&self, step: u64, actions: &[ToolCall]) {
        self.log.add(format!("act {step} {}", actions[0].tool_name));
    }

    fn on_observe(&self, step: u64, observations: &[ToolResult]) {
        self.log
            .add(format!("observe {step} {}", observations[0].result));
    }

    fn on_step_end(&self, step: u64, result: &GenerateResult) {
        let (turn, state) = (&result.turn, &result.state);
        assert_eq!((state.phase(), state.step()), (None, step));
        let n = turn.messages.len();
        self.log
            .add(format!("end {step}: {} cycles, {n} messages", turn.cycles));
        self.states.lock().unwrap().push(state.clone());
    }

    fn stop_condition<'a>(&'a self, state: &'a AgentState) -> BoxFuture<'a, bool> {
        self.log.add("stop?");
        Box::pin(ready(self.stops_at == Some(state.step())))
    }

    fn on_complete(&self, result: &GenerateResult) {
        self.log.add(format!("complete {}", result.turn.cycles));
    }

    fn on_error(&self, error: &AgentError, state: &AgentState) -> Option<GenerateResult> {
        self.log.add(format!("error at {}: {error}", state.step()));
        self.states.lock().unwrap().push(state.clone());
        None
    }
}

pub(crate) fn with(mut options: AgentOptions, hooks: Keeping) -> (AgentOptions, Arc<Keeping>) {
    let hooks = Arc::new(hooks);
    options.strategy = hooks.clone();
    (options, hooks)
}

/// Two steps by `ReAct`: an action with a tool, then the answer.
pub(crate) fn two_react_steps() -> Vec<ScriptTurn> {
    vec![says("I need a sum"), adds(), says("it is known"), says("3")]
}

/// Two steps by plan, of which the second comes first and uses a tool.
pub(crate) fn two_plan_steps() -> Vec<ScriptTurn> {
    vec![
        plans(&[drafted("b", None, &["a"]), drafted("a", Some("add"), &[])]),
        adds(),
        says("a is done"),
        says("b is done"),
    ]
}
