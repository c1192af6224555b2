//! A run with its stream of events (UAP §11).

mod queue;

use crate::agent::{Agent, GenerateResult, Start};
use crate::boxed::boxed;
use crate::error::AgentError;
use crate::event::AgentStreamEvent;
use crate::journal::{Journal, Recorded, Stopped};
use crate::state::AgentState;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, Stream};
use queue::Queue;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio_util::sync::CancellationToken;
use upp::{Response, Signal, ToolExecution};

/// A run of an agent (UAP §11.1): its events as a stream, and its result.
///
/// The run has no task of its own: it advances while the stream or the result is polled. The stream
/// ends when the run ends; only the result shows whether the run succeeded. Dropping either cancels
/// the run.
#[must_use = "a run does nothing unless it is polled"]
pub struct AgentStream {
    run: Option<BoxFuture<'static, Result<Box<GenerateResult>, AgentError>>>,
    outcome: Option<Result<Box<GenerateResult>, AgentError>>,
    /// The run does not advance while there are events to read.
    events: Queue,
    guard: Guard,
}

/// Cancels the run when it is dropped.
struct Guard(Signal);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl AgentStream {
    pub(crate) fn new(agent: Agent, start: Start, state: AgentState) -> Self {
        let signal = Signal::new();
        let run_signal = signal.clone();
        let run = boxed(move || crate::agent::request(agent, start, state, &Watched, run_signal));
        Self {
            run: Some(run),
            outcome: None,
            events: Queue::default(),
            guard: Guard(signal),
        }
    }

    /// The result (UAP §11.1). This drives the run to its end, whether or not the stream was read.
    /// Unread events are dropped.
    pub async fn result(self) -> Result<GenerateResult, AgentError> {
        let Self {
            run,
            outcome,
            mut events,
            guard,
        } = self;
        events.close();
        let outcome = match (outcome, run) {
            (Some(outcome), _) => outcome,
            (None, Some(mut run)) => poll_fn(|cx| events.lent(|| run.poll_unpin(cx))).await,
            (None, None) => Err(AgentError::Cancelled),
        };
        drop(guard);
        outcome.map(|result| *result)
    }

    /// Cancels the run (UAP §11.1). The model's connection is closed, running tools are signalled
    /// and dropped, and the result is [`AgentError::Cancelled`].
    pub fn abort(&self) {
        self.guard.0.cancel();
    }

    /// The token that cancels the run, for use by other code.
    pub fn signal(&self) -> CancellationToken {
        self.guard.0.token().clone()
    }
}

impl Stream for AgentStream {
    type Item = AgentStreamEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        // A run that never waits still lets other tasks have their turn.
        let progress = ready!(tokio::task::coop::poll_proceed(cx));
        // What is waiting comes first; then the run advances, which may add to it.
        let this = &mut *self;
        let mut event = this.events.pop();
        if event.is_none()
            && let Some(run) = &mut this.run
        {
            if let Poll::Ready(outcome) = this.events.lent(|| run.poll_unpin(cx)) {
                this.outcome = Some(outcome);
                this.run = None;
            }
            event = this.events.pop();
        }
        if event.is_none() && this.run.is_some() {
            return Poll::Pending;
        }
        progress.made_progress();
        Poll::Ready(event)
    }
}

impl std::fmt::Debug for AgentStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentStream")
            .field("is_complete", &self.run.is_none())
            .finish_non_exhaustive()
    }
}

/// Feeds the stream that polls the run. The end of the reader does not stop the run, as the result
/// may still be needed.
struct Watched;

impl Journal for Watched {
    fn emit(&self, event: AgentStreamEvent) -> BoxFuture<'_, Result<(), Stopped>> {
        queue::push(event).map(Ok).boxed()
    }

    fn try_emit(&self, event: AgentStreamEvent) -> Option<AgentStreamEvent> {
        queue::try_push(event)
    }

    fn responded<'a>(&'a self, _response: &'a Response) -> BoxFuture<'a, Result<(), Stopped>> {
        Recorded.boxed()
    }

    fn returned<'a>(
        &'a self,
        _position: usize,
        _execution: &'a ToolExecution,
    ) -> BoxFuture<'a, Result<(), Stopped>> {
        Recorded.boxed()
    }
}
