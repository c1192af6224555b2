//! The data of a store in memory, and its changes.

use super::landmarks::Landmarks;
use super::nodes::Nodes;
use super::objects::Objects;
use super::waits::{WaitingThreads, Waits};
use crate::{
    Append, Appended, CheckpointRow, Created, DueSearch, Epoch, Filter, Head, KeyPattern,
    LimitReached, Logged, NewRecord, NodeId, Ownership, PageSize, Quotas, Side, StorageUsage,
    StoreError, TenantId, ThreadRow, ThreadRows, Token, inherited,
};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use timeline::{Open, Seq, State, Thread, ThreadId, ThreadStatus};

/// The data of a [`MemoryStore`](super::MemoryStore).
#[derive(Debug)]
pub(super) struct StoredThread {
    pub(super) closed: bool,
    pub(super) nodes: Nodes,
    pub(super) threads: BTreeMap<ThreadId, Log>,
    pub(super) keys: BTreeMap<(TenantId, String), ThreadId>,
    // The order of each tenant's list, from its end.
    recent: BTreeMap<TenantId, BTreeMap<u64, ThreadId>>,
    // The forks of each thread that has some, in the order they were made.
    pub(super) forks: BTreeMap<ThreadId, Vec<ThreadId>>,
    pub(super) waiting: WaitingThreads,
    pub(super) checkpoints: BTreeMap<(TenantId, String), (CheckpointRow, String)>,
    pub(super) objects: Objects,
    /// The threads of each tenant, and their bytes.
    usage: BTreeMap<TenantId, StorageUsage>,
    pub(super) quotas: Quotas,
    /// Maximum size of the events of all tenants, in bytes.
    max_bytes: u64,
    /// The number of records that were written.
    n_written: u64,
}

impl Default for StoredThread {
    /// An empty store without limits.
    fn default() -> Self {
        Self::with_limits(Quotas::default(), u64::MAX)
    }
}

/// The log of a thread, and what is known of it.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) tenant: TenantId,
    epoch: Epoch,
    owner: Option<NodeId>,
    pub(super) state: State,
    pub(super) records: Vec<Logged>,
    /// The number of each record among all that were written.
    pub(super) numbers: Vec<u64>,
    bytes: u64,
    changed_at: Timestamp,
    change: u64,
    pub(super) tokens: BTreeMap<String, String>,
    pub(super) landmarks: Landmarks,
    pub(super) waits: Waits,
}

/// The size of the records' texts, in bytes.
fn size(records: &[NewRecord]) -> u64 {
    records
        .iter()
        .map(|record| record.text().len() as u64)
        .sum()
}

impl Log {
    fn tail(&self) -> Seq {
        Seq(self.records.len() as u64)
    }

    pub(super) fn row(&self, thread: &Thread) -> ThreadRow {
        let mut thread = thread.clone();
        thread.updated_at = Some(self.changed_at);
        ThreadRow {
            tenant: self.tenant.clone(),
            thread,
            tail: self.tail(),
            bytes: self.bytes,
            change: self.change,
        }
    }

    fn extend(&mut self, records: Vec<NewRecord>, n_written: &mut u64) -> Result<(), StoreError> {
        self.landmarks
            .are_new(records.iter().map(NewRecord::event))?;
        for record in records {
            self.state.apply(record.event());
            self.bytes += record.text().len() as u64;
            self.changed_at = record.at;
            let logged = record.logged(self.tail().next());
            self.landmarks.note(&logged.record, &self.records);
            *n_written += 1;
            self.waits.note(*n_written, &logged.record, &self.state);
            self.numbers.push(*n_written);
            self.records.push(logged);
        }
        Ok(())
    }
}

/// The number of a tenant's next change.
fn next_change(recent: &BTreeMap<u64, ThreadId>) -> u64 {
    recent.keys().next_back().map_or(1, |last| last + 1)
}

impl StoredThread {
    pub(super) fn with_limits(quotas: Quotas, max_bytes: u64) -> Self {
        Self {
            closed: false,
            nodes: Nodes::default(),
            threads: BTreeMap::new(),
            keys: BTreeMap::new(),
            recent: BTreeMap::new(),
            forks: BTreeMap::new(),
            waiting: BTreeMap::new(),
            checkpoints: BTreeMap::new(),
            objects: Objects::default(),
            usage: BTreeMap::new(),
            quotas,
            max_bytes,
            n_written: 0,
        }
    }

    pub(super) fn usage(&self) -> Vec<(TenantId, StorageUsage)> {
        let tenants: BTreeSet<_> = self.usage.keys().chain(self.objects.tenants()).collect();
        let usage = tenants
            .into_iter()
            .map(|it| (it.clone(), self.usage_of(it)));
        usage.collect()
    }

    pub(super) fn usage_of(&self, tenant: &TenantId) -> StorageUsage {
        let threads = self.usage.get(tenant).copied().unwrap_or_default();
        let objects = self.objects.usage_of(tenant);
        StorageUsage {
            threads: threads.threads,
            bytes: threads.bytes + objects.bytes,
            files: objects.files,
        }
    }

    /// Refuses events of this size if all tenants together would exceed the total limit.
    fn check_total(&self, tenant: &TenantId, bytes: u64) -> Result<(), LimitReached> {
        let total: u64 = self.usage.values().map(|usage| usage.bytes).sum();
        if total.saturating_add(bytes) > self.max_bytes {
            let reached = self
                .quotas
                .reached(tenant, "ephemeral_bytes", self.max_bytes);
            return Err(reached);
        }
        Ok(())
    }

    pub(super) fn log(&self, thread: &ThreadId) -> Result<&Log, StoreError> {
        self.threads.get(thread).ok_or(StoreError::NotFound)
    }

    pub(super) fn row(&self, thread: &ThreadId) -> Result<ThreadRow, StoreError> {
        let log = self.log(thread)?;
        let made = log.state.thread().ok_or(StoreError::NotFound)?;
        Ok(log.row(made))
    }

    pub(super) fn create(
        &mut self,
        tenant: &TenantId,
        first: Vec<NewRecord>,
        token: Option<Token>,
        owner: Option<NodeId>,
    ) -> Result<Created, StoreError> {
        let thread = NewRecord::thread_of(&first)
            .cloned()
            .ok_or_else(|| StoreError::Damaged("a thread begins with thread.created".into()))?;
        let key = thread.key.clone().map(|key| (tenant.clone(), key));
        if let Some(found) = key.as_ref().and_then(|key| self.keys.get(key)) {
            return Ok(Created {
                thread: found.clone(),
                epoch: None,
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
        let bytes = size(&first);
        let usage = self.usage_of(tenant);
        self.quotas.check_thread(tenant, usage, bytes)?;
        self.check_total(tenant, bytes)?;
        let mut log = Log {
            tenant: tenant.clone(),
            epoch: Epoch::FIRST,
            owner,
            state: State::default().with_open(open),
            records: Vec::new(),
            numbers: Vec::new(),
            bytes: 0,
            changed_at: thread.created_at,
            change: 0,
            tokens: token.map(|it| (it.token, it.answer)).into_iter().collect(),
            landmarks: Landmarks::default(),
            waits: Waits::default(),
        };
        log.extend(first, &mut self.n_written)?;
        let recent = self.recent.entry(tenant.clone()).or_default();
        log.change = next_change(recent);
        recent.insert(log.change, thread.id.clone());
        let usage = self.usage.entry(tenant.clone()).or_default();
        usage.threads += 1;
        usage.bytes += bytes;
        self.keys.extend(key.map(|key| (key, thread.id.clone())));
        if let Some(fork) = thread.fork {
            let forks = self.forks.entry(fork.thread_id).or_default();
            forks.push(thread.id.clone());
        }
        self.threads.insert(thread.id.clone(), log);
        self.relist(&thread.id, None);
        Ok(Created {
            thread: thread.id,
            epoch: Some(Epoch::FIRST),
        })
    }

    /// The calls that were open at this event and that a fork there inherits.
    fn open_at(&self, thread: &ThreadId, seq: Seq) -> Result<Option<Open>, StoreError> {
        let (mut log, mut seq) = (self.log(thread)?, seq);
        let run = loop {
            if let Some(run) = log.landmarks.run(Side::Before(seq.next())) {
                break run;
            }
            // Nothing ran in this one: unless something was said, what it has is its parent's.
            let fork = log.state.thread().and_then(|made| made.fork.as_ref());
            let fork = fork.filter(|_| {
                log.landmarks
                    .triggers(Side::Before(seq.next()), 1)
                    .is_empty()
            });
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

    pub(super) fn append(&mut self, append: Append) -> Result<Appended, StoreError> {
        let Append {
            thread,
            epoch,
            tail,
            ownership,
            records,
            token,
            is_limited,
            unmoved,
        } = append;
        let bytes = size(&records);
        let refused = is_limited.then(|| self.refused(&thread, bytes)).flatten();
        let is_moved = |(thread, end): &(ThreadId, Seq)| {
            let other = self.threads.get(thread);
            other.is_none_or(|other| other.tail() != *end)
        };
        let moved = unmoved.into_iter().find(is_moved);
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
        if let Some((thread, _)) = moved {
            return Err(StoreError::Moved { thread });
        }
        if let Some(reached) = refused {
            return Err(reached.into());
        }
        let waited = log.waits.number();
        log.extend(records, &mut self.n_written)?;
        match ownership {
            Ownership::Keep => {}
            Ownership::Take(node) => {
                log.epoch = Epoch(log.epoch.0 + 1);
                log.owner = Some(node);
            }
            Ownership::Offer | Ownership::Rest => log.owner = None,
        }
        let epoch = log.epoch;
        if let Some(usage) = self.usage.get_mut(&log.tenant) {
            usage.bytes += bytes;
        }
        if let Some(Token { token, answer }) = token {
            log.tokens.insert(token, answer);
        }
        if let Some(recent) = self.recent.get_mut(&log.tenant) {
            recent.remove(&log.change);
            log.change = next_change(recent);
            recent.insert(log.change, thread.clone());
        }
        let tail = log.tail();
        self.relist(&thread, waited);
        Ok(Appended { tail, epoch })
    }

    /// Why no events of this size are appended to a thread.
    fn refused(&self, thread: &ThreadId, bytes: u64) -> Option<LimitReached> {
        let tenant = &self.threads.get(thread)?.tenant;
        let usage = self.usage_of(tenant);
        let own = self.quotas.check_bytes(tenant, usage, bytes);
        own.and_then(|()| self.check_total(tenant, bytes)).err()
    }

    pub(super) fn list(&self, tenant: &TenantId, page: &ThreadRows) -> Vec<ThreadRow> {
        let matches = |thread: &Thread| {
            let key = thread.key.as_ref();
            let covers = |pattern: &KeyPattern| key.is_some_and(|key| pattern.covers(key));
            page.key.as_ref().is_none_or(covers)
        };
        let end = page.after.map_or(Bound::Unbounded, Bound::Excluded);
        let rows = self
            .recent
            .get(tenant)
            .into_iter()
            .flat_map(|recent| recent.range((Bound::Unbounded, end)).rev());
        rows.filter_map(|(_, id)| {
            let log = self.threads.get(id)?;
            let thread = log.state.thread().filter(|thread| matches(thread))?;
            Some(log.row(thread)).filter(|row| log.passes(&page.filter, row))
        })
        .take(page.limit)
        .collect()
    }

    pub(super) fn delete(
        &mut self,
        tenant: &TenantId,
        thread: &ThreadId,
        tail: Option<Seq>,
    ) -> Result<(), StoreError> {
        let log = self.log(thread)?;
        if log.tenant != *tenant {
            return Err(StoreError::NotFound);
        }
        if let Some(expected) = tail.filter(|tail| *tail != log.tail()) {
            return Err(StoreError::Conflict {
                thread: thread.clone(),
                expected,
                found: log.tail(),
            });
        }
        let made = log.state.thread();
        let parent = made.and_then(|made| made.fork.as_ref().map(|fork| fork.thread_id.clone()));
        let key = made.and_then(|made| made.key.clone());
        if self.forks.contains_key(thread) {
            return Err(StoreError::HasForks {
                thread: thread.clone(),
            });
        }
        self.objects.delete_sidecars(tenant, thread);
        if let Some(log) = self.threads.remove(thread) {
            if let Some(usage) = self.usage.get_mut(tenant) {
                usage.threads -= 1;
                usage.bytes -= log.bytes;
            }
            if let Some(recent) = self.recent.get_mut(tenant) {
                recent.remove(&log.change);
            }
            if let Some((list, number)) = self.waiting.get_mut(tenant).zip(log.waits.number()) {
                list.remove(&number);
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

    pub(super) fn head(&self, thread: &ThreadId) -> Result<Head, StoreError> {
        let log = self.log(thread)?;
        Ok(Head {
            tenant: log.tenant.clone(),
            epoch: log.epoch,
            owner: log.owner.filter(|owner| self.nodes.lives(*owner)),
            tail: log.tail(),
            last_at: log.changed_at,
            state: log.state.clone(),
        })
    }

    pub(super) fn read(
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
        let mut size = PageSize::default();
        Ok(records
            .iter()
            .skip(start)
            .filter(|logged| filter.keeps(&logged.record.event))
            .take(limit)
            .take_while(|logged| size.add(logged.text.len()))
            .cloned()
            .collect())
    }

    pub(super) fn checkpoint(
        &self,
        tenant: &TenantId,
        session_id: &str,
    ) -> Option<&(CheckpointRow, String)> {
        let key = (tenant.clone(), session_id.to_owned());
        self.checkpoints.get(&key)
    }

    pub(super) fn tails(&self, threads: Vec<ThreadId>) -> Vec<(ThreadId, Seq)> {
        let threads = threads.into_iter();
        let tails = threads.filter_map(|thread| {
            let tail = self.threads.get(&thread)?.tail();
            Some((thread, tail))
        });
        tails.collect()
    }

    /// Threads with work whose run no living node owns.
    pub(super) fn due(&self, search: &DueSearch) -> Vec<ThreadId> {
        let is_due = |thread: &ThreadId| {
            self.threads.get(thread).is_some_and(|log| {
                let is_owned = log.owner.is_some_and(|owner| self.nodes.lives(owner));
                !is_owned && !search.without_tenants.contains(&log.tenant)
            })
        };
        let wanted = |thread: &ThreadId| !search.without.contains(thread) && is_due(thread);
        let unfinished = self.unfinished().into_iter();
        unfinished.filter(wanted).take(search.limit).collect()
    }

    /// Threads with work whose run this node owns.
    pub(super) fn owned(&self, node: NodeId) -> Vec<ThreadId> {
        let owner = |thread: &ThreadId| self.threads.get(thread).and_then(|log| log.owner);
        let unfinished = self.unfinished().into_iter();
        unfinished.filter(|it| owner(it) == Some(node)).collect()
    }

    pub(super) fn unfinished(&self) -> Vec<ThreadId> {
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
