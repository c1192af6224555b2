//! The unfinished threads that wait for their recovery.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use store::{DueSearch, TenantId};
use timeline::ThreadId;
use tokio::time::Instant;

/// Maximum number of threads that one search takes up. A tenant with this number of waiting threads is not searched for.
pub(crate) const MAX_DUE: usize = 16;
/// A tenant of which this number of threads are passed over is not searched for.
const MAX_PASSED_OVER: usize = 128;
/// Nothing is searched for if this number of threads must be left out.
const MAX_LEFT_OUT: usize = 1024;

/// The unfinished threads of which this process knows.
#[derive(Debug, Default)]
pub(crate) struct Unrecovered {
    /// Those that wait, with their tenant once it is read.
    waiting: BTreeMap<ThreadId, Option<TenantId>>,
    /// Those that can't be recovered now, when a search may find them again, and their tenant if it is read.
    passed_over: BTreeMap<ThreadId, (Instant, Option<TenantId>)>,
}

impl Unrecovered {
    /// Adds a thread. Returns whether it is new.
    pub(crate) fn insert(&mut self, thread: &ThreadId) -> bool {
        self.passed_over.remove(thread);
        let is_new = !self.waiting.contains_key(thread);
        if is_new {
            self.waiting.insert(thread.clone(), None);
        }
        is_new
    }

    /// Notes the tenant of a thread that waits.
    pub(crate) fn is_of(&mut self, thread: &ThreadId, tenant: &TenantId) {
        if let Some(known) = self.waiting.get_mut(thread) {
            *known = Some(tenant.clone());
        }
    }

    /// Removes a thread that waits no more.
    pub(crate) fn remove(&mut self, thread: &ThreadId) {
        self.waiting.remove(thread);
    }

    /// Leaves a thread out of searches for some time.
    pub(crate) fn pass_over(&mut self, thread: &ThreadId, time: Duration) {
        let tenant = self.waiting.remove(thread).flatten();
        let now = Instant::now();
        self.passed_over.retain(|_, (until, _)| *until > now);
        self.passed_over
            .insert(thread.clone(), (now + time, tenant));
    }

    /// The number of threads that wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether a search must wait until the threads of earlier ones are read.
    pub(crate) fn is_reading(&self) -> bool {
        let unread = self.waiting.values().filter(|tenant| tenant.is_none());
        unread.count() >= MAX_DUE
    }

    /// The tenants that are not searched for.
    pub(crate) fn full_tenants(&self) -> Vec<TenantId> {
        let passed_over = self.passed_over.values().map(|(_, tenant)| tenant);
        let waiting = full(self.waiting.values().flatten(), MAX_DUE);
        let all = waiting.chain(full(passed_over.flatten(), MAX_PASSED_OVER));
        let all: BTreeSet<_> = all.collect();
        all.into_iter().cloned().collect()
    }

    /// A search for threads that are not known yet; none if too many are to be read, or to be left out.
    pub(crate) fn search(&mut self) -> Option<DueSearch> {
        if self.is_reading() {
            return None;
        }
        let now = Instant::now();
        self.passed_over.retain(|_, (until, _)| *until > now);
        let without_tenants = self.full_tenants();
        let is_searched = |tenant: &Option<TenantId>| {
            let tenant = tenant.as_ref();
            !tenant.is_some_and(|it| without_tenants.contains(it))
        };
        let waiting = self.waiting.iter();
        let passed_over = self
            .passed_over
            .iter()
            .map(|(thread, (_, it))| (thread, it));
        let known = waiting.chain(passed_over).filter(|(_, it)| is_searched(it));
        let without: Vec<_> = known.map(|(thread, _)| thread.clone()).collect();
        (without.len() < MAX_LEFT_OUT).then_some(DueSearch {
            limit: MAX_DUE,
            without_tenants,
            without,
        })
    }
}

/// The tenants with this number of threads.
fn full<'a>(
    tenants: impl Iterator<Item = &'a TenantId>,
    n: usize,
) -> impl Iterator<Item = &'a TenantId> {
    let mut counts: BTreeMap<&TenantId, usize> = BTreeMap::new();
    for tenant in tenants {
        *counts.entry(tenant).or_default() += 1;
    }
    let full = counts.into_iter().filter(move |(_, count)| *count >= n);
    full.map(|(tenant, _)| tenant)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(n: usize, tenant: &str) -> Unrecovered {
        let mut all = Unrecovered::default();
        for n in 0..n {
            let thread = format!("{tenant}{n}").as_str().into();
            assert!(all.insert(&thread));
            all.is_of(&thread, &tenant.into());
        }
        all
    }

    #[tokio::test(start_paused = true)]
    async fn a_tenant_with_many_waiting_threads_is_not_searched_for() {
        let few = waiting(MAX_DUE - 1, "a").search().unwrap();
        assert_eq!(few.without_tenants, []);
        assert_eq!(few.without.len(), MAX_DUE - 1);
        let mut all = waiting(MAX_DUE, "a");
        all.insert(&"b0".into());
        let many = all.search().unwrap();
        assert_eq!(many.without_tenants, ["a".into()]);
        assert_eq!(many.without, ["b0".into()]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_thread_that_failed_is_left_out_for_some_time() {
        let mut all = waiting(1, "a");
        all.pass_over(&"a0".into(), Duration::from_secs(5));
        assert_eq!(all.len(), 0);
        assert_eq!(all.search().unwrap().without, ["a0".into()]);
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(all.search().unwrap().without, []);
    }

    #[tokio::test(start_paused = true)]
    async fn a_tenant_with_many_failed_threads_is_not_searched_for() {
        let mut all = Unrecovered::default();
        for n in 0..MAX_PASSED_OVER {
            assert_eq!(all.full_tenants(), []);
            let thread = format!("t{n}").as_str().into();
            all.insert(&thread);
            all.is_of(&thread, &"a".into());
            all.pass_over(&thread, Duration::from_secs(5));
        }
        let search = all.search().unwrap();
        assert_eq!(
            (search.without_tenants, search.without),
            (vec!["a".into()], vec![])
        );
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(all.search(), Some(DueSearch::new(MAX_DUE)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_search_leaves_out_a_limited_number_of_threads() {
        let mut all = Unrecovered::default();
        for n in 0..MAX_LEFT_OUT {
            all.pass_over(&format!("t{n}").as_str().into(), Duration::from_secs(5));
        }
        assert_eq!(all.search(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_search_comes_after_the_threads_of_the_one_before_are_read() {
        let mut all = Unrecovered::default();
        for n in 0..MAX_DUE {
            assert!(!all.is_reading());
            all.insert(&format!("t{n}").as_str().into());
        }
        assert_eq!(all.search(), None);
        all.is_of(&"t0".into(), &"a".into());
        assert!(all.search().is_some());
    }
}
