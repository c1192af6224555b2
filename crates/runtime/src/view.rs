//! The memory budget of requests that read whole threads or large parts of them.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;
use store::{LimitKind, LimitReached};
use tokio::sync::{Mutex, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};

/// Bytes that a request may read without a share of the budget, so that short answers never wait.
const FREE_BYTES: usize = 64 << 10;
/// The unit of the budget, in bytes.
const UNIT: usize = 64 << 10;
/// A read of up to this many bytes does not wait for long reads.
const SHORT_BYTES: usize = SHORT_UNITS as usize * UNIT;
const SHORT_UNITS: u32 = 16;
/// The additional budget for short reads is the whole budget divided by this number.
const SHORT_SHARE: usize = 4;
/// Maximum time that a request waits for its share.
const WAIT: Duration = Duration::from_secs(10);
/// The name of the limit in the configuration.
const NAME: &str = "thread_view_bytes";

tokio::task_local! {
    static CURRENT: ViewShare;
}

/// Why a request was refused: the limit on concurrently read thread data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewRefused {
    /// The thread exceeds the maximum for one request.
    #[error(
        "the thread is larger than the {max} bytes that are read as a whole; read its events, or pages of it"
    )]
    TooLarge {
        /// Maximum size, in bytes.
        max: usize,
    },
    /// Other requests read too much at the moment.
    #[error(transparent)]
    Busy(LimitReached),
}

/// The limit on the thread data that all requests hold in memory at once.
///
/// A read of up to 64 KiB needs no share. A longer one acquires a share for 1 MiB at once, so that
/// it never waits while it holds a part. One read at a time may acquire more.
#[derive(Clone, Debug)]
pub struct ViewBudget {
    inner: Arc<Budget>,
}

#[derive(Debug)]
struct Budget {
    max_bytes: usize,
    short: Arc<Semaphore>,
    long: Arc<Semaphore>,
    /// Locked by the long read that is in progress.
    turn: Arc<Mutex<()>>,
}

impl ViewBudget {
    /// A budget of this many bytes.
    pub fn new(max_bytes: usize) -> Self {
        let units = |bytes: usize| bytes.div_ceil(UNIT).min(Semaphore::MAX_PERMITS);
        let short = (max_bytes / SHORT_SHARE).max(SHORT_BYTES);
        let inner = Budget {
            max_bytes,
            short: Arc::new(Semaphore::new(units(short))),
            long: Arc::new(Semaphore::new(units(max_bytes))),
            turn: Arc::default(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// The share of one request, which is initially empty.
    pub fn view(&self) -> ViewShare {
        let share = Share {
            budget: Arc::clone(&self.inner),
            held: std::sync::Mutex::default(),
        };
        ViewShare {
            inner: Arc::new(share),
        }
    }

    /// Number of unused bytes.
    pub fn free_bytes(&self) -> usize {
        let budget = &self.inner;
        let units = budget.short.available_permits() + budget.long.available_permits();
        units.saturating_mul(UNIT)
    }
}

impl Budget {
    fn busy(&self) -> ViewRefused {
        ViewRefused::Busy(LimitReached {
            name: NAME,
            max: self.max_bytes as u64,
            kind: LimitKind::Concurrency,
        })
    }

    async fn wait<T>(&self, share: impl Future<Output = T>) -> Result<T, ViewRefused> {
        let waited = tokio::time::timeout(WAIT, share).await;
        waited.map_err(|_| self.busy())
    }
}

#[derive(Debug, Default)]
struct Held {
    short: Option<OwnedSemaphorePermit>,
    long: Option<OwnedSemaphorePermit>,
    turn: Option<OwnedMutexGuard<()>>,
    /// The largest read so far, in bytes.
    bytes: usize,
}

impl Held {
    /// Number of additional units for this many bytes, beyond those of a short read.
    fn missing(&self, bytes: usize) -> u32 {
        let held = self
            .long
            .as_ref()
            .map_or(0, OwnedSemaphorePermit::num_permits);
        let wanted = bytes.div_ceil(UNIT).saturating_sub(held);
        u32::try_from(wanted).unwrap_or(u32::MAX)
    }

    fn add_long(&mut self, more: OwnedSemaphorePermit) {
        match &mut self.long {
            Some(long) => long.merge(more),
            None => self.long = Some(more),
        }
    }

    /// Ends a read: releases the units that it does not need.
    fn publish(&mut self) {
        self.turn = None;
        let needed = self.bytes.min(SHORT_BYTES).div_ceil(UNIT);
        if let Some(short) = &mut self.short {
            let excess = short.num_permits().saturating_sub(needed);
            drop(short.split(excess));
        }
    }
}

/// A request's share of the budget; it lasts as long as a clone exists. It counts all reads within
/// [`ViewShare::scope`].
#[derive(Clone, Debug)]
pub struct ViewShare {
    inner: Arc<Share>,
}

#[derive(Debug)]
struct Share {
    budget: Arc<Budget>,
    held: std::sync::Mutex<Held>,
}

impl ViewShare {
    /// The share of the current request.
    pub fn current() -> Option<Self> {
        CURRENT.try_with(Self::clone).ok()
    }

    /// Counts the reads of a future.
    pub async fn scope<F: Future>(&self, future: F) -> F::Output {
        CURRENT.scope(self.clone(), future).await
    }

    /// Counts the reads of one poll of a future.
    pub fn sync_scope<T>(&self, poll: impl FnOnce() -> T) -> T {
        CURRENT.sync_scope(self.clone(), poll)
    }

    /// Whether it holds a part of the budget.
    pub fn is_held(&self) -> bool {
        let held = self.held();
        held.short.is_some() || held.long.is_some()
    }

    /// Releases its units.
    pub fn release(&self) {
        drop(std::mem::take(&mut *self.held()));
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        let held = self.inner.held.lock();
        held.unwrap_or_else(PoisonError::into_inner)
    }

    /// Acquires the share for sending this many bytes, if there is room for them now.
    pub fn try_hold(&self, bytes: usize) -> Result<(), ViewRefused> {
        let mut held = self.held();
        let budget = &self.inner.budget;
        let more = Arc::clone(&budget.long).try_acquire_many_owned(held.missing(bytes));
        held.add_long(more.map_err(|_| budget.busy())?);
        Ok(())
    }

    /// Acquires the share for a read of this many bytes; waits until there is room.
    async fn hold(&self, bytes: usize) -> Result<(), ViewRefused> {
        let budget = &self.inner.budget;
        let max = budget.max_bytes;
        if bytes > max {
            return Err(ViewRefused::TooLarge { max });
        }
        let closed = |_| budget.busy();
        let (is_known, is_short) = {
            let held = self.held();
            (bytes <= held.bytes, held.short.is_some())
        };
        if is_known {
            return Ok(());
        }
        if !is_short {
            let units = Arc::clone(&budget.short).acquire_many_owned(SHORT_UNITS);
            let short = budget.wait(units).await?.map_err(closed)?;
            self.held().short = Some(short);
        }
        let beyond = bytes.saturating_sub(SHORT_BYTES);
        if beyond > 0 && self.held().missing(beyond) > 0 {
            if self.held().turn.is_none() {
                let turn = Arc::clone(&budget.turn).lock_owned();
                let turn = budget.wait(turn).await?;
                self.held().turn = Some(turn);
            }
            let missing = self.held().missing(beyond);
            let units = Arc::clone(&budget.long).acquire_many_owned(missing);
            let more = budget.wait(units).await?.map_err(closed)?;
            self.held().add_long(more);
        }
        self.held().bytes = bytes;
        Ok(())
    }
}

/// Counts one read of a thread.
#[derive(Debug, Default)]
pub(crate) struct ReadSize {
    bytes: usize,
    share: Option<ViewShare>,
}

impl ReadSize {
    /// Adds bytes; waits for the budget if they are read for a request.
    pub(crate) async fn add(&mut self, bytes: usize) -> Result<(), ViewRefused> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes <= FREE_BYTES {
            return Ok(());
        }
        if self.share.is_none() {
            self.share = ViewShare::current();
        }
        match &self.share {
            Some(share) => share.hold(self.bytes).await,
            None => Ok(()),
        }
    }
}

impl Drop for ReadSize {
    fn drop(&mut self) {
        if let Some(share) = &self.share {
            share.held().publish();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    async fn read(bytes: usize) -> Result<(), ViewRefused> {
        ReadSize::default().add(bytes).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_waits_until_others_have_given_back_their_share() {
        let budget = ViewBudget::new(10 * MIB);
        let all = budget.free_bytes();
        let (first, second) = (budget.view(), budget.view());
        first.scope(read(7 * MIB)).await.unwrap();
        // A second reading of the same request holds no more.
        first.scope(read(7 * MIB)).await.unwrap();
        assert_eq!(budget.free_bytes(), all - 7 * MIB);
        let refused = second.scope(read(7 * MIB)).await;
        assert!(matches!(refused, Err(ViewRefused::Busy(_))), "{refused:?}");
        drop(first);
        second.scope(read(7 * MIB)).await.unwrap();
        second.release();
        assert_eq!(budget.free_bytes(), all);
    }

    #[tokio::test(start_paused = true)]
    async fn requests_that_grow_together_do_not_block_each_other() {
        let budget = ViewBudget::new(8 * MIB);
        let grow = async || {
            let share = budget.view();
            let grown = share.scope(async {
                let mut size = ReadSize::default();
                for _ in 0..28 {
                    size.add(MIB / 4).await?;
                    tokio::task::yield_now().await;
                }
                Ok::<_, ViewRefused>(())
            });
            grown.await
        };
        let grown = futures_util::future::join_all((0..10).map(|_| grow())).await;
        assert_eq!(grown, vec![Ok(()); 10]);
    }

    #[tokio::test]
    async fn a_short_reading_holds_no_more_than_it_has_read() {
        let budget = ViewBudget::new(8 * MIB);
        let (all, share) = (budget.free_bytes(), budget.view());
        share.scope(read(3 * UNIT)).await.unwrap();
        assert_eq!(budget.free_bytes(), all - 3 * UNIT);
    }

    #[tokio::test]
    async fn a_small_reading_needs_no_share_and_a_too_large_one_is_refused() {
        let budget = ViewBudget::new(2 * MIB);
        let (first, second) = (budget.view(), budget.view());
        first.scope(read(2 * MIB)).await.unwrap();
        second.scope(read(FREE_BYTES)).await.unwrap();
        assert!(!second.is_held());
        let large = second.scope(read(3 * MIB)).await;
        assert_eq!(large, Err(ViewRefused::TooLarge { max: 2 * MIB }));
        // What is read for nobody's request is not counted.
        read(100 * MIB).await.unwrap();
    }
}
