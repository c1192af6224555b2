//! Middleware: what wraps a whole request (UAP §9).

mod cycles;
mod estimate;
mod logging;
mod prune;
mod summarise;
mod transcript;
mod window;

pub use estimate::Estimate;
pub use logging::{LogLevel, Logger, Logging, LoggingOptions, logging};
pub use prune::PruneToolOutputs;
pub use summarise::{Summarise, Summariser};
pub use window::SlidingWindow;

use crate::agent::{Agent, GenerateResult};
use crate::error::AgentError;
use crate::state::AgentState;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use upp::Message;

/// One request on its way through the middleware (UAP §9.1).
#[derive(Clone, Debug)]
pub struct MiddlewareContext {
    /// The agent.
    pub agent: Agent,
    /// What the user says; what `before` leaves here is what the agent gets. When a run that waited
    /// is resumed, nobody says anything: it is the last message of the user's own, which the state has,
    /// and what `before` leaves here is ignored.
    pub input: Message,
    /// The state the run starts from; what `before` leaves here is what the agent gets. A strategy
    /// reads from the messages where it stands: behind the last one of the user's own, a run that is
    /// resumed needs its last prompt ([`PromptMark`](crate::PromptMark)), and a user's message that is
    /// put behind that begins it anew.
    pub state: AgentState,
    /// What middlewares keep for this request alone; it starts empty.
    pub metadata: Map<String, Value>,
}

/// A layer around the run (UAP §9.1).
///
/// `before` is called in order, the way back in reverse. Only layers whose `before` succeeded are
/// on the way back: a layer whose own `before` failed gets no `on_error` (UAP §9.1 leaves it open), for
/// it knows of its failure and was never around the run. There each layer sees what the layer inside it left: `after` for a result,
/// `on_error` for a failure, be it the run's or another layer's. So a failure that a layer turned
/// into a result is a result to the layers outside it. All see the one context, with the changes
/// the others made.
pub trait Middleware: Send + Sync {
    /// The name, for errors and logs.
    fn name(&self) -> &str;

    /// Before the run; may change `input`, `state` and `metadata`.
    fn before<'a>(
        &'a self,
        context: &'a mut MiddlewareContext,
    ) -> BoxFuture<'a, Result<(), AgentError>> {
        let _ = context;
        ready(Ok(())).boxed()
    }

    /// After a run that has a result; gives the result that goes on outwards.
    fn after<'a>(
        &'a self,
        context: &'a mut MiddlewareContext,
        result: GenerateResult,
    ) -> BoxFuture<'a, Result<GenerateResult, AgentError>> {
        let _ = context;
        ready(Ok(result)).boxed()
    }

    /// After a failure; may give a result instead. One given for a cancelled run is ignored.
    fn on_error<'a>(
        &'a self,
        context: &'a mut MiddlewareContext,
        error: &'a AgentError,
    ) -> BoxFuture<'a, Option<GenerateResult>> {
        let _ = (context, error);
        ready(None).boxed()
    }
}

/// The way in: gives how many layers were entered, and whether all were. Agents do it themselves;
/// it is for a runtime that runs an agent step by step.
pub async fn enter(
    layers: &[Arc<dyn Middleware>],
    context: &mut MiddlewareContext,
    signal: &CancellationToken,
) -> (usize, Result<(), AgentError>) {
    for (n_entered, layer) in layers.iter().enumerate() {
        let before = signal.run_until_cancelled(layer.before(context)).await;
        if let Err(error) = before.unwrap_or(Err(AgentError::Cancelled)) {
            return (n_entered, Err(error));
        }
    }
    (layers.len(), Ok(()))
}

/// The way out, through the layers that were entered.
pub async fn leave(
    layers: &[Arc<dyn Middleware>],
    context: &mut MiddlewareContext,
    mut outcome: Result<GenerateResult, AgentError>,
    signal: &CancellationToken,
) -> Result<GenerateResult, AgentError> {
    for layer in layers.iter().rev() {
        outcome = match outcome {
            Ok(result) => {
                let after = signal.run_until_cancelled(layer.after(context, result));
                after.await.unwrap_or(Err(AgentError::Cancelled))
            }
            Err(error) => match layer.on_error(context, &error).await {
                Some(result) if !matches!(error, AgentError::Cancelled) => Ok(result),
                Some(_) | None => Err(error),
            },
        };
    }
    outcome
}
