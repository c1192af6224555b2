//! Budgets of request bodies: the bytes that are in memory at once, of each tenant and of all.

use crate::error::ApiError;
use axum::extract::FromRequestParts;
use http::request::Parts;
use runtime::{LimitKind, LimitReached, Refusals, TenantId};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use thread::json::Counts;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The budgets of request bodies of all tenants.
#[derive(Clone)]
pub(crate) struct BodyBudgets(Arc<Shared>);

struct Shared {
    /// Maximum size of all bodies together, in bytes.
    max: usize,
    held: Mutex<Held>,
    /// A permit for each large body that is parsed.
    parsers: Arc<Semaphore>,
}

/// The bytes in use. A tenant without any is not listed.
#[derive(Default)]
struct Held {
    total: usize,
    tenants: BTreeMap<TenantId, usize>,
    refusals: Refusals,
}

impl BodyBudgets {
    pub(crate) fn new(max: usize) -> Self {
        let n_parsers = std::thread::available_parallelism().map_or(1, usize::from);
        Self(Arc::new(Shared {
            max,
            held: Mutex::default(),
            parsers: Arc::new(Semaphore::new(n_parsers)),
        }))
    }

    /// An empty lease for one request of a tenant whose bodies may use `max` bytes together.
    pub(crate) fn lease(&self, tenant: &TenantId, max: usize) -> BodyLease {
        BodyLease(Arc::new(Lease {
            budgets: self.clone(),
            tenant: tenant.clone(),
            max,
            bytes: AtomicUsize::new(0),
        }))
    }

    /// Maximum size of all bodies together, in bytes.
    pub(crate) fn max(&self) -> usize {
        self.0.max
    }

    /// The bytes in use by all bodies.
    pub(crate) fn in_flight(&self) -> usize {
        self.held().total
    }

    /// The bytes in use by a tenant's bodies.
    pub(crate) fn held_by(&self, tenant: &TenantId) -> usize {
        self.held().tenants.get(tenant).copied().unwrap_or_default()
    }

    /// Number of requests that each limit has refused, by tenant.
    pub(crate) fn refusals(&self) -> Refusals {
        self.held().refusals.clone()
    }

    /// Waits until another large body may be parsed.
    pub(super) async fn parser(&self) -> Option<OwnedSemaphorePermit> {
        // It is never closed.
        Arc::clone(&self.0.parsers).acquire_owned().await.ok()
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        // The sums are right after each statement, so a panic elsewhere breaks nothing.
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The share of the budgets that one request's body uses. Dropping the last clone frees it.
#[derive(Clone)]
pub(crate) struct BodyLease(Arc<Lease>);

struct Lease {
    budgets: BodyBudgets,
    tenant: TenantId,
    /// Maximum size of the tenant's bodies together, in bytes.
    max: usize,
    /// The bytes that the lease has. They change only while the budgets are locked.
    bytes: AtomicUsize,
}

impl BodyLease {
    /// Takes bytes from both budgets.
    ///
    /// # Errors
    ///
    /// One of them has fewer bytes left. Then nothing is taken.
    pub(crate) fn take(&self, bytes: usize) -> Result<(), LimitReached> {
        let lease = &*self.0;
        let mut held = lease.budgets.held();
        let own = held.tenants.get(&lease.tenant).copied();
        let own = own.unwrap_or_default().saturating_add(bytes);
        if own > lease.max {
            return Err(held.refused(lease, "tenant.body_bytes_in_flight", lease.max));
        }
        let total = held.total.saturating_add(bytes);
        if total > lease.budgets.0.max {
            return Err(held.refused(lease, "body_bytes_in_flight", lease.budgets.0.max));
        }
        held.total = total;
        lease.bytes.fetch_add(bytes, Ordering::Relaxed);
        match held.tenants.get_mut(&lease.tenant) {
            Some(known) => *known = own,
            None => drop(held.tenants.insert(lease.tenant.clone(), own)),
        }
        Ok(())
    }

    /// Takes the memory for the parsed values of a text, which itself is counted already.
    ///
    /// # Errors
    ///
    /// A budget has fewer bytes left, or the values alone exceed a budget.
    pub(crate) fn take_values(&self, text: usize, counts: &Counts) -> Result<(), ApiError> {
        let (size, max) = (tree_bytes(counts), self.max());
        let needed = text.saturating_add(size);
        if needed <= max {
            return Ok(self.take(size)?);
        }
        let limit = counts.values.saturating_mul(max.saturating_sub(text)) / size.max(1);
        Err(ApiError::TooManyValues { limit })
    }

    /// Moves bytes of this lease to a new lease.
    pub(crate) fn split(&self, bytes: usize) -> Self {
        let lease = &*self.0;
        let _held = lease.budgets.held();
        let bytes = bytes.min(lease.bytes.load(Ordering::Relaxed));
        lease.bytes.fetch_sub(bytes, Ordering::Relaxed);
        Self(Arc::new(Lease {
            budgets: lease.budgets.clone(),
            tenant: lease.tenant.clone(),
            max: lease.max,
            bytes: AtomicUsize::new(bytes),
        }))
    }

    /// Frees all bytes: the request continues without its body and values.
    pub(crate) fn free_all(&self) {
        self.0.free_all();
    }

    /// The maximum number of bytes of one request.
    pub(crate) fn max(&self) -> usize {
        self.0.max.min(self.0.budgets.0.max)
    }

    pub(super) fn budgets(&self) -> &BodyBudgets {
        &self.0.budgets
    }
}

impl Lease {
    fn free_all(&self) {
        let mut held = self.budgets.held();
        let bytes = self.bytes.swap(0, Ordering::Relaxed);
        if bytes == 0 {
            return;
        }
        held.total = held.total.saturating_sub(bytes);
        if let Some(own) = held.tenants.get_mut(&self.tenant) {
            *own = own.saturating_sub(bytes);
            if *own == 0 {
                held.tenants.remove(&self.tenant);
            }
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.free_all();
    }
}

impl<S: Send + Sync> FromRequestParts<S> for BodyLease {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        // Only `guard::authenticate` grants one, so a route without it reads no body.
        let lease = parts.extensions.get().cloned();
        lease.ok_or(ApiError::Unauthorized)
    }
}

impl Held {
    /// Counts and describes a refusal.
    fn refused(&mut self, lease: &Lease, name: &'static str, max: usize) -> LimitReached {
        let refusals = self.refusals.entry((lease.tenant.clone(), name));
        *refusals.or_default() += 1;
        LimitReached {
            name,
            max: u64::try_from(max).unwrap_or(u64::MAX),
            kind: LimitKind::Concurrency,
        }
    }
}

/// The memory of a value in a `serde_json::Value` tree, in bytes: measured, with the spare capacity
/// of lists. The texts of strings are counted with the body.
const VALUE: usize = 96;
/// Additional bytes of an array or object that is not empty.
const CONTAINER: usize = 256;
/// Additional bytes of an object's member.
const MEMBER: usize = 128;

/// The memory of the values of a text, in bytes.
fn tree_bytes(counts: &Counts) -> usize {
    let parts = [
        (counts.values, VALUE),
        (counts.containers, CONTAINER),
        (counts.members, MEMBER),
    ];
    parts.into_iter().fold(0, |sum, (n, size)| {
        n.saturating_mul(size).saturating_add(sum)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use thread::json::{Limits, check};

    fn budgets(total: usize, tenant: usize) -> impl Fn(&str) -> (BodyBudgets, BodyLease) {
        let budgets = BodyBudgets::new(total);
        move |name| {
            (
                budgets.clone(),
                budgets.lease(&TenantId::from(name), tenant),
            )
        }
    }

    fn refused(taken: Result<(), LimitReached>) -> &'static str {
        taken.unwrap_err().name
    }

    #[test]
    fn a_tenant_can_not_spend_the_budget_of_another() {
        let lease = budgets(100, 60);
        let ((_, one), (_, same), (budgets, other)) = (lease("a"), lease("a"), lease("b"));
        one.take(50).unwrap();
        assert_eq!(refused(same.take(11)), "tenant.body_bytes_in_flight");
        other.take(50).unwrap();
        assert_eq!(refused(same.take(1)), "body_bytes_in_flight");
        let refusals: u64 = budgets.refusals().values().sum();
        assert_eq!(refusals, 2);
        assert_eq!(budgets.in_flight(), 100);
    }

    #[test]
    fn a_dropped_lease_frees_its_bytes() {
        let lease = budgets(100, 60);
        let (budgets, one) = lease("a");
        one.take(40).unwrap();
        let clone = one.clone();
        drop(one.split(10));
        drop(one);
        assert_eq!(budgets.in_flight(), 30);
        drop(clone);
        assert_eq!(budgets.in_flight(), 0);
        assert!(budgets.held().tenants.is_empty());
    }

    #[test]
    fn a_body_whose_values_exceed_the_budget_is_too_large() {
        let lease = budgets(1 << 20, 1 << 16);
        let (budgets, one) = lease("a");
        let text = format!("[{}0]", "0,".repeat(9_999));
        let counts = check(&text, &Limits::default()).unwrap();
        let refused = one.take_values(text.len(), &counts).unwrap_err();
        let ApiError::TooManyValues { limit } = refused else {
            panic!("{refused}")
        };
        assert!((1..10_000).contains(&limit), "{limit}");
        assert_eq!(budgets.in_flight(), 0);
    }
}
