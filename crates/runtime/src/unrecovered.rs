//! The unfinished threads that wait for their recovery.

use std::collections::BTreeMap;
use std::time::Duration;
use store::{DueSearch, TenantId};
use timeline::ThreadId;
use tokio::time::Instant;

/// Maximum number of threads that one search takes up. A tenant with this number of waiting threads is not searched for.
pub(crate) const MAX_DUE: usize = 16;
/// Nothing is searched for if this number of threads must be left out.
const MAX_LEFT_OUT: usize = 1024;

/// The unfinished threads of which this process knows.
#[derive(Debug, Default)]
pub(crate) struct Unrecovered {
    /// Those that wait, with their tenant once it is read.
    waiting: BTreeMap<ThreadId, Option<TenantId>>,
    /// Those that can't be recovered now, and when a search may find them again.
    passed_over: BTreeMap<ThreadId, Instant>,
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
        self.waiting.remove(thread);
        let now = Instant::now();
        self.passed_over.retain(|_, until| *until > now);
        self.passed_over.insert(thread.clone(), now + time);
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
        let mut counts: BTreeMap<&TenantId, usize> = BTreeMap::new();
        for tenant in self.waiting.values().flatten() {
            *counts.entry(tenant).or_default() += 1;
        }
        let full = counts.into_iter().filter(|(_, n)| *n >= MAX_DUE);
        full.map(|(tenant, _)| tenant.clone()).collect()
    }

    /// A search for threads that are not known yet; none if too many are to be read, or to be left out.
    pub(crate) fn search(&mut self) -> Option<DueSearch> {
        if self.is_reading() {
            return None;
        }
        let now = Instant::now();
        self.passed_over.retain(|_, until| *until > now);
        let without_tenants = self.full_tenants();
        let is_searched = |tenant: &Option<TenantId>| {
            let tenant = tenant.as_ref();
            !tenant.is_some_and(|it| without_tenants.contains(it))
        };
        let waiting = self.waiting.iter();
        let waiting = waiting.filter_map(|(thread, it)| is_searched(it).then_some(thread));
        let without: Vec<_> = waiting.chain(self.passed_over.keys()).cloned().collect();
        (without.len() < MAX_LEFT_OUT).then_some(DueSearch {
            limit: MAX_DUE,
            without_tenants,
            without,
        })
    }
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
