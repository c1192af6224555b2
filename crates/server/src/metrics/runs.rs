//! Metrics of concurrent runs and queued triggers, with their limits.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use runtime::RunSlots;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfTenant {
    tenant: String,
}

#[derive(Clone, Default)]
pub(super) struct SlotFigures {
    running: Gauge,
    limit: Gauge,
    waiting: Gauge,
    unrecovered: Gauge,
    tenant_running: Family<OfTenant, Gauge>,
    tenant_limit: Family<OfTenant, Gauge>,
    tenant_queued: Family<OfTenant, Gauge>,
    tenant_queue_limit: Family<OfTenant, Gauge>,
}

impl SlotFigures {
    pub(super) fn register(&self, registry: &mut Registry) {
        let of_process = [
            ("concurrent_runs", "Runs that have a slot", &self.running),
            (
                "concurrent_runs_limit",
                "Maximum number of runs that have a slot",
                &self.limit,
            ),
            (
                "waiting_runs",
                "Resumed runs that wait for a slot",
                &self.waiting,
            ),
            (
                "unrecovered_threads",
                "Unfinished threads of the last process whose recovery has not come yet",
                &self.unrecovered,
            ),
        ];
        for (name, help, gauge) in of_process {
            registry.register(name, help, gauge.clone());
        }
        let of_tenants = [
            (
                "tenant_concurrent_runs",
                "Runs of a tenant that have a slot",
                &self.tenant_running,
            ),
            (
                "tenant_concurrent_runs_limit",
                "Maximum number of runs of a tenant that have a slot",
                &self.tenant_limit,
            ),
            (
                "tenant_queued_triggers",
                "Triggers that wait in the queues of a tenant's threads",
                &self.tenant_queued,
            ),
            (
                "tenant_queued_triggers_limit",
                "Maximum number of triggers that wait in the queues of a tenant's threads",
                &self.tenant_queue_limit,
            ),
        ];
        for (name, help, family) in of_tenants {
            registry.register(name, help, family.clone());
        }
    }

    pub(super) fn set(&self, slots: &RunSlots, n_unrecovered: usize) {
        let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        self.running.set(number(slots.running()));
        self.limit.set(number(slots.limits().concurrent_runs));
        self.waiting.set(number(slots.waiting()));
        self.unrecovered.set(number(n_unrecovered));
        let families = [
            &self.tenant_running,
            &self.tenant_limit,
            &self.tenant_queued,
            &self.tenant_queue_limit,
        ];
        for family in families {
            family.clear();
        }
        for usage in slots.tenants() {
            let of = OfTenant {
                tenant: usage.tenant.as_str().to_owned(),
            };
            let values = [
                usage.running,
                usage.limits.concurrent_runs,
                usage.queued_triggers,
                usage.limits.queued_triggers,
            ];
            for (family, value) in families.into_iter().zip(values) {
                family.get_or_create(&of).set(number(value));
            }
        }
    }
}
