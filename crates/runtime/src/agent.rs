//! An agent as a reactor: each step of the log is one step of the agent's strategy.

use crate::error::told;
use crate::reactor::{MessagesForModel, Reacted, Reactor, ReactorError, Resumed, StepRun};
use crate::writer::{Delta, StepWriter};
use agents::telemetry;
use agents::{Agent, AgentError, AgentState, AgentStreamEvent, Journal, Next, StepContext};
use futures_util::future::BoxFuture;
use interop::model;
use interop::parts::{ToolPart, ToolState};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use timeline::{Chunk, Payload, StepOutcome};
use upp::{Code, Effect, Response, StreamEvent, ToolExecution, ToolResult};

/// Runs an agent step by step under the runtime.
///
/// The agent's state is remembered between steps and between runs of one thread, so that a step
/// costs what it adds; after a restart it is folded from the log once. The agent's middleware and
/// its `on_complete` hook belong to whole runs in memory and are not called here.
#[derive(Clone)]
pub struct AgentReactor {
    agent: Agent,
}

impl AgentReactor {
    /// A reactor for this agent.
    pub fn new(agent: Agent) -> Self {
        Self { agent }
    }

    async fn run(&self, mut step: StepRun<'_>) -> Result<Reacted, ReactorError> {
        let resumed = step.resumed.take();
        let mut state = self.state(&mut step).await?;
        let sent = state.messages().clone();
        let journal = AgentJournal::new(&self.agent, step.writer, step.step.iteration);
        let mut answered = Vec::new();
        if let Some(resumed) = resumed {
            let message =
                model::assistant_message(&resumed.parts, &resumed.response, step.step.created_at);
            let calls = !message.tool_calls.is_empty();
            state = state.with_message(message);
            if !calls {
                // The model had said its last word; only the end was not written.
                return Ok(self.reacted(&journal.parts(), state, false, sent));
            }
            answered = self.settle(&resumed, step.writer).await?;
            journal.set_parts(step.writer.parts().await?);
        }
        // The same for every attempt at the step, and no other step's: providers may repeat call ids.
        let scope = format!("{}:{}", step.thread, step.step.id);
        let context = StepContext {
            agent: &self.agent,
            journal: &journal,
            signal: step.signal.clone(),
            answered: &answered,
            scope: &scope,
            answers: None,
            host: None,
        };
        // One span a step: no span outlives the process, and a run may.
        let operation = telemetry::invoke_agent(&self.agent, Some(step.key));
        let run = self.agent.run_step(state, &context);
        let outcome = telemetry::observe(operation, run, |_| None)
            .await
            .map_err(|error| failed(&error))?;
        let wants_more = match outcome.next {
            Next::Continue => true,
            Next::Done => false,
            // Nothing here takes answers from outside, so the run can't go on.
            Next::Wait => return Err(unanswerable()),
        };
        Ok(self.reacted(&journal.parts(), outcome.state, wants_more, sent))
    }

    /// The conversation up to this step.
    async fn state(&self, step: &mut StepRun<'_>) -> Result<AgentState, ReactorError> {
        let memory = step
            .memory
            .take()
            .and_then(|memory| memory.downcast::<AgentState>().ok());
        match memory {
            Some(state) if step.step.iteration == 0 => {
                Ok(state.with_message(model::user_message(step.trigger)))
            }
            Some(state) => Ok(*state),
            None => {
                let transcript = step.transcript().await?;
                let messages = model::history(&transcript, Some(&step.step.id));
                let n_steps = messages
                    .iter()
                    .filter(|message| matches!(message, upp::Message::Assistant(_)))
                    .count();
                Ok(AgentState::initial()
                    .with_messages(messages)
                    .with_step(n_steps as u64))
            }
        }
    }

    /// Settles the calls a crash left open: results that came are taken, effects that had started
    /// get an interrupted result, the rest is left to run (architecture rule 4).
    async fn settle(
        &self,
        resumed: &Resumed,
        writer: &StepWriter,
    ) -> Result<Vec<ToolResult>, ReactorError> {
        let mut answered = Vec::new();
        for (idx, part) in (0u32..).zip(&resumed.parts) {
            let Some(tool) = ToolPart::read(part) else {
                continue;
            };
            if let Some(result) = model::result_of(&tool) {
                answered.push(result);
                continue;
            }
            // Only effects are marked when they start, whatever the tool is declared as by now.
            if resumed.started.contains(&tool.tool_call_id) {
                let part = model::with_unknown_outcome(part).map_err(|error| unwritable(&error))?;
                answered.extend(ToolPart::read(&part).as_ref().and_then(model::result_of));
                writer.put_part(idx, part).await?;
            }
        }
        Ok(answered)
    }

    fn reacted(
        &self,
        parts: &[Payload],
        state: AgentState,
        wants_more: bool,
        sent: upp::Messages,
    ) -> Reacted {
        let tools: Vec<ToolPart> = parts.iter().filter_map(ToolPart::read).collect();
        let calls: Vec<Value> = tools
            .iter()
            .map(|tool| json!({"toolCallId": tool.tool_call_id, "toolName": tool.tool_name()}))
            .collect();
        let results: Vec<Value> = tools
            .iter()
            .map(|tool| json!({"toolCallId": tool.tool_call_id, "success": tool.state == ToolState::OutputAvailable}))
            .collect();
        let some = |list: Vec<Value>| (!list.is_empty()).then_some(Value::Array(list));
        let system = self.agent.system().map(str::to_owned);
        let read = move || {
            let system = system
                .iter()
                .map(|text| json!({"type": "system", "text": text}).into());
            system
                .chain(
                    sent.iter()
                        .filter_map(|message| Payload::write(message).ok()),
                )
                .collect()
        };
        Reacted {
            outcome: StepOutcome {
                tool_calls: some(calls),
                tool_execution_results: some(results),
                ..StepOutcome::default()
            },
            wants_more,
            messages_for_model: Some(MessagesForModel(Arc::new(read))),
            memory: Some(Box::new(state)),
        }
    }
}

impl Reactor for AgentReactor {
    fn react<'a>(&'a self, step: StepRun<'a>) -> BoxFuture<'a, Result<Reacted, ReactorError>> {
        Box::pin(self.run(step))
    }
}

fn failed(error: &AgentError) -> ReactorError {
    let reason = match error {
        AgentError::Cancelled => return ReactorError::Stopped,
        AgentError::Model(cause) => match cause.code {
            Code::ContentFiltered => "safety_halt",
            Code::Timeout => "timeout",
            Code::NetworkError => "network_failure",
            Code::AuthenticationFailed
            | Code::RateLimited
            | Code::ContextLengthExceeded
            | Code::ModelNotFound
            | Code::InvalidRequest
            | Code::InvalidResponse
            | Code::QuotaExceeded
            | Code::ProviderError
            | Code::Cancelled => "error",
        },
        AgentError::MaxIterations { .. } => "max_steps",
        AgentError::Tool(_)
        | AgentError::Plan(_)
        | AgentError::OpenCalls { .. }
        | AgentError::Answers(_)
        | AgentError::Waiting { .. }
        | AgentError::NothingWaits { .. }
        | AgentError::NoResponse
        | AgentError::Extension { .. } => "error",
    };
    ReactorError::Failed {
        reason: reason.to_owned(),
        detail: told(error),
    }
}

fn unanswerable() -> ReactorError {
    ReactorError::Failed {
        reason: "error".into(),
        detail: "a tool call waits for an answer from outside, which this run can't get".into(),
    }
}

fn unwritable(error: &serde_json::Error) -> ReactorError {
    ReactorError::Failed {
        reason: "error".into(),
        detail: format!("a part has no JSON form: {error}"),
    }
}

/// Writes what the agent's run tells into the step.
struct AgentJournal<'a> {
    agent: &'a Agent,
    writer: &'a StepWriter,
    iteration: u32,
    parts: Mutex<Vec<Payload>>,
    /// The positions of the calls without a result.
    open_calls: Mutex<BTreeSet<u32>>,
    open: Mutex<BTreeSet<(Block, u32)>>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Block {
    Reasoning,
    Text,
    Call,
}

impl<'a> AgentJournal<'a> {
    fn new(agent: &'a Agent, writer: &'a StepWriter, iteration: u32) -> Self {
        Self {
            agent,
            writer,
            iteration,
            parts: Mutex::default(),
            open_calls: Mutex::default(),
            open: Mutex::default(),
        }
    }

    fn parts(&self) -> Vec<Payload> {
        self.parts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn set_parts(&self, parts: Vec<Payload>) {
        let open = parts
            .iter()
            .zip(0u32..)
            .filter(|(part, _)| ToolPart::read(part).is_some_and(|tool| !tool.is_answered()))
            .map(|(_, idx)| idx);
        *self
            .open_calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = open.collect();
        *self.parts.lock().unwrap_or_else(PoisonError::into_inner) = parts;
    }

    fn opens(&self, block: Block, index: u32) -> bool {
        self.open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert((block, index))
    }

    /// The id of a block; unique in the reaction, as the AI SDK wants it.
    fn block_id(&self, block: Block, index: u32) -> String {
        let letter = if block == Block::Reasoning { 'r' } else { 't' };
        format!("{letter}{}-{index}", self.iteration)
    }

    async fn block(&self, block: Block, index: u32, text: &str) -> Result<(), agents::Stopped> {
        if text.is_empty() {
            return Ok(());
        }
        let id = self.block_id(block, index);
        let (start, delta) = match block {
            Block::Reasoning => ("reasoning-start", Delta::Reasoning),
            Block::Text | Block::Call => ("text-start", Delta::Text),
        };
        if self.opens(block, index) {
            self.writer
                .emit(start, json!({ "id": id }).into())
                .await
                .map_err(stopped)?;
        }
        self.writer.delta(delta, &id, text).await.map_err(stopped)
    }

    async fn show(&self, event: StreamEvent) -> Result<(), agents::Stopped> {
        match event {
            StreamEvent::TextDelta { index, text } => self.block(Block::Text, index, &text).await,
            StreamEvent::ReasoningDelta { index, text } => {
                self.block(Block::Reasoning, index, &text).await
            }
            StreamEvent::ToolCallDelta {
                index,
                tool_call_id,
                tool_name,
                arguments_json,
            } => {
                let id = tool_call_id.as_str();
                if self.opens(Block::Call, index) {
                    let data = json!({ "toolCallId": id, "toolName": tool_name });
                    self.writer
                        .emit("tool-input-start", data.into())
                        .await
                        .map_err(stopped)?;
                }
                if arguments_json.is_empty() {
                    return Ok(());
                }
                self.writer
                    .delta(Delta::ToolInput, id, &arguments_json)
                    .await
                    .map_err(stopped)
            }
            StreamEvent::ToolExecutionStart {
                tool_call_id,
                tool_name,
                ..
            } => match self.agent.tool(&tool_name).map(|tool| tool.effect) {
                Some(Effect::Effect | Effect::Reconcilable) => self
                    .writer
                    .tool_started(tool_call_id.as_str())
                    .await
                    .map_err(stopped),
                Some(Effect::Pure | Effect::Idempotent) | None => Ok(()),
            },
            StreamEvent::MessageStart
            | StreamEvent::MessageStop
            | StreamEvent::ContentBlockStart { .. }
            | StreamEvent::ContentBlockStop { .. }
            | StreamEvent::ImageDelta { .. }
            | StreamEvent::AudioDelta { .. }
            | StreamEvent::VideoDelta { .. }
            | StreamEvent::ToolExecutionEnd { .. } => Ok(()),
        }
    }

    /// The chunks that end the blocks that are open.
    fn ends(&self) -> Vec<Chunk> {
        let open = std::mem::take(&mut *self.open.lock().unwrap_or_else(PoisonError::into_inner));
        open.into_iter()
            .filter_map(|(block, index)| {
                let chunk_type = match block {
                    Block::Reasoning => "reasoning-end",
                    Block::Text => "text-end",
                    Block::Call => return None,
                };
                let data = json!({ "id": self.block_id(block, index) });
                Some(Chunk {
                    chunk_type: chunk_type.to_owned(),
                    data: Some(data.into()),
                })
            })
            .collect()
    }

    async fn answered(&self, response: &Response) -> Result<(), agents::Stopped> {
        let (parts, said) = model::answer(response).map_err(|_| agents::Stopped)?;
        self.set_parts(parts.clone());
        self.writer
            .respond(self.ends(), parts, said)
            .await
            .map_err(stopped)
    }

    /// The result of the call at a position: its part is the one at that place among the calls.
    async fn ended(
        &self,
        position: usize,
        execution: &ToolExecution,
    ) -> Result<(), agents::Stopped> {
        let written = {
            let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
            let mut calls = parts
                .iter_mut()
                .zip(0u32..)
                .filter(|(part, _)| ToolPart::read(part).is_some());
            match calls.nth(position) {
                Some((part, idx)) => {
                    *part = model::with_result(part, execution).map_err(|_| agents::Stopped)?;
                    Some((idx, part.clone()))
                }
                None => None,
            }
        };
        let Some((idx, part)) = written else {
            return Ok(());
        };
        let left = {
            let mut open = self
                .open_calls
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            open.remove(&idx);
            open.len()
        };
        let effect = self
            .agent
            .tool(&execution.tool_name)
            .is_some_and(|tool| matches!(tool.effect, Effect::Effect | Effect::Reconcilable));
        // What an effect came to is written at once: lost, it could not be found out again.
        if left == 0 && !effect {
            self.writer.put_last_part(idx, part);
            return Ok(());
        }
        self.writer.put_part(idx, part).await.map_err(stopped)
    }
}

fn stopped(_: crate::writer::Stopped) -> agents::Stopped {
    agents::Stopped
}

impl Journal for AgentJournal<'_> {
    fn emit(&self, event: AgentStreamEvent) -> BoxFuture<'_, Result<(), agents::Stopped>> {
        Box::pin(async move {
            match event {
                AgentStreamEvent::Upp { upp } => self.show(upp).await,
                AgentStreamEvent::Uap { .. } => Ok(()),
            }
        })
    }

    fn responded<'a>(
        &'a self,
        response: &'a Response,
    ) -> BoxFuture<'a, Result<(), agents::Stopped>> {
        Box::pin(self.answered(response))
    }

    fn returned<'a>(
        &'a self,
        position: usize,
        execution: &'a ToolExecution,
    ) -> BoxFuture<'a, Result<(), agents::Stopped>> {
        Box::pin(self.ended(position, execution))
    }
}
