//! The threads in memory in which something waits for a person.

use super::stored::{Log, StoredThread};
use crate::waits::{may_ask, waits_for_people};
use crate::{KeyPattern, TenantId, WaitingRow, WaitingRows};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::ops::Bound;
use timeline::{ExecutionId, Record, Seq, State, ThreadId};

/// What waits for a person in a thread. The numbers are those of events among all of the store.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// The execution that left calls open, with the number and the instant of the event.
    calls: Option<(ExecutionId, u64, Timestamp)>,
    /// The first event that may open a request, and the position of the last one.
    asks: Option<(u64, Seq)>,
}

impl Waits {
    /// Notes a record that was applied to the state.
    pub(super) fn note(&mut self, number: u64, record: &Record, state: &State) {
        if may_ask(&record.event) {
            let first = self.asks.map_or(number, |(first, _)| first);
            self.asks = Some((first, record.seq));
        }
        let open = state.open().filter(|open| waits_for_people(Some(open)));
        let known = self.calls.as_ref().map(|(execution, ..)| execution);
        match open {
            None => self.calls = None,
            Some(open) if known == Some(&open.execution.id) => {}
            Some(open) => self.calls = Some((open.execution.id.clone(), number, record.at)),
        }
    }

    /// The number of the thread in the list; `None` if nothing waits in it.
    pub(super) fn number(&self) -> Option<u64> {
        let calls = self.calls.as_ref().map(|(_, number, _)| *number);
        let asks = self.asks.map(|(number, _)| number);
        calls.into_iter().chain(asks).min()
    }
}

/// The threads of each tenant in which something waits, by their numbers.
pub(super) type WaitingThreads = BTreeMap<TenantId, BTreeMap<u64, ThreadId>>;

impl StoredThread {
    /// Brings the list up to date after a change of the thread, which was listed under `before`.
    pub(super) fn relist(&mut self, thread: &ThreadId, before: Option<u64>) {
        let Some(log) = self.threads.get(thread) else {
            return;
        };
        let number = log.waits.number();
        if number == before {
            return;
        }
        let list = self.waiting.entry(log.tenant.clone()).or_default();
        if let Some(before) = before {
            list.remove(&before);
        }
        if let Some(number) = number {
            list.insert(number, thread.clone());
        }
    }

    pub(super) fn waiting(&self, tenant: &TenantId, page: &WaitingRows) -> Vec<WaitingRow> {
        let start = page.after.map_or(Bound::Unbounded, Bound::Excluded);
        let list = self.waiting.get(tenant).into_iter();
        let list = list.flat_map(|list| list.range((start, Bound::Unbounded)));
        let rows = list.filter_map(|(number, id)| self.threads.get(id)?.waiting(*number));
        let is_meant = |row: &WaitingRow| {
            let key = row.row.thread.key.as_deref();
            let covers = |pattern: &KeyPattern| key.is_some_and(|key| pattern.covers(key));
            page.key.as_ref().is_none_or(covers)
        };
        rows.filter(is_meant).take(page.limit).collect()
    }

    pub(super) fn settle(&mut self, thread: &ThreadId, seq: Seq) {
        let Some(log) = self.threads.get_mut(thread) else {
            return;
        };
        let before = log.waits.number();
        log.waits.asks = log.waits.asks.filter(|(_, last)| *last > seq);
        self.relist(thread, before);
    }
}

impl Log {
    /// Whether something waits, or may.
    pub(super) fn may_wait(&self) -> bool {
        self.waits.number().is_some()
    }

    fn waiting(&self, number: u64) -> Option<WaitingRow> {
        let calls = self.waits.calls.as_ref();
        Some(WaitingRow {
            row: self.row(self.state.thread()?),
            calls_since: calls.map(|(_, _, at)| *at),
            may_ask: self.waits.asks.is_some(),
            number,
        })
    }
}
