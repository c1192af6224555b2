//! The budgets of requests and streams: of each key, of each tenant, and of the process.

mod pool;

pub(crate) use pool::Permit;

use crate::auth::{Budget, Caller};
use crate::body::budget::{BodyBudgets, BodyLease};
use crate::config::{Config, TenantConfig, TenantLimits};
use pool::{Names, Pool};
use runtime::{LimitKind, LimitReached, Quotas, Refusals, StorageLimits, TenantId};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

const STREAMS: Names = Names {
    process: "streams",
    tenant: "tenant.streams",
};

const REQUESTS: Names = Names {
    process: "requests_in_flight",
    tenant: "tenant.requests_in_flight",
};

/// The rate of one tenant.
struct Rate {
    per_minute: NonZeroU32,
    budget: Budget,
}

/// The configuration of one tenant.
struct Tenant {
    limits: TenantLimits,
    /// The rate limit; none in development mode unless configured.
    rate: Option<Rate>,
}

/// The budgets of requests and streams, and the storage limits of the tenants.
pub(crate) struct Budgets {
    is_development: bool,
    default: TenantLimits,
    tenants: RwLock<BTreeMap<TenantId, Arc<Tenant>>>,
    streams: Arc<Pool>,
    requests: Arc<Pool>,
    durable: Quotas,
    ephemeral: Quotas,
    bodies: BodyBudgets,
    refusals: Mutex<Refusals>,
}

impl Budgets {
    /// The unused budgets of a configuration.
    pub(crate) fn new(config: &Config) -> Self {
        let limits = &config.limits;
        let own = Self {
            is_development: config.is_development(),
            default: limits.tenant,
            tenants: RwLock::default(),
            streams: Pool::new(STREAMS, limits.streams),
            requests: Pool::new(REQUESTS, limits.requests_in_flight),
            durable: Quotas::default(),
            ephemeral: Quotas::ephemeral(),
            bodies: BodyBudgets::new(limits.body_bytes_in_flight),
            refusals: Mutex::default(),
        };
        own.replace(&config.tenants);
        own
    }

    /// Replaces the limits of the tenants. Requests and permits that they have used still count.
    pub(crate) fn replace(&self, tenants: &BTreeMap<String, TenantConfig>) {
        let mut known = self.tenants.write().unwrap_or_else(PoisonError::into_inner);
        let next = tenants.iter().map(|(name, config)| {
            let id = TenantId::from(name.as_str());
            let tenant = self.tenant(config.limits, known.get(&id));
            (id, Arc::new(tenant))
        });
        let next: BTreeMap<_, _> = next.collect();
        let of = |limits: fn(&TenantLimits) -> StorageLimits| {
            let own = next.iter();
            own.map(move |(id, it)| (id.clone(), limits(&it.limits)))
                .collect()
        };
        self.durable.replace(durable(&self.default), of(durable));
        self.ephemeral
            .replace(ephemeral(&self.default), of(ephemeral));
        self.streams.share_among(next.len());
        self.requests.share_among(next.len());
        *known = next;
    }

    fn tenant(&self, limits: TenantLimits, former: Option<&Arc<Tenant>>) -> Tenant {
        let per_minute = limits.rate(self.is_development);
        let former = former.and_then(|it| it.rate.as_ref());
        let rate = per_minute.map(|per_minute| Rate {
            per_minute,
            budget: match former.filter(|it| it.per_minute == per_minute) {
                Some(former) => former.budget.clone(),
                None => Budget::new(per_minute),
            },
        });
        Tenant { limits, rate }
    }

    fn of(&self, tenant: &TenantId) -> Arc<Tenant> {
        let tenants = self.tenants.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = tenants.get(tenant) {
            return Arc::clone(known);
        }
        drop(tenants);
        // The tenant of development mode, or one that is no longer configured.
        let mut tenants = self.tenants.write().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(self.tenant(self.default, None));
        Arc::clone(tenants.entry(tenant.clone()).or_insert_with(new))
    }

    /// The limits of a tenant.
    pub(crate) fn limits(&self, tenant: &TenantId) -> TenantLimits {
        self.of(tenant).limits
    }

    /// The storage limits of the tenants, in the store.
    pub(crate) fn durable(&self) -> &Quotas {
        &self.durable
    }

    /// The limits of the threads that exist in memory only.
    pub(crate) fn ephemeral(&self) -> &Quotas {
        &self.ephemeral
    }

    /// Counts one request against the rate of the caller's tenant.
    pub(crate) fn spend(&self, caller: &Caller, n_servers: NonZeroU32) -> Result<(), LimitReached> {
        let tenant = self.of(&caller.tenant);
        let Some(rate) = &tenant.rate else {
            return Ok(());
        };
        rate.budget.spend(n_servers).map_err(|wait| {
            self.refused(
                &caller.tenant,
                LimitReached {
                    name: "tenant.requests_per_minute",
                    max: rate.per_minute.get().into(),
                    kind: LimitKind::Rate { wait },
                },
            )
        })
    }

    /// Counts a request as in flight until the permit is dropped.
    pub(crate) fn begin_request(&self, caller: &Caller) -> Result<Permit, LimitReached> {
        let max = self.of(&caller.tenant).limits.requests_in_flight;
        self.requests
            .acquire(&caller.tenant, max, None)
            .map_err(|reached| self.refused(&caller.tenant, reached))
    }

    /// Counts a stream as open until the permit is dropped.
    pub(crate) fn open_stream(&self, caller: &Caller) -> Result<Permit, LimitReached> {
        let limits = self.of(&caller.tenant).limits;
        let key = Some((&caller.name, limits.streams_per_key));
        self.streams
            .acquire(&caller.tenant, limits.streams, key)
            .map_err(|reached| self.refused(&caller.tenant, reached))
    }

    /// The share of the budgets for one request body of a tenant.
    pub(crate) fn body_lease(&self, tenant: &TenantId) -> BodyLease {
        self.bodies
            .lease(tenant, self.of(tenant).limits.body_bytes_in_flight)
    }

    /// The request bodies of all tenants.
    pub(crate) fn bodies(&self) -> &BodyBudgets {
        &self.bodies
    }

    fn refused(&self, tenant: &TenantId, reached: LimitReached) -> LimitReached {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        *refusals.entry((tenant.clone(), reached.name)).or_default() += 1;
        reached
    }

    /// The open streams of all tenants.
    pub(crate) fn streams(&self) -> &Pool {
        &self.streams
    }

    /// The requests in flight of all tenants.
    pub(crate) fn requests(&self) -> &Pool {
        &self.requests
    }

    /// The configured tenants, and others that have made a request.
    pub(crate) fn tenants(&self) -> Vec<TenantId> {
        let tenants = self.tenants.read().unwrap_or_else(PoisonError::into_inner);
        tenants.keys().cloned().collect()
    }

    /// Number of requests that each limit has refused, by tenant.
    pub(crate) fn refusals(&self) -> Refusals {
        let refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = refusals.clone();
        drop(refusals);
        all.extend(self.bodies.refusals());
        for quotas in [&self.durable, &self.ephemeral] {
            all.extend(quotas.refusals());
        }
        all
    }
}

fn durable(limits: &TenantLimits) -> StorageLimits {
    StorageLimits {
        threads: limits.threads,
        bytes: limits.stored_bytes,
        files: limits.files,
    }
}

fn ephemeral(limits: &TenantLimits) -> StorageLimits {
    StorageLimits {
        threads: limits.ephemeral_threads as u64,
        bytes: limits.ephemeral_bytes as u64,
        ..StorageLimits::default()
    }
}
