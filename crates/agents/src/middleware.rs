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
pub use summarise::{Summarise, Summariser, WrittenSummary, summary_message};
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
    /// The user's input; the agent receives it with the changes of `before`. In a resumed run it is
    /// the user's last message in the state, and changes are ignored.
    pub input: Message,
    /// The state the run starts from; the agent receives it with the changes of `before`. A
    /// strategy reads its progress from the messages after the user's last one. So a resumed run
    /// needs its last prompt ([`PromptMark`](crate::PromptMark)) there. If you add a user message
    /// after the prompt, the run starts again.
    pub state: AgentState,
    /// Data that middlewares store for this request only; initially empty.
    pub metadata: Map<String, Value>,
}

/// A layer around the run (UAP §9.1).
///
/// `before` is called in order; `after` and `on_error` are called in reverse order, only for layers
/// whose `before` succeeded. A layer whose own `before` failed gets no `on_error` (UAP §9.1 does
/// not define this), as it knows of its failure.
///
/// Each layer sees the outcome of the layer inside it: `after` for a result, `on_error` for a
/// failure, of the run or of another layer. So if a layer turns a failure into a result, the layers
/// outside it see a result. All layers share one context, with the changes of the others.
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

    /// Called after a run with a result. Returns the result for the next outer layer.
    fn after<'a>(
        &'a self,
        context: &'a mut MiddlewareContext,
        result: GenerateResult,
    ) -> BoxFuture<'a, Result<GenerateResult, AgentError>> {
        let _ = context;
        ready(Ok(result)).boxed()
    }

    /// Called after a failure; may return a result instead. For a cancelled run the result is
    /// ignored.
    fn on_error<'a>(
        &'a self,
        context: &'a mut MiddlewareContext,
        error: &'a AgentError,
    ) -> BoxFuture<'a, Option<GenerateResult>> {
        let _ = (context, error);
        ready(None).boxed()
    }
}

/// Runs `before` of all layers. Returns the number of layers entered, and an error if one failed.
/// Agents call it themselves; it is public for a runtime that runs an agent step by step.
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

/// Calls `after` or `on_error` of the entered layers, in reverse order.
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
