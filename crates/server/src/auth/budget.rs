//! How many requests a caller still has.

use governor::clock::{Clock as _, MonotonicClock};
use governor::state::keyed::HashMapStateStore;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// After how many requests those are forgotten whose buckets are full again.
const FORGETS_AFTER: u32 = 1_024;

/// A bucket of requests that is filled again evenly.
#[derive(Clone, Debug)]
pub(super) enum Budget {
    /// One of a caller's own.
    Own(Arc<RateLimiter<NotKeyed, InMemoryState, MonotonicClock>>),
    /// That of a subject of tokens.
    Subject(Arc<SubjectBudgets>, Arc<str>),
}

impl Budget {
    pub(super) fn new(requests_per_minute: NonZeroU32) -> Self {
        let quota = Quota::per_minute(requests_per_minute);
        Self::Own(Arc::new(RateLimiter::direct_with_clock(
            quota,
            MonotonicClock,
        )))
    }

    /// Takes one request out. When none is left: after how long there is another.
    pub(super) fn spend(&self) -> Result<(), Duration> {
        let spent = match self {
            Self::Own(budget) => budget.check(),
            Self::Subject(budgets, subject) => budgets.check(subject),
        };
        spent.map_err(|refused| refused.wait_time_from(MonotonicClock.now()))
    }
}

/// The buckets of an issuer's subjects: each has one, however many tokens it has. What is kept are those
/// that have asked lately.
#[derive(Debug)]
pub(super) struct SubjectBudgets {
    buckets: RateLimiter<Arc<str>, HashMapStateStore<Arc<str>>, MonotonicClock>,
    n_asked: AtomicU32,
}

impl SubjectBudgets {
    pub(super) fn new(requests_per_minute: NonZeroU32) -> Self {
        let quota = Quota::per_minute(requests_per_minute);
        Self {
            buckets: RateLimiter::hashmap_with_clock(quota, MonotonicClock),
            n_asked: AtomicU32::new(0),
        }
    }

    /// The bucket of a subject.
    pub(super) fn of(self: &Arc<Self>, subject: &str) -> Budget {
        Budget::Subject(Arc::clone(self), subject.into())
    }

    fn check(&self, subject: &Arc<str>) -> Result<(), governor::NotUntil<Instant>> {
        let n_asked = self.n_asked.fetch_add(1, Ordering::Relaxed);
        if n_asked % FORGETS_AFTER == FORGETS_AFTER - 1 {
            self.buckets.retain_recent();
        }
        self.buckets.check_key(subject)
    }
}

/// What the clock says.
type Instant = <MonotonicClock as governor::clock::Clock>::Instant;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_whose_buckets_are_full_again_are_forgotten() {
        // So many a minute that one is there again at once.
        let budgets = Arc::new(SubjectBudgets::new(NonZeroU32::MAX));
        for n in 0..3 * FORGETS_AFTER {
            assert_eq!(budgets.of(&n.to_string()).spend(), Ok(()));
            assert!(budgets.buckets.len() <= FORGETS_AFTER as usize + 1);
        }
    }
}
