//! Pools of permits that all tenants share, with a reserved part for each tenant.

use runtime::{LimitKind, LimitReached, TenantId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Divisor of the permits for the reserved part, which the tenants share equally.
const RESERVED: usize = 2;

/// The names of a pool's limits in the configuration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names {
    pub(super) process: &'static str,
    pub(super) tenant: &'static str,
}

/// Permits that all tenants share.
///
/// One half is reserved in equal parts for the tenants, so each gets its part whatever the others use.
/// The other half is first come, first served.
#[derive(Debug)]
pub(crate) struct Pool {
    names: Names,
    max: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    n_tenants: usize,
    total: usize,
    tenants: BTreeMap<TenantId, usize>,
    keys: BTreeMap<(TenantId, Arc<str>), usize>,
}

/// One permit of a pool. Dropping it returns it.
#[derive(Debug)]
pub(crate) struct Permit {
    pool: Arc<Pool>,
    tenant: TenantId,
    key: Option<Arc<str>>,
}

impl Pool {
    pub(super) fn new(names: Names, max: usize) -> Arc<Self> {
        Arc::new(Self {
            names,
            max,
            held: Mutex::default(),
        })
    }

    /// Divides the reserved permits among this number of tenants.
    pub(super) fn share_among(&self, n_tenants: usize) {
        self.lock().n_tenants = n_tenants;
    }

    /// Takes a permit for a tenant with at most `max` permits. With a key, also counts it for that key
    /// with its own maximum.
    pub(super) fn acquire(
        self: &Arc<Self>,
        tenant: &TenantId,
        max: usize,
        key: Option<(&Arc<str>, usize)>,
    ) -> Result<Permit, LimitReached> {
        let mut held = self.lock();
        let own = held.tenants.get(tenant).copied().unwrap_or_default();
        if let Some((key, max)) = key {
            let of_key = held.keys.get(&(tenant.clone(), Arc::clone(key)));
            if of_key.is_some_and(|held| *held >= max) {
                return Err(reached("tenant.streams_per_key", max));
            }
        }
        if own >= max {
            return Err(reached(self.names.tenant, max));
        }
        let reserved = self.reserved(&held);
        if own >= reserved && self.is_taken(&held, reserved) {
            return Err(reached(self.names.process, self.max));
        }
        held.total += 1;
        *held.tenants.entry(tenant.clone()).or_default() += 1;
        let key = key.map(|(key, _)| Arc::clone(key));
        if let Some(key) = &key {
            let of_key = held.keys.entry((tenant.clone(), Arc::clone(key)));
            *of_key.or_default() += 1;
        }
        Ok(Permit {
            pool: Arc::clone(self),
            tenant: tenant.clone(),
            key,
        })
    }

    /// The number of permits reserved for each tenant.
    fn reserved(&self, held: &Held) -> usize {
        self.max / RESERVED / held.n_tenants.max(1)
    }

    /// Whether all permits outside the reserved part are in use.
    fn is_taken(&self, held: &Held, reserved: usize) -> bool {
        let n_tenants = held.n_tenants.max(1);
        let shared = self.max.saturating_sub(reserved.saturating_mul(n_tenants));
        // What is held and not reserved; the sum is needed only where it may be all.
        if held.total < shared {
            return false;
        }
        let beyond = held
            .tenants
            .values()
            .map(|own| own.saturating_sub(reserved));
        beyond.sum::<usize>() >= shared
    }

    /// The number of permits in use.
    pub(crate) fn total(&self) -> usize {
        self.lock().total
    }

    /// The number of permits that a tenant uses.
    pub(crate) fn held_by(&self, tenant: &TenantId) -> usize {
        self.lock().tenants.get(tenant).copied().unwrap_or_default()
    }

    /// The number of permits.
    pub(crate) fn max(&self) -> usize {
        self.max
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn reached(name: &'static str, max: usize) -> LimitReached {
    LimitReached {
        name,
        max: max as u64,
        kind: LimitKind::Concurrency,
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut held = self.pool.lock();
        held.total = held.total.saturating_sub(1);
        give_back(&mut held.tenants, &self.tenant);
        if let Some(key) = self.key.take() {
            give_back(&mut held.keys, &(self.tenant.clone(), key));
        }
    }
}

/// Subtracts one permit; removes the entry at zero.
fn give_back<K: Ord>(counts: &mut BTreeMap<K, usize>, of: &K) {
    if let Some(count) = counts.get_mut(of) {
        *count -= 1;
        if *count == 0 {
            counts.remove(of);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: Names = Names {
        process: "streams",
        tenant: "tenant.streams",
    };

    fn name(answer: Result<Permit, LimitReached>) -> &'static str {
        answer.unwrap_err().name
    }

    #[test]
    fn one_tenant_can_not_take_what_is_reserved_for_another() {
        let pool = Pool::new(NAMES, 100);
        pool.share_among(2);
        let (a, b) = (TenantId::from("a"), TenantId::from("b"));
        let taken: Vec<_> = (0..1_000)
            .filter_map(|_| pool.acquire(&a, 1_000, None).ok())
            .collect();
        assert_eq!((taken.len(), pool.held_by(&a)), (75, 75));
        assert_eq!(name(pool.acquire(&a, 1_000, None)), "streams");
        let others: Vec<_> = (0..1_000)
            .filter_map(|_| pool.acquire(&b, 1_000, None).ok())
            .collect();
        assert_eq!((others.len(), pool.total()), (25, 100));
        drop(taken);
        assert_eq!((pool.total(), pool.held_by(&a)), (25, 0));
        assert!(pool.acquire(&b, 1_000, None).is_ok());
    }

    #[test]
    fn a_key_and_a_tenant_have_limits_of_their_own() {
        let pool = Pool::new(NAMES, 1);
        let (a, key) = (TenantId::from("a"), Arc::<str>::from("k"));
        let first = pool.acquire(&a, 9, Some((&key, 1))).unwrap();
        assert_eq!(
            name(pool.acquire(&a, 9, Some((&key, 1)))),
            "tenant.streams_per_key"
        );
        assert_eq!(name(pool.acquire(&a, 1, None)), "tenant.streams");
        assert_eq!(name(pool.acquire(&a, 9, None)), "streams");
        drop(first);
        assert!(pool.lock().keys.is_empty() && pool.lock().tenants.is_empty());
        assert!(pool.acquire(&a, 1, Some((&key, 1))).is_ok());
    }
}
