//! Runs one step: drives the reactor and concurrently writes what it buffers.

use super::is_elsewhere;
use crate::children::Scoped;
use crate::error::RuntimeError;
use crate::live::Live;
use crate::reactor::{Reacted, ReactorError, StepRun};
use crate::runtime::Runtime;
use crate::writer::StepWriter;
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use timeline::{Active, ActiveStep, Ending, Interruption, Item, ItemType, StepId};
use tokio_util::sync::CancellationToken;

/// The step whose response made the calls that this one runs.
pub(super) fn origin<'a>(active: &'a Active, step: &'a ActiveStep, trigger: &Item) -> &'a StepId {
    let is_later = step.step.iteration == 0 && trigger.item_type == ItemType::ActionResult;
    let mut open = active.open_calls.iter().filter(|_| is_later);
    let origin = open.find_map(|open| open.origin.as_ref());
    origin.unwrap_or(&step.step.id)
}

impl Runtime {
    /// Runs one step from its stored progress to its end, or to the execution's. After an error,
    /// the step's state must be read from the log again.
    pub(super) async fn step(
        &self,
        live: &Arc<Live>,
        step: &mut StepRun,
    ) -> Result<(), RuntimeError> {
        let execution = step.execution.id.clone();
        let Some(left) = self.time_left(step) else {
            return self.time_is_up(live, &execution).await;
        };
        let (writer, signal) = (Arc::clone(&step.writer), step.signal.clone());
        let reacted = {
            let react = Scoped::new(&writer, self.reacted(step));
            let driven = driven(AssertUnwindSafe(react).catch_unwind(), &writer, &signal);
            match tokio::time::timeout(left, driven).await {
                Ok(reacted) => reacted,
                Err(_) => return self.time_is_up(live, &execution).await,
            }
        };
        match reacted {
            Ok(reacted) => match self.complete(live, step, reacted).await {
                Err(error) if !error.is_transient() => self.refused(live, &execution, error).await,
                done => done,
            },
            Err(ReactorError::Stopped) => match writer.fault() {
                None if signal.is_cancelled() => Ok(()),
                None => self.still_wanted(live, &execution).await,
                Some(error) if error.is_transient() => Err(error),
                Some(error) => self.refused(live, &execution, error).await,
            },
            // The next turn resets the step.
            Err(ReactorError::Again) => Ok(()),
            Err(ReactorError::Failed { reason, detail }) => {
                // What the model had said before it failed is shown and kept, if it can be.
                if writer.write().await.is_err()
                    && let Some(error) = writer.fault()
                    && (error.is_transient() || is_elsewhere(&error))
                {
                    return Err(error);
                }
                let why = Interruption::new(reason, detail);
                self.ended(live, &execution, Ending::Failed(why)).await
            }
        }
    }

    async fn reacted(&self, step: &mut StepRun) -> Result<Reacted, ReactorError> {
        let name = step.run.agent.as_deref();
        let Some(reactor) = self.inner.reactors.find(name) else {
            let name = name.unwrap_or_default();
            return Err(ReactorError::failed(format!(
                "there is no agent named {name:?}"
            )));
        };
        reactor.react(step).await
    }

    /// The execution's remaining time; none if it is used up. It counts from the execution's start,
    /// restarts included.
    fn time_left(&self, step: &StepRun) -> Option<Duration> {
        let limit = step
            .run
            .timeout_ms
            .map(Duration::from_millis)
            .or(self.inner.options.run_timeout);
        let Some(limit) = limit else {
            return Some(Duration::MAX);
        };
        let taken = self
            .inner
            .clock
            .now()
            .duration_since(step.execution.created_at);
        let left = limit.saturating_sub(Duration::try_from(taken).unwrap_or_default());
        (!left.is_zero()).then_some(left)
    }
}

/// Drives the reactor, and concurrently writes what is due. The reactor goes first: what it buffers
/// until it pauses is written together.
async fn driven(
    react: impl Future<Output = std::thread::Result<Result<Reacted, ReactorError>>>,
    writer: &StepWriter,
    signal: &CancellationToken,
) -> Result<Reacted, ReactorError> {
    let mut react = std::pin::pin!(react);
    let mut writing = std::pin::pin!(writer.write_when_due());
    let reacted = loop {
        tokio::select! {
            biased;
            () = signal.cancelled() => return Err(ReactorError::Stopped),
            result = &mut react => break result,
            written = &mut writing => {
                written?;
                writing.set(writer.write_when_due());
            }
        }
    };
    if writer.is_writing() {
        // It is written to its end before the step's end is.
        writing.await?;
    }
    reacted.unwrap_or_else(|_| {
        Err(ReactorError::failed(
            "the agent panicked; the server's log says where",
        ))
    })
}
