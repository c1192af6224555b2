//! Runs the sub-agents of one tools phase, and sends their events to the parent's journal.

use super::{HostReport, N_WAITING, Parent, run};
use crate::error::AgentError;
use crate::journal::{Journal, show};
use crate::subagent::{Spawn, SubAgentHost, SubAgentRun};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, try_join};
use futures_util::task::AtomicWaker;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Runs sub-agents inside the tool call, in memory.
///
/// The channel to the parent's journal is created when a tool of the phase first spawns a
/// sub-agent, as most phases spawn none.
pub(crate) struct InMemoryHost {
    agent_id: Arc<str>,
    step: u64,
    way: Mutex<ReportPath>,
    /// Whether the channel is in use; if not, it is not checked.
    is_taken: AtomicBool,
    /// Wakes the phase, so that it starts to receive.
    listener: AtomicWaker,
}

/// The state of the channel to the parent's journal.
enum ReportPath {
    /// It is not in use.
    Untrodden,
    /// It is in use, and the phase does not receive yet.
    Taken(Parent, mpsc::Receiver<Box<HostReport>>),
    /// The phase listens.
    Heard(Parent),
    /// The phase is over; later reports are dropped.
    Over,
}

/// Closes the channel on drop, at the end of the phase.
struct End<'a>(&'a InMemoryHost);

impl Drop for End<'_> {
    fn drop(&mut self) {
        *self.0.way() = ReportPath::Over;
    }
}

impl InMemoryHost {
    /// A host for one tools phase of this agent; [`relayed`](Self::relayed) forwards the events.
    pub(crate) fn new(agent_id: Arc<str>, step: u64) -> Self {
        Self {
            agent_id,
            step,
            way: Mutex::new(ReportPath::Untrodden),
            is_taken: AtomicBool::new(false),
            listener: AtomicWaker::new(),
        }
    }

    fn way(&self) -> MutexGuard<'_, ReportPath> {
        self.way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn parent(&self) -> Parent {
        let mut way = self.way();
        match &*way {
            ReportPath::Taken(parent, _) | ReportPath::Heard(parent) => return parent.clone(),
            ReportPath::Untrodden | ReportPath::Over => {}
        }
        let (told, receiver) = mpsc::channel(N_WAITING);
        let parent = Parent {
            agent_id: Arc::clone(&self.agent_id),
            step: self.step,
            told,
        };
        if matches!(*way, ReportPath::Untrodden) {
            *way = ReportPath::Taken(parent.clone(), receiver);
            self.is_taken.store(true, Ordering::SeqCst);
            drop(way);
            self.listener.wake();
        }
        parent
    }

    /// The receiver of the channel, if the channel is in use; returned at most once.
    fn take_receiver(&self) -> Option<mpsc::Receiver<Box<HostReport>>> {
        if !self.is_taken.load(Ordering::SeqCst) {
            return None;
        }
        let mut way = self.way();
        match std::mem::replace(&mut *way, ReportPath::Untrodden) {
            ReportPath::Taken(parent, receiver) => {
                *way = ReportPath::Heard(parent);
                Some(receiver)
            }
            other @ (ReportPath::Untrodden | ReportPath::Heard(_) | ReportPath::Over) => {
                *way = other;
                None
            }
        }
    }

    /// Runs the tools, and sends the events of their sub-agents to the journal.
    pub(crate) async fn relayed<T>(
        &self,
        tools: impl Future<Output = Result<T, AgentError>>,
        journal: &dyn Journal,
    ) -> Result<T, AgentError> {
        let _end = End(self);
        let mut tools = pin!(tools);
        let first = poll_fn(|cx| {
            if let Poll::Ready(outcome) = tools.as_mut().poll(cx) {
                return Poll::Ready(First::Ended(outcome));
            }
            self.listener.register(cx.waker());
            match self.take_receiver() {
                Some(told) => Poll::Ready(First::Told(told)),
                None => Poll::Pending,
            }
        });
        match first.await {
            // In a box, so that tools without sub-agents have no room for it.
            First::Told(told) => {
                let ended = CancellationToken::new();
                let tools = tools.inspect(|_| ended.cancel());
                let both = try_join(tools, relay(told, journal, &ended));
                let (outcome, ()) = Box::pin(both).await?;
                Ok(outcome)
            }
            First::Ended(outcome) => {
                let outcome = outcome?;
                if let Some(told) = self.take_receiver() {
                    let ended = CancellationToken::new();
                    ended.cancel();
                    Box::pin(relay(told, journal, &ended)).await?;
                }
                Ok(outcome)
            }
        }
    }
}

/// The first event of a tools phase.
enum First<T> {
    /// Its end.
    Ended(Result<T, AgentError>),
    /// A report of a sub-agent.
    Told(mpsc::Receiver<Box<HostReport>>),
}

impl SubAgentHost for InMemoryHost {
    fn run(&self, spawn: Spawn) -> BoxFuture<'static, SubAgentRun> {
        run(spawn, Some(self.parent())).boxed()
    }
}

/// Sends the sub-agents' events to the journal until the tools have ended and the queue is empty.
async fn relay(
    mut told: mpsc::Receiver<Box<HostReport>>,
    journal: &dyn Journal,
    ended: &CancellationToken,
) -> Result<(), AgentError> {
    loop {
        let next = if let Some(next) = ended.run_until_cancelled(told.recv()).await {
            next
        } else {
            // A tool may have left something behind that could tell more; nobody listens any more.
            told.close();
            told.recv().await
        };
        let Some(next) = next else {
            return Ok(());
        };
        let HostReport { event, shown } = *next;
        show(journal, event).await?;
        if let Some(shown) = shown {
            let _gone = shown.send(());
        }
    }
}
