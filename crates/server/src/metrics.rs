//! Figures for Prometheus.

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    method: String,
    route: String,
    status: u16,
}

/// The figures of a server.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Answered, Counter>,
    executions: Gauge,
    streams: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("loomline");
        let requests = Family::<Answered, Counter>::default();
        let (executions, streams) = (Gauge::<i64>::default(), Gauge::<i64>::default());
        registry.register("http_requests", "Requests answered", requests.clone());
        registry.register(
            "running_executions",
            "Executions that run in this process",
            executions.clone(),
        );
        registry.register(
            "open_streams",
            "Event streams that are open",
            streams.clone(),
        );
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "What this is", build);
        Self {
            registry,
            requests,
            executions,
            streams,
        }
    }
}

impl Metrics {
    /// Counts an answer. `route` is a pattern, never a path: there are finitely many.
    pub(crate) fn answered(&self, method: &http::Method, route: &str, status: u16) {
        let known = ["GET", "POST", "DELETE", "HEAD", "OPTIONS"];
        let method = if known.contains(&method.as_str()) {
            method.as_str()
        } else {
            "other"
        };
        let labels = Answered {
            method: method.to_owned(),
            route: route.to_owned(),
            status,
        };
        self.requests.get_or_create(&labels).inc();
    }

    /// The figures as text.
    pub(crate) fn encode(
        &self,
        executions: usize,
        streams: usize,
    ) -> Result<String, std::fmt::Error> {
        self.executions
            .set(i64::try_from(executions).unwrap_or(i64::MAX));
        self.streams.set(i64::try_from(streams).unwrap_or(i64::MAX));
        let mut out = String::new();
        text::encode(&mut out, &self.registry)?;
        Ok(out)
    }
}
