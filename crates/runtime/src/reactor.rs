//! The reactor contract (EK §6): who runs one step.

use crate::error::AnswerRefusal;
use crate::handoff::Handoff;
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

/// What a crash left of a step whose model had answered.
#[derive(Clone, Debug)]
pub struct Resumed {
    /// The step's parts as they stand; a tool part has its result if it came.
    pub parts: Vec<Payload>,
    /// What the model said of its answer.
    pub response: Payload,
    /// The calls of effect tools that had started, by call id.
    pub started: Vec<String>,
}

/// One step to be run.
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
    /// The step whose response made the calls that it runs: itself, or, where it is for calls that
    /// waited, the one that they come from. What it says of a call is the same whenever it is run.
    pub origin: StepId,
    /// What a crash left of it; its tools go on from there.
    pub resumed: Option<Resumed>,
    /// What this reactor asked to remember after the step before; absent after a restart.
    pub memory: Option<Box<dyn Any + Send + Sync>>,
    /// The only way to write.
    pub writer: Arc<StepWriter>,
    /// What is kept of the step's call of a model; an earlier attempt's note is in it.
    pub call_record: Arc<dyn CallRecord>,
    /// What runs the step's sub-agents, and knows whom it may hand over to.
    pub children: Arc<dyn Children>,
    /// Cancelled when the step is no longer wanted.
    pub signal: CancellationToken,
    /// Which history of the thread it was given; another one voids what it remembers.
    pub(crate) generation: u64,
}

/// What the runtime offers a step for its sub-agents and for handing over.
pub trait Children: Send + Sync {
    /// What runs the sub-agents of this agent's tools: each on a thread of its own if the runtime
    /// knows it by name, else in memory. `step` is the number that the step has to the agent.
    fn host(&self, agent: &Agent, step: u64) -> Arc<dyn SubAgentHost>;

    /// The sub-agents on threads of their own that this call has started in the step.
    fn of_call(&self, call: &str) -> Vec<OpenChild>;

    /// Whether the runtime has an agent of this name.
    fn has(&self, agent: &str) -> bool;

    /// Whether writing has failed, so that the step is tried again.
    fn is_abandoned(&self) -> bool;

    /// Whether the execution may hand over once more.
    fn may_hand_over(&self) -> bool;
}

impl StepRun {
    /// The whole conversation so far, this execution included; as large as the thread.
    pub async fn transcript(&self) -> Result<Transcript, WriterStopped> {
        Ok(self.writer.transcript().await?.without_removed())
    }
}

/// What was sent to the model: derived when asked for, never stored (architecture rule 5).
#[derive(Clone)]
pub struct MessagesForModel(pub Arc<dyn Fn() -> Vec<Payload> + Send + Sync>);

impl MessagesForModel {
    /// The messages, in order.
    pub fn read(&self) -> Vec<Payload> {
        (self.0)()
    }
}

/// What a reactor returns (EK §6). The assistant's item is what it wrote through the writer.
pub struct Reacted {
    /// The normalized tool calls and their outcomes.
    pub outcome: StepOutcome,
    /// Whether it wants another step.
    pub wants_more: bool,
    /// The effective prompt.
    pub messages_for_model: Option<MessagesForModel>,
    /// What it wants to be given at the next step of this thread.
    pub memory: Option<Box<dyn Any + Send + Sync>>,
    /// Who goes on in its place; the execution ends then, whatever it wants.
    pub handoff: Option<Handoff>,
}

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub enum ReactorError {
    /// The step is no longer wanted: cancelled, interrupted, or taken over by another process.
    #[error("the step was stopped")]
    Stopped,
    /// It failed.
    #[error("{detail}")]
    Failed {
        /// ThreadProtocol's word: `error`, `safety_halt`, `network_failure`, `timeout`, or another.
        reason: String,
        /// For people.
        detail: String,
    },
}

impl ReactorError {
    /// It failed, and no other word of the protocol's fits better than `error`.
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
/// A reactor writes only through the step's writer: chunks while the model speaks, then
/// [`StepWriter::respond`] once, before any tool starts, then each tool's result as it comes.
/// It may be dropped at any await, and is called again for the same step after a crash.
pub trait Reactor: Send + Sync {
    /// Runs the step to its end.
    fn react<'a>(&'a self, step: &'a mut StepRun) -> BoxFuture<'a, Result<Reacted, ReactorError>>;

    /// Looks at answers to calls that it has left open, before they are kept. Each is for another
    /// of the open calls, and of the kind that the call waits for. `run` is how the execution that
    /// acts on them is run.
    fn check(&self, run: &Run, open: &[OpenCall], answers: &[Answer]) -> Result<(), AnswerRefusal> {
        let _ = (run, open, answers);
        Ok(())
    }

    /// Is told that a step has ended without an answer that had noted this
    /// ([`StepWriter::note`]): what it has begun elsewhere is stopped as well as that can be.
    fn abandon(&self, note: Value) -> BoxFuture<'_, ()> {
        drop(note);
        Box::pin(std::future::ready(()))
    }
}

/// The reactors of a runtime, by agent name.
pub trait Reactors: Send + Sync {
    /// The reactor of this agent, or of the default one.
    fn find(&self, agent: Option<&str>) -> Option<Arc<dyn Reactor>>;

    /// Whether there is an agent of this very name: one that can run as a sub-agent on a thread of
    /// its own, or be handed over to. A registry that gives one reactor whatever the name has none.
    fn has(&self, agent: &str) -> bool {
        let _ = agent;
        false
    }

    /// The name of the model that a run asks first, if its concurrent runs are limited by model.
    fn model(&self, run: &Run) -> Option<String> {
        let _ = run;
        None
    }

    /// The name to be kept with an execution: the agent's, or the default one's if there is one.
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
