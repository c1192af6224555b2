//! A model with instructions and tools: the tool loop (UPP §2–§4).

mod events;
mod media;
mod options;

pub use options::LlmOptions;

use events::{started, stopped};

use crate::error::{Code, Error};
use crate::event::StreamEvent;
use crate::execute::{ExecuteError, arguments_of, execute};
use crate::message::{Message, MessageOptions, Messages, ToolResultMessage};
use crate::model::{Capabilities, ModelEvent, ModelStream, Request, Response, ToolChoice};
use crate::prefix::{Prefix, RequestReport};
use crate::telemetry;
use crate::thread::History;
use crate::tool::{Tool, ToolCall, ToolContext, ToolExecution, ToolResult};
use crate::turn::Turn;
use crate::usage::TokenUsage;
use futures_util::StreamExt;
use futures_util::stream::{BoxStream, FuturesUnordered};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// An item of a turn's stream: the events of every cycle, then the turn as the last item.
#[derive(Clone, Debug)]
pub enum TurnEvent {
    /// Something to show.
    Event(StreamEvent),
    /// The end: the whole turn.
    Done(Box<Turn>),
}

/// A stream of a turn. Nothing happens until it is polled; dropping it cancels.
pub type TurnStream = BoxStream<'static, Result<TurnEvent, Error>>;

/// How a model is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallMode {
    /// Its events are shown.
    Stream,
    /// Only its answer counts.
    Whole,
}

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
        if let Some(what) = can.lacks(&options.tools, options.structure.as_ref()) {
            return refused(format!("the model can't {what}"));
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = options.tools.iter().find(|tool| !names.insert(&tool.name)) {
            return refused(format!("there are two tools named '{}'", twice.name));
        }
        let runs_tools = options.tool_strategy.max_iterations != Some(0);
        let waits = |tool: &&Tool| tool.requires_approval || tool.external;
        if let Some(tool) = options.tools.iter().find(waits).filter(|_| runs_tools) {
            return refused(format!(
                "the tool '{}' needs an answer from outside, and a turn that runs tools can't wait for it",
                tool.name
            ));
        }
        Ok(Self {
            tools: options.tools.as_slice().into(),
            params: Arc::new(options.params.clone()),
            structure: options.structure.clone().map(Arc::new),
            options: Arc::new(options),
        })
    }

    /// The options it was created with.
    pub fn options(&self) -> &LlmOptions {
        &self.options
    }

    /// The model's capabilities.
    pub fn capabilities(&self) -> Capabilities {
        self.options.model.capabilities()
    }

    /// One turn, unobserved: `history`, then each input as a message of its own. No input at all
    /// sends the history as it is. Dropping the future cancels.
    pub async fn generate(
        &self,
        history: impl History,
        inputs: impl IntoIterator<Item = impl Into<Message>>,
    ) -> Result<Turn, Error> {
        self.generate_until(history, inputs, CancellationToken::new())
            .await
    }

    /// Like [`Llm::generate`]; ends with [`Code::Cancelled`] when `signal` is cancelled.
    pub async fn generate_until(
        &self,
        history: impl History,
        inputs: impl IntoIterator<Item = impl Into<Message>>,
        signal: CancellationToken,
    ) -> Result<Turn, Error> {
        let progress = Progress::new(history.into_messages(), inputs);
        let mut stream = self.clone().run(progress, signal, CallMode::Whole);
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
        history: impl History,
        inputs: impl IntoIterator<Item = impl Into<Message>>,
    ) -> TurnStream {
        self.stream_until(history, inputs, CancellationToken::new())
    }

    /// Starts one turn that ends with [`Code::Cancelled`] when `signal` is cancelled. The model call is
    /// then closed, running tools see the cancelled signal and are dropped, and no further tool starts.
    pub fn stream_until(
        &self,
        history: impl History,
        inputs: impl IntoIterator<Item = impl Into<Message>>,
        signal: CancellationToken,
    ) -> TurnStream {
        let progress = Progress::new(history.into_messages(), inputs);
        self.clone().run(progress, signal, CallMode::Stream)
    }

    /// Refuses what the model can't do.
    fn check(&self, messages: &Messages, way: CallMode) -> Result<(), Error> {
        let can = self.capabilities();
        if way == CallMode::Stream && !can.streaming {
            return Err(self.error(Code::InvalidRequest, "the model can't stream"));
        }
        match can.refuses(messages) {
            Some(what) => {
                let text = format!("the model can't take {what}");
                Err(self.error(Code::InvalidRequest, text))
            }
            None => Ok(()),
        }
    }

    /// One model call.
    fn call_model(&self, request: Request, way: CallMode) -> ModelStream {
        let model = &*self.options.model;
        match way {
            CallMode::Stream => telemetry::call(model, request),
            CallMode::Whole => telemetry::call_whole(model, request),
        }
    }

    fn run(self, mut progress: Progress, signal: CancellationToken, way: CallMode) -> TurnStream {
        async_stream::try_stream! {
            self.check(&progress.all, way)?;
            // Whoever drops the stream cancels what the turn has started.
            let signal = signal.child_token();
            let guard = signal.clone().drop_guard();
            loop {
                self.unless_cancelled(&signal, std::future::ready(())).await?;
                let mut answer = self.call_model(self.request(&progress, &signal), way);
                let mut response = None;
                while let Some(item) = self.unless_cancelled(&signal, answer.next()).await? {
                    match item? {
                        ModelEvent::Event(event) => yield TurnEvent::Event(event),
                        ModelEvent::Done(done) => response = Some(*done),
                    }
                }
                drop(answer);
                let mut response = response.ok_or_else(|| {
                    self.error(Code::InvalidResponse, "the stream ended without a response")
                })?;
                if self.structure.is_none() {
                    response.data = None;
                }
                let calls = progress.answered(&response);
                if !self.needs_another_round(&calls, &response, progress.rounds)? {
                    guard.disarm();
                    yield TurnEvent::Done(Box::new(progress.into_turn(response)));
                    break;
                }
                for (index, call) in (0..).zip(&calls) {
                    self.unless_cancelled(&signal, std::future::ready(())).await?;
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

    /// The output of `future`, or a `CANCELLED` error if the turn is cancelled first.
    async fn unless_cancelled<T>(
        &self,
        signal: &CancellationToken,
        future: impl Future<Output = T>,
    ) -> Result<T, Error> {
        let cancelled = || self.error(Code::Cancelled, "the turn was cancelled");
        if signal.is_cancelled() {
            return Err(cancelled());
        }
        let outcome = signal.run_until_cancelled(future).await;
        outcome.ok_or_else(cancelled)
    }

    /// Whether tools run now. Reaching the limit is an error, unless it is zero.
    fn needs_another_round(
        &self,
        calls: &[ToolCall],
        response: &Response,
        rounds: u32,
    ) -> Result<bool, Error> {
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
            signal: signal.child_token().into(),
            call_record: None,
        }
    }

    async fn call(
        &self,
        call: &ToolCall,
        signal: &CancellationToken,
    ) -> Result<ToolExecution, Error> {
        let tool = self.tools.iter().find(|tool| *tool.name == *call.tool_name);
        let context = ToolContext {
            agent_id: "llm".into(),
            parent_model: Some(Arc::clone(&self.options.model)),
            parent_params: Arc::clone(&self.params),
            ..ToolContext::new(call.tool_call_id.clone(), signal.child_token())
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

    fn error(&self, code: Code, text: impl Into<String>) -> Error {
        Error::new(code, self.options.model.provider(), text)
    }
}

/// A turn that is not over.
struct Progress {
    /// History and everything after it.
    all: Messages,
    /// The messages after the history.
    messages: Vec<Message>,
    executions: Vec<ToolExecution>,
    usage: TokenUsage,
    cycles: u32,
    rounds: u32,
    sent: Option<Arc<Prefix>>,
    requests: Vec<RequestReport>,
}

impl Progress {
    fn new(mut history: Messages, inputs: impl IntoIterator<Item = impl Into<Message>>) -> Self {
        let inputs: Vec<Message> = inputs.into_iter().map(Into::into).collect();
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
