//! The storage usage of tenants, and its limits.

use crate::{LimitKind, LimitReached, TenantId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// The storage usage of a tenant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StorageUsage {
    /// The number of threads.
    pub threads: u64,
    /// The size of all events, objects and contents, in bytes. A content that several objects share
    /// counts once.
    pub bytes: u64,
    /// The number of objects that have a content.
    pub files: u64,
}

/// How much a tenant may have in a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorageLimits {
    /// Maximum number of threads.
    pub threads: u64,
    /// Maximum size of all events, objects and contents, in bytes.
    pub bytes: u64,
    /// Maximum number of objects that have a content.
    pub files: u64,
}

impl Default for StorageLimits {
    /// No limits.
    fn default() -> Self {
        Self {
            threads: u64::MAX,
            bytes: u64::MAX,
            files: u64::MAX,
        }
    }
}

/// The names of a store's limits in the configuration, and when a refused request may succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Names {
    threads: &'static str,
    bytes: &'static str,
    files: &'static str,
    kind: LimitKind,
}

const DURABLE: Names = Names {
    threads: "tenant.threads",
    bytes: "tenant.stored_bytes",
    files: "tenant.files",
    kind: LimitKind::Storage,
};

// What is in memory goes when its run ends.
const EPHEMERAL: Names = Names {
    threads: "tenant.ephemeral_threads",
    bytes: "tenant.ephemeral_bytes",
    files: "tenant.ephemeral_bytes",
    kind: LimitKind::Concurrency,
};

/// The storage limits of all tenants. Cloning shares them: replacing limits affects open stores.
#[derive(Clone, Debug)]
pub struct Quotas {
    names: Names,
    limits: Arc<RwLock<Limits>>,
    refusals: Arc<Mutex<Refusals>>,
}

/// How many requests of each tenant each limit has refused, by the limit's name.
pub type Refusals = BTreeMap<(TenantId, &'static str), u64>;

#[derive(Debug, Default)]
struct Limits {
    default: StorageLimits,
    tenants: BTreeMap<TenantId, StorageLimits>,
}

impl Default for Quotas {
    /// No limits.
    fn default() -> Self {
        Self {
            names: DURABLE,
            limits: Arc::default(),
            refusals: Arc::default(),
        }
    }
}

impl Quotas {
    /// The limits of the store in memory for ephemeral threads, which are deleted after their runs.
    pub fn ephemeral() -> Self {
        Self {
            names: EPHEMERAL,
            ..Self::default()
        }
    }

    /// Replaces all limits. `default` is that of the tenants that are not in `tenants`.
    pub fn replace(&self, default: StorageLimits, tenants: BTreeMap<TenantId, StorageLimits>) {
        let mut limits = self.limits.write().unwrap_or_else(PoisonError::into_inner);
        *limits = Limits { default, tenants };
    }

    /// The limits of one tenant.
    pub fn of(&self, tenant: &TenantId) -> StorageLimits {
        let limits = self.limits.read().unwrap_or_else(PoisonError::into_inner);
        let own = limits.tenants.get(tenant);
        own.copied().unwrap_or(limits.default)
    }

    /// Whether no tenant has a limit.
    pub fn are_unlimited(&self) -> bool {
        let limits = self.limits.read().unwrap_or_else(PoisonError::into_inner);
        let mut all = limits.tenants.values().chain([&limits.default]);
        all.all(|limits| *limits == StorageLimits::default())
    }

    /// Refuses a thread with events of this size.
    ///
    /// # Errors
    ///
    /// [`LimitReached`] if the tenant has as many threads as it may, or too little space.
    pub fn check_thread(
        &self,
        tenant: &TenantId,
        usage: StorageUsage,
        bytes: u64,
    ) -> Result<(), LimitReached> {
        let max = self.of(tenant).threads;
        if usage.threads >= max {
            return Err(self.reached(tenant, self.names.threads, max));
        }
        self.check_bytes(tenant, usage, bytes)
    }

    /// Refuses content of this size.
    ///
    /// # Errors
    ///
    /// [`LimitReached`] if the tenant has too little space.
    pub fn check_bytes(
        &self,
        tenant: &TenantId,
        usage: StorageUsage,
        bytes: u64,
    ) -> Result<(), LimitReached> {
        let max = self.of(tenant).bytes;
        if usage.bytes.saturating_add(bytes) > max {
            return Err(self.reached(tenant, self.names.bytes, max));
        }
        Ok(())
    }

    /// Refuses one more object with a content.
    ///
    /// # Errors
    ///
    /// [`LimitReached`] if the tenant has as many as it may.
    pub fn check_file(&self, tenant: &TenantId, usage: StorageUsage) -> Result<(), LimitReached> {
        let max = self.of(tenant).files;
        if usage.files >= max {
            return Err(self.reached(tenant, self.names.files, max));
        }
        Ok(())
    }

    /// How many requests were refused.
    pub fn refusals(&self) -> Refusals {
        let refusals = self.refusals.lock();
        refusals.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn reached(&self, tenant: &TenantId, name: &'static str, max: u64) -> LimitReached {
        let refusals = self.refusals.lock();
        let mut refusals = refusals.unwrap_or_else(PoisonError::into_inner);
        *refusals.entry((tenant.clone(), name)).or_default() += 1;
        let kind = self.names.kind;
        LimitReached { name, max, kind }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_is_replaced_applies_at_once() {
        let quotas = Quotas::default();
        let (shared, tenant) = (quotas.clone(), TenantId::from("a"));
        let usage = StorageUsage {
            threads: 1,
            ..StorageUsage::default()
        };
        assert_eq!(shared.check_thread(&tenant, usage, 1), Ok(()));
        let one = StorageLimits {
            threads: 1,
            ..StorageLimits::default()
        };
        quotas.replace(StorageLimits::default(), [(tenant.clone(), one)].into());
        let refused = shared.check_thread(&tenant, usage, 1).unwrap_err();
        assert_eq!((refused.name, refused.max), ("tenant.threads", 1));
        assert_eq!(shared.check_thread(&"b".into(), usage, 1), Ok(()));
    }
}
