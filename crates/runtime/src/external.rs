//! The external reactor: a worker, another process, answers the steps of an agent (EK §6).
//!
//! The step and its tools run here as those of any agent. Only the answer comes from a worker, which
//! is a client: it leases a step, reads the messages for the model, and returns the assistant's event,
//! the tool calls and the usage ([`ExternalSteps`](crate::ExternalSteps)).

mod model;

use crate::agent::AgentReactor;
use crate::error::{AnswerRefusal, render_error};
use crate::reactor::{MessagesForModel, Reacted, Reactor, ReactorError, StepRun};
use crate::worker_steps::WorkerPolicy;
use futures_util::future::BoxFuture;
use model::{ExternalCall, ExternalModel};
use std::sync::Arc;
use store::Run;
use timeline::{Answer, OpenCall};
use upp::Model;

/// Runs an agent whose answers come from a worker. The agent's tools, approvals, middleware and strategy
/// are those of an [`AgentReactor`].
#[derive(Clone)]
pub struct ExternalReactor {
    agent: AgentReactor,
    policy: WorkerPolicy,
}

impl ExternalReactor {
    /// A reactor for an agent. Workers answer in place of its model.
    pub fn new(agent: AgentReactor, policy: WorkerPolicy) -> Self {
        Self { agent, policy }
    }

    /// The model of an agent that only has workers: a call without a step fails.
    pub fn model(agent: &str) -> Arc<dyn Model> {
        Arc::new(ExternalModel::without_step(agent))
    }

    async fn run(&self, step: &mut StepRun) -> Result<Reacted, ReactorError> {
        let agent = self.agent.name().to_owned();
        let call = Arc::new(ExternalCall::new(step, agent, self.policy));
        let model = Arc::new(ExternalModel::of_step(Arc::clone(&call)));
        let reactor = self
            .agent
            .for_step(model, step)
            .map_err(|error| ReactorError::failed(render_error(&error)))?;
        let mut reacted = match reactor.react(step).await {
            Err(ReactorError::Stopped) if call.is_void() => return Err(ReactorError::Again),
            reacted => reacted?,
        };
        if let Some(messages) = call.take_messages() {
            let read = Arc::new(move || messages.clone());
            reacted.messages_for_model = Some(MessagesForModel(read));
        }
        Ok(reacted)
    }
}

impl Reactor for ExternalReactor {
    fn react<'a>(&'a self, step: &'a mut StepRun) -> BoxFuture<'a, Result<Reacted, ReactorError>> {
        Box::pin(self.run(step))
    }

    fn check(&self, run: &Run, open: &[OpenCall], answers: &[Answer]) -> Result<(), AnswerRefusal> {
        self.agent.check(run, open, answers)
    }
}
