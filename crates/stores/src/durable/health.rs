//! Whether commits succeed, which damage was found, and how often that is logged.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use store::StoreError;

/// Whether a store can do its work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoreHealth {
    /// No fault is known.
    #[default]
    Healthy,
    /// The last commit failed: the disk is full, or writing to it fails.
    CommitsFail,
    /// Damage was found since the store was opened.
    Damaged,
}

/// The findings of the committing thread and the reading threads.
#[derive(Debug, Default)]
pub(crate) struct Health {
    commits_fail: AtomicBool,
    /// An append found no space. Commits that need none do not show that appends succeed.
    is_full: AtomicBool,
    n_failures: AtomicU64,
    n_damaged: AtomicU64,
    log: Throttle,
    retry: Throttle,
}

impl Health {
    pub(crate) fn now(&self) -> StoreHealth {
        if self.n_damaged() > 0 {
            StoreHealth::Damaged
        } else if self.commits_fail.load(Ordering::Relaxed) {
            StoreHealth::CommitsFail
        } else {
            StoreHealth::Healthy
        }
    }

    /// How many commits and writes have failed.
    pub(crate) fn n_failures(&self) -> u64 {
        self.n_failures.load(Ordering::Relaxed)
    }

    /// How many operations have found damage.
    pub(crate) fn n_damaged(&self) -> u64 {
        self.n_damaged.load(Ordering::Relaxed)
    }

    /// An append was committed, or could have been.
    #[cfg(feature = "postgres")]
    pub(crate) fn appended(&self) {
        self.is_full.store(false, Ordering::Relaxed);
        self.committed();
    }

    /// An append failed for lack of space.
    #[cfg(feature = "postgres")]
    pub(crate) fn disk_full(&self) {
        self.is_full.store(true, Ordering::Relaxed);
    }

    /// A commit has written something.
    pub(crate) fn committed(&self) {
        if self.is_full.load(Ordering::Relaxed) {
            return;
        }
        if self.commits_fail.swap(false, Ordering::Relaxed) {
            tracing::info!("commits succeed again");
        }
    }

    /// A commit failed, or a write before it.
    pub(crate) fn commit_failed(&self, error: &dyn std::error::Error) {
        self.commits_fail.store(true, Ordering::Relaxed);
        self.n_failures.fetch_add(1, Ordering::Relaxed);
        self.log(error, "a commit failed; every request in it is refused");
    }

    /// A commit failed, and is tried again.
    #[cfg(feature = "postgres")]
    pub(crate) fn commit_delayed(&self, error: &dyn std::error::Error) {
        self.commits_fail.store(true, Ordering::Relaxed);
        self.n_failures.fetch_add(1, Ordering::Relaxed);
        self.log(error, "a commit failed; it is tried again");
    }

    /// A request to the committing thread failed.
    pub(crate) fn write_failed(&self, error: &StoreError) {
        if let StoreError::Failed(_) = error {
            self.commit_failed(error);
        } else {
            self.read_failed(error);
        }
    }

    /// A request to a reading thread failed.
    pub(crate) fn read_failed(&self, error: &StoreError) {
        if is_violation(error) {
            self.log(error, "a change does not fit the store's tables");
        } else if let StoreError::Damaged(_) = error {
            self.n_damaged.fetch_add(1, Ordering::Relaxed);
            self.log(error, "damage was found in the store");
        } else if let StoreError::Failed(_) = error {
            self.log(error, "reading from the store failed");
        }
    }

    /// Whether a trial commit is due: commits fail, and the last trial is a second ago.
    pub(crate) fn wants_trial(&self) -> bool {
        self.commits_fail.load(Ordering::Relaxed) && self.retry.admit().is_some()
    }

    fn log(&self, error: &dyn std::error::Error, what: &'static str) {
        if let Some(suppressed) = self.log.admit() {
            let error = with_causes(error);
            tracing::error!(error, suppressed, "{what}");
        }
    }
}

/// Limits an action to once per second.
#[derive(Debug, Default)]
struct Throttle {
    state: Mutex<(Option<Instant>, u64)>,
}

impl Throttle {
    const INTERVAL: Duration = Duration::from_secs(1);

    /// The number of suppressed actions since the last one; `None` if this one is suppressed.
    fn admit(&self) -> Option<u64> {
        self.admit_at(Instant::now())
    }

    fn admit_at(&self, now: Instant) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, suppressed) = &mut *state;
        if last.is_some_and(|last| now.duration_since(last) < Self::INTERVAL) {
            *suppressed += 1;
            return None;
        }
        *last = Some(now);
        Some(std::mem::take(suppressed))
    }
}

const VIOLATION: &str = "a change does not fit the tables: ";

/// The text of [`StoreError::Damaged`] for a change that breaks a constraint.
pub(crate) fn violation(error: &str) -> String {
    format!("{VIOLATION}{error}")
}

/// Whether one change broke a constraint. That does not mean that the store is damaged.
pub(crate) fn is_violation(error: &StoreError) -> bool {
    matches!(error, StoreError::Damaged(what) if what.starts_with(VIOLATION))
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_throttle_admits_one_per_second_and_counts_the_others() {
        let throttle = Throttle::default();
        let start = Instant::now();
        let after = |ms| throttle.admit_at(start + Duration::from_millis(ms));
        assert_eq!(after(0), Some(0));
        assert_eq!([after(1), after(500), after(999)], [None; 3]);
        assert_eq!(after(1_000), Some(3));
        assert_eq!(after(1_500), None);
        assert_eq!(after(60_000), Some(1));
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn a_commit_without_need_for_space_does_not_end_a_full_disk() {
        let health = Health::default();
        health.disk_full();
        health.write_failed(&StoreError::Failed("could not extend file".into()));
        health.committed();
        assert_eq!(health.now(), StoreHealth::CommitsFail);
        health.appended();
        assert_eq!(health.now(), StoreHealth::Healthy);
    }

    #[test]
    fn a_change_that_does_not_fit_is_no_damage_of_the_store() {
        let health = Health::default();
        health.write_failed(&StoreError::Damaged(violation("x")));
        assert_eq!(health.now(), StoreHealth::Healthy);
        health.read_failed(&StoreError::Damaged("malformed".into()));
        assert_eq!(
            (health.now(), health.n_damaged()),
            (StoreHealth::Damaged, 1)
        );
    }
}
