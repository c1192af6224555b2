//! One step: the reactor is driven, and what it writes is gathered beside it.

use crate::attempt_note::AttemptNote;
use crate::children::{Scoped, StepAddress, StepChildren};
use crate::error::RuntimeError;
use crate::live::Live;
use crate::reactor::{Reacted, ReactorError, Resumed, StepRun};
use crate::runtime::Runtime;
use crate::writer::StepWriter;
use futures_util::FutureExt;
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use store::Run;
use timeline::{Ending, Execution, Interruption, Item, ItemType, OpenCall, Payload, Step, StepId};
use tokio_util::sync::CancellationToken;

/// What a step needs of the thread's state.
pub(super) struct StepInput {
    pub(super) execution: Execution,
    pub(super) trigger: Item,
    pub(super) step: Step,
    pub(super) open_calls: Vec<OpenCall>,
    pub(super) run: Run,
    pub(super) resumed: Option<Resumed>,
    /// What an attempt before has noted.
    pub(super) note: Option<Payload>,
    pub(super) memory: Option<Box<dyn Any + Send + Sync>>,
    pub(super) generation: u64,
    pub(super) signal: CancellationToken,
}

impl StepInput {
    /// The step whose response made the calls that this one runs.
    fn origin(&self) -> StepId {
        let is_later = self.step.iteration == 0 && self.trigger.item_type == ItemType::ActionResult;
        let mut open = self.open_calls.iter().filter(|_| is_later);
        let origin = open.find_map(|open| open.origin.as_ref());
        origin.unwrap_or(&self.step.id).clone()
    }
}

impl Runtime {
    /// One step, from wherever it stands to its end or the execution's. An error means that it is
    /// not known how it stands; the log knows.
    pub(super) async fn step(
        &self,
        live: &Arc<Live>,
        mut turn: StepInput,
    ) -> Result<(), RuntimeError> {
        let execution = turn.execution.id.clone();
        let Some(left) = self.time_left(&turn) else {
            return self.time_is_up(live, &execution).await;
        };
        let n_parts = turn.resumed.as_ref().map_or(0, |it| it.parts.len());
        let step = turn.step.id.clone();
        let writer = StepWriter::new(Arc::clone(live), execution.clone(), step, n_parts);
        let writer = Arc::new(writer);
        let signal = turn.signal.clone();
        let reacted = {
            let react = Scoped::new(&writer, self.reacted(live, &mut turn, &writer));
            let driven = driven(AssertUnwindSafe(react).catch_unwind(), &writer, &signal);
            match tokio::time::timeout(left, driven).await {
                Ok(reacted) => reacted,
                Err(_) => return self.time_is_up(live, &execution).await,
            }
        };
        match reacted {
            Ok(reacted) => match self.complete(live, &writer, &turn, reacted).await {
                Err(error) if !error.is_transient() => self.refused(live, &execution, error).await,
                done => done,
            },
            Err(ReactorError::Stopped) => match writer.fault() {
                None if signal.is_cancelled() => Ok(()),
                None => self.still_wanted(live, &execution).await,
                Some(error) if error.is_transient() => Err(error),
                Some(error) => self.refused(live, &execution, error).await,
            },
            Err(ReactorError::Failed { reason, detail }) => {
                // What the model had said before it failed is shown and kept, if it can be.
                if writer.flush().await.is_err()
                    && let Some(error) = writer.fault()
                    && error.is_transient()
                {
                    return Err(error);
                }
                let why = Interruption::new(reason, detail);
                self.ended(live, &execution, Ending::Failed(why)).await
            }
        }
    }

    async fn reacted(
        &self,
        live: &Arc<Live>,
        turn: &mut StepInput,
        writer: &Arc<StepWriter>,
    ) -> Result<Reacted, ReactorError> {
        let name = turn.run.agent.as_deref();
        let unknown = || {
            let name = name.unwrap_or_default();
            ReactorError::failed(format!("there is no agent named {name:?}"))
        };
        let reactor = self.inner.reactors.find(name).ok_or_else(unknown)?;
        let origin = turn.origin();
        let place = StepAddress {
            run: &turn.run,
            step: &turn.step,
            origin: &origin,
            open_calls: &turn.open_calls,
            signal: &turn.signal,
        };
        let children = StepChildren::new(self, live, writer, &place);
        let kept = AttemptNote::new(live, writer, turn.note.as_ref());
        let step = StepRun {
            call_record: Arc::new(kept),
            children: Arc::new(children),
            tenant: &live.tenant,
            thread: &live.thread,
            key: &live.key,
            origin: &origin,
            open_calls: &turn.open_calls,
            resumed: turn.resumed.take(),
            memory: turn.memory.take(),
            execution: &turn.execution,
            trigger: &turn.trigger,
            step: &turn.step,
            run: &turn.run,
            writer,
            signal: turn.signal.clone(),
        };
        reactor.react(step).await
    }

    /// How long the execution may still take; nothing, if its time is up. Counted from its
    /// beginning, restarts included.
    fn time_left(&self, turn: &StepInput) -> Option<Duration> {
        let limit = turn
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
            .duration_since(turn.execution.created_at);
        let left = limit.saturating_sub(Duration::try_from(taken).unwrap_or_default());
        (!left.is_zero()).then_some(left)
    }
}

/// Drives the reactor, and beside it the window in which its chunks are gathered. Neither waits
/// for the other: tools that end together each wait for the thread's lock in turn.
async fn driven(
    react: impl Future<Output = std::thread::Result<Result<Reacted, ReactorError>>>,
    writer: &StepWriter,
    signal: &CancellationToken,
) -> Result<Reacted, ReactorError> {
    let flusher = async {
        loop {
            writer.window().await;
            if writer.flush().await.is_err() {
                return;
            }
        }
    };
    let (mut react, mut flusher) = (std::pin::pin!(react), std::pin::pin!(flusher));
    let reacted = tokio::select! {
        biased;
        () = signal.cancelled() => return Err(ReactorError::Stopped),
        result = &mut react => result.unwrap_or_else(|_| {
            Err(ReactorError::failed("the agent panicked; the server's log says where"))
        }),
        () = &mut flusher => return Err(ReactorError::Stopped),
    };
    // What is being written is written to its end before the step's end is.
    tokio::select! {
        biased;
        () = writer.flushed() => {}
        () = &mut flusher => return Err(ReactorError::Stopped),
    }
    reacted
}
