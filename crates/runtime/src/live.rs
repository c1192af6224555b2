//! A thread in this process: its lock, its state and the tail of its log.

mod commit;
mod recent;
mod records;
mod size;
mod transcript;
mod unstored;

use recent::Recent;
use records::{apply, logged, with_reset};
pub(crate) use size::check_size;
pub(crate) use transcript::read_transcript;
use unstored::Unstored;

use crate::cache::Share;
use crate::clock::Clock;
use crate::error::RuntimeError;
use crate::growth::Growth;
use crate::observer::{Ended, Observer};
use crate::pages::{Pages, ThreadPages};
use crate::run_slots::Occupied;
use crate::runtime::Inner;
use crate::thread_changes::Subscriptions;
use jiff::{SignedDuration, Timestamp};
use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use store::{Epoch, Filter, NewRecord, Store, StoreError, TenantId, Token};
use timeline::{Command, ExecutionId, Payload, Seq, State, StepId, ThreadId, Transcript};
use tokio::sync::{Mutex, MutexGuard, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Maximum time that a thread's last event may be ahead of the clock for the next event to keep its
/// time. An event further ahead was written while the clock was wrong, or was imported.
const MAX_AHEAD: SignedDuration = SignedDuration::from_hours(24);

/// The cached state of one thread between runs may use 1/4 of the memory limit for threads.
const REMEMBERED_SHARE: usize = 4;

/// The tail of a log, and whether a run streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tail {
    pub(crate) seq: Seq,
    pub(crate) streaming: bool,
    /// The thread is deleted.
    pub(crate) gone: bool,
}

/// A reactor's value for its next step, and the agent and generation it is valid for.
pub(crate) struct Memory {
    pub(crate) agent: Option<String>,
    pub(crate) generation: u64,
    pub(crate) value: Box<dyn Any + Send + Sync>,
}

/// The thread's state that the owner of its lock can read and change.
pub(crate) struct Core {
    pub(crate) state: State,
    pub(crate) tail: Seq,
    epoch: Epoch,
    pub(crate) last_at: Timestamp,
    /// Counts changes of the history by others than the running step. Each change voids the
    /// reactor's memory.
    pub(crate) generation: u64,
    pub(crate) memory: Option<Memory>,
    /// The step that this process created or reset and has not run since, so it has no output.
    pub(crate) fresh: Option<StepId>,
    /// Whether the running attempt may have shown chunks that were lost, because another process
    /// had the thread. The next commit then voids the step before anything else.
    may_have_lost: bool,
    /// The chunks that followers see and the log does not have yet.
    unstored: Unstored,
    /// Whether an append was started whose result is unknown; then the log's contents are unknown.
    in_doubt: bool,
    /// Whether an append was refused because another process has claimed the thread.
    is_fenced: bool,
    /// The first records of a thread that does not exist yet; the log has none of them.
    unmade: Option<Vec<NewRecord>>,
}

impl Core {
    /// Whether the thread does not exist yet and its first commit creates it.
    pub(crate) fn is_pending(&self) -> bool {
        self.unmade.is_some()
    }

    /// Whether the running step may have chunks of a dead attempt, and no response.
    pub(crate) fn is_void(&self) -> bool {
        let step = self.state.active().and_then(|active| active.step.as_ref());
        step.is_some_and(|step| {
            step.response.is_none() && self.fresh.as_ref() != Some(&step.step.id)
        })
    }

    /// Whether the attempt at this running step can't continue, because chunks of it may be lost.
    fn is_lost(&self, step: &StepId) -> bool {
        let running = self.state.active().and_then(|active| active.step.as_ref());
        running.is_some_and(|running| running.step.id == *step)
            && (self.fresh.as_ref() == Some(step) || (self.may_have_lost && self.is_void()))
    }

    /// The approximate size of the state, in bytes.
    fn bytes(&self) -> usize {
        let texts = |payload: Option<&Payload>| payload.map_or(0, |it| it.text().len());
        let waiting = self.state.waiting();
        let waiting = waiting.map(|it| texts(it.item.content.as_ref()) + it.run.text().len());
        let step = self.state.active().and_then(|it| it.step.as_ref());
        let parts = step.into_iter().flat_map(|step| &step.parts);
        waiting.sum::<usize>() + parts.map(|part| part.text().len()).sum::<usize>()
    }

    fn warn_of_clock(&self, now: Timestamp, thread: &ThreadId) {
        if now < self.last_at {
            tracing::warn!(
                %thread, last = %self.last_at, %now,
                "the thread's last event is more than a day ahead of the clock; its next ones are not"
            );
        }
    }

    /// Decides commands in order.
    fn decided(
        &self,
        commands: impl IntoIterator<Item = (Option<Timestamp>, Command)>,
        now: Timestamp,
        max_bytes: usize,
    ) -> Result<Decided, RuntimeError> {
        let mut records = self.unstored.records().to_vec();
        let mut ended = Vec::new();
        let mut growth = Growth::default();
        let mut ahead: Option<State> = None;
        let mut n_ahead = records.len();
        let commands = if self.may_have_lost && self.is_void() {
            with_reset(commands)
        } else {
            commands.into_iter().collect()
        };
        let mut commands = commands.into_iter().peekable();
        while let Some((at, command)) = commands.next() {
            growth.note(&command);
            let at = at.unwrap_or(now);
            let state = ahead.as_ref().unwrap_or(&self.state);
            for event in state.decide(command, at)? {
                let running = self.state.active().map(|active| &active.execution);
                ended.extend(Ended::of(&event, running, at));
                let record = NewRecord::new(at, event)?;
                check_size(&record, max_bytes)?;
                records.push(record);
            }
            if commands.peek().is_some() {
                let state = ahead.get_or_insert_with(|| self.state.clone());
                apply(state, records.iter().skip(n_ahead));
                n_ahead = records.len();
            }
        }
        Ok(Decided {
            records,
            ended,
            growth,
            ahead,
            n_ahead,
        })
    }

    /// The time of the next append: never before the last event, unless that event is far ahead.
    fn instant(&self, now: Timestamp) -> Timestamp {
        if self.last_at.duration_since(now) > MAX_AHEAD {
            now
        } else {
            now.max(self.last_at)
        }
    }
}

/// The events of commands, and the state after them.
struct Decided {
    /// The chunks that are not stored yet, and the events of the commands.
    records: Vec<NewRecord>,
    ended: Vec<Ended>,
    growth: Growth,
    /// The state after all commands but the last; a refused command changes nothing.
    ahead: Option<State>,
    /// How many records that state has.
    n_ahead: usize,
}

pub(crate) struct Live {
    pub(crate) thread: ThreadId,
    pub(crate) tenant: TenantId,
    pub(crate) key: String,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    observer: Arc<dyn Observer>,
    core: Mutex<Option<Core>>,
    /// Locked while the thread is forked or deleted. Its owner takes no other lock, except that a
    /// deletion takes those of the threads above.
    forks: Mutex<()>,
    tail: watch::Sender<Tail>,
    recent: RwLock<Recent>,
    read: ThreadPages,
    pages: Arc<Pages>,
    subscriptions: Arc<Subscriptions>,
    pub(crate) share: Share,
    pub(crate) message_bytes: usize,
    /// The size of the log in the store, in bytes.
    log_bytes: AtomicUsize,
    used: std::sync::Mutex<Instant>,
    /// The thread's share of the process's limits, and the execution that this process runs.
    pub(crate) occupied: Occupied,
    /// Whether a task of this process works on the thread. Changed only by the owner of the lock.
    pub(crate) worked: AtomicBool,
    /// Cancelled to stop the execution that is being worked on.
    signal: std::sync::Mutex<Option<(ExecutionId, CancellationToken)>>,
}

/// The lock of a thread, with its state loaded.
pub(crate) struct LockedThread<'a> {
    live: &'a Live,
    slot: MutexGuard<'a, Option<Core>>,
}

impl Live {
    pub(crate) fn new(
        inner: &Inner,
        (tenant, key): (TenantId, String),
        thread: ThreadId,
        tail: Tail,
    ) -> Self {
        Self {
            occupied: Occupied::new(&inner.runs, &tenant),
            thread,
            tenant,
            key,
            store: Arc::clone(&inner.store),
            clock: Arc::clone(&inner.clock),
            observer: Arc::clone(&inner.observer),
            core: Mutex::new(None),
            forks: Mutex::default(),
            tail: watch::Sender::new(tail),
            recent: RwLock::default(),
            read: ThreadPages::default(),
            pages: Arc::clone(&inner.pages),
            subscriptions: Arc::clone(&inner.subscriptions),
            share: Share::new(Arc::clone(&inner.cache)),
            message_bytes: inner.options.message_bytes,
            log_bytes: AtomicUsize::new(0),
            used: std::sync::Mutex::new(Instant::now()),
            worked: AtomicBool::new(false),
            signal: std::sync::Mutex::default(),
        }
    }

    /// Sets the size of the thread's log in the store, in bytes.
    pub(crate) fn with_log(self, bytes: u64) -> Self {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        Self {
            log_bytes: AtomicUsize::new(bytes),
            ..self
        }
    }

    /// A thread to be created with these records and the first commit. It is no fork.
    pub(crate) fn pending(self, first: Vec<NewRecord>) -> Self {
        let mut state = State::default();
        apply(&mut state, &first);
        let last_at = first.last().map(|last| last.at);
        let records = logged(Seq::ZERO, first.clone());
        let core = Core {
            state,
            tail: Seq(first.len() as u64),
            epoch: Epoch::default(),
            last_at: last_at.unwrap_or(Timestamp::UNIX_EPOCH),
            generation: 0,
            memory: None,
            fresh: None,
            may_have_lost: false,
            unstored: Unstored::default(),
            in_doubt: false,
            is_fenced: false,
            unmade: Some(first),
        };
        Self {
            core: Mutex::new(Some(core)),
            recent: RwLock::new(Recent::of(records)),
            ..self
        }
    }

    /// Takes the thread's lock; claims the thread first if this process has not. A deleted thread
    /// is not found.
    pub(crate) async fn hold(&self) -> Result<LockedThread<'_>, RuntimeError> {
        self.loaded(self.core.lock().await).await
    }

    async fn loaded<'a>(
        &'a self,
        mut slot: MutexGuard<'a, Option<Core>>,
    ) -> Result<LockedThread<'a>, RuntimeError> {
        if self.tail.borrow().gone {
            return Err(StoreError::NotFound.into());
        }
        if slot.as_ref().is_none_or(|core| core.in_doubt) {
            let claim = self.store.claim(&self.thread).await?;
            // Nobody else wrote if nobody else claimed the thread.
            let before = slot.take();
            let before = before.filter(|before| before.epoch.0 + 1 == claim.epoch.0);
            let may_have_lost = before.as_ref().is_none_or(|before| before.may_have_lost);
            // An append that came through has stored the chunks that were not stored before it.
            let same = before.filter(|before| before.tail == claim.head.tail);
            self.forget_records(same.is_some());
            let unstored = same.map(|before| before.unstored).unwrap_or_default();
            let state = claim.head.state;
            let streaming = state.active().is_some();
            self.occupied.queue(state.waiting().len());
            self.tail.send_replace(Tail {
                seq: claim.head.tail,
                streaming,
                gone: false,
            });
            *slot = Some(Core {
                last_at: claim.head.last_at,
                tail: claim.head.tail,
                epoch: claim.epoch,
                state,
                // Never one of an earlier claim: requests may have changed the history meanwhile.
                generation: claim.epoch.0 << 32,
                memory: None,
                fresh: None,
                may_have_lost,
                unstored,
                in_doubt: false,
                is_fenced: false,
                unmade: None,
            });
        }
        Ok(LockedThread { live: self, slot })
    }

    /// Takes the thread's lock for the work on a run. It does not take back a thread that another
    /// process has claimed.
    ///
    /// # Errors
    ///
    /// [`StoreError::Fenced`] if another process has claimed the thread, as far as is known.
    pub(crate) async fn hold_run(&self) -> Result<LockedThread<'_>, RuntimeError> {
        let slot = self.core.lock().await;
        if slot.as_ref().is_some_and(|core| core.is_fenced) {
            let thread = self.thread.clone();
            return Err(StoreError::Fenced { thread }.into());
        }
        self.loaded(slot).await
    }

    /// Takes the thread's lock to write into the running step.
    ///
    /// # Errors
    ///
    /// [`StoreError::Fenced`] as in [`Self::hold_run`]. [`StoreError::Conflict`] if chunks of the
    /// step may be lost, or the step was reset: it must start again.
    pub(crate) async fn hold_step(&self, step: &StepId) -> Result<LockedThread<'_>, RuntimeError> {
        let mut held = self.hold_run().await?;
        let core = held.core()?;
        if core.is_lost(step) {
            return Err(self.conflict(core.tail).into());
        }
        Ok(held)
    }

    fn conflict(&self, found: Seq) -> StoreError {
        StoreError::Conflict {
            thread: self.thread.clone(),
            expected: Seq::ZERO,
            found,
        }
    }

    /// Waits until no other task forks or deletes the thread, and prevents both until the guard is
    /// dropped.
    pub(crate) async fn forks(&self) -> MutexGuard<'_, ()> {
        self.forks.lock().await
    }

    /// Creates the thread with all these records, unless it exists already.
    async fn make(
        &self,
        mut first: Vec<NewRecord>,
        records: Vec<NewRecord>,
        token: Option<Token>,
    ) -> Result<(Seq, Epoch), StoreError> {
        first.extend(records);
        let tail = Seq(first.len() as u64);
        let created = self.store.get_or_create(&self.tenant, first, token);
        let claim = created.await?.claim;
        let epoch = claim.ok_or_else(|| StoreError::KeyTaken(self.key.clone()))?;
        Ok((tail, epoch))
    }

    /// The signal of an execution: one for all attempts of this process at it.
    pub(crate) fn signal(
        &self,
        execution: &ExecutionId,
        parent: &CancellationToken,
    ) -> CancellationToken {
        let mut slot = self.signal.lock().unwrap_or_else(PoisonError::into_inner);
        match &*slot {
            Some((of, signal)) if of == execution => signal.clone(),
            Some(_) | None => {
                let signal = parent.child_token();
                *slot = Some((execution.clone(), signal.clone()));
                signal
            }
        }
    }

    /// Stops the work on an execution; the state refuses its later writes.
    pub(crate) fn stop(&self, execution: &ExecutionId) {
        let mut slot = self.signal.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, signal)) = slot.take_if(|(of, _)| of == execution) {
            signal.cancel();
        }
    }

    /// Notifies all followers that the thread is deleted.
    pub(crate) fn gone(&self) {
        self.tail.send_modify(|tail| tail.gone = true);
        self.subscriptions.wake(&self.tenant);
    }

    /// The last known position of the log.
    pub(crate) fn end(&self) -> Seq {
        self.tail.borrow().seq
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Tail> {
        self.tail.subscribe()
    }

    /// Whether a task of this process works on the thread.
    pub(crate) fn is_worked_on(&self) -> bool {
        self.worked.load(Ordering::Acquire)
    }

    /// Whether there is no follower and no run, so that the memory can be released.
    pub(crate) fn is_idle(&self) -> bool {
        self.tail.receiver_count() == 0 && !self.tail.borrow().streaming
    }

    /// Records that the thread is in use now.
    pub(crate) fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// The time of the thread's last use.
    pub(crate) fn used(&self) -> Instant {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Folds the whole log, a fork's ancestors first; from memory if it has all records.
    pub(crate) async fn transcript(&self, filter: Filter) -> Result<Transcript, RuntimeError> {
        if let Some(transcript) = self.remembered_whole(filter) {
            return Ok(transcript);
        }
        read_transcript(self.store.as_ref(), &self.thread, filter).await
    }
}

impl LockedThread<'_> {
    /// The thread's state, which is loaded when the lock is taken. After a failed append it is in
    /// doubt; the next owner of the lock loads it again.
    pub(crate) fn core(&mut self) -> Result<&mut Core, RuntimeError> {
        let core = self.slot.as_mut().filter(|core| !core.in_doubt);
        core.ok_or_else(|| self.live.conflict(Seq::ZERO).into())
    }

    /// Stores a reactor's value for its next step. Between runs it is stored only if the thread's
    /// log is at most 1/4 of the memory limit; otherwise the next run reads the log.
    pub(crate) fn remember(&mut self, memory: Option<Memory>) -> Result<(), RuntimeError> {
        let live = self.live;
        let bytes = live.log_bytes.load(Ordering::Relaxed);
        let core = self.core()?;
        let rests = core.state.active().is_none();
        let is_small = bytes <= live.share.cache().max_bytes() / REMEMBERED_SHARE;
        core.memory = memory.filter(|_| is_small || !rests);
        if rests {
            let remembered = if core.memory.is_some() { bytes } else { 0 };
            let recent = live.recent.read().unwrap_or_else(PoisonError::into_inner);
            live.share.set(recent.bytes + core.bytes() + remembered);
        }
        Ok(())
    }

    /// The last position of the log, and the time of the next append.
    pub(crate) fn next_position(&mut self) -> Result<(Seq, Timestamp), RuntimeError> {
        let now = self.live.clock.now();
        let core = self.core()?;
        Ok((core.tail, core.instant(now)))
    }
}
