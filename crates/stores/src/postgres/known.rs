//! The threads that a lane knows from its last commits, so that it need not look at them before the next one.

use super::look::{FoundThread, Look};
use super::usage::is_near;
use super::write::{Body, Write};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use store::{Ownership, Quotas, StorageUsage, TenantId};
use timeline::ThreadId;

/// Threads that are known at most. Then the lane begins anew.
const THREADS: usize = 10_000;

/// How long it is known that a tenant is far from its limits.
const USAGE: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct KnownThreads {
    threads: BTreeMap<ThreadId, FoundThread>,
    usage: BTreeMap<TenantId, (Instant, StorageUsage)>,
}

impl KnownThreads {
    /// The known threads of a batch, if that is enough for it.
    pub(super) fn look(&self, batch: &[Write], quotas: &Quotas) -> Option<Look> {
        let is_unlimited = quotas.are_unlimited();
        let mut look = Look::default();
        for write in batch {
            let Body::Append(append) = &write.body else {
                return None;
            };
            // The epoch of a takeover depends on the clock of the database.
            if matches!(append.ownership, Ownership::Take(_)) || write.doubt.is_some() {
                return None;
            }
            let found = self.threads.get(&append.thread)?;
            if append.is_limited && !is_unlimited {
                let (at, usage) = self.usage.get(&found.tenant)?;
                if at.elapsed() > USAGE || is_near(&quotas.of(&found.tenant), usage) {
                    return None;
                }
                look.usage.insert(found.tenant.clone(), *usage);
            }
            look.threads.insert(append.thread.clone(), found.clone());
            for (other, _) in &append.unmoved {
                let found = self.threads.get(other)?;
                look.threads.insert(other.clone(), found.clone());
            }
        }
        Some(look)
    }

    /// Notes what was committed.
    pub(super) fn note(&mut self, done: &Look) {
        if self.threads.len() > THREADS {
            self.threads.clear();
        }
        for (thread, found) in &done.threads {
            let found = FoundThread {
                // A thread that was only looked at may have been locked before. Then its row is newer than its calls.
                may_wait: found.may_wait || !found.is_changed,
                is_changed: false,
                ..found.clone()
            };
            self.threads.insert(thread.clone(), found);
        }
        for (tenant, usage) in &done.usage {
            // What is known of it already is as old as it was.
            let is_old = |(at, _): &(Instant, _)| at.elapsed() > USAGE;
            if self.usage.get(tenant).is_none_or(is_old) {
                self.usage.insert(tenant.clone(), (Instant::now(), *usage));
            }
        }
    }

    /// Forgets the threads of a batch.
    pub(super) fn forget(&mut self, batch: &[Write]) {
        for write in batch {
            self.threads.remove(write.thread());
            if let Body::Append(append) = &write.body {
                for (other, _) in &append.unmoved {
                    self.threads.remove(other);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::Epoch;
    use timeline::Seq;

    #[test]
    fn calls_of_a_thread_that_was_only_looked_at_may_wait() {
        for (is_changed, may_wait) in [(false, true), (true, false)] {
            let found = FoundThread {
                no: 1,
                tenant: "acme".into(),
                epoch: Epoch::FIRST,
                tail: Seq(2),
                sum: [0; 16],
                owner: None,
                now: 0,
                may_wait: false,
                is_changed,
            };
            let mut look = Look::default();
            look.threads.insert("t".into(), found);
            let mut known = KnownThreads::default();
            known.note(&look);
            let noted = known.threads.get(&ThreadId::from("t"));
            let noted = noted.map(|it| (it.may_wait, it.is_changed));
            assert_eq!(noted, Some((may_wait, false)));
        }
    }
}
