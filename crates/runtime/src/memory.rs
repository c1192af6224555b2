//! A store that keeps everything in memory: for tests, and for threads that need not outlive the process.

mod checkpoints;
mod objects;
mod places;

use crate::checkpoint::{CheckpointMetadata, CheckpointTable};
use crate::fork::inherited;
use crate::objects::ObjectTable;
use crate::store::{
    Append, Claim, Created, Epoch, Filter, Head, Landmark, Logged, NewRecord, Page, Ran, Store,
    StoreError, TenantId, ThreadRow, Token,
};
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use places::Places;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Mutex, PoisonError};
use timeline::{Open, Record, Removed, Seq, State, Thread, ThreadId, ThreadStatus};

/// A [`Store`] in memory. Nothing is durable; what it answers is true as long as it lives.
#[derive(Debug, Default)]
pub struct MemoryStore {
    kept: Mutex<Kept>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    // No caller awaits in `work`, so the lock is never held across a wait.
    fn with<T>(
        &self,
        work: impl FnOnce(&mut Kept) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.closed {
            return Err(StoreError::Closed);
        }
        work(&mut kept)
    }
}

#[derive(Debug, Default)]
struct Kept {
    closed: bool,
    threads: BTreeMap<ThreadId, Log>,
    keys: BTreeMap<(TenantId, String), ThreadId>,
    // The order of each tenant's list, from its end.
    recent: BTreeMap<TenantId, BTreeSet<(Timestamp, ThreadId)>>,
    // The forks of each thread that has some, in the order they were made.
    forks: BTreeMap<ThreadId, Vec<ThreadId>>,
    checkpoints: BTreeMap<(TenantId, String), (CheckpointMetadata, String)>,
    objects: objects::Objects,
}

#[derive(Debug)]
struct Log {
    tenant: TenantId,
    epoch: Epoch,
    state: State,
    records: Vec<Logged>,
    bytes: u64,
    changed_at: Timestamp,
    tokens: BTreeMap<String, String>,
    places: Places,
}

impl Log {
    fn tail(&self) -> Seq {
        Seq(self.records.len() as u64)
    }

    fn row(&self, thread: &Thread) -> ThreadRow {
        let mut thread = thread.clone();
        thread.updated_at = Some(self.changed_at);
        ThreadRow {
            tenant: self.tenant.clone(),
            thread,
            tail: self.tail(),
            bytes: self.bytes,
        }
    }

    fn extend(&mut self, records: Vec<NewRecord>) -> Result<(), StoreError> {
        let events = records.iter().map(|record| &record.event);
        self.places.are_new(events)?;
        for NewRecord { at, event, text } in records {
            self.state.apply(&event);
            self.bytes += text.len() as u64;
            self.changed_at = self.changed_at.max(at);
            let seq = self.tail().next();
            let record = Record { seq, at, event };
            self.places.note(&record, &self.records);
            self.records.push(Logged { record, text });
        }
        Ok(())
    }
}

impl Kept {
    fn log(&self, thread: &ThreadId) -> Result<&Log, StoreError> {
        self.threads.get(thread).ok_or(StoreError::NotFound)
    }

    fn row(&self, thread: &ThreadId) -> Result<ThreadRow, StoreError> {
        let log = self.log(thread)?;
        let made = log.state.thread().ok_or(StoreError::NotFound)?;
        Ok(log.row(made))
    }

    fn create(
        &mut self,
        tenant: &TenantId,
        first: Vec<NewRecord>,
        token: Option<Token>,
    ) -> Result<Created, StoreError> {
        let thread = NewRecord::thread_of(&first)
            .cloned()
            .ok_or_else(|| StoreError::Damaged("a thread begins with thread.created".into()))?;
        let key = thread.key.clone().map(|key| (tenant.clone(), key));
        if let Some(found) = key.as_ref().and_then(|key| self.keys.get(key)) {
            return Ok(Created {
                thread: found.clone(),
                claim: None,
            });
        }
        if self.threads.contains_key(&thread.id) {
            return Err(StoreError::Duplicate(thread.id.to_string()));
        }
        if let Some(fork) = &thread.fork
            && self.log(&fork.thread_id)?.tenant != *tenant
        {
            return Err(StoreError::NotFound);
        }
        // What it is made with supersedes it, or leaves something else open.
        let open = match &thread.fork {
            Some(fork) => self.open_at(&fork.thread_id, fork.seq)?,
            None => None,
        };
        let mut log = Log {
            tenant: tenant.clone(),
            epoch: Epoch::FIRST,
            state: State::default().with_open(open),
            records: Vec::new(),
            bytes: 0,
            changed_at: thread.created_at,
            tokens: token.map(|it| (it.token, it.answer)).into_iter().collect(),
            places: Places::default(),
        };
        log.extend(first)?;
        self.recent
            .entry(tenant.clone())
            .or_default()
            .insert((log.changed_at, thread.id.clone()));
        self.keys.extend(key.map(|key| (key, thread.id.clone())));
        if let Some(fork) = thread.fork {
            let forks = self.forks.entry(fork.thread_id).or_default();
            forks.push(thread.id.clone());
        }
        self.threads.insert(thread.id.clone(), log);
        Ok(Created {
            thread: thread.id,
            claim: Some(Epoch::FIRST),
        })
    }

    /// What a fork of a thread at this event has of the calls that were open there.
    fn open_at(&self, thread: &ThreadId, seq: Seq) -> Result<Option<Open>, StoreError> {
        let (mut log, mut seq) = (self.log(thread)?, seq);
        let run = loop {
            if let Some(run) = log.places.run_before(seq.next()) {
                break run;
            }
            // Nothing ran in this one: unless something was said, what it has is its parent's.
            let fork = log.state.thread().and_then(|made| made.fork.as_ref());
            let fork = fork.filter(|_| log.places.said_before(seq.next(), 1).is_empty());
            let Some(fork) = fork else {
                return Ok(None);
            };
            (log, seq) = (self.log(&fork.thread_id)?, fork.seq);
        };
        let before = usize::try_from(run.created.0).unwrap_or(usize::MAX);
        let mut state = State::default();
        let records = log.records.iter().skip(before.saturating_sub(1));
        for logged in records.take_while(|logged| logged.record.seq <= seq) {
            state.apply(&logged.record.event);
        }
        Ok(state.open().cloned().and_then(inherited))
    }

    fn append(&mut self, append: Append) -> Result<Seq, StoreError> {
        let Append {
            thread,
            epoch,
            tail,
            records,
            token,
        } = append;
        let log = self.threads.get_mut(&thread).ok_or(StoreError::NotFound)?;
        if let Some(answer) = token
            .as_ref()
            .and_then(|token| log.tokens.get(&token.token))
        {
            return Err(StoreError::Repeated {
                answer: answer.clone(),
            });
        }
        if log.epoch != epoch {
            return Err(StoreError::Fenced { thread });
        }
        if log.tail() != tail {
            return Err(StoreError::Conflict {
                thread,
                expected: tail,
                found: log.tail(),
            });
        }
        let before = log.changed_at;
        log.extend(records)?;
        if let Some(Token { token, answer }) = token {
            log.tokens.insert(token, answer);
        }
        if log.changed_at != before
            && let Some(recent) = self.recent.get_mut(&log.tenant)
        {
            recent.remove(&(before, thread.clone()));
            recent.insert((log.changed_at, thread));
        }
        Ok(log.tail())
    }

    fn list(&self, tenant: &TenantId, page: &Page) -> Vec<ThreadRow> {
        let matches = |thread: &Thread| {
            page.prefix.as_ref().is_none_or(|prefix| {
                thread
                    .key
                    .as_ref()
                    .is_some_and(|key| key.starts_with(prefix))
            })
        };
        let end = page.after.clone().map_or(Bound::Unbounded, Bound::Excluded);
        let rows = self
            .recent
            .get(tenant)
            .into_iter()
            .flat_map(|recent| recent.range((Bound::Unbounded, end.clone())).rev());
        rows.filter_map(|(_, id)| {
            let log = self.threads.get(id)?;
            let thread = log.state.thread().filter(|thread| matches(thread))?;
            Some(log.row(thread))
        })
        .take(page.limit)
        .collect()
    }

    fn delete(&mut self, tenant: &TenantId, thread: &ThreadId) -> Result<(), StoreError> {
        let log = self.log(thread)?;
        if log.tenant != *tenant {
            return Err(StoreError::NotFound);
        }
        let made = log.state.thread();
        let parent = made.and_then(|made| made.fork.as_ref().map(|fork| fork.thread_id.clone()));
        let key = made.and_then(|made| made.key.clone());
        if self.forks.contains_key(thread) {
            return Err(StoreError::HasForks {
                thread: thread.clone(),
            });
        }
        self.objects.delete_beside(tenant, thread);
        if let Some(log) = self.threads.remove(thread) {
            if let Some(recent) = self.recent.get_mut(tenant) {
                recent.remove(&(log.changed_at, thread.clone()));
            }
            if let Some(key) = key {
                self.keys.remove(&(tenant.clone(), key));
            }
        }
        if let Some(parent) = parent
            && let Some(forks) = self.forks.get_mut(&parent)
        {
            forks.retain(|id| id != thread);
            if forks.is_empty() {
                self.forks.remove(&parent);
            }
        }
        Ok(())
    }

    fn head(&self, thread: &ThreadId) -> Result<Head, StoreError> {
        let log = self.log(thread)?;
        Ok(Head {
            tenant: log.tenant.clone(),
            tail: log.tail(),
            last_at: log.changed_at,
            state: log.state.clone(),
        })
    }

    fn claim(&mut self, thread: &ThreadId) -> Result<Claim, StoreError> {
        let log = self.threads.get_mut(thread).ok_or(StoreError::NotFound)?;
        log.epoch = Epoch(log.epoch.0 + 1);
        let epoch = log.epoch;
        Ok(Claim {
            epoch,
            head: self.head(thread)?,
        })
    }

    fn read(
        &self,
        thread: &ThreadId,
        after: Seq,
        limit: usize,
        filter: Filter,
    ) -> Result<Vec<Logged>, StoreError> {
        let records = &self.log(thread)?.records;
        let start = usize::try_from(after.0)
            .unwrap_or(usize::MAX)
            .min(records.len());
        Ok(records
            .iter()
            .skip(start)
            .filter(|logged| filter.keeps(&logged.record.event))
            .take(limit)
            .cloned()
            .collect())
    }

    fn checkpoint(
        &self,
        tenant: &TenantId,
        session_id: &str,
    ) -> Option<&(CheckpointMetadata, String)> {
        let key = (tenant.clone(), session_id.to_owned());
        self.checkpoints.get(&key)
    }

    fn unfinished(&self) -> Vec<ThreadId> {
        let unfinished = |state: &State| {
            let closed = state
                .thread()
                .is_none_or(|thread| thread.status == ThreadStatus::Closed);
            state.active().is_some() || (state.waiting().len() > 0 && !closed)
        };
        self.threads
            .iter()
            .filter(|(_, log)| unfinished(&log.state))
            .map(|(id, _)| id.clone())
            .collect()
    }
}

impl Store for MemoryStore {
    fn get_or_create<'a>(
        &'a self,
        tenant: &'a TenantId,
        first: Vec<NewRecord>,
        token: Option<Token>,
    ) -> BoxFuture<'a, Result<Created, StoreError>> {
        Box::pin(async move { self.with(|kept| kept.create(tenant, first, token)) })
    }

    fn find<'a>(
        &'a self,
        tenant: &'a TenantId,
        key: &'a str,
    ) -> BoxFuture<'a, Result<ThreadRow, StoreError>> {
        Box::pin(async move {
            self.with(|kept| {
                let id = kept.keys.get(&(tenant.clone(), key.to_owned()));
                kept.row(id.ok_or(StoreError::NotFound)?)
            })
        })
    }

    fn row<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<ThreadRow, StoreError>> {
        Box::pin(async move { self.with(|kept| kept.row(thread)) })
    }

    fn list<'a>(
        &'a self,
        tenant: &'a TenantId,
        page: Page,
    ) -> BoxFuture<'a, Result<Vec<ThreadRow>, StoreError>> {
        Box::pin(async move { self.with(|kept| Ok(kept.list(tenant, &page))) })
    }

    fn forks<'a>(
        &'a self,
        thread: &'a ThreadId,
    ) -> BoxFuture<'a, Result<Vec<ThreadRow>, StoreError>> {
        Box::pin(async move {
            self.with(|kept| {
                kept.log(thread)?;
                let forks = kept.forks.get(thread).into_iter().flatten();
                forks.map(|id| kept.row(id)).collect()
            })
        })
    }

    fn delete<'a>(
        &'a self,
        tenant: &'a TenantId,
        thread: &'a ThreadId,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move { self.with(|kept| kept.delete(tenant, thread)) })
    }

    fn head<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<Head, StoreError>> {
        Box::pin(async move { self.with(|kept| kept.head(thread)) })
    }

    fn claim<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<Claim, StoreError>> {
        Box::pin(async move { self.with(|kept| kept.claim(thread)) })
    }

    fn append(&self, append: Append) -> BoxFuture<'_, Result<Seq, StoreError>> {
        Box::pin(async move { self.with(|kept| kept.append(append)) })
    }

    fn answer<'a>(
        &'a self,
        thread: &'a ThreadId,
        token: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        Box::pin(async move { self.with(|kept| Ok(kept.log(thread)?.tokens.get(token).cloned())) })
    }

    fn read<'a>(
        &'a self,
        thread: &'a ThreadId,
        after: Seq,
        limit: usize,
        filter: Filter,
    ) -> BoxFuture<'a, Result<Vec<Logged>, StoreError>> {
        Box::pin(async move { self.with(|kept| kept.read(thread, after, limit, filter)) })
    }

    fn place_of<'a>(
        &'a self,
        thread: &'a ThreadId,
        landmark: Landmark<'a>,
    ) -> BoxFuture<'a, Result<Option<Seq>, StoreError>> {
        Box::pin(async move { self.with(|kept| Ok(kept.log(thread)?.places.place_of(landmark))) })
    }

    fn triggers_before<'a>(
        &'a self,
        thread: &'a ThreadId,
        before: Seq,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Seq>, StoreError>> {
        Box::pin(async move {
            self.with(|kept| Ok(kept.log(thread)?.places.said_before(before, limit)))
        })
    }

    fn triggers_after<'a>(
        &'a self,
        thread: &'a ThreadId,
        after: Seq,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Seq>, StoreError>> {
        Box::pin(
            async move { self.with(|kept| Ok(kept.log(thread)?.places.said_after(after, limit))) },
        )
    }

    fn run_before<'a>(
        &'a self,
        thread: &'a ThreadId,
        before: Seq,
    ) -> BoxFuture<'a, Result<Option<Ran>, StoreError>> {
        Box::pin(async move { self.with(|kept| Ok(kept.log(thread)?.places.run_before(before))) })
    }

    fn run_after<'a>(
        &'a self,
        thread: &'a ThreadId,
        after: Seq,
    ) -> BoxFuture<'a, Result<Option<Ran>, StoreError>> {
        Box::pin(async move { self.with(|kept| Ok(kept.log(thread)?.places.run_after(after))) })
    }

    fn removals<'a>(
        &'a self,
        thread: &'a ThreadId,
        of: Vec<Removed>,
    ) -> BoxFuture<'a, Result<Vec<(Removed, Seq)>, StoreError>> {
        Box::pin(async move { self.with(|kept| Ok(kept.log(thread)?.places.removals(of))) })
    }

    fn unfinished(&self) -> BoxFuture<'_, Result<Vec<ThreadId>, StoreError>> {
        Box::pin(async move { self.with(|kept| Ok(kept.unfinished())) })
    }

    fn checkpoints(&self) -> &dyn CheckpointTable {
        self
    }

    fn objects(&self) -> &dyn ObjectTable {
        self
    }

    fn close(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            self.kept
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .closed = true;
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::MemoryStore;
    use crate::store::Store;
    use crate::suite::Subject;
    use futures_util::future::BoxFuture;
    use std::sync::Arc;

    // Nothing outlives it: opening it again is going on with it.
    #[derive(Default)]
    struct Memory(Arc<MemoryStore>);

    impl Subject for Memory {
        fn store(&self) -> Arc<dyn Store> {
            self.0.clone()
        }

        fn reopen(&mut self) -> BoxFuture<'_, ()> {
            Box::pin(std::future::ready(()))
        }
    }

    crate::store_suite!(Memory::default());
}
