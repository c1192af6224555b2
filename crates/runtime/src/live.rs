//! A thread in this process: its lock, its state, the tail of its log.

use crate::clock::Clock;
use crate::error::RuntimeError;
use crate::store::{Append, Epoch, Filter, Logged, NewRecord, Store, StoreError, TenantId, Token};
use jiff::Timestamp;
use std::any::Any;
use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock};
use timeline::{Command, ExecutionId, Record, Seq, State, ThreadId, ThreadStatus, Transcript};
use tokio::sync::{Mutex, MutexGuard, watch};
use tokio_util::sync::CancellationToken;

/// Records kept in memory for those who follow; older ones are read from the store.
const RECENT: usize = 512;
/// Records read from the store at once.
pub(crate) const PAGE: usize = 1_000;

/// Where a log ends, and whether more is coming.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tail {
    pub(crate) seq: Seq,
    pub(crate) streaming: bool,
}

/// What the owner of a thread's lock can see and change.
pub(crate) struct Core {
    pub(crate) state: State,
    pub(crate) tail: Seq,
    epoch: Epoch,
    last_at: Timestamp,
    /// What the reactor wants to be given at the next step. Void once anyone else changes history.
    pub(crate) memory: Option<Box<dyn Any + Send + Sync>>,
    pub(crate) runner: Option<(ExecutionId, CancellationToken)>,
    /// An append was begun and its answer has not been seen: what is in the log is not known.
    in_doubt: bool,
}

pub(crate) struct Live {
    pub(crate) thread: ThreadId,
    pub(crate) tenant: TenantId,
    pub(crate) key: String,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    core: Mutex<Option<Core>>,
    tail: watch::Sender<Tail>,
    recent: RwLock<VecDeque<Arc<Logged>>>,
}

/// The lock of a thread, with its state loaded.
pub(crate) struct Held<'a> {
    live: &'a Live,
    slot: MutexGuard<'a, Option<Core>>,
}

impl Live {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        tenant: TenantId,
        thread: ThreadId,
        key: String,
        tail: Tail,
    ) -> Self {
        Self {
            thread,
            tenant,
            key,
            store,
            clock,
            core: Mutex::new(None),
            tail: watch::Sender::new(tail),
            recent: RwLock::new(VecDeque::new()),
        }
    }

    /// Takes the thread's lock; claims the thread first if this process has not.
    pub(crate) async fn hold(&self) -> Result<Held<'_>, RuntimeError> {
        let mut slot = self.core.lock().await;
        if slot.as_ref().is_none_or(|core| core.in_doubt) {
            let runner = slot.take().and_then(|core| core.runner);
            let claim = self.store.claim(&self.thread).await?;
            let state = claim.head.state;
            self.tail.send_replace(Tail {
                seq: claim.head.tail,
                streaming: state.active().is_some(),
            });
            self.recent
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .clear();
            *slot = Some(Core {
                last_at: Timestamp::MIN,
                tail: claim.head.tail,
                epoch: claim.epoch,
                state,
                memory: None,
                runner,
                in_doubt: false,
            });
        }
        Ok(Held { live: self, slot })
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Tail> {
        self.tail.subscribe()
    }

    /// Whether nobody follows and nothing runs, so that the memory can be given back.
    pub(crate) fn is_idle(&self) -> bool {
        self.tail.receiver_count() == 0 && !self.tail.borrow().streaming
    }

    /// The records after `after`, from memory if they are there, else a page from the store.
    pub(crate) async fn after(&self, after: Seq) -> Result<Vec<Arc<Logged>>, StoreError> {
        if let Some(found) = self.remembered(after) {
            return Ok(found);
        }
        let page = self
            .store
            .read(&self.thread, after, PAGE, Filter::All)
            .await?;
        Ok(page.into_iter().map(Arc::new).collect())
    }

    fn remembered(&self, after: Seq) -> Option<Vec<Arc<Logged>>> {
        let recent = self.recent.read().unwrap_or_else(PoisonError::into_inner);
        let first = recent.front()?.record.seq;
        let skip = after.next().0.checked_sub(first.0)?;
        Some(
            recent
                .iter()
                .skip(usize::try_from(skip).ok()?)
                .cloned()
                .collect(),
        )
    }

    fn publish(&self, records: Vec<Arc<Logged>>, tail: Tail) {
        let mut recent = self.recent.write().unwrap_or_else(PoisonError::into_inner);
        recent.extend(records);
        let excess = recent.len().saturating_sub(RECENT);
        recent.drain(..excess);
        drop(recent);
        self.tail.send_replace(tail);
    }

    /// Folds the whole log, a fork's ancestors first.
    pub(crate) async fn transcript(&self, filter: Filter) -> Result<Transcript, StoreError> {
        read_transcript(self.store.as_ref(), &self.thread, filter).await
    }
}

/// Folds a thread's log from its first event; a fork begins with what its parent had.
pub(crate) async fn read_transcript(
    store: &dyn Store,
    thread: &ThreadId,
    filter: Filter,
) -> Result<Transcript, StoreError> {
    let mut chain = vec![(thread.clone(), Seq(u64::MAX))];
    while let Some(fork) = match chain.last() {
        Some((id, _)) => store.row(id).await?.thread.fork,
        None => None,
    } {
        chain.push((fork.thread_id, fork.seq));
    }
    let mut transcript = Transcript::default();
    while let Some((id, end)) = chain.pop() {
        transcript = transcript.continued();
        'log: loop {
            let page = store.read(&id, transcript.seq, PAGE, filter).await?;
            if page.is_empty() {
                break;
            }
            for logged in &page {
                if logged.record.seq > end {
                    break 'log;
                }
                transcript.apply(&logged.record);
            }
        }
    }
    Ok(transcript)
}

impl Held<'_> {
    /// The thread's state. A lock is only given with the state loaded; it is gone after a failed
    /// append, and the next one who takes the lock loads it anew.
    pub(crate) fn core(&mut self) -> Result<&mut Core, RuntimeError> {
        self.slot
            .as_mut()
            .ok_or(RuntimeError::Store(StoreError::Conflict {
                thread: self.live.thread.clone(),
                expected: Seq::ZERO,
                found: Seq::ZERO,
            }))
    }

    /// Decides all commands in order and appends their events in one transaction: all or none.
    pub(crate) async fn commit(
        &mut self,
        commands: impl IntoIterator<Item = (Option<Timestamp>, Command)>,
        token: Option<Token>,
    ) -> Result<Seq, RuntimeError> {
        let live = self.live;
        let core = self.core()?;
        let now = live.clock.now().max(core.last_at);
        let mut state = core.state.clone();
        let mut records = Vec::new();
        for (at, command) in commands {
            let at = at.unwrap_or(now);
            for event in state.decide(command, at)? {
                state.apply(&event);
                let text = event.encode()?.into();
                records.push(NewRecord { at, event, text });
            }
        }
        if records.is_empty() {
            return Ok(core.tail);
        }
        let append = Append {
            thread: live.thread.clone(),
            epoch: core.epoch,
            tail: core.tail,
            records: records.clone(),
            token,
        };
        core.in_doubt = true;
        let answer = live.store.append(append).await;
        core.in_doubt = false;
        match answer {
            Ok(tail) => {
                let first = core.tail;
                core.tail = tail;
                core.last_at = now;
                core.state = state;
                let streaming = core
                    .state
                    .thread()
                    .is_some_and(|thread| thread.status == ThreadStatus::Streaming);
                live.publish(
                    logged(first, records),
                    Tail {
                        seq: tail,
                        streaming,
                    },
                );
                Ok(tail)
            }
            Err(error) => {
                // Whether a failed append is in the log is not known here; the log knows.
                if matches!(
                    error,
                    StoreError::Conflict { .. } | StoreError::Fenced { .. } | StoreError::Failed(_)
                ) {
                    if let Some((_, signal)) = core.runner.take() {
                        signal.cancel();
                    }
                    *self.slot = None;
                }
                Err(error.into())
            }
        }
    }
}

fn logged(first: Seq, records: Vec<NewRecord>) -> Vec<Arc<Logged>> {
    let mut seq = first;
    records
        .into_iter()
        .map(|new| {
            seq = seq.next();
            Arc::new(Logged {
                record: Record {
                    seq,
                    at: new.at,
                    event: new.event,
                },
                text: new.text,
            })
        })
        .collect()
}
