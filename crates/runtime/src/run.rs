//! The work on a thread: execution after execution, step after step, until it is at rest (EK §7).

use crate::children::{Children, Place, Scoped, StoppedChildren, waiting_parent};
use crate::error::{RuntimeError, told};
use crate::kept::StepCall;
use crate::live::{Held, Live, Memory};
use crate::react::Runtime;
use crate::reactor::{Reacted, ReactorError, Resumed, StepRun};
use crate::request::Run;
use crate::store::StoreError;
use crate::writer::{StepWriter, substate};
use futures_util::FutureExt;
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use timeline::{
    Active, Command, Ending, Execution, ExecutionId, Interruption, Item, ItemType, OpenCall,
    Payload, Step, StepId, ThreadId,
};
use tokio_util::sync::CancellationToken;

/// How long the work waits after the store failed under it, for the first time.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// And at most, when it goes on failing.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// What a step needs of the thread's state.
struct Turn {
    execution: Execution,
    trigger: Item,
    step: Step,
    open_calls: Vec<OpenCall>,
    run: Run,
    resumed: Option<Resumed>,
    /// What an attempt before has noted.
    note: Option<Payload>,
    memory: Option<Box<dyn Any + Send + Sync>>,
    generation: u64,
    signal: CancellationToken,
}

impl Turn {
    /// The step whose response made the calls that this one runs.
    fn origin(&self) -> StepId {
        let is_later = self.step.iteration == 0 && self.trigger.item_type == ItemType::ActionResult;
        let mut open = self.open_calls.iter().filter(|_| is_later);
        let origin = open.find_map(|open| open.origin.as_ref());
        origin.unwrap_or(&self.step.id).clone()
    }
}

/// Deleted, closed, or another process's by now: nothing is left to do here.
fn is_elsewhere(error: &RuntimeError) -> bool {
    matches!(
        error,
        RuntimeError::Store(StoreError::NotFound | StoreError::Closed | StoreError::Fenced { .. })
    )
}

/// A thread is free for another worker when this one is gone, however it went.
struct Worked {
    live: Arc<Live>,
    /// Whether the thread is still marked as this worker's; it says so itself when it is at rest.
    mine: bool,
}

impl Drop for Worked {
    fn drop(&mut self) {
        if self.mine {
            self.live.worked.store(false, Ordering::Release);
        }
    }
}

/// A step that is taken up again for a sub-agent that goes on does that as soon as it can; one that
/// comes back again and again does it with pauses.
#[derive(Default)]
struct Again {
    step: Option<StepId>,
    pause: Duration,
}

impl Again {
    async fn paused(&mut self, turn: &Turn) {
        if self.step.as_ref() != Some(&turn.step.id) {
            self.step = Some(turn.step.id.clone());
            self.pause = Duration::ZERO;
            return;
        }
        let sleep = tokio::time::sleep(self.pause);
        let _ = turn.signal.run_until_cancelled(sleep).await;
        self.pause = (self.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
    }
}

impl Runtime {
    /// Sees to it that a thread with something to do has exactly one task of this process that
    /// works on it. Whoever writes calls this before it gives the lock back.
    pub(crate) fn ensure_worker(
        &self,
        live: &Arc<Live>,
        held: &mut Held<'_>,
    ) -> Result<(), RuntimeError> {
        let state = &held.core()?.state;
        let idle = state.active().is_none() && state.waiting().len() == 0;
        if idle || self.inner.shutdown.is_cancelled() || live.worked.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let (runtime, worked) = (
            self.clone(),
            Worked {
                live: Arc::clone(live),
                mine: true,
            },
        );
        self.inner.running.fetch_add(1, Ordering::Relaxed);
        self.inner.tasks.spawn(async move {
            // Named whole, so that the whole of it lives here and is dropped here.
            let mut worked = worked;
            let rests = runtime.work(&worked.live).await;
            worked.mine = !rests;
            runtime.inner.running.fetch_sub(1, Ordering::Relaxed);
            drop(worked);
        });
        Ok(())
    }

    /// Works until the thread is at rest or the process stops; a store that fails is asked again.
    /// Answers whether it found the thread at rest, and free for another worker.
    async fn work(&self, live: &Arc<Live>) -> bool {
        let mut pause = FIRST_PAUSE;
        let mut again = Again::default();
        while !self.inner.shutdown.is_cancelled() {
            let done = match self.turn(live).await {
                Ok(None) => return true,
                Ok(Some(turn)) => {
                    again.paused(&turn).await;
                    self.step(live, turn).await
                }
                Err(error) => Err(error),
            };
            match done {
                Ok(()) => pause = FIRST_PAUSE,
                Err(error) if is_elsewhere(&error) => return false,
                Err(error) => pause = self.paused(&live.thread, &error, pause).await,
            }
        }
        false
    }

    /// Sees to it that a thread is worked on if the store has it and something is to be done there.
    pub(crate) fn look_after(&self, thread: ThreadId) {
        let runtime = self.clone();
        self.inner.tasks.spawn(async move {
            let mut pause = FIRST_PAUSE;
            while !runtime.inner.shutdown.is_cancelled() {
                match runtime.recover_one(&thread).await {
                    Ok(()) => return,
                    Err(error) if is_elsewhere(&error) => return,
                    Err(error) => pause = runtime.paused(&thread, &error, pause).await,
                }
            }
        });
    }

    async fn paused(&self, thread: &ThreadId, error: &RuntimeError, pause: Duration) -> Duration {
        tracing::error!(error = told(error), %thread, ?pause, "the work on a thread failed and goes on after a pause");
        let sleep = tokio::time::sleep(pause);
        let _ = self.inner.shutdown.run_until_cancelled(sleep).await;
        (pause * 2).min(LONGEST_PAUSE)
    }

    /// What is to be done next; nothing, if the thread is at rest. An attempt that died may have
    /// shown half an answer: it is void before the next one speaks (ruling 10).
    async fn turn(&self, live: &Arc<Live>) -> Result<Option<Turn>, RuntimeError> {
        let mut held = live.hold().await?;
        if held.core()?.state.active().is_none() && held.core()?.state.waiting().len() > 0 {
            let state = &held.core()?.state;
            let start = self.start_waiting(state, waiting_parent(state))?;
            held.commit([(None, start)], None).await?;
        }
        let core = held.core()?;
        let Some(step) = core.state.active().map(|active| active.step.as_ref()) else {
            // Under the lock: whoever begins something from here on finds no worker and makes one.
            live.worked.store(false, Ordering::Release);
            return Ok(None);
        };
        let void = step.is_some_and(|step| {
            step.response.is_none() && core.fresh.as_ref() != Some(&step.step.id)
        });
        if void {
            held.commit([(None, Command::ResetStep)], None).await?;
        }
        let core = held.core()?;
        core.fresh = None;
        let generation = core.generation;
        let memory = core.memory.take();
        let Some(active) = core.state.active() else {
            return Ok(None);
        };
        let run = Run::of(active.execution.run.as_ref());
        let (Some(step), Some(trigger)) = (&active.step, &active.trigger) else {
            let detail = "the log has no step or no trigger for this execution".to_owned();
            let why = Interruption {
                reason: "error".into(),
                detail: Some(detail),
            };
            let id = active.execution.id.clone();
            self.end(live, &mut held, &id, Ending::Failed(why)).await?;
            drop(held);
            return Box::pin(self.turn(live)).await;
        };
        let memory =
            memory.filter(|memory| memory.generation == generation && memory.agent == run.agent);
        Ok(Some(Turn {
            execution: active.execution.clone(),
            trigger: trigger.clone(),
            step: step.step.clone(),
            open_calls: active.open_calls.clone(),
            resumed: step.response.clone().map(|response| Resumed {
                parts: step.parts.clone(),
                response,
                started: step.started.clone(),
            }),
            note: step.note.clone(),
            memory: memory.map(|memory| memory.value),
            generation,
            signal: live.signal(&active.execution.id, &self.inner.shutdown),
            run,
        }))
    }

    /// One step, from wherever it stands to its end or the execution's. An error means that it is
    /// not known how it stands; the log knows.
    async fn step(&self, live: &Arc<Live>, mut turn: Turn) -> Result<(), RuntimeError> {
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
                self.ended(
                    live,
                    &execution,
                    Ending::Failed(Interruption {
                        reason,
                        detail: Some(detail),
                    }),
                )
                .await
            }
        }
    }

    async fn reacted(
        &self,
        live: &Arc<Live>,
        turn: &mut Turn,
        writer: &Arc<StepWriter>,
    ) -> Result<Reacted, ReactorError> {
        let name = turn.run.agent.as_deref();
        let reactor = self
            .inner
            .reactors
            .find(name)
            .ok_or_else(|| ReactorError::Failed {
                reason: "error".into(),
                detail: format!("there is no agent named {:?}", name.unwrap_or_default()),
            })?;
        let origin = turn.origin();
        let place = Place {
            run: &turn.run,
            step: &turn.step,
            origin: &origin,
            open_calls: &turn.open_calls,
            signal: &turn.signal,
        };
        let children = Children::new(self, live, writer, &place);
        let kept = StepCall::new(live, writer, turn.note.as_ref());
        let step = StepRun {
            kept: Arc::new(kept),
            children,
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
    fn time_left(&self, turn: &Turn) -> Option<Duration> {
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

    async fn time_is_up(
        &self,
        live: &Arc<Live>,
        execution: &ExecutionId,
    ) -> Result<(), RuntimeError> {
        let detail = Some("the execution took longer than it may".to_owned());
        let why = Interruption {
            reason: "timeout".into(),
            detail,
        };
        self.ended(live, execution, Ending::Stopped(why)).await
    }

    /// The state or the store refuses what the step wrote, and would again: the execution fails.
    async fn refused(
        &self,
        live: &Arc<Live>,
        execution: &ExecutionId,
        error: RuntimeError,
    ) -> Result<(), RuntimeError> {
        if matches!(error, RuntimeError::Store(StoreError::Fenced { .. })) {
            return Err(error);
        }
        let detail = Some(format!(
            "the thread can't be read or written: {}",
            told(&error)
        ));
        self.ended(
            live,
            execution,
            Ending::Failed(Interruption {
                reason: "error".into(),
                detail,
            }),
        )
        .await
    }

    /// A reactor that stopped although nobody asked it to would stop again: the execution fails.
    async fn still_wanted(
        &self,
        live: &Arc<Live>,
        execution: &ExecutionId,
    ) -> Result<(), RuntimeError> {
        let detail = Some("the agent stopped by itself".to_owned());
        self.ended(
            live,
            execution,
            Ending::Failed(Interruption {
                reason: "error".into(),
                detail,
            }),
        )
        .await
    }

    /// Ends the execution if it is still the one that runs.
    async fn ended(
        &self,
        live: &Arc<Live>,
        execution: &ExecutionId,
        ending: Ending,
    ) -> Result<(), RuntimeError> {
        let mut held = live.hold().await?;
        if held
            .core()?
            .state
            .active()
            .is_none_or(|active| active.execution.id != *execution)
        {
            return Ok(());
        }
        self.end(live, &mut held, execution, ending).await
    }

    async fn complete(
        &self,
        live: &Arc<Live>,
        writer: &StepWriter,
        turn: &Turn,
        mut reacted: Reacted,
    ) -> Result<(), RuntimeError> {
        let mut held = live.hold().await?;
        let core = held.core()?;
        let mine = core.state.active().and_then(|active| active.step.as_ref());
        if mine.is_none_or(|step| step.step.id != turn.step.id) {
            return Ok(());
        }
        let left = reacted.outcome.open_calls.clone();
        let began = (turn.open_calls.as_slice(), &turn.trigger);
        if !self.still_wait(left.as_ref(), began).await? {
            // A sub-agent goes on meanwhile: the step is taken up where it stands.
            let commands = writer.take().into_iter();
            held.commit(commands.map(|command| (None, command)), None)
                .await?;
            return Ok(());
        }
        let n_steps = turn.step.iteration.saturating_add(1);
        let exhausted = turn.run.max_steps.is_some_and(|max| n_steps >= max);
        let transfer = self.transfer(reacted.handoff.take(), &turn.run, &turn.trigger)?;
        let next = (reacted.wants_more && !exhausted && transfer.is_none())
            .then(|| self.inner.ids.mint().into());
        let more = next.is_some();
        let mut commands = writer.take();
        if reacted.outcome.tool_calls.is_some() {
            commands.push(substate(false));
        }
        if let Some(transfer) = &transfer {
            reacted.memory = None;
            commands.extend(transfer.event.clone());
        }
        commands.push(Command::CompleteStep {
            outcome: reacted.outcome,
            next,
        });
        if !more {
            // An empty list is left where nobody can answer.
            let is_overtaken = core.state.active().is_some_and(Active::is_overtaken);
            let waits = !OpenCall::list(left.as_ref()).is_empty() && !is_overtaken;
            let goes_on = transfer.as_ref().is_some_and(|it| it.start.is_some());
            if !goes_on && !waits {
                self.wake_parents(live, turn.run.parent.as_ref()).await?;
            }
            let ending = if let Some(transfer) = &transfer {
                transfer.ending.clone()
            } else if reacted.wants_more {
                let detail = format!(
                    "the limit of {} steps is reached",
                    turn.run.max_steps.unwrap_or_default()
                );
                Ending::Stopped(Interruption {
                    reason: "max_steps".into(),
                    detail: Some(detail),
                })
            } else {
                Ending::Completed
            };
            commands.push(Command::End { ending });
            if let Some(start) = transfer.and_then(|transfer| transfer.start) {
                commands.push(start);
            } else if core.state.waiting().len() > 0 {
                let parent = turn.run.parent.clone().filter(|_| waits);
                commands.push(self.start_waiting(&core.state, parent)?);
            }
        }
        held.commit(commands.into_iter().map(|command| (None, command)), None)
            .await?;
        let core = held.core()?;
        let unwanted = StoppedChildren::left(left.as_ref(), &core.state);
        self.stop_children(unwanted);
        // What came to the history from elsewhere while the step ran is not in what it remembers.
        if core.generation == turn.generation {
            let (agent, generation) = (turn.run.agent.clone(), turn.generation);
            core.memory = reacted.memory.map(|value| Memory {
                agent,
                generation,
                value,
            });
        }
        Ok(())
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
            let detail = "the agent panicked; the server's log says where".to_owned();
            Err(ReactorError::Failed { reason: "error".into(), detail })
        }),
        () = &mut flusher => return Err(ReactorError::Stopped),
    };
    // What is being written is written to its end before the step's end is.
    tokio::select! {
        biased;
        () = writer.settled() => {}
        () = &mut flusher => return Err(ReactorError::Stopped),
    }
    reacted
}
