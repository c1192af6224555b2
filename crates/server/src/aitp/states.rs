//! The AITP states of threads, cached in memory and folded on as their logs grow.

use interop::aitp::AitpState;
use runtime::objects::NewObject;
use runtime::{Filter, Runtime, RuntimeError, StoreError, ThreadRow};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use timeline::{Seq, ThreadId};
use tokio::sync::{Mutex, OwnedMutexGuard};

/// The kind of the sidecar objects with snapshots.
const KIND: &str = "aitp.desk";
/// Maximum number of states in memory.
const MAX_DESKS: usize = 512;
/// Number of records read at once.
const PAGE: usize = 1_000;
/// Number of events after which a snapshot is renewed. It bounds the records that a state costs to load,
/// whatever the thread's length.
const SNAPSHOT_EVERY: u64 = 1_000;

/// The AITP states of the threads of one runtime.
///
/// A state in memory is folded on with the newer events. Any other starts from the thread's snapshot.
/// Without a snapshot, as for a thread new to AITP, the whole log is read once. A fork starts from its
/// parent's state.
pub(crate) struct AitpStates {
    runtime: Runtime,
    /// Whether to store snapshots.
    keeps: bool,
    slots: std::sync::Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    by_thread: BTreeMap<ThreadId, (u64, Shared)>,
    n_uses: u64,
}

type Shared = Arc<Mutex<Slot>>;

/// The slot of one state, with the position it is folded to.
#[derive(Default)]
pub(crate) struct Slot {
    folded: Option<Folded>,
}

/// A state, and how far its log was read. That may be further than it was folded, since chunks do not
/// change it.
#[derive(Clone, Default)]
struct Folded {
    desk: AitpState,
    seen: Seq,
    /// The position of the snapshot.
    kept: Seq,
}

/// An AITP state under its lock.
pub(crate) struct LockedAitpState(OwnedMutexGuard<Slot>);

impl LockedAitpState {
    /// The desk.
    pub(crate) fn get(&self) -> Option<&AitpState> {
        self.0.folded.as_ref().map(|folded| &folded.desk)
    }

    /// The state, to be completed with the fields of forms.
    pub(crate) fn get_mut(&mut self) -> Option<&mut AitpState> {
        self.0.folded.as_mut().map(|folded| &mut folded.desk)
    }
}

impl AitpStates {
    /// An empty cache. `keeps` enables snapshots.
    pub(crate) fn new(runtime: Runtime, keeps: bool) -> Self {
        Self {
            runtime,
            keeps,
            slots: std::sync::Mutex::default(),
        }
    }

    /// The runtime of these threads.
    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// The state of a thread, with everything up to this event.
    pub(crate) async fn at(
        &self,
        thread: &ThreadId,
        tail: Seq,
    ) -> Result<LockedAitpState, RuntimeError> {
        let mut slot = self.slot(thread).lock_owned().await;
        let mut folded = match slot.folded.take() {
            Some(folded) => folded,
            None => self.opened(thread).await?,
        };
        self.fold(thread, &mut folded, tail).await?;
        slot.folded = Some(folded);
        Ok(LockedAitpState(slot))
    }

    /// The current state of a thread.
    pub(crate) async fn of(&self, row: &ThreadRow) -> Result<LockedAitpState, RuntimeError> {
        self.keep_due(&row.thread.id).await?;
        self.at(&row.thread.id, row.tail).await
    }

    /// Folds a thread's state on before its lock is taken, so that little is read under the lock.
    pub(crate) async fn warm(&self, thread: &ThreadId, tail: Seq) -> Result<(), RuntimeError> {
        match self.at(thread, tail).await {
            Ok(_) | Err(RuntimeError::Store(StoreError::NotFound)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The state of a thread right after an event, for a fork there.
    pub(crate) async fn until(
        &self,
        thread: &ThreadId,
        end: Seq,
    ) -> Result<AitpState, RuntimeError> {
        Ok(self.cold(thread, end).await?.desk)
    }

    /// The state of a thread right after an event, and the event's time. Reads the log from the nearest
    /// snapshot before the event.
    pub(crate) async fn past(
        &self,
        row: &ThreadRow,
        at: Seq,
    ) -> Result<(AitpState, jiff::Timestamp), RuntimeError> {
        if at > row.tail {
            let tail = row.tail;
            return Err(RuntimeError::BeyondEnd { at, tail });
        }
        let thread = &row.thread.id;
        let before = Seq(at.0.saturating_sub(1));
        let store = self.runtime.store();
        let event = store.read(thread, before, 1, Filter::All).await?;
        let time = event.first().map(|logged| logged.record.at);
        let time = time.unwrap_or(row.thread.created_at);
        Ok((self.until(thread, at).await?, time))
    }

    /// Stores a snapshot of a thread's state if it is in memory and a snapshot is due. Don't call it
    /// under the thread's lock: others would wait for it.
    pub(crate) async fn keep_due(&self, thread: &ThreadId) -> Result<(), RuntimeError> {
        if !self.keeps {
            return Ok(());
        }
        let known = self
            .lock()
            .by_thread
            .get(thread)
            .map(|(_, it)| Arc::clone(it));
        if let Some(slot) = known
            && let Some(folded) = &mut slot.lock().await.folded
            && folded.seen.0.saturating_sub(folded.kept.0) >= SNAPSHOT_EVERY
        {
            self.keep(thread, folded).await?;
        }
        Ok(())
    }

    /// Removes a deleted thread from memory, and its snapshot from the store.
    pub(crate) fn forget(&self, thread: &ThreadId) {
        self.lock().by_thread.remove(thread);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The slot of a thread. If there are too many slots, drops the half that is unused for longest.
    fn slot(&self, thread: &ThreadId) -> Shared {
        let mut slots = self.lock();
        slots.n_uses += 1;
        let now = slots.n_uses;
        if let Some((used, slot)) = slots.by_thread.get_mut(thread) {
            *used = now;
            return Arc::clone(slot);
        }
        if slots.by_thread.len() >= MAX_DESKS {
            let mut uses: Vec<u64> = slots.by_thread.values().map(|(used, _)| *used).collect();
            uses.sort_unstable();
            let since = uses.get(uses.len() / 2).copied().unwrap_or_default();
            slots.by_thread.retain(|_, (used, _)| *used >= since);
        }
        let slot = Shared::default();
        let entry = (now, Arc::clone(&slot));
        slots.by_thread.insert(thread.clone(), entry);
        slot
    }

    /// Folds further records, up to an event.
    async fn fold(
        &self,
        thread: &ThreadId,
        folded: &mut Folded,
        end: Seq,
    ) -> Result<(), RuntimeError> {
        let store = self.runtime.store();
        while folded.seen < end {
            let page = store.read(thread, folded.seen, PAGE, Filter::Facts).await?;
            if page.is_empty() {
                folded.seen = end;
            }
            for logged in page {
                folded.seen = logged.record.seq.min(end);
                if logged.record.seq > end {
                    break;
                }
                folded.desk.apply(&logged.record);
            }
        }
        Ok(())
    }

    /// Loads a state that is not in memory.
    async fn opened(&self, thread: &ThreadId) -> Result<Folded, RuntimeError> {
        let row = self.runtime.store().row(thread).await?;
        let mut folded = self.cold(thread, row.tail).await?;
        if self.keeps && row.thread.fork.is_some() && folded.kept == Seq::ZERO {
            // What its parents had is not read again.
            self.keep(thread, &mut folded).await?;
        }
        Ok(folded)
    }

    /// The state up to an event, from the nearest snapshot of the thread or of one of its parents.
    async fn cold(&self, thread: &ThreadId, end: Seq) -> Result<Folded, RuntimeError> {
        let store = self.runtime.store();
        let mut row = store.row(thread).await?;
        // The threads that are to be read, the nearest first, and where each ends.
        let mut chain = vec![(thread.clone(), end)];
        let mut folded = loop {
            let Some((id, end)) = chain.last() else {
                break Folded::default();
            };
            if let Some(found) = self.found(&row.tenant, id, *end).await? {
                break found;
            }
            let Some(fork) = row.thread.fork else {
                break Folded::default();
            };
            row = store.row(&fork.thread_id).await?;
            chain.push((fork.thread_id, fork.seq));
        };
        while let Some((id, end)) = chain.pop() {
            self.fold(&id, &mut folded, end).await?;
            if !chain.is_empty() {
                folded = Folded {
                    desk: folded.desk.continued(),
                    ..Folded::default()
                };
            }
        }
        Ok(folded)
    }

    /// The known state of a thread up to an event: from memory or from its snapshot.
    async fn found(
        &self,
        tenant: &runtime::TenantId,
        thread: &ThreadId,
        end: Seq,
    ) -> Result<Option<Folded>, RuntimeError> {
        let fits = |folded: &Folded| folded.desk.seq() <= end;
        let known = self
            .lock()
            .by_thread
            .get(thread)
            .map(|(_, it)| Arc::clone(it));
        // Its own slot is held by who asks; another's that is in use is not waited for.
        if let Some(slot) = known.as_ref().and_then(|slot| slot.try_lock().ok())
            && let Some(folded) = slot.folded.as_ref().filter(|it| fits(it))
        {
            return Ok(Some(folded.clone()));
        }
        let objects = self.runtime.objects();
        let object = objects.get(tenant, KIND, thread.as_str()).await?;
        let Some(object) = object else {
            return Ok(None);
        };
        // One that this program can't read is of another version: the log has it all.
        let snapshot: Option<(Seq, AitpState)> = serde_json::from_str(&object.json).ok();
        let folded = snapshot.map(|(seen, desk)| Folded {
            desk,
            seen,
            kept: seen,
        });
        Ok(folded.filter(fits))
    }

    async fn keep(&self, thread: &ThreadId, folded: &mut Folded) -> Result<(), RuntimeError> {
        let tenant = self.runtime.store().row(thread).await?.tenant;
        let object = NewObject {
            kind: KIND.to_owned(),
            id: thread.as_str().to_owned(),
            created_at: jiff::Timestamp::now(),
            json: serde_json::to_string(&(folded.seen, &folded.desk))?,
            content: None,
            thread: Some(thread.clone()),
            is_limited: false,
        };
        match self.runtime.objects().put(&tenant, object).await {
            Ok(()) => folded.kept = folded.seen,
            // Who can't write reads on without it.
            Err(StoreError::InUse(_)) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
