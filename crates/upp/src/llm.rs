//! A model with instructions and tools: the tool loop (UPP §2–§4).

use crate::content::UserContent;
use crate::error::{Code, Error};
use crate::event::StreamEvent;
use crate::execute::{ExecuteError, arguments_of, execute};
use crate::message::{Message, MessageOptions, Messages, ToolResultMessage};
use crate::model::{Capabilities, Model, ModelEvent, Request, Response, ToolChoice};
use crate::prefix::{Prefix, RequestReport};
use crate::strategy::ToolUseStrategy;
use crate::telemetry;
use crate::tool::{Tool, ToolCall, ToolContext, ToolExecution, ToolResult};
use crate::turn::Turn;
use crate::usage::TokenUsage;
use futures_util::StreamExt;
use futures_util::stream::{BoxStream, FuturesUnordered};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// What an [`Llm`] is made of (UPP §2).
#[derive(Clone)]
pub struct LlmOptions {
    /// The model.
    pub model: Arc<dyn Model>,
    /// The system prompt.
    pub system: Option<Arc<str>>,
    /// The tools it may call; each name once.
    pub tools: Vec<Tool>,
    /// Whether it must call one. It holds for the first model call only, or the turn could not end.
    pub tool_choice: ToolChoice,
    /// Hooks and the limit; ten tool rounds unless set.
    pub tool_strategy: ToolUseStrategy,
    /// Provider-native parameters, passed unchanged.
    pub params: Map<String, Value>,
    /// The JSON Schema of the answer.
    pub structure: Option<Value>,
}

impl LlmOptions {
    /// A model and nothing else.
    pub fn new(model: Arc<dyn Model>) -> Self {
        Self {
            model,
            system: None,
            tools: Vec::new(),
            tool_choice: ToolChoice::Auto,
            tool_strategy: ToolUseStrategy::default(),
            params: Map::new(),
            structure: None,
        }
    }
}

impl std::fmt::Debug for LlmOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LlmOptions")
            .field("model", &self.model.model_id())
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}

/// What a turn's stream yields: the events of every cycle, then the turn as the last item.
#[derive(Clone, Debug)]
pub enum TurnEvent {
    /// Something to show.
    Event(StreamEvent),
    /// The end: the whole turn.
    Done(Box<Turn>),
}

/// A turn as it comes. Nothing happens until it is polled; dropping it cancels.
pub type TurnStream = BoxStream<'static, Result<TurnEvent, Error>>;

/// A model with instructions and tools; cloning shares it.
#[derive(Clone, Debug)]
pub struct Llm {
    options: Arc<LlmOptions>,
    tools: Arc<[Tool]>,
    params: Arc<Map<String, Value>>,
    structure: Option<Arc<Value>>,
}

impl Llm {
    /// Checks the options against what the model can do.
    pub fn new(options: LlmOptions) -> Result<Self, Error> {
        let can = options.model.capabilities();
        let refused = |text: String| {
            Err(Error::new(
                Code::InvalidRequest,
                options.model.provider(),
                text,
            ))
        };
        if options.structure.is_some() && !can.structured_output {
            return refused("the model can't answer in a given structure".to_owned());
        }
        if !options.tools.is_empty() && !can.tools {
            return refused("the model can't call tools".to_owned());
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = options.tools.iter().find(|tool| !names.insert(&tool.name)) {
            return refused(format!("there are two tools named '{}'", twice.name));
        }
        Ok(Self {
            tools: options.tools.as_slice().into(),
            params: Arc::new(options.params.clone()),
            structure: options.structure.clone().map(Arc::new),
            options: Arc::new(options),
        })
    }

    /// What it was made of.
    pub fn options(&self) -> &LlmOptions {
        &self.options
    }

    /// One turn, unobserved: the stream drained.
    pub async fn generate(
        &self,
        history: Messages,
        inputs: impl IntoIterator<Item = impl Into<Message>>,
    ) -> Result<Turn, Error> {
        let mut stream = self.stream(history, inputs);
        while let Some(item) = stream.next().await {
            if let TurnEvent::Done(turn) = item? {
                return Ok(*turn);
            }
        }
        Err(self.error(Code::InvalidResponse, "the turn ended without a response"))
    }

    /// Starts one turn: `history`, then each input as a message of its own. No input at all sends
    /// the history as it is.
    pub fn stream(
        &self,
        history: Messages,
        inputs: impl IntoIterator<Item = impl Into<Message>>,
    ) -> TurnStream {
        self.stream_until(history, inputs, CancellationToken::new())
    }

    /// Starts one turn that ends with [`Code::Cancelled`] when `signal` is cancelled: the model
    /// call is closed, running tools are dropped, and no further tool starts.
    pub fn stream_until(
        &self,
        history: Messages,
        inputs: impl IntoIterator<Item = impl Into<Message>>,
        signal: CancellationToken,
    ) -> TurnStream {
        let inputs: Vec<Message> = inputs.into_iter().map(Into::into).collect();
        self.clone().run(history, inputs, signal)
    }

    fn run(self, history: Messages, inputs: Vec<Message>, signal: CancellationToken) -> TurnStream {
        async_stream::try_stream! {
            let mut progress = Progress::new(history, inputs);
            self.check_media(&progress.all)?;
            loop {
                let request = self.request(&progress, &signal);
                let mut answer = telemetry::call(&*self.options.model, request);
                let mut response = None;
                while let Some(item) = answer.next().await {
                    match item? {
                        ModelEvent::Event(event) => yield TurnEvent::Event(event),
                        ModelEvent::Done(done) => response = Some(*done),
                    }
                }
                let response = response.ok_or_else(|| {
                    self.error(Code::InvalidResponse, "the stream ended without a response")
                })?;
                let calls = progress.answered(&response);
                if !self.goes_on(&calls, &response, progress.rounds)? {
                    yield TurnEvent::Done(Box::new(progress.into_turn(response)));
                    break;
                }
                for (index, call) in (0..).zip(&calls) {
                    yield TurnEvent::Event(started(index, call));
                }
                let mut results: Vec<Option<ToolResult>> = vec![None; calls.len()];
                let mut running: FuturesUnordered<_> = calls
                    .iter()
                    .enumerate()
                    .map(|(at, call)| {
                        let run = self.call(call, &signal);
                        async move { (at, run.await) }
                    })
                    .collect();
                while let Some((at, ended)) = running.next().await {
                    let execution = ended?;
                    yield TurnEvent::Event(stopped(at, &execution));
                    if let Some(slot) = results.get_mut(at) {
                        *slot = Some(ToolResult::from(&execution));
                    }
                    progress.executions.push(execution);
                }
                drop(running);
                progress.resulted(results.into_iter().flatten().collect());
            }
        }
        .boxed()
    }

    /// Whether tools run now. Reaching the limit is an error, unless it is zero.
    fn goes_on(&self, calls: &[ToolCall], response: &Response, rounds: u32) -> Result<bool, Error> {
        let strategy = &self.options.tool_strategy;
        if calls.is_empty()
            || self.tools.is_empty()
            || response.data.is_some()
            || strategy.max_iterations == Some(0)
        {
            return Ok(false);
        }
        let Some(limit) = strategy.max_iterations.filter(|limit| rounds >= *limit) else {
            return Ok(true);
        };
        if let Some(hook) = &strategy.on_max_iterations {
            hook(limit);
        }
        let text = format!("the turn exceeded maximum iterations ({limit} tool rounds)");
        Err(self.error(Code::InvalidRequest, text))
    }

    fn request(&self, progress: &Progress, signal: &CancellationToken) -> Request {
        Request {
            messages: progress.all.clone(),
            system: self.options.system.clone(),
            tools: Arc::clone(&self.tools),
            tool_choice: if progress.rounds == 0 {
                self.options.tool_choice.clone()
            } else {
                ToolChoice::Auto
            },
            params: Arc::clone(&self.params),
            structure: self.structure.clone(),
            previous: progress.sent.clone(),
            signal: signal.child_token(),
        }
    }

    async fn call(
        &self,
        call: &ToolCall,
        signal: &CancellationToken,
    ) -> Result<ToolExecution, Error> {
        let tool = self.tools.iter().find(|tool| tool.name == call.tool_name);
        let context = ToolContext {
            tool_call_id: call.tool_call_id.clone(),
            idempotency_key: Arc::clone(&call.tool_call_id.0),
            agent_id: "llm".into(),
            signal: signal.child_token(),
        };
        let strategy = &self.options.tool_strategy;
        execute(call, tool, arguments_of(call), strategy, context)
            .await
            .map_err(|error| {
                let code = match error {
                    ExecuteError::Cancelled => Code::Cancelled,
                    ExecuteError::Approval { .. } => Code::InvalidRequest,
                };
                self.error(code, error.to_string()).caused_by(error)
            })
    }

    /// The whole history is checked, not only the input: all of it is sent.
    fn check_media(&self, messages: &Messages) -> Result<(), Error> {
        let can = self.options.model.capabilities();
        if can.image_input && can.document_input && can.video_input && can.audio_input {
            return Ok(());
        }
        for message in messages {
            if let Message::User(user) = message
                && let Some(what) = user
                    .content
                    .iter()
                    .find_map(|block| unsupported(can, block))
            {
                return Err(
                    self.error(Code::InvalidRequest, format!("the model can't take {what}"))
                );
            }
        }
        Ok(())
    }

    fn error(&self, code: Code, text: impl Into<String>) -> Error {
        Error::new(code, self.options.model.provider(), text)
    }
}

fn unsupported(can: Capabilities, block: &UserContent) -> Option<&'static str> {
    match block {
        UserContent::Image(_) if !can.image_input => Some("images"),
        UserContent::Document(_) if !can.document_input => Some("documents"),
        UserContent::Audio(_) if !can.audio_input => Some("audio"),
        UserContent::Video(_) if !can.video_input => Some("video"),
        UserContent::Text { .. }
        | UserContent::Image(_)
        | UserContent::Document(_)
        | UserContent::Audio(_)
        | UserContent::Video(_)
        | UserContent::Binary(_) => None,
    }
}

fn started(index: u32, call: &ToolCall) -> StreamEvent {
    StreamEvent::ToolExecutionStart {
        index,
        tool_call_id: call.tool_call_id.clone(),
        tool_name: call.tool_name.clone(),
        timestamp: crate::clock::now().as_millisecond(),
    }
}

fn stopped(at: usize, execution: &ToolExecution) -> StreamEvent {
    StreamEvent::ToolExecutionEnd {
        index: u32::try_from(at).unwrap_or(u32::MAX),
        tool_call_id: execution.tool_call_id.clone(),
        tool_name: execution.tool_name.clone(),
        result: execution.result.clone(),
        is_error: execution.is_error,
        timestamp: crate::clock::now().as_millisecond(),
    }
}

/// A turn that is not over.
struct Progress {
    /// History and everything after it.
    all: Messages,
    /// What came after the history.
    messages: Vec<Message>,
    executions: Vec<ToolExecution>,
    usage: TokenUsage,
    cycles: u32,
    rounds: u32,
    sent: Option<Arc<Prefix>>,
    requests: Vec<RequestReport>,
}

impl Progress {
    fn new(mut history: Messages, inputs: Vec<Message>) -> Self {
        for input in &inputs {
            history.push_back_mut(input.clone());
        }
        Self {
            all: history,
            messages: inputs,
            executions: Vec::new(),
            usage: TokenUsage::default(),
            cycles: 0,
            rounds: 0,
            sent: None,
            requests: Vec::new(),
        }
    }

    fn push(&mut self, message: Message) {
        self.all.push_back_mut(message.clone());
        self.messages.push(message);
    }

    fn answered(&mut self, response: &Response) -> Vec<ToolCall> {
        self.cycles = self.cycles.saturating_add(1);
        self.usage.push(response.usage.clone());
        if let Some(sent) = &response.request {
            self.sent = Some(Arc::clone(&sent.prefix));
            self.requests.push(sent.report.clone());
        }
        self.push(response.message.clone().into());
        response.message.tool_calls.clone()
    }

    fn resulted(&mut self, results: Vec<ToolResult>) {
        self.rounds = self.rounds.saturating_add(1);
        self.push(ToolResultMessage::new(results, MessageOptions::default()).into());
    }

    fn into_turn(self, response: Response) -> Turn {
        Turn {
            messages: self.messages,
            response: Arc::new(response.message),
            tool_executions: self.executions,
            usage: self.usage,
            cycles: self.cycles,
            data: response.data,
            stop_reason: response.stop_reason,
            requests: self.requests,
        }
    }
}
