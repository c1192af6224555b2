//! The threads in memory, limited by their total size and by the time since their last use.

use crate::live::Live;
use crate::runtime::{Inner, Runtime};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use store::TenantId;
use timeline::ThreadId;
use tokio::time::Instant;

/// Minimum time that an unused thread stays in memory.
pub(crate) const IDLE: Duration = Duration::from_mins(1);
/// Interval of the search for unused threads.
const SWEEP: Duration = Duration::from_secs(10);
/// Memory of a thread besides its records and its state, in bytes.
const BASE_BYTES: usize = 4 << 10;

/// The memory of a runtime's threads, in bytes, and its limit.
#[derive(Debug)]
pub(crate) struct CacheSize {
    max_bytes: usize,
    bytes: AtomicUsize,
    is_swept: AtomicBool,
}

impl CacheSize {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            bytes: AtomicUsize::new(0),
            is_swept: AtomicBool::new(false),
        }
    }

    /// Whether the threads exceed their maximum size.
    pub(crate) fn is_over(&self) -> bool {
        self.bytes() > self.max_bytes
    }

    /// The bytes that the threads occupy.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The maximum of these bytes.
    pub(crate) fn max_bytes(&self) -> usize {
        self.max_bytes
    }
}

/// One thread's share of the cache size, released on drop.
#[derive(Debug)]
pub(crate) struct Share {
    of: Arc<CacheSize>,
    bytes: AtomicUsize,
}

impl Share {
    pub(crate) fn new(of: Arc<CacheSize>) -> Self {
        of.bytes.fetch_add(BASE_BYTES, Ordering::Relaxed);
        Self {
            of,
            bytes: AtomicUsize::new(BASE_BYTES),
        }
    }

    pub(crate) fn cache(&self) -> &CacheSize {
        &self.of
    }

    /// Sets the bytes that the thread occupies now, besides the base of every thread.
    pub(crate) fn set(&self, bytes: usize) {
        let now = bytes.saturating_add(BASE_BYTES);
        let before = self.bytes.swap(now, Ordering::Relaxed);
        if now > before {
            self.of.bytes.fetch_add(now - before, Ordering::Relaxed);
        } else {
            self.of.bytes.fetch_sub(before - now, Ordering::Relaxed);
        }
    }

    fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.of.bytes.fetch_sub(self.bytes(), Ordering::Relaxed);
    }
}

type Threads = BTreeMap<ThreadId, Arc<Live>>;

/// Whether a thread may be dropped from memory. Only an unshared one may: two instances of one
/// thread in a process would refuse each other's appends.
fn is_unused(live: &Arc<Live>) -> bool {
    Arc::strong_count(live) == 1 && live.is_idle()
}

/// Drops the least recently used threads until the others occupy half of the maximum size.
fn shrink(threads: &mut Threads, size: &CacheSize) {
    let mut unused: Vec<(Instant, usize, ThreadId)> = threads
        .values()
        .filter(|live| is_unused(live))
        .map(|live| (live.used(), live.share.bytes(), live.thread.clone()))
        .collect();
    unused.sort_unstable();
    let mut left = size.bytes();
    for (_, bytes, thread) in unused {
        if left <= size.max_bytes / 2 {
            break;
        }
        left = left.saturating_sub(bytes);
        threads.remove(&thread);
    }
}

impl Inner {
    /// Frees memory if the threads exceed their maximum size. `threads` is their map, whose lock
    /// the caller holds.
    pub(crate) fn make_room(&self, threads: &mut Threads) {
        if self.cache.is_over() {
            shrink(threads, &self.cache);
            self.forget_keys(threads);
        }
    }

    /// Drops the threads that were unused for a minute, and those beyond the memory limit.
    fn sweep(&self) -> bool {
        let now = Instant::now();
        self.pages.clear();
        let mut threads = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        let is_old = |live: &Live| now.duration_since(live.used()) >= IDLE;
        for live in threads.values().filter(|live| is_old(live)) {
            live.forget_recent();
        }
        threads.retain(|_, live| !is_unused(live) || !is_old(live));
        self.make_room(&mut threads);
        self.forget_keys(&threads);
        threads.is_empty()
    }

    fn forget_keys(&self, threads: &Threads) {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.retain(|_: &(TenantId, String), id| threads.contains_key(id));
    }
}

impl Runtime {
    /// Starts the search for unused threads, which runs while any thread is in memory.
    pub(crate) fn ensure_sweeps(&self) {
        if self.inner.cache.is_swept.swap(true, Ordering::Relaxed) {
            return;
        }
        let inner = Arc::downgrade(&self.inner);
        let shutdown = self.inner.shutdown.clone();
        let sweeps = shutdown.run_until_cancelled_owned(async move {
            loop {
                tokio::time::sleep(SWEEP).await;
                let Some(inner) = inner.upgrade() else { return };
                if inner.sweep() {
                    inner.cache.is_swept.store(false, Ordering::Relaxed);
                    return;
                }
            }
        });
        self.inner.tasks.spawn(sweeps);
    }
}

#[cfg(test)]
mod tests;
