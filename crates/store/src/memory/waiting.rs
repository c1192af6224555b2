//! The list of the threads in memory in which something waits.

use super::stored::{Log, StoredThread};
use crate::{KeyPattern, TenantId, WaitingRow, WaitingRows};
use std::ops::Bound;
use timeline::{Seq, ThreadId};

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
        log.waits.settle(seq);
        self.relist(thread, before);
    }
}

impl Log {
    /// Whether something waits, or may.
    pub(super) fn may_wait(&self) -> bool {
        self.waits.number().is_some()
    }

    fn waiting(&self, number: u64) -> Option<WaitingRow> {
        Some(WaitingRow {
            row: self.row(self.state.thread()?),
            calls_since: self.waits.calls_since(),
            may_ask: self.waits.may_ask(),
            number,
        })
    }
}
