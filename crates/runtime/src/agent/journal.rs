//! Writes the events of an agent's run into the step.

mod parts;
mod show;

pub(super) use parts::Parts;

use crate::writer::StepWriter;
use agents::{Agent, AgentStreamEvent, Journal, Stopped, SubagentExecutionTrace};
use futures_util::future::BoxFuture;
use interop::model;
use show::StreamedBlocks;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use timeline::Payload;
use upp::{Effect, Response, ToolCall, ToolExecution, UserMessage};

/// Writes the events of an agent's run into the step.
pub(super) struct AgentJournal<'a> {
    agent: &'a Agent,
    writer: &'a StepWriter,
    iteration: u32,
    shown: Mutex<StreamedBlocks>,
    parts: Mutex<Parts>,
    /// The model's metadata of its response.
    about: Mutex<Option<Payload>>,
}

impl<'a> AgentJournal<'a> {
    pub(super) fn new(agent: &'a Agent, writer: &'a StepWriter, iteration: u32) -> Self {
        Self {
            agent,
            writer,
            iteration,
            shown: Mutex::default(),
            parts: Mutex::default(),
            about: Mutex::default(),
        }
    }

    /// Continues a step whose response the log already has.
    pub(super) fn resume(&self, parts: Vec<Payload>, about: Payload) {
        *self.parts() = Parts::answered(parts);
        self.set_about(about);
    }

    /// Starts a step without a model call, which applies answers to these calls. Their positions
    /// are those in the response that made them.
    pub(super) fn answer(&self, calls: Vec<ToolCall>, parts: Vec<Payload>, about: Payload) {
        *self.parts() = Parts::of_calls(calls, parts);
        self.set_about(about);
    }

    /// The model's metadata of its response; an empty object if there is none.
    pub(super) fn about(&self) -> Payload {
        let about = self.about.lock().unwrap_or_else(PoisonError::into_inner);
        about
            .clone()
            .unwrap_or_else(|| serde_json::json!({}).into())
    }

    fn set_about(&self, about: Payload) {
        *self.about.lock().unwrap_or_else(PoisonError::into_inner) = Some(about);
    }

    /// The current parts.
    pub(super) fn written(&self) -> Vec<Payload> {
        let parts = self.parts();
        parts.list().map(|(_, part)| part.clone()).collect()
    }

    /// The parts with their positions in the log.
    pub(super) fn placed(&self) -> Vec<(u32, Payload)> {
        let parts = self.parts();
        let list = parts.list();
        list.map(|(idx, part)| (idx, part.clone())).collect()
    }

    /// Number of calls of the agent's own tools in the step's response.
    pub(super) fn n_made(&self) -> u64 {
        let parts = self.parts();
        let own = parts
            .made()
            .filter(|tool| self.agent.runs(tool.tool_name()));
        u64::try_from(own.count()).unwrap_or(u64::MAX)
    }

    /// The ids of the calls of the agent's own tools in the step, without the first `first` calls.
    pub(super) fn calls_from(&self, first: usize) -> BTreeSet<String> {
        let parts = self.parts();
        let earlier = parts.earlier().iter();
        let earlier = earlier.filter(|call| self.agent.runs(&call.tool_name));
        let earlier = earlier.map(|call| call.tool_call_id.as_str().to_owned());
        let made = parts
            .made()
            .filter(|tool| self.agent.runs(tool.tool_name()));
        let made = made.map(|tool| tool.tool_call_id);
        earlier.chain(made).skip(first).collect()
    }

    /// Writes a part again, or one more; durable when this returns.
    pub(super) async fn put(&self, idx: u32, part: Payload) -> Result<(), Stopped> {
        self.parts().put(idx, part.clone());
        self.writer.put_part(idx, part).await.map_err(stopped)
    }

    /// Writes a part with the end of the step. Without a position it is a new part.
    pub(super) fn put_with_end(&self, idx: Option<u32>, part: Payload) {
        let idx = if let Some(idx) = idx {
            self.writer.put_last_part(idx, part.clone());
            idx
        } else {
            self.writer.add_last_part(part.clone())
        };
        self.parts().put(idx, part);
    }

    fn parts(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shown(&self) -> MutexGuard<'_, StreamedBlocks> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a crash while the tool runs leaves its outcome unknown.
    fn is_marked(&self, tool: &str) -> bool {
        match self.agent.tool(tool).map(|tool| tool.effect) {
            Some(Effect::Effect | Effect::Reconcilable) => true,
            Some(Effect::Pure | Effect::Idempotent) | None => false,
        }
    }

    async fn answered(&self, response: &Response) -> Result<(), Stopped> {
        if self.parts().is_answered() {
            // It is the answer of before the crash, which the log has.
            return Ok(());
        }
        let (said, about) = model::answer(response).map_err(|_| Stopped)?;
        let parts = self.parts().take_answer(said);
        self.set_about(about.clone());
        self.writer
            .respond(self.ends(), parts, about)
            .await
            .map_err(stopped)
    }

    /// Records the start of the call at this position: ensures its part, and marks a call that
    /// can't run twice.
    async fn started(&self, position: u32, id: &str, tool: &str) -> Result<(), Stopped> {
        self.ensure(position as usize).await?;
        if self.is_marked(tool) {
            self.writer.tool_started(id).await.map_err(stopped)?;
        }
        Ok(())
    }

    /// Ensures that the call at this position has a part.
    async fn ensure(&self, position: usize) -> Result<(), Stopped> {
        let missing = self.parts().missing(position).map_err(|_| Stopped)?;
        if let Some(part) = missing {
            let idx = self.writer.add_part(part.clone()).await.map_err(stopped)?;
            self.parts().put_call(position, idx, part);
        }
        Ok(())
    }

    /// The result of the call at a position.
    async fn ended(&self, position: usize, execution: &ToolExecution) -> Result<(), Stopped> {
        self.ensure(position).await?;
        let written = self.parts().end(position, execution).map_err(|_| Stopped)?;
        let Some((idx, part, n_open)) = written else {
            return Ok(());
        };
        // What an effect came to is written at once: lost, it could not be found out again.
        if n_open == 0 && !self.is_marked(&execution.tool_name) {
            self.writer.put_last_part(idx, part);
            return Ok(());
        }
        self.writer.put_part(idx, part).await.map_err(stopped)
    }
}

pub(super) fn stopped(_: crate::writer::WriterStopped) -> Stopped {
    Stopped
}

impl Journal for AgentJournal<'_> {
    fn emit(&self, event: AgentStreamEvent) -> BoxFuture<'_, Result<(), Stopped>> {
        Box::pin(async move {
            match event {
                AgentStreamEvent::Upp { upp } => self.show(upp).await,
                AgentStreamEvent::Uap { .. } => Ok(()),
            }
        })
    }

    fn prompted<'a>(&'a self, message: &'a Arc<UserMessage>) -> BoxFuture<'a, Result<(), Stopped>> {
        // It is written with the answer; until then a crash has it asked again.
        self.parts().prompt(message);
        Box::pin(std::future::ready(Ok(())))
    }

    fn responded<'a>(&'a self, response: &'a Response) -> BoxFuture<'a, Result<(), Stopped>> {
        Box::pin(self.answered(response))
    }

    fn returned<'a>(
        &'a self,
        position: usize,
        execution: &'a ToolExecution,
    ) -> BoxFuture<'a, Result<(), Stopped>> {
        Box::pin(self.ended(position, execution))
    }

    fn traced<'a>(
        &'a self,
        trace: &'a SubagentExecutionTrace,
    ) -> BoxFuture<'a, Result<(), Stopped>> {
        // It is written with the result of the call that spawned the sub-agent.
        self.parts().trace(trace.clone());
        Box::pin(std::future::ready(Ok(())))
    }
}
