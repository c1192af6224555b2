//! Notes of a step about a remote answer, and the clean-up after the step was abandoned.

use crate::live::Live;
use crate::runtime::Runtime;
use crate::writer::StepWriter;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::Run;
use timeline::{Payload, State};
use tokio::runtime::Handle;
use upp::{CallRecord, Code, Error};

/// Timeout for the notification of one agent.
const TELLING: Duration = Duration::from_mins(1);
/// Timeout once the process shuts down.
const GRACE: Duration = Duration::from_secs(3);

/// The call of a model in one step: its notes are in the step's log.
pub(crate) struct AttemptNote {
    writer: Arc<StepWriter>,
    key: String,
    thread: String,
    noted: Mutex<Option<Value>>,
}

impl AttemptNote {
    /// For a step with this note of an earlier attempt.
    pub(crate) fn new(live: &Live, writer: &Arc<StepWriter>, note: Option<&Payload>) -> Self {
        Self {
            key: format!("{}:{}", live.thread, writer.step()),
            thread: live.thread.to_string(),
            writer: Arc::clone(writer),
            noted: Mutex::new(note.map(Payload::value)),
        }
    }
}

impl std::fmt::Debug for AttemptNote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("StepCall");
        out.field("key", &self.key).finish_non_exhaustive()
    }
}

impl CallRecord for AttemptNote {
    fn key(&self) -> &str {
        &self.key
    }

    fn conversation(&self) -> &str {
        &self.thread
    }

    fn noted(&self) -> Option<Value> {
        let noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.clone()
    }

    fn note(&self, note: Value) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            let written = self.writer.note(note.clone().into()).await;
            written.map_err(|_| Error::new(Code::Cancelled, "", "the step was stopped"))?;
            *self.noted.lock().unwrap_or_else(PoisonError::into_inner) = Some(note);
            Ok(())
        })
    }
}

/// A remote answer that was in progress and is no longer needed.
pub(crate) struct Abandoned {
    agent: Option<String>,
    note: Payload,
}

impl Abandoned {
    /// The running step's note; none if the step has a response.
    pub(crate) fn of(state: &State) -> Option<Self> {
        let active = state.active()?;
        let step = active.step.as_ref()?;
        let note = step.note.clone().filter(|_| step.response.is_none())?;
        Some(Self {
            agent: Run::of(active.execution.run.as_ref()).agent,
            note,
        })
    }
}

impl Runtime {
    /// Notifies the agent, in the background, that a step ended without a response. It does so
    /// once. A process that shuts down waits a few seconds for this and then leaves the remote work
    /// running.
    pub(crate) fn abandon(&self, abandoned: Option<Abandoned>) {
        // Outside of a runtime nothing runs any more that could tell.
        let (Some(abandoned), Ok(handle)) = (abandoned, Handle::try_current()) else {
            return;
        };
        let Some(reactor) = self.inner.reactors.find(abandoned.agent.as_deref()) else {
            return;
        };
        let shutdown = self.inner.shutdown.clone();
        let telling = async move {
            let told = AssertUnwindSafe(reactor.abandon(abandoned.note.value())).catch_unwind();
            let late = async {
                let _ = tokio::time::timeout(TELLING, shutdown.cancelled()).await;
                if shutdown.is_cancelled() {
                    tokio::time::sleep(GRACE).await;
                }
            };
            tokio::select! {
                biased;
                told = told => if told.is_err() {
                    tracing::error!("an agent panicked when a step of it was stopped");
                },
                () = late => {
                    tracing::warn!("an agent was not told in time that a step was stopped");
                }
            }
        };
        self.inner.tasks.spawn_on(telling, &handle);
    }
}
