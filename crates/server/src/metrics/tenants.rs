//! Metrics of each tenant's usage and limits.

use crate::budgets::Budgets;
use crate::config::LimitsConfig;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use runtime::{Runtime, RuntimeError, StorageUsage, TenantId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfTenant {
    tenant: String,
    limit: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfProcess {
    limit: String,
}

#[derive(Clone, Default)]
pub(super) struct TenantFigures {
    used: Family<OfTenant, Gauge>,
    limits: Family<OfTenant, Gauge>,
    refused: Family<OfTenant, Counter>,
    process_used: Family<OfProcess, Gauge>,
    process_limits: Family<OfProcess, Gauge>,
}

/// A limit's name, its usage and its maximum.
type Row = (&'static str, u64, u64);

/// The usage of all tenants at one time.
pub(crate) struct TenantUsage {
    tenants: Vec<(TenantId, Vec<Row>)>,
    process: Vec<Row>,
    refused: Vec<(TenantId, &'static str, u64)>,
}

impl TenantUsage {
    /// Reads the tenants' usage of their limits, over stored and in-memory threads.
    pub(crate) async fn read(
        durable: &BTreeMap<TenantId, StorageUsage>,
        ephemeral: &Runtime,
        budgets: &Budgets,
        process: &LimitsConfig,
    ) -> Result<Self, RuntimeError> {
        let ephemeral = ephemeral.store().usage().await?;
        let ephemeral: BTreeMap<_, _> = ephemeral.into_iter().collect();
        let bodies = budgets.bodies();
        let mut tenants: BTreeSet<_> = budgets.tenants().into_iter().collect();
        tenants.extend(durable.keys().cloned());
        let tenants = tenants.into_iter().map(|tenant| {
            let limits = budgets.limits(&tenant);
            let of = |usage: &BTreeMap<TenantId, StorageUsage>| usage.get(&tenant).copied();
            let durable = of(durable).unwrap_or_default();
            let ephemeral = of(&ephemeral).unwrap_or_default();
            let (streams, requests) = (budgets.streams(), budgets.requests());
            let rows = vec![
                row("tenant.streams", streams.held_by(&tenant), limits.streams),
                row(
                    "tenant.requests_in_flight",
                    requests.held_by(&tenant),
                    limits.requests_in_flight,
                ),
                row(
                    "tenant.body_bytes_in_flight",
                    bodies.held_by(&tenant),
                    limits.body_bytes_in_flight,
                ),
                ("tenant.threads", durable.threads, limits.threads),
                ("tenant.stored_bytes", durable.bytes, limits.stored_bytes),
                ("tenant.files", durable.files, limits.files),
                (
                    "tenant.ephemeral_threads",
                    ephemeral.threads,
                    limits.ephemeral_threads as u64,
                ),
                (
                    "tenant.ephemeral_bytes",
                    ephemeral.bytes,
                    limits.ephemeral_bytes as u64,
                ),
            ];
            (tenant, rows)
        });
        let (streams, requests) = (budgets.streams(), budgets.requests());
        let ephemeral_bytes: u64 = ephemeral.values().map(|usage| usage.bytes).sum();
        let refused = budgets.refusals().into_iter();
        Ok(Self {
            tenants: tenants.collect(),
            process: vec![
                row("streams", streams.total(), streams.max()),
                row("requests_in_flight", requests.total(), requests.max()),
                row("body_bytes_in_flight", bodies.in_flight(), bodies.max()),
                (
                    "ephemeral_bytes",
                    ephemeral_bytes,
                    process.ephemeral_bytes as u64,
                ),
            ],
            refused: refused
                .map(|((tenant, name), n)| (tenant, name, n))
                .collect(),
        })
    }
}

fn row(limit: &'static str, used: usize, max: usize) -> Row {
    (limit, used as u64, max as u64)
}

impl TenantFigures {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let own = Self::default();
        let used = "What each tenant uses of its limits";
        registry.register("tenant_usage", used, own.used.clone());
        let limits = "The limits of each tenant";
        registry.register("tenant_limit", limits, own.limits.clone());
        let refused = "Requests of each tenant that a limit refused";
        registry.register("limit_refusals", refused, own.refused.clone());
        let used = "What all tenants use of the limits of the process";
        registry.register("process_usage", used, own.process_used.clone());
        let limits = "The limits of the process";
        registry.register("process_limit", limits, own.process_limits.clone());
        own
    }

    pub(super) fn set(&self, usage: &TenantUsage) {
        // Of tenants that are gone nothing is left.
        self.used.clear();
        self.limits.clear();
        for (tenant, rows) in &usage.tenants {
            for (limit, used, max) in rows {
                let labels = labels(tenant, limit);
                self.used.get_or_create(&labels).set(gauge(*used));
                self.limits.get_or_create(&labels).set(gauge(*max));
            }
        }
        for (limit, used, max) in &usage.process {
            let labels = OfProcess {
                limit: (*limit).to_owned(),
            };
            self.process_used.get_or_create(&labels).set(gauge(*used));
            self.process_limits.get_or_create(&labels).set(gauge(*max));
        }
        for (tenant, limit, n_refused) in &usage.refused {
            let counter = self.refused.get_or_create(&labels(tenant, limit));
            counter.inner().store(*n_refused, Ordering::Relaxed);
        }
    }
}

fn labels(tenant: &TenantId, limit: &str) -> OfTenant {
    OfTenant {
        tenant: tenant.to_string(),
        limit: limit.to_owned(),
    }
}

fn gauge(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
