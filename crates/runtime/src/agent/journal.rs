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
use std::future::ready;
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

    /// Writes a part at the next pause of the step, or with its end. Without a position it is a new
    /// part.
    pub(super) fn put(&self, idx: Option<u32>, part: Payload) {
        let idx = if let Some(idx) = idx {
            self.writer.put_part(idx, part.clone());
            idx
        } else {
            self.writer.add_part(part.clone())
        };
        self.parts().put(idx, part);
    }

    fn parts(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shown(&self) -> MutexGuard<'_, StreamedBlocks> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn effect(&self, tool: &str) -> Option<Effect> {
        self.agent.tool(tool).map(|tool| tool.effect)
    }

    fn answered(&self, response: &Response) -> Result<(), Stopped> {
        if self.parts().is_answered() {
            // It is the answer of before the crash, which the log has.
            return Ok(());
        }
        let (said, about) = model::answer(response).map_err(|_| Stopped)?;
        let parts = self.parts().take_answer(said);
        self.set_about(about.clone());
        self.writer.respond(self.ends(), parts, about);
        Ok(())
    }

    /// Ensures that the call at this position has a part. The call of a tool that may have an effect
    /// is durable when this returns; the start of a call that can't run twice, too.
    async fn started(&self, position: u32, id: &str, tool: &str) -> Result<(), Stopped> {
        self.ensure(position as usize)?;
        let durable = match self.effect(tool) {
            Some(Effect::Effect | Effect::Reconcilable) => self.writer.tool_started(id).await,
            Some(Effect::Idempotent) => self.writer.flush().await,
            Some(Effect::Pure) | None => Ok(()),
        };
        durable.map_err(stopped)
    }

    /// Ensures that the call at this position has a part.
    fn ensure(&self, position: usize) -> Result<(), Stopped> {
        let missing = self.parts().missing(position).map_err(|_| Stopped)?;
        if let Some(part) = missing {
            let idx = self.writer.add_part(part.clone());
            self.parts().put_call(position, idx, part);
        }
        Ok(())
    }

    /// The result of the call at a position.
    async fn ended(&self, position: usize, execution: &ToolExecution) -> Result<(), Stopped> {
        self.ensure(position)?;
        let written = self.parts().end(position, execution).map_err(|_| Stopped)?;
        let Some((idx, part, n_open)) = written else {
            return Ok(());
        };
        if self.writer.is_large(&part) {
            // If it is refused, the answer stays.
            self.writer.flush().await.map_err(stopped)?;
        }
        if n_open > 0 && self.effect(&execution.tool_name) == Some(Effect::Pure) {
            self.writer.put_held_part(idx, part);
        } else {
            self.writer.put_part(idx, part);
        }
        Ok(())
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
        Box::pin(ready(Ok(())))
    }

    fn responded<'a>(&'a self, response: &'a Response) -> BoxFuture<'a, Result<(), Stopped>> {
        Box::pin(ready(self.answered(response)))
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
        Box::pin(ready(Ok(())))
    }
}
