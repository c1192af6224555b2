//! The reactor contract (EK §6): the interface that runs one step.

use crate::compaction::StoredCompaction;
use crate::error::AnswerRefusal;
use crate::handoff::Handoff;
use crate::worker_steps::ExternalSteps;
use crate::writer::{StepWriter, WriterStopped};
use agents::{Agent, SubAgentHost};
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::any::Any;
use std::sync::Arc;
use store::Run;
use store::TenantId;
use timeline::{
    Answer, Execution, Interruption, Item, OpenCall, OpenChild, Payload, Step, StepId, StepOutcome,
    ThreadId, Transcript,
};
use tokio_util::sync::CancellationToken;
use upp::CallRecord;
use upp::Message;

/// The rest of a step that a crash interrupted after the model had answered.
#[derive(Clone, Debug)]
pub struct Resumed {
    /// The step's stored parts; a tool part has its result if there is one.
    pub parts: Vec<Payload>,
    /// The model's metadata of its response.
    pub response: Payload,
    /// The calls of effect tools that had started, by call id.
    pub started: Vec<String>,
}

/// One step to run.
pub struct StepRun {
    /// Whose thread.
    pub tenant: TenantId,
    /// The thread.
    pub thread: ThreadId,
    /// Its key.
    pub key: String,
    /// The execution.
    pub execution: Execution,
    /// The trigger: the item to answer.
    pub trigger: Item,
    /// The step.
    pub step: Step,
    /// The options of the run.
    pub run: Run,
    /// The calls that wait for answers from outside, if it answers some of them.
    pub open_calls: Vec<OpenCall>,
    /// The step whose response made the calls that this step runs. Usually it is this step; for
    /// calls that waited for answers, it is an earlier one. A call has the same origin each time it
    /// runs.
    pub origin: StepId,
    /// The stored rest of this step after a crash; its tools continue from there.
    pub resumed: Option<Resumed>,
    /// The value that this reactor returned in [`Reacted::memory`] after the previous step; none
    /// after a restart.
    pub memory: Option<Box<dyn Any + Send + Sync>>,
    /// The only way to write.
    pub writer: Arc<StepWriter>,
    /// The notes of the step's model call, with those of an earlier attempt.
    pub call_record: Arc<dyn CallRecord>,
    /// Runs the step's sub-agents and knows the agents it may hand over to.
    pub children: Arc<dyn Children>,
    /// Cancelled when the step must stop.
    pub signal: CancellationToken,
    /// The steps that workers answer.
    pub(crate) external: ExternalSteps,
    /// The generation of the thread's history. Another generation voids the reactor's memory.
    pub(crate) generation: u64,
}

/// The runtime's services for one step: sub-agents and handoffs.
pub trait Children: Send + Sync {
    /// Returns the host that runs the sub-agents of this agent's tools. A sub-agent that the
    /// runtime knows by name runs on a thread of its own; any other runs in memory. `step` is the
    /// agent's own number of the step.
    fn host(&self, agent: &Agent, step: u64) -> Arc<dyn SubAgentHost>;

    /// The sub-agents on threads of their own that this call has started in the step.
    fn of_call(&self, call: &str) -> Vec<OpenChild>;

    /// Whether the runtime has an agent of this name.
    fn has(&self, agent: &str) -> bool;

    /// Whether a write has failed, so that the step will be retried.
    fn is_abandoned(&self) -> bool;

    /// Whether the execution may hand over once more.
    fn may_hand_over(&self) -> bool;
}

impl StepRun {
    /// The whole conversation so far, this execution included; as large as the thread.
    pub async fn transcript(&self) -> Result<Transcript, WriterStopped> {
        Ok(self.writer.transcript().await?.without_removed())
    }

    /// The conversation as a model is to read it, before this step. If a compaction counts, its
    /// summary replaces the oldest runs, and the cost is that of the rest.
    pub async fn messages(&self) -> Result<Vec<Message>, WriterStopped> {
        let read = self.writer.for_model().await?;
        let summary = read.compaction.iter().map(StoredCompaction::message);
        let rest = interop::model::history(&read.transcript, Some(&self.step.id));
        Ok(summary.chain(rest).collect())
    }
}

/// The messages sent to the model: derived on demand, never stored (architecture rule 5).
#[derive(Clone)]
pub struct MessagesForModel(pub Arc<dyn Fn() -> Vec<Payload> + Send + Sync>);

impl MessagesForModel {
    /// The messages, in order.
    pub fn read(&self) -> Vec<Payload> {
        (self.0)()
    }
}

/// The result of a reactor's step (EK §6). The step's output was already written through the
/// writer.
pub struct Reacted {
    /// The normalized tool calls and their outcomes.
    pub outcome: StepOutcome,
    /// Whether it requests another step.
    pub wants_more: bool,
    /// The effective prompt.
    pub messages_for_model: Option<MessagesForModel>,
    /// A value that the reactor receives at the next step of this thread.
    pub memory: Option<Box<dyn Any + Send + Sync>>,
    /// The agent that continues the run. If it is set, the execution ends, whatever the reactor
    /// requests.
    pub handoff: Option<Handoff>,
}

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub enum ReactorError {
    /// The step was cancelled, interrupted, or taken over by another process.
    #[error("the step was stopped")]
    Stopped,
    /// The attempt is void, with all that it has streamed. The step runs again.
    #[error("the step must run again")]
    Again,
    /// It failed.
    #[error("{detail}")]
    Failed {
        /// The interruption reason of ThreadProtocol: `error`, `safety_halt`, `network_failure`,
        /// `timeout`, or another.
        reason: String,
        /// For people.
        detail: String,
    },
}

impl ReactorError {
    /// A failure with the reason `error`.
    pub fn failed(detail: impl Into<String>) -> Self {
        Self::Failed {
            reason: Interruption::ERROR.to_owned(),
            detail: detail.into(),
        }
    }
}

impl From<WriterStopped> for ReactorError {
    fn from(_: WriterStopped) -> Self {
        Self::Stopped
    }
}

/// Runs one step of an execution.
///
/// A reactor writes only through the step's writer: chunks while the model generates, then
/// [`StepWriter::respond`] once, then each tool's result when it is ready. A tool with effects
/// starts only when its call is durable ([`StepWriter::tool_started`], [`StepWriter::flush`]). The
/// future may be dropped at any await. After a crash the reactor is called again for the same
/// step.
pub trait Reactor: Send + Sync {
    /// Runs the step to its end.
    fn react<'a>(&'a self, step: &'a mut StepRun) -> BoxFuture<'a, Result<Reacted, ReactorError>>;

    /// Checks answers to open calls before they are stored. Each answers a different open call and
    /// has the kind that the call waits for. `run` has the parameters of the execution that acts on
    /// them.
    fn check(&self, run: &Run, open: &[OpenCall], answers: &[Answer]) -> Result<(), AnswerRefusal> {
        let _ = (run, open, answers);
        Ok(())
    }

    /// Called when a step ended without a response after it had stored this note
    /// ([`StepWriter::note`]). The reactor stops the remote work that the note describes, as far as
    /// possible.
    fn abandon(&self, note: Value) -> BoxFuture<'_, ()> {
        drop(note);
        Box::pin(std::future::ready(()))
    }
}

/// The reactors of a runtime, by agent name.
pub trait Reactors: Send + Sync {
    /// The reactor of this agent, or of the default one.
    fn find(&self, agent: Option<&str>) -> Option<Arc<dyn Reactor>>;

    /// Whether there is an agent of exactly this name. Such an agent can run as a sub-agent on a
    /// thread of its own, or receive a handoff. A registry with one reactor for all names has none.
    fn has(&self, agent: &str) -> bool {
        let _ = agent;
        false
    }

    /// The name of the model that a run calls first, if concurrent runs of that model are limited.
    fn model(&self, run: &Run) -> Option<String> {
        let _ = run;
        None
    }

    /// The agent's name to store with an execution: this name, or the default agent's if there is
    /// one.
    fn name(&self, agent: Option<&str>) -> Option<String> {
        agent.map(str::to_owned)
    }
}

/// One reactor for every agent name.
impl<R: Reactor + 'static> Reactors for Arc<R> {
    fn find(&self, _agent: Option<&str>) -> Option<Arc<dyn Reactor>> {
        Some(Arc::clone(self) as Arc<dyn Reactor>)
    }
}
