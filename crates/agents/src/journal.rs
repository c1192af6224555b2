//! The interface through which a run reports to its journal.

use crate::error::AgentError;
use crate::event::AgentStreamEvent;
use crate::trace::SubagentExecutionTrace;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use upp::{Response, ToolExecution, UserMessage};

/// The journal's refusal: the run must stop, because its results can't be stored any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the keeper of the run refused to go on")]
pub struct Stopped;

impl From<Stopped> for AgentError {
    fn from(Stopped: Stopped) -> Self {
        Self::Cancelled
    }
}

/// A future without work. It has no size, so boxing it allocates nothing.
pub(crate) struct Recorded;

impl Future for Recorded {
    type Output = Result<(), Stopped>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(Ok(()))
    }
}

/// Emits an event at once or, if that must wait, when this future is polled. The future does not
/// contain the event, which avoids copies of it.
#[must_use = "an event that must wait is not shown before"]
pub(crate) struct EmitFuture<'a>(Option<BoxFuture<'a, Result<(), Stopped>>>);

/// Emits an event; the future has work only if the event must wait.
pub(crate) fn show(journal: &dyn Journal, event: impl Into<AgentStreamEvent>) -> EmitFuture<'_> {
    let left = journal.try_emit(event.into());
    EmitFuture(left.map(|event| journal.emit(event)))
}

impl Future for EmitFuture<'_> {
    type Output = Result<(), Stopped>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            None => Poll::Ready(Ok(())),
            Some(waiting) => waiting.poll_unpin(cx),
        }
    }
}

/// Receives the events and results of a run. In memory it feeds the stream; under the runtime it
/// writes the log.
///
/// The run waits for each call before it continues. Tools run concurrently, so `emit` and
/// `returned` may be called while other such calls still wait. If the run is cancelled, the futures
/// may be dropped early. `responded` and `returned` come before the events that depend on them;
/// only the model's own deltas may come earlier.
pub trait Journal: Send + Sync {
    /// Shows an event.
    fn emit(&self, event: AgentStreamEvent) -> BoxFuture<'_, Result<(), Stopped>>;

    /// Emits an event at once if that is possible without waiting. Otherwise it returns the event,
    /// for [`emit`](Self::emit). This avoids a future for each of many events.
    fn try_emit(&self, event: AgentStreamEvent) -> Option<AgentStreamEvent> {
        Some(event)
    }

    /// The strategy adds a prompt in the user's role (UAP §5.3, §5.4). It is a message of the
    /// conversation, marked in its metadata ([`PromptMark`](crate::PromptMark)). There is at most
    /// one in a cycle. It comes before `responded` and must be durable by then.
    fn prompted<'a>(&'a self, message: &'a Arc<UserMessage>) -> BoxFuture<'a, Result<(), Stopped>> {
        let _ = message;
        Recorded.boxed()
    }

    /// The model has responded. This must be durable before a tool with effects starts, at the latest
    /// when the event of its start is shown.
    fn responded<'a>(&'a self, response: &'a Response) -> BoxFuture<'a, Result<(), Stopped>>;

    /// The call at this position of the response has ended, with or without its tool. This must be
    /// durable before the next tool with effects starts. Ids may repeat in one response; positions
    /// don't.
    fn returned<'a>(
        &'a self,
        position: usize,
        execution: &'a ToolExecution,
    ) -> BoxFuture<'a, Result<(), Stopped>>;

    /// A sub-agent has ended, successfully or not (UAP §8.8). This comes before the `returned` of
    /// the call that spawned it, so that each stored result has its traces. Store the trace as long
    /// as the result. A journal that rebuilds a state after a crash adds the traces of the calls
    /// that have results ([`StepContext::answered`](crate::StepContext::answered)).
    fn traced<'a>(
        &'a self,
        trace: &'a SubagentExecutionTrace,
    ) -> BoxFuture<'a, Result<(), Stopped>> {
        let _ = trace;
        Recorded.boxed()
    }
}
