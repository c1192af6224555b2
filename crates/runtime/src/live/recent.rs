//! The records that followers of a thread read from memory: the last ones of the log, and the chunks
//! that the log does not have yet.

use super::{Live, Tail};
use crate::pages::{Page, weight};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use store::{Filter, Logged, PAGE_BYTES, PageSize, StoreError};
use timeline::{Event, ReadPosition, Seq, Transcript, chunk_type};

/// Maximum number of records in memory for followers; older ones are read from the store.
const RECENT: usize = 512;
/// Maximum memory that they take, in bytes.
const RECENT_BYTES: usize = 1 << 20;

#[derive(Default)]
pub(super) struct Recent {
    records: VecDeque<Arc<Logged>>,
    pub(super) bytes: usize,
    /// The event that the unstored chunks follow.
    last_stored: Seq,
    /// The chunks that are shown and not stored yet, each with the position that it probably gets.
    unstored: Vec<Arc<Logged>>,
    unstored_bytes: usize,
}

impl Recent {
    pub(super) fn of(records: Vec<Arc<Logged>>) -> Self {
        Self {
            bytes: records.iter().map(|record| weight(record)).sum(),
            records: records.into(),
            ..Self::default()
        }
    }

    fn drop_records(&mut self) {
        self.records = VecDeque::new();
        self.bytes = 0;
    }

    fn drop_unstored(&mut self) {
        self.unstored.clear();
        self.unstored_bytes = 0;
    }
}

impl Live {
    /// Drops the records in memory unless a run streams; followers then read the store.
    pub(crate) fn forget_recent(&self) {
        if !self.tail.borrow().streaming {
            let recent = self.recent.write();
            *recent.unwrap_or_else(PoisonError::into_inner) = Recent::default();
            self.share.set(0);
        }
    }

    /// Drops all records of the log from memory, because the store has erased content of some.
    pub(crate) fn forget_erased(&self) {
        self.forget_records();
        self.read.clear();
        // They hold the thread's pages as well.
        self.pages.clear();
    }

    /// A page of the records after `after`: from memory if it has them, else from the store.
    pub(crate) async fn after(&self, after: Seq) -> Result<Arc<Page>, StoreError> {
        if let Some(found) = self.remembered(after) {
            return Ok(Arc::new(found));
        }
        let place = (&self.thread, after);
        self.read
            .read(&self.pages, self.store.as_ref(), place)
            .await
    }

    fn remembered(&self, after: Seq) -> Option<Page> {
        let recent = self.recent.read().unwrap_or_else(PoisonError::into_inner);
        let first = recent.records.front()?.record.seq;
        let skip = after.next().0.checked_sub(first.0)?;
        let mut size = PageSize::default();
        let found: Vec<_> = recent
            .records
            .iter()
            .skip(usize::try_from(skip).ok()?)
            .take_while(|logged| size.add(logged.text.len()))
            .cloned()
            .collect();
        (!found.is_empty()).then(|| Page::of(found))
    }

    pub(super) fn publish(&self, records: Vec<Arc<Logged>>, state_bytes: usize, tail: Tail) {
        let mut recent = self.recent.write().unwrap_or_else(PoisonError::into_inner);
        let bytes = records.iter().map(|record| record.text.len()).sum();
        let mut events = records.iter().map(|record| &record.record.event);
        let is_fact = events.any(|event| Filter::Facts.keeps(event));
        self.log_bytes.fetch_add(bytes, Ordering::Relaxed);
        recent.drop_unstored();
        for record in records {
            recent.bytes += weight(&record);
            recent.records.push_back(record);
        }
        // Where all threads take too much, what followers have not read comes from the store.
        let is_over = self.share.cache().is_over();
        let max_bytes = if is_over { PAGE_BYTES } else { RECENT_BYTES };
        while recent.records.len() > RECENT || recent.bytes > max_bytes {
            let Some(oldest) = recent.records.pop_front() else {
                break;
            };
            recent.bytes -= weight(&oldest);
        }
        if !tail.streaming && self.tail.receiver_count() == 0 {
            // Nobody watches and nothing comes: who looks later reads the store.
            *recent = Recent::default();
        }
        self.share.set(recent.bytes.saturating_add(state_bytes));
        // A reader that finds no unstored chunks finds the end of the log behind them.
        self.tail.send_replace(tail);
        drop(recent);
        if is_fact {
            self.subscriptions.wake(&self.tenant);
        }
    }

    /// Shows chunks to followers before they are stored. `last_stored` is the last event of the log.
    pub(super) fn show(&self, last_stored: Seq, chunks: Vec<Arc<Logged>>) {
        let mut recent = self.recent.write().unwrap_or_else(PoisonError::into_inner);
        recent.last_stored = last_stored;
        let bytes = chunks.iter().map(|chunk| weight(chunk));
        recent.unstored_bytes += bytes.sum::<usize>();
        recent.unstored.extend(chunks);
        let bytes = recent.bytes.saturating_add(recent.unstored_bytes);
        self.share.set(bytes);
        drop(recent);
        // The tail is the same, and there is something to read.
        self.tail.send_modify(|_| ());
    }

    /// Forgets the records of the log, and numbers the unstored chunks anew: the log has grown, or they are fewer.
    pub(super) fn renumber(&self, last_stored: Seq, chunks: Vec<Arc<Logged>>) {
        let mut recent = self.recent.write().unwrap_or_else(PoisonError::into_inner);
        recent.drop_records();
        recent.drop_unstored();
        recent.last_stored = last_stored;
        recent.unstored_bytes = chunks.iter().map(|chunk| weight(chunk)).sum();
        recent.unstored = chunks;
        self.share.set(recent.unstored_bytes);
    }

    /// Whether chunks are shown and not stored yet.
    pub(crate) fn has_unstored(&self) -> bool {
        let recent = self.recent.read().unwrap_or_else(PoisonError::into_inner);
        !recent.unstored.is_empty()
    }

    /// The chunks that are shown and not stored yet, as far as a reader lacks them. They are in its
    /// order after a position whose event is the last one of the log.
    pub(crate) fn unstored(&self, after: ReadPosition) -> Vec<Arc<Logged>> {
        let recent = self.recent.read().unwrap_or_else(PoisonError::into_inner);
        if recent.last_stored != after.seq {
            return Vec::new();
        }
        after.lacking(&recent.unstored).to_vec()
    }

    /// Forgets the records of the log.
    fn forget_records(&self) {
        let mut recent = self.recent.write().unwrap_or_else(PoisonError::into_inner);
        recent.drop_records();
        self.share.set(recent.unstored_bytes);
    }

    pub(super) fn remembered_whole(&self, filter: Filter) -> Option<Transcript> {
        let recent = self.recent.read().unwrap_or_else(PoisonError::into_inner);
        let first = recent.records.front()?;
        let Event::ThreadCreated { thread } = &first.record.event else {
            return None;
        };
        if thread.fork.is_some() {
            return None;
        }
        let mut transcript = Transcript::default();
        let records = recent.records.iter().map(|logged| &logged.record);
        for record in records.filter(|record| filter.keeps(&record.event)) {
            transcript.apply(record);
        }
        Some(transcript)
    }

    /// Whether one of the records in memory is a compaction.
    pub(super) fn remembers_compaction(&self) -> bool {
        let recent = self.recent.read().unwrap_or_else(PoisonError::into_inner);
        let mut events = recent.records.iter().map(|logged| &logged.record.event);
        events.any(|event| {
            matches!(event, Event::ChunkEmitted { chunk_type, step_id: None, .. }
                if chunk_type == chunk_type::THREAD_COMPACTED)
        })
    }
}
