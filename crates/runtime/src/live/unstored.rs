//! Chunks that followers see before the log has them.
//!
//! A crash voids the chunks of a step that has no response, whether they are stored or not. So they
//! are shown first, and stored with the next fact. The list is bounded.

use super::records::logged;
use super::{Live, LockedThread, check_size};
use crate::error::RuntimeError;
use std::sync::PoisonError;
use std::time::Duration;
use store::{NewRecord, StoreError};
use timeline::{Command, Seq};
use tokio::time::Instant;

/// Chunks are stored without a fact when they have this many bytes…
const MAX_BYTES: usize = 128 << 10;
/// …or this many, if all threads take too much memory…
const MAX_BYTES_WHEN_SHORT: usize = 16 << 10;
/// …or when the oldest has waited for this time…
const MAX_AGE: Duration = Duration::from_secs(10);
/// …which is shorter if somebody follows the thread at another node, where only stored chunks are read.
const MAX_AGE_WHEN_WATCHED: Duration = Duration::from_millis(40);
/// How long a node counts as following a thread after its last hint.
const WATCHED: Duration = Duration::from_secs(5);

/// The chunks that are shown and not stored yet, in order.
#[derive(Default)]
pub(super) struct Unstored {
    records: Vec<NewRecord>,
    bytes: usize,
    since: Option<Instant>,
}

impl Unstored {
    pub(super) fn records(&self) -> &[NewRecord] {
        &self.records
    }

    fn extend(&mut self, records: Vec<NewRecord>) {
        self.since.get_or_insert_with(Instant::now);
        let bytes = records.iter().map(|record| record.text().len());
        self.bytes += bytes.sum::<usize>();
        self.records.extend(records);
    }

    /// The time when they are stored without a fact.
    fn due(&self, max_age: Duration) -> Option<Instant> {
        self.since.map(|since| since + max_age)
    }
}

impl LockedThread<'_> {
    /// Shows the chunks of the running step to followers. The next commit stores them first. If the
    /// chunks that wait have become too many, they are committed now.
    pub(crate) async fn show(
        &mut self,
        commands: impl IntoIterator<Item = Command>,
    ) -> Result<(), RuntimeError> {
        let live = self.live;
        let core = self.core()?;
        let now = core.instant(live.clock.now());
        let mut records = Vec::new();
        for command in commands {
            for event in core.state.decide(command, now)? {
                let record = NewRecord::new(now, event)?;
                check_size(&record, live.message_bytes)?;
                records.push(record);
            }
        }
        core.last_at = now;
        let n_before = core.unstored.records.len() as u64;
        let first = Seq(core.tail.0.saturating_add(n_before));
        live.show(core.tail, logged(first, records.clone()));
        core.unstored.extend(records);
        let is_short = live.share.cache().is_over();
        let max_bytes = if is_short {
            MAX_BYTES_WHEN_SHORT
        } else {
            MAX_BYTES
        };
        if core.unstored.bytes >= max_bytes {
            self.store_unstored().await?;
        }
        Ok(())
    }

    /// The time when the chunks that are not stored yet must be stored; none if all are.
    pub(crate) fn unstored_due(&mut self) -> Result<Option<Instant>, RuntimeError> {
        let max_age = if self.live.is_watched() {
            MAX_AGE_WHEN_WATCHED
        } else {
            MAX_AGE
        };
        Ok(self.core()?.unstored.due(max_age))
    }

    /// Stores the chunks that are shown and not stored yet. They count against the tenant's limit of
    /// stored bytes, as any output of a running step.
    pub(crate) async fn store_unstored(&mut self) -> Result<(), RuntimeError> {
        let chunks = Vec::new();
        self.commit([(None, Command::Emit { chunks })], None)
            .await?;
        Ok(())
    }
}

impl Live {
    /// Notes that somebody follows the thread at another node.
    pub(crate) fn watched(&self) {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        *watched = Some(Instant::now() + WATCHED);
    }

    fn is_watched(&self) -> bool {
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.is_some_and(|until| Instant::now() < until)
    }

    /// Stores the chunks that are shown and not stored yet, for a reader.
    pub(crate) async fn store_unstored(&self) -> Result<(), RuntimeError> {
        let slot = self.core.lock().await;
        if self.tail.borrow().gone {
            return Err(StoreError::NotFound.into());
        }
        let core = slot.as_ref().filter(|core| core.doubt.is_none());
        if core.is_none_or(|core| core.unstored.records.is_empty()) {
            return Ok(());
        }
        let mut held = LockedThread { live: self, slot };
        held.store_unstored().await
    }
}
