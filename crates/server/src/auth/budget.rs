//! The request rates of callers.

use governor::clock::{Clock, MonotonicClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::state::{InMemoryState, NotKeyed};
use governor::{NotUntil, Quota, RateLimiter};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};
use std::time::Duration;

/// Minimum number of requests between two searches for full buckets, which are dropped.
const FORGETS_AFTER: isize = 1_024;
/// The map shrinks when at most one in this many places is used.
const SHRINKS_BELOW: usize = 4;

/// A bucket of requests that refills evenly.
#[derive(Clone, Debug)]
pub(crate) enum Budget {
    /// One of a caller's own.
    Own(Arc<RateLimiter<NotKeyed, InMemoryState, MonotonicClock>>),
    /// The bucket of a token's subject.
    Subject(Arc<SubjectBudgets>, Arc<str>),
}

impl Budget {
    pub(crate) fn new(requests_per_minute: NonZeroU32) -> Self {
        let quota = Quota::per_minute(requests_per_minute);
        Self::Own(Arc::new(RateLimiter::direct_with_clock(
            quota,
            MonotonicClock,
        )))
    }

    /// Takes one request out, which weighs as much as there are servers: each has a bucket of its own, and all
    /// together give the rate. If none is left, the error is the time until there is one.
    pub(crate) fn spend(&self, n_servers: NonZeroU32) -> Result<(), Duration> {
        let spent = match self {
            // More servers than requests a minute: each may have one.
            Self::Own(budget) => budget.check_n(n_servers).unwrap_or_else(|_| budget.check()),
            Self::Subject(budgets, subject) => budgets.check(subject, n_servers),
        };
        spent.map_err(|refused| refused.wait_time_from(MonotonicClock.now()))
    }
}

/// Buckets by subject, with this clock.
type Buckets<C> =
    RateLimiter<Arc<str>, HashMapStateStore<Arc<str>>, C, NoOpMiddleware<<C as Clock>::Instant>>;

/// The buckets of an issuer's subjects. A subject has one bucket for all its tokens. Only subjects with
/// recent requests are stored.
#[derive(Debug)]
pub(crate) struct SubjectBudgets<C: Clock = MonotonicClock> {
    buckets: Buckets<C>,
    /// Number of requests until full buckets are dropped next.
    n_left: AtomicIsize,
    /// Number of places in the map since it last shrank.
    room: AtomicUsize,
}

impl SubjectBudgets {
    pub(crate) fn new(requests_per_minute: NonZeroU32) -> Self {
        Self::with_clock(requests_per_minute, MonotonicClock)
    }

    /// The bucket of a subject.
    pub(crate) fn of(self: &Arc<Self>, subject: &str) -> Budget {
        Budget::Subject(Arc::clone(self), subject.into())
    }
}

impl<C: Clock> SubjectBudgets<C> {
    fn with_clock(requests_per_minute: NonZeroU32, clock: C) -> Self {
        let quota = Quota::per_minute(requests_per_minute);
        Self {
            buckets: RateLimiter::hashmap_with_clock(quota, clock),
            n_left: AtomicIsize::new(FORGETS_AFTER),
            room: AtomicUsize::new(0),
        }
    }

    fn check(&self, subject: &Arc<str>, n_servers: NonZeroU32) -> Result<(), NotUntil<C::Instant>> {
        if self.n_left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.forget();
        }
        self.buckets
            .check_key_n(subject, n_servers)
            .unwrap_or_else(|_| self.buckets.check_key(subject))
    }

    /// Drops full buckets. It visits all, so the next time is after as many requests as buckets remain:
    /// each request pays for at most two visits.
    fn forget(&self) {
        let room = self.room.load(Ordering::Relaxed).max(self.buckets.len());
        self.buckets.retain_recent();
        let n_kept = self.buckets.len();
        let is_roomy = n_kept < room / SHRINKS_BELOW;
        if is_roomy {
            self.buckets.shrink_to_fit();
        }
        let room = if is_roomy { n_kept } else { room };
        self.room.store(room, Ordering::Relaxed);
        let n_left = isize::try_from(n_kept).unwrap_or(isize::MAX);
        self.n_left
            .store(n_left.max(FORGETS_AFTER), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use governor::clock::FakeRelativeClock;

    /// More subjects than are few.
    const MANY: usize = 4_096;

    #[test]
    fn servers_share_a_rate() {
        let budget = Budget::new(NonZeroU32::new(6).unwrap());
        let n_servers = NonZeroU32::new(3).unwrap();
        let n_admitted = (0..6).filter(|_| budget.spend(n_servers).is_ok()).count();
        assert_eq!(n_admitted, 2);
        // A rate below the number of servers admits one request at each.
        let budget = Budget::new(NonZeroU32::MIN);
        let n_admitted = (0..6).filter(|_| budget.spend(n_servers).is_ok()).count();
        assert_eq!(n_admitted, 1);
    }

    /// Makes one request for each of `n_subjects` subjects, with a limit of one a minute.
    fn asked(n_subjects: usize) -> (SubjectBudgets<FakeRelativeClock>, FakeRelativeClock) {
        let clock = FakeRelativeClock::default();
        let budgets = SubjectBudgets::with_clock(NonZeroU32::MIN, clock.clone());
        for n in 0..n_subjects {
            assert_eq!(
                budgets.check(&n.to_string().into(), NonZeroU32::MIN),
                Ok(())
            );
        }
        (budgets, clock)
    }

    /// Number of one subject's requests until the full buckets are dropped.
    fn n_until_forgotten(budgets: &SubjectBudgets<FakeRelativeClock>) -> usize {
        let (one, n_before) = ("one".into(), budgets.buckets.len());
        let asks = |_: &usize| {
            // Whether it has one left is not the question.
            let _spent = budgets.check(&one, NonZeroU32::MIN);
            budgets.buckets.len() < n_before
        };
        (1..=2 * MANY).find(asks).unwrap()
    }

    #[test]
    fn subjects_whose_buckets_are_full_again_are_forgotten_and_no_others() {
        let (budgets, clock) = asked(MANY);
        assert_eq!(budgets.buckets.len(), MANY);
        clock.advance(Duration::from_mins(2));
        n_until_forgotten(&budgets);
        assert_eq!(budgets.buckets.len(), 1);
    }

    #[test]
    fn the_more_subjects_there_are_the_more_seldom_all_are_looked_at() {
        let (budgets, clock) = asked(MANY);
        clock.advance(Duration::from_mins(2));
        assert!(n_until_forgotten(&budgets) > MANY / 2);
        // Few are left, and they are looked at as often as few are.
        clock.advance(Duration::from_mins(2));
        assert_eq!(budgets.check(&"other".into(), NonZeroU32::MIN), Ok(()));
        clock.advance(Duration::from_mins(2));
        assert!(n_until_forgotten(&budgets) <= FORGETS_AFTER as usize);
    }

    #[test]
    fn room_for_subjects_that_are_forgotten_is_given_back() {
        let (budgets, clock) = asked(MANY);
        budgets.forget();
        assert_eq!(budgets.room.load(Ordering::Relaxed), MANY);
        clock.advance(Duration::from_mins(2));
        budgets.forget();
        assert_eq!(budgets.room.load(Ordering::Relaxed), 0);
    }
}
