//! A thread in this process: its lock, its state and the tail of its log.

mod commit;
mod load;
mod recent;
mod records;
mod restate;
mod size;
mod transcript;
mod unstored;

use recent::Recent;
use records::{apply, logged};
pub(crate) use size::check_size;
pub(crate) use transcript::read_transcript;
use unstored::Unstored;

use crate::cache::Share;
use crate::clock::Clock;
use crate::error::RuntimeError;
use crate::growth::Growth;
use crate::lease::Node;
use crate::observer::{Ended, Observer};
use crate::pages::{Pages, ThreadPages};
use crate::planted::{self, Bug};
use crate::run_slots::Occupied;
use crate::runtime::Inner;
use crate::thread_changes::Subscriptions;
use jiff::{SignedDuration, Timestamp};
use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use store::{Appended, Epoch, Filter, NewRecord, NodeId, Store, StoreError, TenantId, Token};
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

/// Why the state in memory may not be that of the log.
#[derive(Debug)]
enum Doubt {
    /// Another node has appended, or has taken the run.
    Overtaken,
    /// The result of an append is unknown. The append is in the log if its first record is.
    Unknown {
        /// The text of its first record.
        first: Arc<str>,
        /// Whether the append takes the run.
        takes: bool,
    },
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
    /// Whether this process owns the run: it has started or taken up the execution.
    pub(crate) owns: bool,
    /// Another living node that owns the run, as far as is known.
    pub(crate) owner: Option<NodeId>,
    pub(crate) last_at: Timestamp,
    /// Counts changes of the history by others than the running step. Each change voids the
    /// reactor's memory.
    pub(crate) generation: u64,
    pub(crate) memory: Option<Memory>,
    /// The step that this process created or reset and has not run since, so it has no output.
    pub(crate) fresh: Option<StepId>,
    /// The chunks that followers see and the log does not have yet.
    unstored: Unstored,
    /// Why the state may not be that of the log; then the next owner of the lock loads it.
    doubt: Option<Doubt>,
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
            step.response.is_none()
                && self.fresh.as_ref() != Some(&step.step.id)
                && !planted::has(Bug::ResumesWithoutReset)
        })
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
    node: Arc<Node>,
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
    /// Whether an append with an unknown result may have started a run.
    may_have_started: AtomicBool,
    /// How often an append was refused because another node had written.
    n_overtaken: AtomicU32,
    /// How often the store has lost the end of the log.
    n_shortened: AtomicU32,
    /// Until when somebody follows the thread at another node, as far as is known.
    watched: std::sync::Mutex<Option<Instant>>,
    /// The thread's share of the process's limits.
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
            node: Arc::clone(&inner.node),
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
            may_have_started: AtomicBool::new(false),
            n_overtaken: AtomicU32::new(0),
            n_shortened: AtomicU32::new(0),
            watched: std::sync::Mutex::default(),
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
            owns: false,
            owner: None,
            last_at: last_at.unwrap_or(Timestamp::UNIX_EPOCH),
            generation: 0,
            memory: None,
            fresh: None,
            unstored: Unstored::default(),
            doubt: None,
            unmade: Some(first),
        };
        Self {
            core: Mutex::new(Some(core)),
            recent: RwLock::new(Recent::of(records)),
            ..self
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
        owner: Option<NodeId>,
    ) -> Result<Appended, StoreError> {
        first.extend(records);
        let tail = Seq(first.len() as u64);
        let created = self.store.get_or_create(&self.tenant, first, token, owner);
        let epoch = created.await?.epoch;
        let epoch = epoch.ok_or_else(|| StoreError::KeyTaken(self.key.clone()))?;
        Ok(Appended { tail, epoch })
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

    /// Stops the work on every execution but this one.
    fn stop_unless(&self, active: Option<&ExecutionId>) {
        let mut slot = self.signal.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, signal)) = slot.take_if(|(of, _)| Some(&*of) != active) {
            signal.cancel();
        }
    }

    /// Notifies all followers that the thread is deleted.
    pub(crate) fn gone(&self) {
        self.tail.send_modify(|tail| tail.gone = true);
        self.subscriptions.wake(&self.tenant);
    }

    /// Whether a run streams that another node works on, as far as is known.
    pub(crate) fn streams_at_other_node(&self) -> bool {
        self.tail.borrow().streaming && !self.is_worked_on()
    }

    /// Whether an append with an unknown result may have started a run since the last call, which clears the mark.
    pub(crate) fn take_unknown_start(&self) -> bool {
        self.may_have_started.swap(false, Ordering::AcqRel)
    }

    /// Whether somebody waits for its records.
    pub(crate) fn is_followed(&self) -> bool {
        self.tail.receiver_count() > 0
    }

    /// Whether the store has the thread, or had it.
    pub(crate) fn is_made(&self) -> bool {
        // A thread whose state is in use is about to be made, or is there.
        let core = self.core.try_lock();
        core.is_ok_and(|core| core.as_ref().is_none_or(|core| !core.is_pending()))
    }

    /// Whether the thread is deleted, as far as is known.
    pub(crate) fn is_gone(&self) -> bool {
        self.tail.borrow().gone
    }

    /// The last known position of the log.
    pub(crate) fn end(&self) -> Seq {
        self.tail.borrow().seq
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Tail> {
        self.tail.subscribe()
    }

    /// Whether other processes write to the store too.
    pub(crate) fn is_shared(&self) -> bool {
        self.store.is_shared()
    }

    /// Changes when the store has not answered for so long that followers must read at another node.
    pub(crate) fn lost(&self) -> watch::Receiver<()> {
        self.node.lost()
    }

    /// Ends the work on the thread. A worker that rests calls it under the thread's lock: a run that starts from then on
    /// finds no worker, and gets one.
    pub(crate) fn release(&self) {
        self.occupied.release();
        self.worked.store(false, Ordering::Release);
    }

    /// Whether a task of this process works on the thread.
    pub(crate) fn is_worked_on(&self) -> bool {
        self.worked.load(Ordering::Acquire)
    }

    /// Whether there is no follower and no work here, so that the memory can be released.
    pub(crate) fn is_idle(&self) -> bool {
        self.tail.receiver_count() == 0 && !self.is_worked_on()
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
