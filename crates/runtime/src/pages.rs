//! Pages of logs that the followers of a thread share.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use store::{Filter, LargeRecord, Logged, PAGE_BYTES, Store, StoreError};
use timeline::{Seq, ThreadId};
use tokio::sync::Semaphore;

/// Maximum number of records of a page.
pub(crate) const PAGE: usize = 1_000;
/// The unit of the budget for large records, in bytes.
const UNIT: usize = 1 << 10;
/// The share of the budget for recently read pages, as a divisor.
const KEPT_SHARE: usize = 4;
/// Number of positions of a thread above which those with dropped pages are removed.
const MAX_PLACES: usize = 64;

/// A page of a log.
pub(crate) struct Page {
    pub(crate) records: Vec<Arc<Logged>>,
    /// Whether it was read from the store, so that other followers can use it while it is in
    /// memory.
    pub(crate) is_shared: bool,
    bytes: usize,
}

impl Page {
    /// Records that are in memory anyway.
    pub(crate) fn of(records: Vec<Arc<Logged>>) -> Self {
        let bytes = records.iter().map(|logged| weight(logged)).sum();
        Self {
            records,
            is_shared: false,
            bytes,
        }
    }

    fn shared(records: Vec<Arc<Logged>>) -> Self {
        Self {
            is_shared: true,
            ..Self::of(records)
        }
    }
}

/// The approximate memory of a record, in bytes: its text and the parsed event.
pub(crate) fn weight(logged: &Logged) -> usize {
    2 * logged.text.len() + 512
}

/// The bytes of the records' texts.
pub(crate) fn text_bytes(records: &[Logged]) -> usize {
    records.iter().map(|logged| logged.text.len()).sum()
}

/// The recently read pages of all threads, and the budget for large records.
pub(crate) struct Pages {
    max_bytes: usize,
    kept: Mutex<Kept>,
    large: Arc<Semaphore>,
}

#[derive(Default)]
struct Kept {
    pages: VecDeque<Arc<Page>>,
    bytes: usize,
}

impl Kept {
    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.pages.pop_front() {
            self.bytes -= oldest.bytes;
        }
    }
}

impl Pages {
    /// Pages within a budget: large records that followers hold use at most `max_bytes`, and
    /// recently read pages use a quarter of it.
    pub(crate) fn new(max_bytes: usize) -> Self {
        let units = max_bytes.div_ceil(UNIT).clamp(1, u32::MAX as usize);
        Self {
            max_bytes,
            kept: Mutex::default(),
            large: Arc::new(Semaphore::new(units.min(Semaphore::MAX_PERMITS))),
        }
    }

    fn units(&self, bytes: usize) -> u32 {
        let all = self.max_bytes.div_ceil(UNIT).max(1);
        u32::try_from(bytes.div_ceil(UNIT).clamp(1, all)).unwrap_or(u32::MAX)
    }

    fn keep(&self, page: &Arc<Page>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.bytes += page.bytes;
        kept.pages.push_back(Arc::clone(page));
        while kept.bytes > self.max_bytes / KEPT_SHARE && kept.pages.len() > 1 {
            kept.drop_oldest();
        }
    }

    /// Drops the recently read pages. Pages that followers still send stay in memory.
    pub(crate) fn clear(&self) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = Kept::default();
    }
}

/// The pages of one thread that are in memory.
#[derive(Default)]
pub(crate) struct ThreadPages {
    known: Mutex<Known>,
    /// Locked while a page is read, so that followers at one position read it once.
    reading: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Known {
    by_place: BTreeMap<Seq, Weak<Page>>,
    /// How often all of them were dropped.
    n_clears: u64,
}

impl ThreadPages {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn page(&self, after: Seq) -> Option<Arc<Page>> {
        self.known().by_place.get(&after)?.upgrade()
    }

    /// Drops the pages, also those that are being read.
    pub(crate) fn clear(&self) {
        let mut known = self.known();
        known.by_place.clear();
        known.n_clears += 1;
    }

    /// The page after a position, from memory if another follower has read it.
    ///
    /// A page whose only record is larger than [`PAGE_BYTES`] waits until the budget has room for
    /// it.
    pub(crate) async fn read(
        &self,
        pages: &Pages,
        store: &dyn Store,
        (thread, after): (&ThreadId, Seq),
    ) -> Result<Arc<Page>, StoreError> {
        if let Some(page) = self.page(after) {
            return Ok(page);
        }
        let _reading = self.reading.lock().await;
        loop {
            if let Some(page) = self.page(after) {
                return Ok(page);
            }
            let n_clears = self.known().n_clears;
            let page = Arc::new(within_budget(pages, store, (thread, after)).await?);
            if page.records.is_empty() {
                return Ok(page);
            }
            let mut known = self.known();
            if known.n_clears != n_clears {
                // The store may have changed the records meanwhile.
                continue;
            }
            let places = &mut known.by_place;
            if places.len() >= MAX_PLACES {
                places.retain(|_, page| page.strong_count() > 0);
            }
            places.insert(after, Arc::downgrade(&page));
            pages.keep(&page);
            return Ok(page);
        }
    }
}

async fn within_budget(
    pages: &Pages,
    store: &dyn Store,
    (thread, after): (&ThreadId, Seq),
) -> Result<Page, StoreError> {
    let read = || store.read(thread, after, PAGE, Filter::All);
    let mut records = read().await?;
    let Some(large) = records.first().filter(|it| it.text.len() > PAGE_BYTES) else {
        return Ok(Page::shared(records.into_iter().map(Arc::new).collect()));
    };
    let units = pages.units(large.text.len());
    let at_once = Arc::clone(&pages.large).try_acquire_many_owned(units);
    let permit = if let Ok(permit) = at_once {
        permit
    } else {
        // Whoever waits holds nothing meanwhile.
        drop(records);
        pages.clear();
        let permit = Arc::clone(&pages.large).acquire_many_owned(units).await;
        let permit = permit.map_err(|_| StoreError::Closed)?;
        records = read().await?;
        permit
    };
    let permit = Arc::new(LargeRecord::holding(permit));
    let records = records.into_iter().map(|logged| {
        let large = Some(Arc::clone(&permit));
        Arc::new(Logged { large, ..logged })
    });
    Ok(Page::shared(records.collect()))
}

#[cfg(test)]
pub(crate) mod tests;
