//! Spans to an OpenTelemetry collector; off unless configured.
//!
//! What is sent are the spans of `upp::telemetry` and `agents::telemetry` and nothing else: agent
//! runs, model calls and tool executions. A run of the server has one `invoke_agent` span a step,
//! each the root of a trace of its own, for a run may outlive the process and a span can't; the
//! spans of one thread have one `gen_ai.conversation.id`, the thread's key.
//!
//! [`install`] starts the export, and the guard's layer goes into the subscriber. The collector is
//! reached by a thread of its own; when it can't be, spans are dropped and the server goes on.

#[cfg(not(feature = "otel"))]
#[path = "telemetry/absent.rs"]
mod export;
#[cfg(feature = "otel")]
mod export;
#[cfg(feature = "otel")]
mod reporting;

pub use export::TelemetryGuard;

use http::Uri;
use secrecy::SecretString;
use std::collections::BTreeMap;

/// The path of traces below a collector's address.
const TRACES: &str = "/v1/traces";

/// Where spans go, and which.
#[derive(Clone, Debug)]
pub struct TelemetryConfig {
    /// The collector's address, `http` or `https`, for OTLP over HTTP with Protocol Buffers, such
    /// as `http://localhost:4318`. `/v1/traces` is appended unless it ends so.
    pub endpoint: String,
    /// Headers of each request, such as a key.
    pub headers: BTreeMap<String, SecretString>,
    /// How the collector knows this server (`service.name`).
    pub service_name: String,
    /// The part of all traces that is sent, from 0 to 1.
    pub sample_ratio: f64,
    /// Whether spans hold messages, system prompts, and the arguments and results of tools. All of
    /// it may be personal or secret.
    pub capture_content: bool,
}

impl TelemetryConfig {
    /// All spans, without content, to this collector.
    pub fn new(endpoint: impl Into<String>) -> Self {
        Self {
            endpoint: endpoint.into(),
            headers: BTreeMap::new(),
            service_name: "loomline".to_owned(),
            sample_ratio: 1.0,
            capture_content: false,
        }
    }

    /// What OpenTelemetry's own variables say; `None` unless `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`
    /// or `OTEL_EXPORTER_OTLP_ENDPOINT` names a collector, and where `OTEL_SDK_DISABLED` is `true`.
    ///
    /// Also read are `OTEL_SERVICE_NAME`, `OTEL_TRACES_SAMPLER_ARG` (the ratio) and
    /// `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`. The exporter itself reads
    /// `OTEL_EXPORTER_OTLP_HEADERS`.
    pub fn from_env(env: &dyn Fn(&str) -> Option<String>) -> Result<Option<Self>, TelemetryError> {
        let value = |name| env(name).filter(|value| !value.is_empty());
        let is_true = |name| value(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let endpoint = value("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
            .or_else(|| value("OTEL_EXPORTER_OTLP_ENDPOINT"));
        let Some(endpoint) = endpoint.filter(|_| !is_true("OTEL_SDK_DISABLED")) else {
            return Ok(None);
        };
        let mut config = Self::new(endpoint);
        if let Some(name) = value("OTEL_SERVICE_NAME") {
            config.service_name = name;
        }
        if let Some(ratio) = value("OTEL_TRACES_SAMPLER_ARG") {
            config.sample_ratio = ratio
                .parse()
                .map_err(|_| TelemetryError::SampleRatio { given: ratio })?;
        }
        config.capture_content = is_true("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT");
        Ok(Some(config))
    }

    /// The address spans are sent to.
    fn traces_endpoint(&self) -> Result<String, TelemetryError> {
        let wrong = || TelemetryError::Endpoint {
            given: self.endpoint.clone(),
        };
        let uri: Uri = self.endpoint.parse().map_err(|_| wrong())?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.query().is_some() {
            return Err(wrong());
        }
        let base = self.endpoint.trim_end_matches('/');
        if base.ends_with(TRACES) {
            return Ok(base.to_owned());
        }
        Ok(format!("{base}{TRACES}"))
    }

    fn check(&self) -> Result<(), TelemetryError> {
        if !(0.0..=1.0).contains(&self.sample_ratio) {
            let given = self.sample_ratio.to_string();
            return Err(TelemetryError::SampleRatio { given });
        }
        self.traces_endpoint().map(|_| ())
    }
}

/// Why no spans can be sent.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The address is none.
    #[error(
        "the telemetry endpoint {given:?} is no http or https address, such as http://localhost:4318"
    )]
    Endpoint {
        /// What was given.
        given: String,
    },
    /// The ratio is none.
    #[error("the telemetry sample ratio {given:?} is no number from 0 to 1")]
    SampleRatio {
        /// What was given.
        given: String,
    },
    /// A header can't be sent; its value is not told, for it may be a key.
    #[error(
        "the telemetry header {name:?} can't be sent: its name or its value has characters that headers can't have"
    )]
    Header {
        /// Its name.
        name: String,
    },
    /// This program was built without the cargo feature `otel`.
    #[error(
        "telemetry is configured, and this program was built without it (the cargo feature otel)"
    )]
    NotBuilt,
    /// The exporter can't be made.
    #[error("the telemetry exporter can't be made")]
    Exporter(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The spans were not all sent.
    #[error("the last spans could not be sent")]
    Flush(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Starts the export. The layer of the guard goes into the subscriber; until then, nothing is
/// made or sent. Dropping the guard sends what is left, within five seconds.
///
/// Connects to nobody: that the collector can't be reached shows later, in the log.
pub fn install(config: &TelemetryConfig) -> Result<TelemetryGuard, TelemetryError> {
    config.check()?;
    let guard = TelemetryGuard::start(config)?;
    upp::telemetry::capture_content(config.capture_content);
    Ok(guard)
}

#[cfg(test)]
mod tests;
