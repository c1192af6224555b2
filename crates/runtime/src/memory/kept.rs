//! What is kept in memory, and what happens to it.

use super::objects::Objects;
use super::places::Places;
use crate::checkpoint::CheckpointMetadata;
use crate::fork::inherited;
use crate::store::{
    Append, Claim, Created, Epoch, Filter, Head, Logged, NewRecord, Page, PageSize, StoreError,
    TenantId, ThreadRow, Token,
};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use timeline::{Open, Record, Seq, State, Thread, ThreadId, ThreadStatus};

/// What a [`MemoryStore`](super::MemoryStore) keeps.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) closed: bool,
    threads: BTreeMap<ThreadId, Log>,
    pub(super) keys: BTreeMap<(TenantId, String), ThreadId>,
    // The order of each tenant's list, from its end.
    recent: BTreeMap<TenantId, BTreeSet<(Timestamp, ThreadId)>>,
    // The forks of each thread that has some, in the order they were made.
    pub(super) forks: BTreeMap<ThreadId, Vec<ThreadId>>,
    pub(super) checkpoints: BTreeMap<(TenantId, String), (CheckpointMetadata, String)>,
    pub(super) objects: Objects,
}

/// The log of a thread, and what is known of it.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) tenant: TenantId,
    epoch: Epoch,
    state: State,
    records: Vec<Logged>,
    bytes: u64,
    changed_at: Timestamp,
    pub(super) tokens: BTreeMap<String, String>,
    pub(super) places: Places,
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
            self.records.push(Logged {
                record,
                text,
                large: None,
            });
        }
        Ok(())
    }
}

impl Kept {
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

    pub(super) fn append(&mut self, append: Append) -> Result<Seq, StoreError> {
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

    pub(super) fn list(&self, tenant: &TenantId, page: &Page) -> Vec<ThreadRow> {
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

    pub(super) fn delete(
        &mut self,
        tenant: &TenantId,
        thread: &ThreadId,
    ) -> Result<(), StoreError> {
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

    pub(super) fn head(&self, thread: &ThreadId) -> Result<Head, StoreError> {
        let log = self.log(thread)?;
        Ok(Head {
            tenant: log.tenant.clone(),
            tail: log.tail(),
            last_at: log.changed_at,
            state: log.state.clone(),
        })
    }

    pub(super) fn claim(&mut self, thread: &ThreadId) -> Result<Claim, StoreError> {
        let log = self.threads.get_mut(thread).ok_or(StoreError::NotFound)?;
        log.epoch = Epoch(log.epoch.0 + 1);
        let epoch = log.epoch;
        Ok(Claim {
            epoch,
            head: self.head(thread)?,
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
    ) -> Option<&(CheckpointMetadata, String)> {
        let key = (tenant.clone(), session_id.to_owned());
        self.checkpoints.get(&key)
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
